// Inlined in the page's head: applies the visitor's choices (page/display.js) before the first
// paint, and begins to fetch the words of their language. Gradio chooses the language of its own
// labels by the same rule, and knows Chinese only as zh-CN and zh-TW. A stored choice overrides the
// browser's language.
{
  let choices = {};
  try {
    choices = JSON.parse(localStorage.getItem("atlas-display")) ?? {};
  } catch {
    // storage is not available: nothing was chosen
  }
  if (choices.language) {
    Object.defineProperty(navigator, "language", { get: () => choices.language });
    Object.defineProperty(navigator, "languages", { get: () => [choices.language] });
  }
  const address = new URL(location.href);
  if (choices.theme && !address.searchParams.has("__theme")) {
    address.searchParams.set("__theme", choices.theme);
    history.replaceState(history.state, "", address);
  }
  document.documentElement.style.zoom = choices.size ?? "";
  const languages = JSON.parse(document.currentScript.dataset.languages); // code -> address of its words, or null for English
  const [code, region] = navigator.language.split("-");
  const language =
    code === "zh" && !["CN", "TW"].includes(region)
      ? undefined
      : [navigator.language, code].find((name) => Object.hasOwn(languages, name));
  if (language) {
    document.documentElement.dataset.language = language;
    const href = languages[language],
      link = { rel: "preload", as: "fetch", crossOrigin: "anonymous", href };
    if (href) document.head.append(Object.assign(document.createElement("link"), link));
  }
}
