// The visitor's language, chosen before anything is painted, and its words sent for: this script stands in the page's head
// as it is. Gradio decides by the same rule for its own labels; Chinese it knows as zh-CN and zh-TW only. What was chosen
// in the page's menu (page/display.js) goes before what the browser says.
{
  let chosen = {};
  try {
    chosen = JSON.parse(localStorage.getItem("atlas-display")) ?? {};
  } catch {
    // then nothing was chosen
  }
  if (chosen.language) {
    Object.defineProperty(navigator, "language", { get: () => chosen.language });
    Object.defineProperty(navigator, "languages", { get: () => [chosen.language] });
  }
  const address = new URL(location);
  if (chosen.theme && !address.searchParams.has("__theme")) {
    address.searchParams.set("__theme", chosen.theme);
    history.replaceState(history.state, "", address);
  }
  document.documentElement.style.zoom = chosen.size ?? "";
  const languages = JSON.parse(document.currentScript.dataset.languages); // code -> where its words are, or null
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
