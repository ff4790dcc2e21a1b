// The visitor's language, chosen before anything is painted, and its words sent for: this script stands in the page's head
// as it is. Gradio decides by the same rule for its own labels; Chinese it knows as zh-CN and zh-TW only.
{
  const languages = JSON.parse(document.currentScript.dataset.languages); // code -> where its words are, or null
  const [code, region] = navigator.language.split("-");
  const language =
    code === "zh" && !["CN", "TW"].includes(region)
      ? undefined
      : [navigator.language, code].find((name) => Object.hasOwn(languages, name));
  if (language) {
    document.documentElement.dataset.language = language;
    const link = {
      rel: "preload",
      as: "fetch",
      crossOrigin: "anonymous",
      href: languages[language],
    };
    if (link.href) document.head.append(Object.assign(document.createElement("link"), link));
  }
}
