// Inlined in the page's head: applies the visitor's choices (page/display.js) before the first
// paint, and begins to fetch the words of their language, and what their language opens with. Gradio chooses the language of its own
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
  const page = document.documentElement.dataset;
  const preload = (href) => {
    const link = { rel: "preload", as: "fetch", crossOrigin: "anonymous", href };
    document.head.append(Object.assign(document.createElement("link"), link));
  };
  if (language) {
    page.language = language;
    if (languages[language]) preload(languages[language]);
  }
  const { opening } = document.currentScript.dataset,
    fields = new URLSearchParams(location.hash.slice(1));
  const tabs = fields.get("tabs"); // of a workshop link (core/links.js)
  if (tabs) page.tabs = tabs;
  if (opening && code === "en" && !["text", "direction"].some((name) => fields.has(name))) {
    page.opening = opening;
    preload(opening);
  }
}
