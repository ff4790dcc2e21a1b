// The page's two levels of wording: plain titles (the default) or the field's technical ones. The level is a field of links
// (wording=technical), and the browser stores it with the other choices of page/display.js.
import { say, usePlainWords } from "./language.js";

// A title, a label of a menu or a heading of the glossary, and what it is called in plain words. The code uses the first.
export const PAIRS = [
  // panels
  [say("Patch"), say("Swap parts")],
  [say("Circuit"), say("Connections")],
  [say("Q, K, V"), say("Query, key, value")],
  [say("Add & norm"), say("Add and rescale")],
  [say("Residual stream"), say("Running sum")],
  [say("Logits"), say("Scores")],
  [say("Lens"), say("Early guesses")],
  [say("√d_k"), say("Scaling the scores")],
  [say("Kernels"), say("Weighted means")],
  [say("Masks"), say("Hidden cells")],
  [say("Embedding"), say("Words as numbers")],
  [say("Embedding space"), say("Map of words")],
  [say("Token + position"), say("Word and place")],
  [say("Phenomena"), say("Grammar")],
  [say("Units"), say("Single neurons")],
  [say("Additive attention"), say("The first attention")],
  [say("Cost of decoding"), say("Saving work")],
  [say("This sentence's loss"), say("Surprise, word by word")],
  [say("Steering"), say("Change the meaning")],
  [say("Scoring"), say("Ways to score")],
  [say("Rotation"), say("Shifts as turns")],
  // methods and menus
  [say("occlusion by mask"), say("test by removing")],
  [say("occlusion by mean"), say("test by blurring")],
  [say("norm-based attention"), say("attention times length")],
  [say("attention rollout"), say("attention through all layers")],
  [say("rollout"), say("through all layers")],
  [say("gradient x input"), say("sensitivity")],
  [say("integrated gradients"), say("summed sensitivity")],
  [say("Beam search"), say("Several at once")],
  // headings of the glossary
  [say("occlusion"), say("test by removing")],
  [say("ablation"), say("switching off")],
  [say("activation patching"), say("swapping parts")],
  [say("gradient"), say("sensitivity")],
  [say("logit lens"), say("early guess")],
  [say("surprisal"), say("surprise")],
  [say("subword"), say("piece")],
  [say("residual stream"), say("running sum")],
  [say("forced decoding"), say("scoring given words")],
];

export const STORAGE_KEY = "atlas-display";
const LEVELS = ["plain", "technical"];

/** Return the level that a link names, if any. */
const linkLevel = () => new URLSearchParams(location.hash.slice(1)).get("wording");

function storedLevel() {
  try {
    return JSON.parse(localStorage.getItem(STORAGE_KEY) ?? "{}").wording;
  } catch {
    return null; // storage is not available
  }
}

let level = [linkLevel(), storedLevel()].find((name) => LEVELS.includes(name)) ?? "plain";

/** Whether the page uses the technical titles. */
export const isTechnical = () => level === "technical";

/** Return what a link says about the level, if it needs to: plain is the default. */
export const wordingField = () => (isTechnical() || storedLevel() === "technical" ? level : null);

/** Set the level of the next load, before the page is loaded again. @param {string} name */
export const setWording = (name) => (level = name);

if (!isTechnical())
  usePlainWords(new Map(PAIRS.map(([technical, plain]) => [technical.say, plain.say])));

// Words are chosen when a part of the page is built, so another level needs another load.
addEventListener("hashchange", () => {
  const named = linkLevel();
  if (named && LEVELS.includes(named) && named !== level) location.reload();
});
