// What a person has set in the panels of the tab "Why", by the translation that it is about: heads that are switched off,
// and a second sentence. A link takes it along and brings it back (question.js); the panels ask for it here.
import { button, el } from "../core/dom.js";

const KEPT = 20; // translations
const KIND = ["encoder_self", "decoder_self", "cross"];
const all = new Map();
export const same = ([kind, layer, head]) => `${kind} ${layer} ${head}`;

// {off: Map of a head's name -> [kind, layer, head], second: the sentence, wanted: one that a link names and no panel
// has taken over yet, or null} of a translation.
export function keptOf(about) {
  const found = all.get(about) || { off: new Map(), second: "", wanted: null };
  all.delete(about);
  all.set(about, found);
  if (all.size > KEPT) all.delete(all.keys().next().value);
  return found;
}

// As fields of a link.
export function fields(about) {
  const { off, second, wanted } = keptOf(about);
  return {
    ...(off.size ? { off: [...off.values()].map((head) => head.join(".")).join(",") } : {}),
    ...(wanted || second ? { second: wanted || second } : {}),
  };
}

// What a link's fields say: anything at all may stand there. Returns whether they say something.
export function restore(about, link) {
  const found = keptOf(about),
    off = link.get("off"),
    second = link.get("second");
  if (off === null && !second) return false;
  for (const text of (off || "").split(",").slice(0, 2000)) {
    const [kind, layer, number] = text.split("."),
      head = [kind, Number(layer), Number(number)];
    if (KIND.includes(kind) && /^\d{1,3}$/.test(layer) && /^\d{1,3}$/.test(number))
      found.off.set(same(head), head);
  }
  if (second) found.wanted = second.slice(0, 10000);
  takeOver();
  return true;
}

let drawn = null; // {about, ask} of the block that stands on the page now
let sentence = null; // the translated one, of the last block

// A second sentence that a link names goes into the panel's line of text, whenever both are there.
function takeOver() {
  const kept = drawn && keptOf(drawn.about);
  if (!kept || kept.wanted === null) return;
  const text = kept.wanted;
  kept.wanted = null;
  drawn.ask("find", { text });
}

// The sentence's words, to click: each click asks for the sentence with another word in its place (viz/panels/why/patch.py).
export function words(block, keep, api) {
  // The line of text still holds what was set for the sentence before.
  const kept = keptOf(block.about),
    another = sentence !== null && sentence !== block.sentence;
  sentence = block.sentence;
  if (!another) kept.second = block.second;
  else if (kept.second !== block.second) kept.wanted ??= kept.second;
  keep.push(() => {
    drawn = { about: block.about, ask: api.ask };
    takeOver();
  });
  return el(
    "div",
    { class: "words" },
    el("p", { class: "caption" }, block.hint),
    block.words.map((word) =>
      button(word.text, () => api.ask("find", { position: word.position }), {
        class: "chip",
        dir: "auto",
      }),
    ),
  );
}
