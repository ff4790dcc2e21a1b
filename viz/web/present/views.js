// "My views": a list of links to states of the page, which the visitor collects, orders, plays as slides or saves as a file.
// The browser stores the list; the server never sees it.
import { button, download, el, fileField, loadStyleOf } from "../core/dom.js";
import { t } from "../core/language.js";
import { viewLink } from "../core/links.js";
import { readJsonFile, refuse } from "../sheet/storage.js";
import { createLayer } from "./layer.js";

const STORAGE_KEY = "atlas-views", // in localStorage
  KIND = "attention-atlas-views"; // of a file
const MOST = 100, // views
  LONGEST = 20000, // characters of a link
  TITLE = 200, // characters of a title
  BYTES = 2000000; // bytes of a file

// Validate stored views and return [{title, link}]. refuse() throws an Error whose message the visitor reads.
function readViews(stored) {
  if (stored?.kind !== KIND || stored.version !== 1 || !Array.isArray(stored.views))
    refuse(t("This is not a file with views of this page."));
  if (stored.views.length > MOST)
    refuse(
      t("There are {n} views; the limit is {limit}.", { n: stored.views.length, limit: MOST }),
    );
  return stored.views.map((view, i) => {
    if (typeof view?.title !== "string" || typeof view.link !== "string")
      refuse(t("View {n} of this file is not a view.", { n: i + 1 }));
    if (view.title.length > TITLE || view.link.length > LONGEST)
      refuse(t("View {n} of this file is too long.", { n: i + 1 }));
    return { title: view.title, link: String(new URLSearchParams(view.link)) };
  });
}

const viewsJson = (views) => JSON.stringify({ kind: KIND, version: 1, views });

function readSavedViews() {
  try {
    return readViews(JSON.parse(localStorage.getItem(STORAGE_KEY)));
  } catch {
    return []; // nothing is stored, it is not a list of views, or storage is not available
  }
}

/** Create the list of views, {open}, once its style sheet has loaded. @param {(slides: any) => void} present plays slides */
export async function createViews(present) {
  await loadStyleOf(import.meta.url);
  let views = readSavedViews();
  const status = el("p", { class: "status", role: "status" });
  const list = el("ol", {});
  const file = fileField(readFile, (words) => (status.textContent = words));
  const play = button(t("Play"), start, { class: "strong" }),
    saveButton = button(t("Save as a file"), () =>
      download("views.json", new Blob([viewsJson(views)], { type: "application/json" })),
    );
  const root = el(
    "section",
    { class: "atlas-views", "aria-labelledby": "atlas-views-title", hidden: true },
    el("div", { class: "bar" }, [
      el("h2", { id: "atlas-views-title", tabindex: "-1" }, t("My views")),
      button("✕", () => layer.leave(), { "aria-label": t("Close my views") }),
    ]),
    el("p", {}, [
      t("Add the current view. In a slide show each view fills the screen: ← → move on."),
    ]),
    el("div", { class: "bar" }, button(t("Add this view"), add), play),
    list,
    el("div", { class: "bar" }, [saveButton, button(t("Open a file"), () => file.click()), file]),
    status,
  );
  document.body.append(root);

  function saveViews(message = "") {
    status.textContent = message;
    [play, saveButton].forEach((control) => (control.disabled = !views.length));
    try {
      localStorage.setItem(STORAGE_KEY, viewsJson(views));
    } catch {
      status.textContent = t("This browser does not store views: save them as a file.");
    }
  }

  function row(view) {
    const at = () => views.indexOf(view);
    const title = el("input", {
      type: "text",
      value: view.title,
      maxlength: TITLE,
      "aria-label": t("Title of the view"),
      oninput: () => {
        view.title = title.value;
        saveViews();
      },
    });
    const move = (by) => {
      const from = at(),
        to = from + by;
      if (!views[to]) return;
      views.splice(to, 0, ...views.splice(from, 1));
      draw();
      list.children[to].querySelectorAll("button")[by < 0 ? 1 : 2].focus();
      saveViews(t("View {n} of {all}", { n: to + 1, all: views.length }));
    };
    const remove = () => {
      const from = at();
      views.splice(from, 1);
      draw();
      (list.children[Math.min(from, views.length - 1)] ?? root)
        .querySelector("input, button")
        .focus();
      saveViews();
    };
    return el("li", {}, [
      title,
      el("span", { class: "tools" }, [
        button(t("Open"), () => show(at())),
        button("↑", () => move(-1), { "aria-label": t("Move up") }),
        button("↓", () => move(1), { "aria-label": t("Move down") }),
        button("✕", remove, { "aria-label": t("Remove this view") }),
      ]),
    ]);
  }
  const draw = () => list.replaceChildren(...views.map(row));

  // Add the current view, named by its tab and sentence.
  function add() {
    if (views.length >= MOST)
      return saveViews(t("There is room for {limit} views.", { limit: MOST }));
    const link = viewLink(),
      tab = document.querySelector("#tabs [role=tab][aria-selected=true]")?.textContent.trim();
    const view = { title: [tab, link.get("text")].filter(Boolean).join(" · "), link: String(link) };
    view.title = view.title.slice(0, TITLE);
    if (view.link.length > LONGEST) return saveViews(t("This view is too long to store."));
    views.push(view);
    draw();
    saveViews(t("View {n} of {all}", { n: views.length, all: views.length }));
    list.lastChild.scrollIntoView({ block: "nearest" });
  }

  function show(at) {
    const before = location.hash;
    location.hash = views[at].link;
    if (location.hash === before) dispatchEvent(new Event("hashchange")); // the view may have changed since
  }

  // Play the views as slides.
  function start() {
    let at = 0;
    show(at);
    layer.leave();
    present({
      about: () => `${at + 1} / ${views.length} · ${views[at].title}`,
      has: (by) => Boolean(views[at + by]),
      go: (by) => show((at += by)),
    });
  }

  async function readFile(file) {
    views = readViews(await readJsonFile(file, BYTES));
    draw();
    saveViews(t("{n} views", { n: views.length }));
  }

  const layer = createLayer(root, () => {
    draw();
    saveViews();
  });
  return { open: layer.open };
}
