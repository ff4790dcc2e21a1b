// The page's address: the fields after # describe what is shown, follow it, and are restored from a link, the browser's
// history or a reload. No server sees them.
import { debounce, el } from "./dom.js";
import { store } from "../store/store.js";
import { t } from "./language.js";
import { wordingField } from "./wording.js";

/**
 * @typedef {Record<string, any>} Link {tab, panel, and a panel's controls by name}
 * @typedef {{text: any, direction: any, checkpoint: any, beam?: any, interventions?: any}} Translation as
 *   viz/wire/address.py names one
 */

/** @type {Record<string, (() => any) | undefined>} tab -> its own fields of a link; others take the explorer's */
export const tabLinks = {};
/** @type {Record<string, Record<string, any> | undefined>} panel -> the values of its controls, as fields of a link */
export const panelLinks = {};
/** @type {Record<string, ((link: Link) => void) | undefined>} tab -> opens a panel and sets its controls; explorer: a head */
export const tabOpeners = {};

// Groups of the tab "More". Links may name them as tabs.
const GROUPS_OF_MORE = ["heads", "positions", "verify"];

/** @type {{link: Link | null}} the link that was opened last, for a tab that is still being built */
export const opened = { link: null };

/**
 * Open a tab and a panel, and set the panel's controls. Waits for the tab while the page is being built.
 * @param {Link} fields of the link @param {number} [frames] to wait at most
 */
export function openLink(fields, frames = 600) {
  const panel = fields.inside ? { panel: "map" } : {};
  /** @type {Link} */
  const link = GROUPS_OF_MORE.includes(fields.tab)
    ? { ...fields, tab: "more", group: fields.tab }
    : { ...panel, ...fields };
  opened.link = link;
  if (link.tab === "inside" && link.panel === "map")
    store.set({ inside: { place: link.inside ?? "", cell: link.cell ?? "" } });
  const tab = document.getElementById(`tab-${link.tab}-button`);
  if (tab) {
    tab.click();
    tabOpeners[link.tab]?.(link);
  } else if (frames) {
    requestAnimationFrame(() => opened.link === link && openLink(link, frames - 1));
  }
}

/** Show a head in the explorer. @param {Link} head {kind, layer, head}, and {query, key} for a cell */
export function showHead(head) {
  tabOpeners.explorer?.(head);
  /** @type {HTMLElement | null} */ (document.querySelector("#tabs [role=tab]"))?.click();
}

/**
 * The weights that the explorer draws, for a panel that has the server check them; set by explorer.js.
 * @type {{key: () => any, weights: () => any}}
 */
export const explorerMaps = { key: () => null, weights: () => null };

// --- Across a reload --------------------------------------------------------------------------------------------------

const STORAGE_KEY = "atlas-left";
const fieldsOf = (/** @type {string} */ hash) => new URLSearchParams(hash.replace(/^#/, ""));

/**
 * Return what the page stored when it was left, if this load is a reload or a step in the history. The address may have
 * followed the view after the browser began to reload, so only its sentence has to agree.
 */
function readSavedPage() {
  try {
    const saved = JSON.parse(sessionStorage.getItem(STORAGE_KEY) ?? ""),
      [navigation] = performance.getEntriesByType("navigation");
    const isSame = fieldsOf(saved.hash).get("text") === fieldsOf(location.hash).get("text");
    return /** @type {any} */ (navigation).type !== "navigate" && isSame ? saved : null;
  } catch {
    return null; // nothing is stored, or storage is not available
  }
}

/**
 * The state to restore: {view, typed, asked, toy} – the fields of a link, the text field's content, the fields of a translation
 * that had no answer yet, and the recipe of the visitor's own network. Null once it is restored.
 * @type {any}
 */
export let savedPage = readSavedPage();

/** Return the fields of the translation under way. One that is repeated after a reload is left out: it may have crashed. */
const pendingTranslation = () => {
  const { translating } = store.state;
  return translating?.text === undefined || translating.fills ? null : translating;
};
const explorerLink = () => new URLSearchParams(tabLinks.explorer?.() || "");

// The sentence to restore, until it is drawn or the visitor types another. Until then nothing new is stored, because the
// page still shows its first example.
/** @type {string | null} */
let sentenceToRestore = savedPage && fieldsOf(savedPage.view).get("text");
addEventListener("input", (event) => {
  if (event.isTrusted) sentenceToRestore = null;
});
addEventListener("hashchange", () => (savedPage = sentenceToRestore = null));
addEventListener("pagehide", () => {
  if (sentenceToRestore) return;
  const view = explorerLink(),
    typed = /** @type {any} */ (document.querySelector("#source-text :is(textarea, input)"))?.value,
    pending = pendingTranslation();
  if (!view.has("text")) return;
  namePanel(view);
  if (pending) view.set("text", pending.text);
  const { toy } = store.state;
  const saved = { hash: location.hash, view: String(view), typed, asked: pending, toy };
  try {
    sessionStorage.setItem(STORAGE_KEY, JSON.stringify(saved));
  } catch {
    // storage is not available: nothing will be restored
  }
});

// --- The page as a whole ----------------------------------------------------------------------------------------------
// A workshop link names the visible tabs: "tabs=explorer why". They stay when another link is followed, until one names others
// ("tabs=" for all); the page's address names them whatever is shown. page.css hides the other tabs.

const TABS = ["explorer", "stepper", "why", "inside", "train", "more"]; // of viz/shell.py
const { dataset } = document.documentElement; // early.js has set dataset.tabs

/** Return the first visible tab, if a link chose them and the open tab is none of them. */
export function tabToOpen() {
  const names = (dataset.tabs ?? "").split(" ").filter((name) => TABS.includes(name)),
    openName = openTab()?.id.replace("tab-", "") ?? TABS[0];
  return names.includes(openName) ? undefined : names[0];
}

function followTabs() {
  const named = fieldsOf(location.hash).get("tabs");
  if (named) dataset.tabs = named;
  else if (named !== null) delete dataset.tabs;
  else if (dataset.tabs) replaceFields(pageLink());
}
addEventListener("hashchange", followTabs, true);

// --- Reading and writing the address ----------------------------------------------------------------------------------

/** Return the fields of the page's address, or those to restore, without the visible tabs. */
export function pageLink() {
  const fields = fieldsOf(savedPage ? savedPage.view : location.hash);
  fields.delete("tabs");
  return fields;
}

/**
 * Return the page's address with other fields. It names the path and the query, because "#..." alone would resolve
 * against Gradio's <base>, which has no query.
 * @param {URLSearchParams | string} fields @param {string | null} [wording] the level of wording; without: that of the page
 */
function addressOf(fields, wording = wordingField()) {
  const link = new URLSearchParams(fields);
  if (dataset.tabs && !link.has("tabs")) link.set("tabs", dataset.tabs);
  if (wording) link.set("wording", wording);
  else link.delete("wording");
  const hash = link.toString();
  return `${location.pathname}${location.search}${hash && `#${hash}`}`;
}

/** Replace the fields of the page's address. @param {URLSearchParams | string} fields */
export const replaceFields = (fields) => history.replaceState(history.state, "", addressOf(fields));

/** Add a step with these fields to the history. @param {URLSearchParams} fields */
export function pushFields(fields) {
  history.pushState(history.state, "", addressOf(fields));
  lastView = fields;
}

// All entries of the history get the same query: browsers send "hashchange" only between addresses with equal queries.
let query = location.search;

/** Replace the query of the page's address. @param {URLSearchParams} parameters */
export function replaceQuery(parameters) {
  query = parameters.size ? `?${parameters}` : "";
  history.replaceState(history.state, "", `${location.pathname}${query}${location.hash}`);
}
addEventListener("popstate", () => {
  if (location.search === query) return;
  replaceQuery(new URLSearchParams(query));
  dispatchEvent(new Event("hashchange"));
});

// --- The view as a link -----------------------------------------------------------------------------------------------

/** Whether an element takes space on the page now. @param {Element | null} [node] */
export const isVisible = (node) => Boolean(node?.getClientRects().length);

export const openTab = () =>
  [...document.querySelectorAll("#tabs > [role=tabpanel]")].find(isVisible);
export const openPanel = () =>
  [...(openTab()?.querySelectorAll("[id^=panel-]") ?? [])].find(isVisible);

/** Let the fields of a link name the open tab, its panel and the panel's controls. @param {URLSearchParams} fields */
function namePanel(fields) {
  const tab = openTab(),
    panel = openPanel()?.id.replace("panel-", "");
  if (tab) fields.set("tab", tab.id.replace("tab-", ""));
  if (panel) fields.set("panel", panel);
  else fields.delete("panel");
  // An empty menu means the explorer's selection, which the link has already.
  for (const [field, value] of Object.entries(panelLinks[panel ?? ""] ?? {}))
    if (value !== "") fields.set(field, value);
  return fields;
}

/** Return what the open tab shows as the fields of a link: its own fields, {tab} and {panel}. */
export function viewLink() {
  const name = openTab()?.id.replace("tab-", "") ?? "",
    own = new URLSearchParams(tabLinks[name]?.() ?? ""),
    explorer = explorerLink();
  // A tab may still be loading a new sentence.
  return namePanel(own.get("text") === explorer.get("text") ? own : explorer);
}

/** The version of new links. A link without one opens with the view that links had before (explorer/state.js). */
export const VERSION = "2";

/** Return the fields of a link to a translation. @param {Translation} translation @param {Link} [more] fields */
export const linkFields = ({ text, direction, checkpoint, beam, interventions }, more = {}) =>
  new URLSearchParams({
    v: VERSION,
    text,
    direction,
    checkpoint,
    ...(beam > 1 ? { beam } : {}),
    ...(interventions ? { interventions } : {}),
    ...more,
  });

/**
 * Whether a link is about a translation. A field that one of them lacks agrees with anything.
 * @param {URLSearchParams} link @param {Translation} translation
 */
const isAbout = (link, { text, direction, checkpoint, beam, interventions }) =>
  Object.entries({ text, direction, checkpoint }).every(
    ([name, value]) => !link.get(name) || link.get(name) === value,
  ) &&
  (beam === null || Number(link.get("beam") ?? 1) === beam) &&
  (interventions === null || (link.get("interventions") ?? "") === interventions);

/**
 * Follow links to a step in a tab, each once its sentence is there.
 * @param {string} tab
 * @param {() => any} translation the one that the tab shows, if a link can be followed now
 * @param {(step: number, link: URLSearchParams) => void} open called with the step, from 0
 * @returns {() => void} a function to call when the tab shows another translation
 */
export function followStepLinks(tab, translation, open) {
  /** @type {URLSearchParams | null} */
  let awaited = null;
  function follow() {
    const link = awaited,
      about = link && translation();
    if (!about || !isAbout(link, about)) return;
    awaited = null;
    open(Number(link.get("step")) - 1, link);
  }
  function read() {
    const link = pageLink(),
      isStep = link.get("tab") === tab && /^\d{1,5}$/.test(link.get("step") ?? "");
    awaited = isStep ? link : null;
    follow();
  }
  addEventListener("hashchange", read);
  read();
  return follow;
}

// --- The address follows the view -------------------------------------------------------------------------------------
// A change of the view replaces the address; another sentence adds a step to the history, so that Back leads to the one before.

const OWN_ADDRESS = ["tour", "stop", "present", "sheet", "glossary"]; // fields of parts that set the address themselves
/** @type {URLSearchParams | null} */
let lastView = null;
let isLinkPending = location.hash.length > 1; // the address names a view that is still to come

/** @param {URLSearchParams} link @param {URLSearchParams} view */
function isSentenceOf(link, view) {
  const { beam = 1, interventions = "", ...named } = Object.fromEntries(view);
  const translation = /** @type {any} */ ({ ...named, beam: Number(beam), interventions });
  return link.has("text") && isAbout(link, translation);
}

/** Let the address follow the view. @param {boolean} isNew whether another translation was drawn */
function followView(isNew) {
  const view = viewLink(),
    link = pageLink();
  if (!view.has("text") || pendingTranslation()) return;
  if (!openTab()) return void (lastView ??= view); // another tab is still being opened
  if (OWN_ADDRESS.some((name) => link.has(name))) return;
  const isFirst = lastView === null; // the first example, before a link's own sentence
  if (isSentenceOf(link, view) || (!link.has("text") && !isNew)) {
    if (!isLinkPending) replaceFields(view); // a part that is still loading reads the link
  } else if (isNew && !isFirst && !isLinkPending) {
    if (!link.has("text")) replaceFields(lastView ?? "");
    history.pushState(history.state, "", addressOf(view));
  } else if (!isFirst) return;
  lastView = view;
  if (!isFirst) [isLinkPending, savedPage] = [false, null];
}
const expectLink = () => (isLinkPending = true);
addEventListener("popstate", expectLink);
addEventListener("hashchange", expectLink);
store.follow(["translating"], ({ translating }) => {
  if (translating?.text !== undefined && translating.typed === undefined) isLinkPending = false;
});
store.follow(["drawCount"], () => {
  if (explorerLink().get("text") === sentenceToRestore) sentenceToRestore = null;
  followView(true);
});
const followSoon = debounce(() => lastView && followView(false), 300);
for (const name of ["click", "keyup", "change"])
  document.addEventListener(name, (event) => event.isTrusted && followSoon());

/**
 * Copy the page's address with these fields to the clipboard; where that is not allowed, show a field to copy it from.
 * @param {URLSearchParams | string} fields
 * @param {(content: any) => void} show called with the message or the field
 * @param {string} [label] of the field @param {string} [message] after copying
 */
export async function copyLink(
  fields,
  show,
  label = t("Link to this view"),
  message = t(
    "Link copied. It opens exactly this view. The sentence is after the #, so it appears in no server log.",
  ),
) {
  const wording = new URLSearchParams(fields).get("wording") ?? undefined, // of a workshop
    address = `${location.origin}${addressOf(fields, wording)}`;
  try {
    await navigator.clipboard.writeText(address);
    show(message);
  } catch {
    const field = el("input", {
      class: "link",
      readonly: true,
      value: address,
      "aria-label": label,
      onfocus: () => field.select(),
    });
    show(field);
    field.focus();
  }
}
