// The explorer outside the app: an exported page, or a frame in a notebook's cell. Its scripts
// (viz/export/standalone.py) are in this document.
(async () => {
  "use strict";
  const root = document.getElementById("explorer");
  /** @type {any} null if the parent has another origin */
  const notebook = window.frameElement && window.parent;

  // Dark like the notebook's background; an exported page like the person's system.
  const system = matchMedia("(prefers-color-scheme: dark)");
  function isDark() {
    for (let node = notebook && frameElement; node; node = node.parentElement) {
      const [red, green, blue, alpha = 1] = notebook
        .getComputedStyle(node)
        .backgroundColor.match(/[\d.]+/g)
        .map(Number);
      if (alpha > 0.5) return 0.299 * red + 0.587 * green + 0.114 * blue < 128;
    }
    return !notebook && system.matches;
  }

  const follow = () => document.body.classList.toggle("dark", isDark());

  function followNotebook() {
    const page = notebook.document,
      changed = () => [0, 500].forEach((wait) => setTimeout(follow, wait)); // its style sheets load
    for (const node of [page.documentElement, page.body])
      new MutationObserver(changed).observe(node, { attributes: true });
    const fit = () =>
      (/** @type {HTMLElement} */ (frameElement).style.height =
        `${Math.ceil(document.documentElement.getBoundingClientRect().height)}px`);
    new ResizeObserver(fit).observe(document.documentElement);
  }

  follow();
  system.addEventListener("change", follow);
  if (notebook) followNotebook();

  const text = atob(document.getElementById("bundle").textContent),
    packed = Uint8Array.from(text, (character) => character.charCodeAt(0)),
    unpacked = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  const { style, modules, languages } = await new Response(unpacked).json();
  const add = (tag, text, more = {}) =>
    document.head.append(
      Object.assign(document.createElement(tag), { textContent: text, ...more }),
    );
  add("style", style);
  // A file's address cannot load modules: each becomes a blob, found by its name.
  const imports = Object.fromEntries(
    Object.entries(modules).map(([name, text]) => [
      name,
      URL.createObjectURL(new Blob([text], { type: "text/javascript" })),
    ]),
  );
  add("script", JSON.stringify({ imports }), { type: "importmap" });
  const { loadWords } = await import("core/language.js");
  await loadWords(languages);

  const traces = [...document.querySelectorAll("script.payload")].map((node) =>
    JSON.parse(node.textContent),
  );
  const { default: explorer } = await import("explorer/explorer.js");
  explorer(root, { value: () => traces[0], later: traces.slice(1) }); // the first is shown, the others can be chosen
})();
