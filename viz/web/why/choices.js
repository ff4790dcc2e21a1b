// The visitor's choices in the panels of the tab "Why", by translation: heads that are switched off, and a second sentence.
// Links contain them (question.js), and the panels read them here.
import { button, el } from "../core/dom.js";

const KINDS = ["encoder_self", "decoder_self", "cross"];

/** @typedef {[kind: string, layer: number, head: number]} Head */
/**
 * @typedef {object} Choices
 * @property {Map<string, Head>} off the heads that are switched off, by headKey()
 * @property {string} second the second sentence
 * @property {string | null} linked a second sentence from a link that no panel has shown yet
 */

/** @type {Map<string, Choices>} */
const choices = new Map();

/** The key of a head in Choices.off. @param {Head} head */
export const headKey = ([kind, layer, head]) => `${kind} ${layer} ${head}`;

/**
 * The choices for a translation, which can be changed in place.
 * @param {string} about which translation
 * @returns {Choices}
 */
export function choicesFor(about) {
  if (!choices.has(about)) choices.set(about, { off: new Map(), second: "", linked: null });
  return choices.get(about);
}

/** The choices as fields of a link. @param {string} about */
export function linkChoices(about) {
  const { off, second, linked } = choicesFor(about);
  return {
    ...(off.size ? { off: [...off.values()].map((head) => head.join(".")).join(",") } : {}),
    ...(linked || second ? { second: linked || second } : {}),
  };
}

/**
 * Take over the choices of a link, whose fields may contain anything.
 * @param {string} about @param {URLSearchParams} link
 * @returns {boolean} whether the link has choices
 */
export function restoreChoices(about, link) {
  const own = choicesFor(about),
    off = link.get("off"),
    second = link.get("second");
  if (off === null && !second) return false;
  for (const text of (off || "").split(",").slice(0, 2000)) {
    const [kind, layer, number] = text.split("."),
      head = /** @type {Head} */ ([kind, Number(layer), Number(number)]);
    if (KINDS.includes(kind) && /^\d{1,3}$/.test(layer) && /^\d{1,3}$/.test(number))
      own.off.set(headKey(head), head);
  }
  if (second) own.linked = second.slice(0, 10000);
  fillSecond();
  return true;
}

let current = null, // the block of words that is on the page: {about, ask}
  sentence = null; // of the last such block

// Put the second sentence of a link into the panel's text field, once both are there.
function fillSecond() {
  const own = current && choicesFor(current.about);
  if (!own || own.linked === null) return;
  const text = own.linked;
  own.linked = null;
  current.ask("find", { text });
}

/**
 * The block of the sentence's words as buttons. A click asks for the sentence with another word in place of this one
 * (viz/panels/why/patch.py).
 * @param {any} block {about, sentence, second, hint, words: [{text, position}]}
 * @param {(() => unknown)[]} afterInsert
 * @param {import("../lab/blocks.js").Panel} api
 */
export function words(block, afterInsert, api) {
  const own = choicesFor(block.about),
    isNewSentence = sentence !== null && sentence !== block.sentence;
  sentence = block.sentence;
  // The text field still contains what was set for the sentence before: it is not this sentence's choice.
  if (!isNewSentence) own.second = block.second;
  else if (own.second !== block.second) own.linked ??= own.second;
  afterInsert.push(() => {
    current = { about: block.about, ask: api.askForPage };
    fillSecond();
  });
  return el("div", { class: "words" }, [
    el("p", { class: "caption" }, block.hint),
    block.words.map(({ text, position }) =>
      button(text, () => api.askForPage("find", { position }), { class: "chip", dir: "auto" }),
    ),
  ]);
}
