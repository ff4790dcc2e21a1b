// What every part of the page builds its elements with, and what the browser lets it do.
import { toText } from "./language.js";

function fillElement(node, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (key === "style") node.style.cssText = value;
    else node.setAttribute(key, value === true ? "" : String(toText(value)));
  }
  node.append(
    ...children
      .flat(Infinity)
      .filter((child) => child !== null && child !== undefined && child !== false)
      .map(toText),
  );
  return node;
}

// An element with attributes and children, or lists of them; strings become text, never markup. What is null, undefined or false is
// left out.
export const el = (tag, attributes = {}, ...children) =>
  fillElement(document.createElement(tag), attributes, children);

// The same of a drawing.
export const svg = (tag, attributes = {}, ...children) =>
  fillElement(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);

// A plain button with words, unless the attributes say otherwise.
export const button = (words, onclick, attributes = {}) =>
  el("button", { type: "button", class: "plain", onclick, ...attributes }, words);

// A menu of options [value, words], of which one is chosen.
export const menu = (options, chosen, attributes = {}) =>
  el(
    "select",
    attributes,
    options.map(([value, words]) => el("option", { value, selected: value === chosen }, words)),
  );

// A table of headings, texts or cells, over rows.
export const table = (headings, rows, attributes = {}) =>
  el("table", attributes, [
    el("thead", {}, [
      el("tr", {}, [
        headings.map((one) => (one instanceof Node ? one : el("th", { scope: "col" }, one))),
      ]),
    ]),
    el("tbody", {}, rows),
  ]);

// Words in place of a component that has nothing to show yet; without words, the component itself again.
export function showInvitation(root, words) {
  root.querySelector(":scope > .invitation")?.remove();
  root.classList.toggle("inviting", Boolean(words));
  if (words) root.prepend(el("p", { class: "invitation" }, words));
}

let notices = null;

// A short message at the foot of the page while an answer takes unusually long; "" hides it.
export function showNotice(words) {
  if (!notices) document.body.append((notices = el("p", { id: "atlas-notice", role: "status" })));
  notices.hidden = !words;
  notices.replaceChildren(words);
}

// What a variable of the style sheet holds, such as a colour.
export const cssVariable = (name) => getComputedStyle(document.body).getPropertyValue(name).trim();

// For Plotly, which reads tags and entities in labels: the same text, literally.
export const escapeTags = (text) =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");

export const shorten = (text, limit = 18) =>
  [...text].length <= limit ? text : [...text].slice(0, limit - 1).join("") + "…";

// The callback once, `wait` milliseconds after the last call.
export function debounce(callback, wait) {
  let timer = null;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(callback, wait);
  };
}

// Hand a file to the person: the browser saves it.
export function download(name, blob) {
  const url = URL.createObjectURL(blob);
  const link = el("a", { href: url, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

// A hidden field for a file of JSON, which click() asks a person for: read(file), or in words why it cannot be read.
export const fileField = (read, refuse) =>
  el("input", {
    type: "file",
    accept: ".json,application/json",
    hidden: true,
    onchange: async ({ target }) => {
      const [file] = target.files;
      target.value = "";
      try {
        if (file) await read(file);
      } catch (error) {
        refuse(error.message);
      }
    },
  });

// Whether the page is used by touch: nothing can be pointed at without choosing it, and there is no Shift key.
export const isTouch = matchMedia("(hover: none)").matches;

// Run a callback whenever the page turns light or dark, until the function that this returns is called.
export const isDark = () => document.body.classList.contains("dark");
export function onThemeChange(callback) {
  let dark = isDark();
  const observer = new MutationObserver(() => {
    if (isDark() !== dark) {
      dark = isDark();
      callback(dark);
    }
  });
  observer.observe(document.body, { attributes: true, attributeFilter: ["class"] });
  return () => observer.disconnect();
}

// A promise that a style sheet is there: what is drawn may measure itself.
export const loadStyle = (address) =>
  new Promise((resolve, reject) => {
    const links = [...document.querySelectorAll("link[rel=stylesheet]")];
    let link = links.find((one) => one.href === address);
    if (link?.sheet) return resolve();
    if (!link) document.head.append((link = el("link", { rel: "stylesheet", href: address })));
    link.addEventListener("load", resolve);
    link.addEventListener("error", () => {
      link.remove(); // whoever asks again has it tried again
      reject(new Error(address));
    });
  });

// That of a module, beside which it stands.
export const loadStyleOf = (module) => loadStyle(module.replace(/\.js$/, ".css"));

// Calls back whenever an element comes to be seen: laid out anywhere on the page counts, a closed tab does not. Each opening
// counts, because the sentence or the selection may have changed meanwhile. Returns whether it is seen now.
export function onVisible(root, opened) {
  let seen = false;
  function look() {
    const before = seen;
    seen = root.offsetParent !== null;
    if (seen && !before) opened();
  }
  new ResizeObserver(look).observe(root); // what is hidden has no size
  look();
  return () => seen;
}

// After the next frame, when nothing else waits; at once in a page that is not shown, which has no frames.
export const afterPaint = () =>
  new Promise((resolve) => {
    if (document.hidden) return resolve();
    requestAnimationFrame(() =>
      window.requestIdleCallback
        ? requestIdleCallback(resolve, { timeout: 500 })
        : setTimeout(resolve),
    );
  });

// Scroll a box whose content does not fit to one of its parts: if that is out of sight, or in any case.
export function scrollWithin(part, box, always = false) {
  const [at, seen] = [part, box].map((one) => one.getBoundingClientRect());
  const hidden = at.top < seen.top || at.bottom > seen.bottom;
  if (box.scrollHeight > box.clientHeight && (always || hidden)) box.scrollTop += at.top - seen.top;
}
