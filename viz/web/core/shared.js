// What every component of the page shares. Plain scripts, no build step: one global, AttentionAtlas.
(function () {
  "use strict";
  const atlas = (window.AttentionAtlas = window.AttentionAtlas || { components: {} });

  // Called from a component's js_on_load. The component's script, or the page's words, may still be loading then. Gradio
  // reads the names of the events off the call; options: what the component is told once; plotly: where Plotly.js is.
  atlas.mount = function (name, element, props, trigger, watch, server, events, options, plotly) {
    if (plotly) address = plotly;
    const start = () => {
      const root = element.querySelector(".atlas-root") || element;
      const api = {
        value: () => props.value,
        onValue: (callback) => watch("value", () => callback(props.value)),
        trigger,
        server,
        options,
      };
      root.dataset.mounted = "";
      atlas.components[name](root, api);
      atlas.nameMenus?.();
    };
    const startInWords = () => (atlas.spoken ? atlas.spoken.then(start) : start());
    if (atlas.components[name]) startInWords();
    else window.addEventListener(`atlas:${name}`, startInWords, { once: true });
  };

  // Once Plotly.js is there. It is most of all that is loaded, and reading it takes longer than all else together: it is
  // fetched when somebody first asks, and after what is on the page by then has been painted.
  let address = null,
    loading = null;
  atlas.plotly = function () {
    loading ||= window.Plotly
      ? Promise.resolve()
      : painted().then(
          () =>
            new Promise((resolve, reject) => {
              const script = atlas.element("script", {
                src: address,
                onload: resolve,
                onerror: () => reject(new Error(address)),
              });
              document.head.append(script);
            }),
        );
    return loading;
  };

  // After the next frame, when nothing else waits; at once in a page that is not shown, which has no frames.
  const painted = () =>
    new Promise((resolve) => {
      if (document.hidden) return resolve();
      requestAnimationFrame(() =>
        window.requestIdleCallback
          ? requestIdleCallback(resolve, { timeout: 500 })
          : setTimeout(resolve),
      );
    });

  // What few visitors need, fetched once they do: {script, style}. A promise that it is there.
  atlas.fetched = function ({ script, style }) {
    const load = (tag, attributes) =>
      new Promise((resolve, reject) => {
        document.head.append(
          atlas.element(tag, {
            ...attributes,
            onload: resolve,
            onerror: () => reject(new Error(script)),
          }),
        );
      });
    return Promise.all([
      load("link", { rel: "stylesheet", href: style }),
      load("script", { src: script }),
    ]);
  };

  // A component's script ends with this.
  atlas.register = function (name, component) {
    atlas.components[name] = component;
    window.dispatchEvent(new Event(`atlas:${name}`));
  };

  // English words, with {names} in braces -> the same in the page's language as a list of texts and values; a value may be
  // a node, or a list of them. A component may use this once it is mounted: before, the words may still be on their way.
  // A whole number in words has its thousands apart by a narrow space: no language reads that as a decimal point.
  const written = (value) =>
    Number.isInteger(value) ? value.toLocaleString("en").replaceAll(",", "\u202f") : said(value);
  const split = (english, value) =>
    (atlas.words?.[english] ?? english)
      .split(/\{(\w+)\}/)
      .flatMap((part, i) => (i % 2 ? value(part) : part));
  atlas.parts = (english, values = {}) => split(english, (name) => written(values[name]));
  atlas.t = (english, values) => atlas.parts(english, values).join("");

  // The same for later, such as a module's constants: words that said() and element() put into the page's language.
  atlas.say = (english, values = {}) => ({ say: english, with: values });

  // What the server sends to be shown: words of viz/words.py ({say, with}) in the page's language; all else stays.
  const said = (given) => (given?.say === undefined ? given : atlas.t(given.say, given.with));
  atlas.said = said;

  // Words of the server as a list of texts and nodes: wrap(text) in place of each value whose name is among these.
  atlas.saidParts = (given, names, wrap) =>
    split(given.say, (name) =>
      names.includes(name) ? wrap(written(given.with[name])) : written(given.with[name]),
    );

  // tab -> what is seen there as the fields of a link; a tab that has none is opened by those of the explorer.
  atlas.views ||= {};

  // What the part of the page's address behind # says, as URLSearchParams. No server sees it.
  atlas.link = () => new URLSearchParams(location.hash.replace(/^#/, ""));

  // Whether a link's fields are about a translation, an object that has these names; of what either does not say, any will do.
  atlas.isAbout = (link, { text, direction, checkpoint, beam }) =>
    Object.entries({ text, direction, checkpoint }).every(
      ([name, value]) => !link.get(name) || link.get(name) === value,
    ) &&
    (beam === null || Number(link.get("beam") ?? 1) === beam);

  // Copy the page's address with these fields. Where that is not allowed: a field to copy it from, to be shown; else null.
  atlas.copyLink = async function (fields, label) {
    const address = `${location.origin}${location.pathname}${location.search}#${fields}`;
    try {
      await navigator.clipboard.writeText(address);
      return null;
    } catch {
      return atlas.element("input", {
        class: "link",
        readonly: true,
        value: address,
        "aria-label": label,
        onfocus: (event) => event.target.select(),
      });
    }
  };

  // document.createElement with attributes and children; strings become text, never markup.
  atlas.element = function (tag, attributes = {}, ...children) {
    const node = document.createElement(tag);
    for (const [key, value] of Object.entries(attributes)) {
      if (value === null || value === undefined || value === false) continue;
      if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
      else if (key === "class") node.className = value;
      else if (key === "style") node.style.cssText = value;
      else node.setAttribute(key, value === true ? "" : String(said(value)));
    }
    node.append(
      ...children
        .flat()
        .filter((child) => child !== null && child !== undefined)
        .map(said),
    );
    return node;
  };

  // Words in place of a component that has nothing to show yet; without words, the component itself again.
  atlas.invite = function (root, words) {
    root.querySelector(":scope > .invitation")?.remove();
    root.classList.toggle("inviting", Boolean(words));
    if (words) root.prepend(atlas.element("p", { class: "invitation" }, words));
  };

  // For Plotly, which reads tags and entities in labels: the same text, literally.
  atlas.escape = (text) =>
    text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");

  atlas.shorten = (text, limit = 18) =>
    [...text].length <= limit ? text : [...text].slice(0, limit - 1).join("") + "…";

  // Colours "#rrggbb" in order -> 256 steps [red, green, blue], for drawing on a canvas.
  atlas.steps = function (colours) {
    const parsed = colours.map((c) => [1, 3, 5].map((i) => parseInt(c.slice(i, i + 2), 16)));
    return Array.from({ length: 256 }, (_, step) => {
      const at = (step / 255) * (parsed.length - 1),
        low = Math.min(Math.floor(at), parsed.length - 2);
      return parsed[low].map((value, i) =>
        Math.round(value + (at - low) * (parsed[low + 1][i] - value)),
      );
    });
  };

  // The callback once, `wait` milliseconds after the last call.
  atlas.debounce = function (callback, wait) {
    let timer = null;
    return () => {
      clearTimeout(timer);
      timer = setTimeout(callback, wait);
    };
  };

  // Hand a file to the person: the browser saves it.
  atlas.download = function (name, blob) {
    const url = URL.createObjectURL(blob);
    const link = atlas.element("a", { href: url, download: name });
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(url), 10000);
  };

  // Run a callback now and whenever the page turns light or dark.
  atlas.isDark = () => document.body.classList.contains("dark");
  atlas.onTheme = function (callback) {
    let dark = atlas.isDark();
    new MutationObserver(() => {
      if (atlas.isDark() !== dark) {
        dark = atlas.isDark();
        callback(dark);
      }
    }).observe(document.body, { attributes: true, attributeFilter: ["class"] });
  };
})();
