// The explorer outside the app: an exported page, or a frame in a notebook's cell. Its bundle
// (viz/export/standalone.py) is in this document, or in that of another frame of the same notebook,
// which leaves it in the window that both can reach.
(async () => {
  "use strict";
  const root = document.getElementById("explorer"),
    bundleScript = document.getElementById("bundle");
  /** @type {any} null if the parent has another origin */
  const notebook = window.frameElement && window.parent;

  function unpack(text) {
    const packed = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
    return new Response(
      new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip")),
    ).text();
  }

  async function bundle(name) {
    if (!bundleScript) {
      if (!notebook?.[name]) await waitForBundle(name);
      return notebook[name];
    }
    const text = await unpack(bundleScript.textContent);
    bundleScript.remove();
    if (notebook) {
      notebook[name] = text;
      notebook.dispatchEvent(new notebook.Event(name));
    }
    return text;
  }

  // Wait for the frame that has the bundle: a notebook may create its cells in any order.
  function waitForBundle(name) {
    const words = /** @type {HTMLElement} */ (root.querySelector(".waiting")),
      translated = JSON.parse(words.dataset.words)[document.documentElement.dataset.language];
    if (translated) words.textContent = translated;
    words.hidden = false;
    return new Promise((resolve) => notebook?.addEventListener(name, resolve, { once: true }));
  }

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

  const { style, modules, languages } = JSON.parse(await bundle(root.dataset.bundle));
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
