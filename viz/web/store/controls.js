// What is to be translated: Gradio's field and its menu of directions (viz/ui/header.py), the languages of a model of many, and
// how it is decoded. Gradio's listeners call submit(), choose() and filled().
import { ask, numbered } from "../core/ask.js";
import { kept } from "../core/links.js";
import { store } from "./store.js";
import { translate, withToy } from "./translation.js";

export const field = () => document.querySelector("#source-text :is(textarea, input)");

// Translate a text in the direction that is chosen.
export function submit(text) {
  const { entry, pair } = store.state.direction;
  translate({ text, entry, pair, beam: store.state.beam });
}

let filling = {}, // the values that Gradio's controls take next
  tellGradio = () => {}; // makes Gradio ask for them

// Set what Gradio's controls hold: {text, entry}; what is left out stays.
function fill(values) {
  filling = values;
  tellGradio();
}
export const filled = () => [filling.text, filling.entry];

// Call tell() whenever Gradio's controls are to take values.
export function connectControls(tell) {
  tellGradio = tell;
  if (kept) fill({ text: kept.typed });
}

// An example: it stands in the field from then on.
export function submitExample(text) {
  fill({ text });
  submit(text);
}

let chosen = 0, // the number of the last choice of a direction
  shown = 0; // of the last link or choice whose direction is shown

// Choose a direction, by a menu's entry, and of a model of many languages by the pair.
export async function choose(entry, pair = null) {
  const number = (chosen = numbered()),
    { sentences } = store.state.direction.offer;
  store.set({ direction: { ...store.state.direction, entry, pair } });
  const { error, menus, offer } = await ask("page_direction", {
    fields: withToy({ entry, pair }),
  });
  if (number !== chosen || number < shown) return; // something else was chosen since
  if (error) return store.set({ translation: { error } });
  shown = number;
  // An example of the direction before gives way to one of the new direction; what was typed stays.
  const { value } = field(),
    stays = value.trim() && (!sentences.includes(value) || offer.sentences.includes(value));
  store.set({ direction: { entry, pair: pairOf(menus), menus, offer }, cleared: true });
  fill({ text: stays ? value : (offer.sentences[0] ?? "") });
}

export const pairOf = (menus) => menus && `${menus.source}-${menus.target}`;

// The menus follow a link, and what was opened elsewhere, unless they were set since.
store.follow(["translation"], ({ translation }) => {
  const { fill: wanted, number } = translation;
  if (!wanted || number < chosen) return;
  const { menus, offer, entry, beam, text } = wanted;
  shown = number;
  if (offer) store.set({ direction: { entry, pair: pairOf(menus), menus, offer } });
  if (beam) store.set({ beam });
  fill({ text, entry });
});

// A link's text stands in the field while it is translated.
store.follow(["translating"], ({ translating }) => {
  if (translating?.typed !== undefined) fill({ text: translating.typed });
});
