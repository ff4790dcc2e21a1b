// The translation that the page shows. Any part of the page may ask for another one here; those that show it follow the store.
import { ask, nextRequestNumber, onRetrained } from "../core/ask.js";
import { savedPage, openLink } from "../core/links.js";
import { askAbout } from "./question.js";
import { store } from "./store.js";

// Translate a text: {text, beam, interventions, and the entry and pair of the menus, or a link's direction and checkpoint}.
// Returns a promise that the answer is in the store. A later question takes the place of an earlier one.
export const translate = (fields) => requestTranslation({ fields: withToy(fields) }, {});

// The fields of a question with the recipe of the visitor's own network, where they name that.
export function withToy(fields) {
  const { toy } = store.state;
  return toy && [fields.entry, fields.checkpoint].includes("toy")
    ? { ...fields, recipe: toy }
    : fields;
}

let isRestored = false;
// What the page held before a reload, {typed, asked}: only for the first link, and not if the address has changed since.
function takeKept() {
  const before = isRestored ? null : savedPage;
  isRestored = true;
  return before ?? {};
}

// Translate as a link says. After a reload the field holds what was typed, and a question without an answer is asked again.
export function translateLink(fields) {
  const { typed = fields.text, asked } = takeKept();
  return requestTranslation(
    { fields: asked ? { ...asked, fills: true } : withToy(fields) },
    {},
    typed,
  );
}

// A link leads to the translation that is shown: nothing else is to take its place, and the field holds its text.
export function keepTranslation(text) {
  const { typed = text } = takeKept();
  shownNumber = nextRequestNumber();
  for (const question of underWay.values()) question.abort();
  store.set({ translating: { number: shownNumber, typed } });
  store.set({ translating: null });
}

// Show the translation at an address (model/trace/address.py). asks: {step, token}, which the tab "Why" is then asked about;
// fill: the text and the menus' entries that the controls are to show.
export const openAddress = (address, { asks = null, fill = null } = {}) =>
  requestTranslation({ address }, { asks, ...(fill ? { fill } : {}) });

onRetrained((address) => openAddress(address));
if (savedPage?.toy) store.set({ toy: savedPage.toy });

const underWay = new Map(); // number -> AbortController, of the questions for a translation
let shownNumber = 0, // of the translation that is shown
  lastRefusal = null; // {number, translation} of the last question that was refused

// typed: the text that the field is to hold.
async function requestTranslation(question, { asks, ...more }, typed) {
  const number = nextRequestNumber(),
    stop = new AbortController();
  underWay.set(number, stop);
  store.set({ translating: { ...question.fields, number, typed } });
  const answer = await ask("page_translate", question, { signal: stop.signal });
  underWay.delete(number);
  if (store.state.translating?.number === number) store.set({ translating: null });
  if (!answer || number < shownNumber) return;
  const translation = { ...answer, ...more, number };
  if (answer.error) {
    lastRefusal = { number, translation };
    return store.set({ translation });
  }
  shownNumber = number;
  for (const [earlier, other] of underWay) if (earlier < number) other.abort();
  const { address } = answer.map;
  const toy = address?.recipe ?? store.state.toy;
  store.set({ translation, address, pinned: null, toy, isOutdated: false });
  if (lastRefusal?.number > number) store.set({ translation: lastRefusal.translation }); // show the newer refusal again
  if (!Number.isInteger(asks?.step)) return;
  await askAbout(asks);
  openLink({ tab: "why" });
}
