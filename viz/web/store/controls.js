// The controls of a translation: Gradio's text field and menu of directions (viz/shell.py), the two language menus of a
// multilingual model, and the decoding. Gradio's listeners call submit(), choose() and filled().
import { ask, nextRequestNumber } from "../core/ask.js";
import { savedPage } from "../core/links.js";
import { store } from "./store.js";
import { translate, withToy } from "./translation.js";

export const textField = () => document.querySelector("#source-text :is(textarea, input)");

// Translate a text in the direction that is chosen.
export function submit(text) {
  const { entry, pair } = store.state.direction;
  translate({ text, entry, pair, beam: store.state.beam });
}

let nextValues = {}, // of Gradio's controls, until Gradio asks for them
  updateGradio = () => {}; // makes Gradio call filled()

// Set the values of Gradio's controls, {text, entry}. A control that is left out keeps its value, or gets that of a call
// before which Gradio has not asked for yet.
function fill({ text = nextValues.text, entry = nextValues.entry }) {
  nextValues = { text, entry };
  updateGradio();
}
export function takeValues() {
  const { text, entry } = nextValues;
  nextValues = {};
  return [text, entry];
}

// Set the function that makes Gradio call filled().
export function connectControls(update) {
  updateGradio = update;
  if (savedPage) fill({ text: savedPage.typed });
}

// Put an example into the text field and translate it.
export function submitExample(text) {
  fill({ text });
  submit(text);
}

let choiceNumber = 0, // of the last choice of a direction
  shownNumber = 0; // of the last link or choice whose direction is shown

// Choose a direction by an entry of the menu, and by a language pair if the model is multilingual.
export async function chooseDirection(entry, pair = null) {
  const number = (choiceNumber = nextRequestNumber()),
    { sentences } = store.state.direction.offer;
  store.set({ direction: { ...store.state.direction, entry, pair } });
  const { error, menus, offer } = await ask("page_direction", {
    fields: withToy({ entry, pair }),
  });
  if (number !== choiceNumber || number < shownNumber) return; // something else was chosen since
  if (error) return store.set({ translation: { error } });
  shownNumber = number;
  // An example of the direction before gives way to one of the new direction; what was typed stays.
  const { value } = textField(),
    stays = value.trim() && (!sentences.includes(value) || offer.sentences.includes(value));
  store.set({ direction: { entry, pair: languagePair(menus), menus, offer }, isOutdated: true });
  fill({ text: stays ? value : (offer.sentences[0] ?? "") });
}

export const languagePair = (menus) => menus && `${menus.source}-${menus.target}`;

// The menus follow a link, and what was opened elsewhere, unless they were set since.
store.follow(["translation"], ({ translation }) => {
  const { fill: values, number } = translation;
  if (!values || number < choiceNumber) return;
  const { menus, offer, entry, beam, text } = values;
  shownNumber = number;
  if (offer) store.set({ direction: { entry, pair: languagePair(menus), menus, offer } });
  if (beam) store.set({ beam });
  fill({ text, entry });
});

// A link's text stands in the field while it is translated.
store.follow(["translating"], ({ translating }) => {
  if (translating?.typed !== undefined) fill({ text: translating.typed });
});
