// The page's language. This stands in the page itself, ahead of every other script: the words are on their way while
// the components' scripts still load.
(function () {
  "use strict";
  const atlas = (window.AttentionAtlas = window.AttentionAtlas || { components: {} });

  // Gradio decides by the same rule for its own labels; Chinese it knows as zh-CN and zh-TW only.
  // languages: an object by codes. The visitor's, or undefined.
  const chosen = (atlas.language = function (languages) {
    const [code, region] = navigator.language.split("-");
    if (code === "zh" && !["CN", "TW"].includes(region)) return undefined;
    return [navigator.language, code].find((name) => Object.hasOwn(languages, name));
  });

  // The page says which language it is in. Gradio says it, too, later, of its own labels.
  function keep(language) {
    const page = document.documentElement,
      set = () => page.lang === language || (page.lang = language);
    set();
    new MutationObserver(set).observe(page, { attributeFilter: ["lang"] });
  }

  // languages: code -> a file of viz/web/words/, as its address or as what stands in it. The visitor's own becomes
  // atlas.words: English -> text. Without one, or if it cannot be had, the page is in English.
  // atlas.spoken: a promise that the matter is settled, while it is not.
  atlas.speak = function (languages) {
    const language = chosen(languages),
      given = languages[language];
    const settle = (sections) => {
      atlas.words = Object.assign(Object.create(null), ...Object.values(sections));
      keep(language);
    };
    const english = () => keep("en");
    if (language === undefined) english();
    else if (typeof given === "object") settle(given);
    else {
      atlas.spoken = sections(given)
        .then(settle)
        .catch(english)
        .finally(() => (atlas.spoken = null));
    }
  };

  const sections = (address) =>
    fetch(address, { signal: AbortSignal.timeout(10000) }).then((answer) =>
      answer.ok ? answer.json() : Promise.reject(answer.status),
    );

  // Gradio's menus of the tabs that a strip has no room for: it names them in English alone. To be called once they stand.
  atlas.nameMenus = function () {
    for (const menu of document.querySelectorAll(".overflow-menu > button[aria-label]"))
      menu.ariaLabel = atlas.t("More tabs");
  };

  // More words, of what few visitors open: languages as above. A promise that they are there, or cannot be had.
  atlas.learn = function (languages) {
    const language = chosen(languages);
    return language === undefined
      ? Promise.resolve()
      : sections(languages[language])
          .then((more) =>
            Object.assign((atlas.words ||= Object.create(null)), ...Object.values(more)),
          )
          .catch(() => {});
  };
})();
