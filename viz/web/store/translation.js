// Requests for the translation that the page shows. Any part may call translate() or openAddress(); the parts that show a
// translation follow the store.
import { ask, nextRequestNumber, onRetrained } from "../core/ask.js";
import { openLink, savedPage } from "../core/links.js";
import { askAbout } from "./question.js";
import { store } from "./store.js";

/**
 * Translate a text. A later translation replaces an earlier one.
 * @param {Record<string, any>} fields {text, beam, interventions}, and the menus' {entry, pair} or a link's {direction,
 *   checkpoint}
 * @returns {Promise<void>} resolved once the answer is in the store
 */
export const translate = (fields) => requestTranslation({ fields: withToy(fields) }, {});

/** Add the recipe of the visitor's own network to fields that name it. @param {Record<string, any>} fields */
export function withToy(fields) {
  const { toy } = store.state;
  return toy && [fields.entry, fields.checkpoint].includes("toy")
    ? { ...fields, recipe: toy }
    : fields;
}

let isRestored = false;

/** Return {typed, asked} of the page before a reload, once: for the first link. @returns {{typed?: string, asked?: any}} */
function takeSavedPage() {
  const saved = isRestored ? null : savedPage;
  isRestored = true;
  return saved ?? {};
}

/**
 * Translate what a link says. After a reload the text field gets back its content, and a translation without an answer is
 * requested again.
 * @param {Record<string, any>} fields @param {any} [linkState] the explorer's state to open with the translation
 */
export function translateLink(fields, linkState) {
  const { typed = fields.text, asked } = takeSavedPage();
  const question = { fields: asked ? { ...asked, fills: true } : withToy(fields) };
  return requestTranslation(question, { linkState }, typed);
}

/**
 * Return to the translation that is shown, because a link leads to it: cancel those under way, and put its text into the field.
 * @param {string} text
 */
export function returnToTranslation(text) {
  const { typed = text } = takeSavedPage();
  shownNumber = nextRequestNumber();
  for (const controller of underWay.values()) controller.abort();
  store.set({ translating: { number: shownNumber, typed } });
  store.set({ translating: null });
}

/**
 * Show the translation at an address (model/trace/address.py).
 * @param {any} address
 * @param {{asks?: any, fill?: any}} [more] asks: {step, token} to ask the tab "Why" about; fill: the text and the menus'
 *   entries for the controls
 */
export const openAddress = (address, more = {}) => requestTranslation({ address }, more);

onRetrained((address) => openAddress(address));
if (savedPage?.toy) store.set({ toy: savedPage.toy });

/** @type {Map<number, AbortController>} requests by number */
const underWay = new Map();
let shownNumber = 0; // of the translation that is shown
/** @type {{number: number, translation: any} | null} the last request that was refused */
let lastRefusal = null;

/**
 * Request a translation and store it, unless a later one is shown by then.
 * @param {any} question @param {{asks?: any, fill?: any, linkState?: any}} more @param {string} [typed] text for the field
 */
async function requestTranslation(question, { asks, ...more }, typed) {
  const number = nextRequestNumber(),
    controller = new AbortController();
  underWay.set(number, controller);
  store.set({ translating: { ...question.fields, number, typed } });
  const answer = await ask("page_translate", question, { signal: controller.signal });
  underWay.delete(number);
  if (store.state.translating?.number === number) store.set({ translating: null });
  if (!answer || number < shownNumber) return;
  const translation = { ...answer, ...more, number };
  if (answer.error) {
    lastRefusal = { number, translation };
    return store.set({ translation });
  }
  shownNumber = number;
  for (const [earlier, request] of underWay) if (earlier < number) request.abort();
  const { address } = answer.map;
  const toy = address?.recipe ?? store.state.toy;
  store.set({ translation, address, pinned: null, toy, isOutdated: false });
  // A refusal of a later request stays on the page.
  if (lastRefusal && lastRefusal.number > number)
    store.set({ translation: lastRefusal.translation });
  if (!Number.isInteger(asks?.step)) return;
  await askAbout(asks);
  openLink({ tab: "why" });
}
