// Helpers for building the page: elements, menus, tables and files, and what the browser tells about themes and visibility.
import { toText } from "./language.js";

/** @typedef {any} Child a node, a text, words of language.js, a nested list of them; null, undefined and false are skipped */

/** @param {any} value */
const isPresent = (value) => value !== null && value !== undefined && value !== false;

/**
 * @template {Element} T
 * @param {T} node @param {Record<string, any>} attributes @param {Child[]} children
 */
function fillElement(node, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) {
    if (!isPresent(value)) continue;
    if (key.startsWith("on"))
      for (const name of key.split(" ")) node.addEventListener(name.slice(2), value);
    else if (key === "style") /** @type {any} */ (node).style.cssText = value;
    else node.setAttribute(key, value === true ? "" : String(toText(value)));
  }
  node.append(...children.flat(Infinity).filter(isPresent).map(toText));
  return node;
}

/** Set an element's text, unless it has it: that would lay out the page again. @param {Element} node @param {string} text */
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/**
 * Create an HTML element. Strings become text, never markup; an attribute `onNAME`, or `onNAME onNAME`, is a listener;
 * attributes that are null, undefined or false are left out.
 *
 *     el("button", { type: "button", onclick: save }, "Save")
 *
 * @param {string} tag @param {Record<string, any>} [attributes] @param {...Child} children
 * @returns {any} the element: `any`, because each tag has properties of its own
 */
export const el = (tag, attributes = {}, ...children) =>
  fillElement(document.createElement(tag), attributes, children);

/**
 * Create an SVG element, as el() creates an HTML element.
 * @param {string} tag @param {Record<string, any>} [attributes] @param {...Child} children
 * @returns {any}
 */
export const svg = (tag, attributes = {}, ...children) =>
  fillElement(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);

/**
 * Create a button in the page's plain style, unless the attributes name another class.
 * @param {Child} words
 * @param {((event: any) => void) | null} onclick null for the submit button of a form
 * @param {Record<string, any>} [attributes]
 */
export const button = (words, onclick, attributes = {}) =>
  el("button", { type: "button", class: "plain", onclick, ...attributes }, words);

/** Create a group of parts. @param {string} kind class names @param {any} label @param {...Child} children */
export const group = (kind, label, ...children) =>
  el("div", { class: kind, role: "group", "aria-label": label }, children);

/**
 * Create a form. Submitting it calls a function, and loads no page.
 * @param {Record<string, any>} attributes @param {() => void} onsubmit @param {...Child} children
 */
export const form = (attributes, onsubmit, ...children) => {
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault();
    onsubmit();
  };
  return el("form", { ...attributes, onsubmit: submit }, children);
};

/**
 * Create a <select>.
 * @param {any[][]} options [value, words] pairs @param {any} selected value @param {Record<string, any>} [attributes]
 */
export const menu = (options, selected, attributes = {}) =>
  el("select", attributes, createOptions(options, selected));

/** Create the options of a <select>. @param {any[][]} options [value, words] pairs @param {any} [selected] value */
export const createOptions = (options, selected) =>
  options.map(([value, words]) => el("option", { value, selected: value === selected }, words));

/** Create a field for a line of text. @param {any} label its name @param {Record<string, any>} attributes */
export const textInput = (label, attributes) =>
  el("input", { type: "text", autocomplete: "off", "aria-label": label, ...attributes });

/**
 * Create a slider.
 * @param {any} label its name for screen readers; null where a <label> names it
 * @param {Record<string, any>} attributes @param {(value: number) => void} oninput
 */
export function rangeField(label, attributes, oninput) {
  const node = el("input", {
    type: "range",
    "aria-label": label,
    ...attributes,
    oninput: () => oninput(Number(node.value)),
  });
  return node;
}

/**
 * Create a table.
 * @param {Child[]} headings texts or header cells @param {Child[]} rows <tr> elements
 * @param {Record<string, any>} [attributes]
 */
export function table(headings, rows, attributes = {}) {
  const cells = headings.map((heading) =>
    heading instanceof Node ? heading : el("th", { scope: "col" }, heading),
  );
  const head = el("thead", {}, el("tr", {}, cells));
  return el("table", attributes, head, el("tbody", {}, rows));
}

/**
 * Show words in place of a component that has no content yet; with null, show the component again.
 * @param {Element} root @param {Child} words
 */
export function showInvitation(root, words) {
  root.querySelector(":scope > .invitation")?.remove();
  root.classList.toggle("inviting", Boolean(words));
  if (words) root.prepend(el("p", { class: "invitation" }, words));
}

/** @type {any} */
let messages = null;
/** @type {any} */
let noticeTimer = null;

/** Return the box of short messages at the foot of the page. */
export const noticeBox = () =>
  (messages ||= document.body.appendChild(el("p", { class: "atlas-told", role: "status" })));

/**
 * Show a short message at the foot of the page; "" hides it.
 * @param {string} words @param {number | null} [milliseconds] until it is hidden; null: until the next message
 */
export function showNotice(words, milliseconds = null) {
  clearTimeout(noticeTimer);
  noticeBox().textContent = words;
  if (milliseconds) noticeTimer = setTimeout(showNotice, milliseconds, "");
}

/** Return the value of a custom property of the page's style sheet, such as a colour. @param {string} name */
export const cssVariable = (name) => getComputedStyle(document.body).getPropertyValue(name).trim();

/** Escape a text for Plotly, which reads tags and entities in labels. @param {string} text */
export const escapeTags = (text) =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");

/** Shorten a text to a number of characters, with an ellipsis. @param {string} text @param {number} [limit] */
export const shorten = (text, limit = 18) =>
  [...text].length <= limit ? text : [...text].slice(0, limit - 1).join("") + "…";

/**
 * Return a function that calls `callback` once, `wait` milliseconds after its last call.
 * @param {() => void} callback @param {number} wait
 */
export function debounce(callback, wait) {
  /** @type {any} */
  let timer = null;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(callback, wait);
  };
}

/** Let the browser save a file. @param {string} name @param {Blob} blob */
export function download(name, blob) {
  const url = URL.createObjectURL(blob);
  const link = el("a", { href: url, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

/**
 * Create a hidden field whose click() lets a person choose a JSON file.
 * @param {(file: File) => any} read called with the file; may throw, or return a promise
 * @param {(message: string) => void} refuse called with the message of an error of `read`
 */
export const fileField = (read, refuse) =>
  el("input", {
    type: "file",
    accept: ".json,application/json",
    hidden: true,
    onchange: async (/** @type {any} */ { target }) => {
      const [file] = target.files;
      target.value = "";
      try {
        if (file) await read(file);
      } catch (error) {
        refuse(/** @type {Error} */ (error).message);
      }
    },
  });

/** Whether the page is used by touch: there is no hovering and no Shift key. */
export const isTouch = matchMedia("(hover: none)").matches;

/** Whether the page is dark now. */
export const isDark = () => document.body.classList.contains("dark");

/**
 * Call a function whenever the page turns light or dark.
 * @param {(isDark: boolean) => void} callback
 * @returns {() => void} a function that ends it
 */
export function onThemeChange(callback) {
  let wasDark = isDark();
  const observer = new MutationObserver(() => {
    if (isDark() === wasDark) return;
    wasDark = isDark();
    callback(wasDark);
  });
  observer.observe(document.body, { attributes: true, attributeFilter: ["class"] });
  return () => observer.disconnect();
}

/**
 * Load a style sheet once. Wait for it before drawing anything that measures itself; a failed sheet is loaded again by the
 * next call.
 * @param {string} address
 * @returns {Promise<void>}
 */
export const loadStyle = (address) =>
  new Promise((resolve, reject) => {
    /** @type {HTMLLinkElement[]} */
    const links = [...document.querySelectorAll(/** @type {"link"} */ ("link[rel=stylesheet]"))];
    let link = links.find(({ href }) => href === address);
    if (link?.sheet) return resolve();
    if (!link) document.head.append((link = el("link", { rel: "stylesheet", href: address })));
    link?.addEventListener("load", () => resolve());
    link?.addEventListener("error", () => {
      link?.remove();
      reject(new Error(address));
    });
  });

/** Load the style sheet beside a module, of the same name. @param {string} module its import.meta.url */
export const loadStyleOf = (module) => loadStyle(module.replace(/\.js$/, ".css"));

/**
 * Call a function each time an element becomes visible: when its tab is opened, not when it is scrolled into view. The
 * sentence or the selection may have changed between two openings.
 * @param {HTMLElement} root @param {() => void} callback
 * @returns {() => boolean} whether the element is visible
 */
export function onVisible(root, callback) {
  let visible = false;
  function update() {
    const before = visible;
    visible = root.offsetParent !== null;
    if (visible && !before) callback();
  }
  new ResizeObserver(update).observe(root); // a hidden element has no size
  update();
  return () => visible;
}

/** Wait until the next frame is painted and the browser is idle; a hidden page has no frames, so it does not wait. */
export const afterPaint = () =>
  new Promise((/** @type {(value?: any) => void} */ resolve) => {
    if (document.hidden) return resolve();
    requestAnimationFrame(() =>
      window.requestIdleCallback
        ? requestIdleCallback(resolve, { timeout: 500 })
        : setTimeout(resolve),
    );
  });

/**
 * Scroll a box to one of its parts, if the part is out of sight or `always`.
 * @param {Element} part @param {Element} box @param {boolean} [always]
 */
export function scrollWithin(part, box, always = false) {
  const [at, frame] = [part, box].map((node) => node.getBoundingClientRect());
  const isHidden = at.top < frame.top || at.bottom > frame.bottom;
  if (box.scrollHeight > box.clientHeight && (always || isHidden))
    box.scrollTop += at.top - frame.top;
}

/**
 * Return the focus to the element that had it, or, if that is gone, to what a selector names.
 * @param {any} opener @param {string} instead
 */
export function restoreFocus(opener, instead) {
  const hadNone = !opener?.isConnected || opener === document.body;
  (hadNone ? document.querySelector(instead) : opener)?.focus({ preventScroll: true });
}

/** Return a function that loads something on its first call, and again after a failure. @template T @param {() => Promise<T>} load */
export function loadOnce(load) {
  /** @type {Promise<any> | null} */
  let loading = null;
  return () => (loading ||= load().catch(() => (loading = null)));
}
