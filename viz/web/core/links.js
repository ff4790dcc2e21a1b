// What the page's address says of what is seen, and what is seen as such an address.
import { el } from "./dom.js";
import { t } from "./language.js";
import { asking } from "./rpc.js";

// tab -> what is seen there as the fields of a link; a tab that has none is opened by those of the explorer.
export const tabLinks = {};

// Open a tab, a panel of it, and set that panel's controls, as a link's fields say: {tab, panel, and controls by name}.
export function visit(link) {
  visit.link = link;
  document.dispatchEvent(new CustomEvent("atlas-visit"));
}

// Show a head in the explorer, {kind, layer, head}, with a cell {query, key} if there is one.
export function look(detail) {
  document.dispatchEvent(new CustomEvent("atlas-look", { detail }));
  document.querySelector("#tabs [role=tab]")?.click();
}

// What a panel may pass on to the server to be checked: of which translation the explorer draws which weights.
export const drawn = { weights: () => null };
// What was asked last about a written token: {about: the translation's key, step, and token or alone}, or null.
export const pinned = { question: null };

// What stood here when the page was left: it stands here again after a reload, on the way back, and when the page loads
// itself anew. {view, typed, asked}: the fields of a link, what the field held, and the question that had no answer yet.
const LEFT = "atlas-left";
function left() {
  try {
    const found = JSON.parse(sessionStorage.getItem(LEFT)),
      [{ type }] = performance.getEntriesByType("navigation");
    return type !== "navigate" && found.hash === location.hash ? found : null;
  } catch {
    return null; // nothing is kept here, or may be
  }
}
export let kept = left();
// The translation that has been asked for and is not here yet, or null. The line above the tabs says which.
export const pending = { question: () => null };
// The sentence that is to stand here again, until it does, or something else is typed: a page that is left before holds
// the first example, and what was kept is kept.
let awaited = kept && new URLSearchParams(kept.view).get("text");
document.addEventListener("atlas-drawn", () => {
  if (new URLSearchParams(tabLinks.explorer?.() || "").get("text") === awaited) awaited = null;
});
addEventListener("input", (event) => {
  if (event.isTrusted) awaited = null;
});
addEventListener("hashchange", () => (kept = awaited = null));
addEventListener("pagehide", () => {
  if (awaited) return;
  const view = new URLSearchParams(tabLinks.explorer?.() || ""),
    tab = document.querySelector('#tabs > .tab-wrapper [role=tab][aria-selected="true"]'),
    typed = document.querySelector("#source-text :is(textarea, input)")?.value,
    asked = pending.question();
  if (tab) view.set("tab", tab.dataset.tabId);
  if (asked && view.has("text")) view.set("text", asked.text);
  try {
    if (view.has("text"))
      sessionStorage.setItem(
        LEFT,
        JSON.stringify({ hash: location.hash, view: String(view), typed, asked }),
      );
  } catch {
    // then the page opens as it ever does
  }
});

// Where a page's server has ended, or its connection was cut, its session is gone. Gradio notices only when it is asked for
// something: its heartbeat, a stream that lasts as long as the page, ends without a word. As soon as a server answers that
// makes the same page, this one goes on there: it says what it shows ("atlas-again"), and once the server knows
// ("atlas-known"), nothing has to be drawn anew. Where something was under way, the server's page is not the same, or it
// finds another translation, the page loads itself anew.
// So does a page whose answers are asked of the wrong one of several servers. Such a server that is asked a question says
// that it does not know the page (core/rpc.js), which goes on there, too, and asks once more.
const HEARTBEAT = /heartbeat\/[^/]+$/,
  ANSWERS = /queue\/data\?[^/]+$/,
  UNKNOWN = 404,
  FIRST = 250, // milliseconds before a server is asked whether it is there; then ever longer
  LAST = 4000,
  SETTLED = 5000, // that a page lasts at least: the next one may come to another server again
  LEAVING = 30_000,
  TOGETHER = 100, // milliseconds within which streams end that were cut off at once
  ANSWERED = 20_000; // by then the server knows what is shown here, or never will
const made = (name) => document.querySelector(`meta[name=atlas-${name}]`); // as viz/ui/gradio6/preloads.py says it

// Gradio ends it, too, when the page is about to be left: what comes next may be slow to answer, and is not cut short.
// A page that is still here after that was not left.
let leaving = 0,
  lost = false,
  heartbeat = null, // the address of the last one
  lostAt = Infinity, // when it ended, in the page's milliseconds
  stream = null, // of answers: the last that was not closed by the page
  anew = false; // whether there is an answer that will not come
addEventListener("beforeunload", () => {
  clearTimeout(leaving);
  leaving = setTimeout(() => (leaving = 0), LEAVING);
});
addEventListener("pageshow", () => (leaving = 0)); // out of the browser's cache, too
new PerformanceObserver((list) => {
  for (const entry of list.getEntriesByType("resource")) {
    const { name, responseStatus, responseEnd } = entry;
    if (HEARTBEAT.test(name)) {
      [heartbeat, lostAt] = [name, responseEnd];
      lose(FIRST);
    } else if (ANSWERS.test(name)) {
      if (responseStatus) stream = entry;
      if (responseStatus === UNKNOWN || cutOff()) loadAnew();
    }
  }
}).observe({ type: "resource" });
document.addEventListener("atlas-moved", () => lose(FIRST));

// Whether answers were still to come when the server was lost. Gradio does not see that their stream has ended, and would
// wait for all later ones on it.
const cutOff = () => stream?.responseEnd > lostAt - TOGETHER && stream.startTime < lostAt;

function loadAnew() {
  anew = true;
  lose(Math.max(FIRST, SETTLED - performance.now()));
}

function lose(wait) {
  if (!lost) reconnect(wait);
  lost = true;
}

async function reconnect(wait) {
  await new Promise((resolve) => setTimeout(resolve, wait * (1 + Math.random()))); // not all of a server's pages at once
  const address = new URL("readyz", document.baseURI),
    found = await fetch(address, { cache: "no-store" }).catch(() => null);
  if (!found || found.status >= 500 || document.hidden || leaving)
    return reconnect(Math.min(LAST, 1.5 * wait));
  const { process, page } = await found.json().catch(() => ({}));
  if (anew || asking() || cutOff() || !process || page !== made("page")?.content)
    return location.reload();
  lost = false;
  if (heartbeat)
    fetch(heartbeat)
      .then((stream) => stream.text())
      .catch(() => {}); // which ends as the one before did
  const late = setTimeout(() => location.reload(), ANSWERED);
  document.addEventListener(
    "atlas-known",
    () => {
      clearTimeout(late);
      made("process").content = process; // from now on: what is asked before that is refused there
    },
    { once: true },
  );
  document.dispatchEvent(new CustomEvent("atlas-again", { detail: { process } }));
}

// What the part of the page's address behind # says, as URLSearchParams. No server sees it.
export const pageLink = () =>
  new URLSearchParams((kept ? kept.view : location.hash).replace(/^#/, ""));

// The page's address with these fields in the place of those that it has.
export const readdress = (fields) =>
  history.replaceState(
    history.state,
    "",
    `${location.pathname}${location.search}${fields.size ? `#${fields}` : ""}`,
  );

// Whether it takes room on the page now.
export const seen = (node) => Boolean(node?.getClientRects().length);

export const openTab = () => [...document.querySelectorAll("#tabs > [role=tabpanel]")].find(seen);
export const openPanel = () => [...(openTab()?.querySelectorAll("[id^=panel-]") ?? [])].find(seen);

// What the open tab shows, as the fields of a link: {tab, panel, and the tab's own}.
export function viewLink() {
  const tab = openTab(),
    name = tab?.id.replace("tab-", "");
  const fields = new URLSearchParams((tabLinks[name] ?? tabLinks.explorer)?.() ?? "");
  if (tab) fields.set("tab", name);
  const panel = openPanel();
  if (panel) fields.set("panel", panel.id.replace("panel-", ""));
  else fields.delete("panel");
  return fields;
}

// The fields of a link to a translation, as viz/wire/address.py names it, and more of them.
export const linkTo = ({ text, direction, checkpoint, beam, interventions }, more = {}) =>
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
  const address = `${location.origin}${location.pathname}${location.search}#${fields}`;
  try {
    await navigator.clipboard.writeText(address);
    show(done);
  } catch {
    const field = el("input", {
      class: "link",
      readonly: true,
      value: address,
      "aria-label": label,
      onfocus: (event) => event.target.select(),
    });
    show(field);
    field.focus();
  }
}
