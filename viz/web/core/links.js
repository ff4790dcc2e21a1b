// What the page's address says of what is seen, and what is seen as such an address.
import { debounce, el } from "./dom.js";
import { store } from "../store/store.js";
import { t } from "./language.js";

// tab -> what is seen there as the fields of a link; a tab that has none is opened by those of the explorer.
export const tabLinks = {};
// panel -> what its controls are set to, as the fields of a link.
export const panelLinks = {};

// tab -> a function that opens one of its panels, and sets the panel's controls, as a link's fields say; of the explorer one
// that shows a head.
export const tabOpeners = {};

// Open a tab, a panel of it, and set that panel's controls, as a link's fields say: {tab, panel, and controls by name}. A tab
// that is still to be drawn reads visit.link.
export function openLink(link, frames = 600) {
  openLink.link = link;
  const button = document.getElementById(`tab-${link.tab}-button`);
  if (button) {
    button.click();
    tabOpeners[link.tab]?.(link);
  } else if (frames) {
    requestAnimationFrame(() => openLink.link === link && openLink(link, frames - 1)); // the page is still being built
  }
}

// Show a head in the explorer, {kind, layer, head}, with a cell {query, key} if there is one.
export function showHead(detail) {
  tabOpeners.explorer?.(detail);
  document.querySelector("#tabs [role=tab]")?.click();
}

// What a panel may pass on to the server to be checked: of which translation the explorer draws which weights.
export const explorerMaps = { key: () => null, weights: () => null };

// What stood here when the page was left: it stands here again after a reload, on the way back, and when the page loads
// itself anew. {view, typed, asked, toy}: the fields of a link, what the field held, the question that had no answer yet, and
// the recipe of the visitor's own network.
// The address may have followed the view after the browser had begun to load the page again: only the sentence must agree.
const LEFT = "atlas-left";
const sentenceOf = (hash) => new URLSearchParams(hash.replace(/^#/, "")).get("text");
function readSavedPage() {
  try {
    const found = JSON.parse(sessionStorage.getItem(LEFT)),
      [{ type }] = performance.getEntriesByType("navigation");
    const isSame = sentenceOf(found.hash) === sentenceOf(location.hash);
    return type !== "navigate" && isSame ? found : null;
  } catch {
    return null; // nothing is kept here, or may be
  }
}
export let savedPage = readSavedPage();
// The text that is being translated, as the fields of page_translate. What is asked once more after a reload is left out: it
// may be what ended the server.
const pendingTranslation = () => {
  const { translating } = store.state;
  return translating?.text === undefined || translating.fills ? null : translating;
};
const explorerLink = () => new URLSearchParams(tabLinks.explorer?.() || "");
// The sentence that is to stand here again, until it does, or something else is typed: a page that is left before holds
// the first example, and what was kept is kept.
let awaited = savedPage && new URLSearchParams(savedPage.view).get("text");
addEventListener("input", (event) => {
  if (event.isTrusted) awaited = null;
});
addEventListener("hashchange", () => (savedPage = awaited = null));
addEventListener("pagehide", () => {
  if (awaited) return;
  const view = explorerLink(),
    tab = document.querySelector('#tabs > .tab-wrapper [role=tab][aria-selected="true"]'),
    typed = document.querySelector("#source-text :is(textarea, input)")?.value,
    asked = pendingTranslation();
  if (!view.has("text")) return;
  if (tab) view.set("tab", tab.dataset.tabId);
  if (asked) view.set("text", asked.text);
  const { toy } = store.state;
  const found = { hash: location.hash, view: String(view), typed, asked, toy };
  try {
    sessionStorage.setItem(LEFT, JSON.stringify(found));
  } catch {
    // then the page opens as it ever does
  }
});

// What the part of the page's address behind # says, as URLSearchParams. No server sees it.
export const pageLink = () =>
  new URLSearchParams((savedPage ? savedPage.view : location.hash).replace(/^#/, ""));

// The page's address with these fields behind #. Not "#..." alone, which would drop the query: the page's <base> has none.
// fields: URLSearchParams, or their text.
function addressOf(fields) {
  const hash = fields.toString();
  return `${location.pathname}${location.search}${hash && `#${hash}`}`;
}

// The page's address with these fields in the place of those that it has.
export const replaceFields = (fields) => history.replaceState(history.state, "", addressOf(fields));

// The page's query is the same in every step of its history: browsers send "hashchange" only between addresses with the same.
let query = location.search;

// Change the page's query, as URLSearchParams.
export function replaceQuery(parameters) {
  query = parameters.size ? `?${parameters}` : "";
  history.replaceState(history.state, "", `${location.pathname}${query}${location.hash}`);
}
addEventListener("popstate", () => {
  if (location.search === query) return;
  replaceQuery(new URLSearchParams(query));
  dispatchEvent(new Event("hashchange"));
});

// Whether it takes room on the page now.
export const isVisible = (node) => Boolean(node?.getClientRects().length);

export const openTab = () =>
  [...document.querySelectorAll("#tabs > [role=tabpanel]")].find(isVisible);
export const openPanel = () =>
  [...(openTab()?.querySelectorAll("[id^=panel-]") ?? [])].find(isVisible);

// What the open tab shows, as the fields of a link: {tab, panel, and the tab's own}.
export function viewLink() {
  const tab = openTab(),
    name = tab?.id.replace("tab-", "");
  const fields = new URLSearchParams((tabLinks[name] ?? tabLinks.explorer)?.() ?? "");
  if (tab) fields.set("tab", name);
  const panel = openPanel()?.id.replace("panel-", "");
  if (panel) fields.set("panel", panel);
  else fields.delete("panel");
  // An empty menu means what is selected in the explorer, which is in the link already.
  for (const [field, value] of Object.entries(panelLinks[panel] ?? {}))
    if (value !== "") fields.set(field, value);
  return fields;
}

// The fields of a link to a translation, as viz/wire/address.py names it, and more of them.
export const linkFields = ({ text, direction, checkpoint, beam, interventions }, more = {}) =>
  new URLSearchParams({
    text,
    direction,
    checkpoint,
    ...(beam > 1 ? { beam } : {}),
    ...(interventions ? { interventions } : {}),
    ...more,
  });

// Whether a link's fields are about a translation, named like that; of what either does not say, any will do.
export const isAbout = (link, { text, direction, checkpoint, beam, interventions }) =>
  Object.entries({ text, direction, checkpoint }).every(
    ([name, value]) => !link.get(name) || link.get(name) === value,
  ) &&
  (beam === null || Number(link.get("beam") ?? 1) === beam) &&
  (interventions === null || (link.get("interventions") ?? "") === interventions);

// The address follows what is seen, and another sentence is a step in the browser's history: Back leads to the one before.
// Tours, presentations and worksheets say themselves where they are.
const OWN_PLACE = ["tour", "stop", "present", "sheet"];
let last = null, // the view as it was last seen, as the fields of a link
  isFollowed = location.hash.length > 1; // whether the address names what is still to come

function isSentenceOf(link, view) {
  const { beam = 1, interventions = "", ...named } = Object.fromEntries(view);
  return link.has("text") && isAbout(link, { ...named, beam: Number(beam), interventions });
}

// isNews: whether another translation has come.
function followView(isNews) {
  const view = viewLink(),
    link = pageLink();
  if (!openTab() || !view.has("text") || pendingTranslation()) return;
  if (OWN_PLACE.some((name) => link.has(name))) return;
  const opens = last === null; // with an example, before a link's own sentence comes
  if (isSentenceOf(link, view) || (!link.has("text") && !isNews)) {
    if (!isFollowed) replaceFields(view); // a part that opens by and by still reads the link
  } else if (isNews && !opens && !isFollowed) {
    if (!link.has("text")) replaceFields(last);
    history.pushState(history.state, "", addressOf(view));
  } else if (!opens) return;
  last = view;
  if (!opens) [isFollowed, savedPage] = [false, null];
}
const onLink = () => (isFollowed = true);
addEventListener("popstate", onLink);
addEventListener("hashchange", onLink);
store.follow(["translating"], ({ translating }) => {
  if (translating?.text !== undefined && translating.typed === undefined) isFollowed = false;
});
store.follow(["drawCount"], () => {
  if (explorerLink().get("text") === awaited) awaited = null;
  followView(true);
});
const followSoon = debounce(() => last && followView(false), 300);
for (const name of ["click", "keyup", "change"])
  document.addEventListener(name, (event) => event.isTrusted && followSoon());

// Copy the page's address with these fields, and say so; where that is not allowed, a field to copy it from is shown.
// show(words or field).
export async function copyLink(
  fields,
  show,
  label = t("Link to this view"),
  done = t(
    "Link copied: it opens exactly this view. The sentence comes after # and reaches no server log.",
  ),
) {
  const address = `${location.origin}${addressOf(fields)}`;
  try {
    await navigator.clipboard.writeText(address);
    show(done);
  } catch {
    const look = { class: "link", readonly: true, value: address, "aria-label": label };
    const field = el("input", { ...look, onfocus: () => field.select() });
    show(field);
    field.focus();
  }
}
