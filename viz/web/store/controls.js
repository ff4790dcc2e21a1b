// The controls of a translation: Gradio's text field and menu of directions (viz/shell.py), the language menus of a
// multilingual model, and the decoding. Gradio's listeners call submit(), chooseDirection() and takeValues().
import { ask, nextRequestNumber } from "../core/ask.js";
import { savedPage } from "../core/links.js";
import { openingControls } from "../core/opening.js";
import { store } from "./store.js";
import { translate, withToy } from "./translation.js";

/** @returns {any} Gradio's text field */
export const textField = () => document.querySelector("#source-text :is(textarea, input)");

// The text in the field is, or will be, the one that is translated (page/translation.js marks another).
const endTyping = () => document.body.classList.remove("atlas-typing");

/** Translate a text in the chosen direction. @param {string} text */
export function submit(text) {
  endTyping();
  const { entry, pair } = store.state.direction;
  translate({ text, entry, pair, beam: store.state.beam });
}

/** @type {{text?: string, entry?: any}} values for Gradio's controls, until takeValues() */
let nextValues = {};
let updateGradio = () => {}; // makes Gradio call takeValues()

/**
 * Set Gradio's controls. One that is left out keeps its value, or gets the value of an earlier call that Gradio has not
 * taken yet.
 * @param {{text?: string, entry?: any}} values
 */
function fill({ text = nextValues.text, entry = nextValues.entry }) {
  nextValues = { text, entry };
  endTyping();
  updateGradio();
}

/** Return the values for Gradio's text field and menu; undefined keeps a value. */
export function takeValues() {
  const { text, entry } = nextValues;
  nextValues = {};
  delete document.documentElement.dataset.opening; // page.css has hidden the values in the page
  return [text, entry];
}

/**
 * Set the function that makes Gradio call takeValues(), and set what the page opens with: the text of a reloaded page, or that of
 * the opening in the browser's language.
 * @param {() => void} update
 */
export function connectControls(update) {
  updateGradio = update;
  const controls = openingControls();
  if (savedPage || controls) fill({ ...controls, ...(savedPage && { text: savedPage.typed }) });
}

/** Put an example into the text field and translate it. @param {string} text */
export function submitExample(text) {
  fill({ text });
  submit(text);
}

let choiceNumber = 0; // of the last choice of a direction
let shownNumber = 0; // of the link or choice whose direction is shown

/**
 * Choose a direction, and translate the text in it, unless its model is so large that the button says what that costs.
 * @param {any} entry of the menu @param {string | null} [pair] of languages, such as "de-en", for a multilingual model
 */
export async function chooseDirection(entry, pair = null) {
  const { direction } = store.state;
  const isShown = shownNumber >= choiceNumber && entry === direction.entry;
  if (isShown && [null, direction.pair].includes(pair)) return; // Gradio calls when the menu loses the focus
  const number = (choiceNumber = nextRequestNumber()),
    { sentences } = direction.offer;
  store.set({ direction: { ...direction, entry, pair } });
  const { error, menus, offer } = await ask("page_direction", {
    fields: withToy({ entry, pair }),
  });
  if (number !== choiceNumber || number < shownNumber) return; // a later choice counts
  if (error) return store.set({ translation: { error } });
  shownNumber = number;
  // An example of the earlier direction is replaced by one of the new direction; a typed text stays.
  const { value } = textField(),
    stays = value.trim() && (!sentences.includes(value) || offer.sentences.includes(value));
  const text = stays ? value : (offer.sentences[0] ?? ""),
    translatesAtOnce = Boolean(!offer.cost && text.trim()); // a large model waits for the button
  store.set({
    direction: { entry, pair: languagePair(menus), menus, offer },
    isOutdated: !translatesAtOnce,
  });
  fill({ text });
  if (translatesAtOnce) submit(text);
}

/** @param {{source: string, target: string} | null} menus @returns {string | null} such as "de-en" */
export const languagePair = (menus) => menus && `${menus.source}-${menus.target}`;

// The menus follow a link and a translation that another part opened, unless they were set since.
store.follow(["translation"], ({ translation }) => {
  const { fill: values, number } = translation;
  if (!values || number < choiceNumber) return;
  const { menus, offer, entry, beam, text } = values;
  shownNumber = number;
  if (offer) store.set({ direction: { entry, pair: languagePair(menus), menus, offer } });
  if (beam) store.set({ beam });
  fill({ text, entry });
});

// The field shows a link's text while it is translated.
store.follow(["translating"], ({ translating }) => {
  if (translating?.typed !== undefined) fill({ text: translating.typed });
});
