// The sentence's words, to click: each click asks for the sentence with another word in its place (viz/ui/lab/why/patch.py).
import { button, el } from "../core/dom.js";
import { keptOf } from "./kept.js";

let drawn = null; // {about, ask} of the block that stands on the page now
let sentence = null; // the translated one, of the last block

// A second sentence that a link names goes into the panel's line of text, whenever both are there.
export function takeOver() {
  const kept = drawn && keptOf(drawn.about);
  if (!kept || kept.wanted === null) return;
  const text = kept.wanted;
  kept.wanted = null;
  drawn.ask("find", { text });
}

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
