// The field's terms: where a text first uses a term, hovering over it or focusing it shows an explanation.
import { button } from "../core/dom.js";
import { say, toText } from "../core/language.js";

const MAX_WIDTH = 320; // of an explanation with its borders, in pixels
// Spellings of a term, separated by |, and its explanation.
const TERMS = [
  [
    say("residual stream"),
    say(
      "The vector of each position that runs through the model: every part reads it and adds to it.",
    ),
  ],
  [
    say("queries|query"),
    say("What a position is looking for: a vector that is compared with every key."),
  ],
  [
    say("keys|key"),
    say("What a position offers to be found by: a vector that queries are compared with."),
  ],
  [say("values|value"), say("What a position hands over to whoever attends to it.")],
  [
    say("heads|head"),
    say("One of several attentions side by side, each with queries, keys and values of its own."),
  ],
  [
    say("logits|logit"),
    say("A score for each token, before softmax turns all of them into probabilities."),
  ],
  [say("nats|nat"), say("A unit of log-probability: one nat more is 2.7 times as likely.")],
  [
    say("entropy"),
    say("How widely something is spread, in bits: 0 for all in one place, 1 for evenly in two."),
  ],
];
const CHINESE = /[\u3040-\u9fff]/, // these words have no spaces between them
  KOREAN = /[\uac00-\ud7af]/; // these words have endings
const BEFORE = "(?<![\\p{L}\\p{M}])",
  AFTER = "(?![\\p{L}\\p{M}])";
const BOUNDARIES = { none: ["", ""], before: [BEFORE, ""], both: [BEFORE, AFTER] };
const boundariesOf = (spelling) =>
  BOUNDARIES[CHINESE.test(spelling) ? "none" : KOREAN.test(spelling) ? "before" : "both"];

let terms = null; // of the page's language: {pattern, explanations: Map of a spelling -> explanation}
function getTerms() {
  if (terms) return terms;
  const explanations = new Map();
  for (const [spellings, explanation] of TERMS)
    for (const spelling of toText(spellings).split("|"))
      explanations.set(spelling.toLowerCase(), toText(explanation));
  // One alternative for all spellings with the same boundaries: \p{L} is expensive to compile.
  const alternatives = [...Map.groupBy(explanations.keys(), boundariesOf)].map(
    ([[before, after], spellings]) => `${before}(?:${spellings.join("|")})${after}`,
  );
  terms = { pattern: new RegExp(alternatives.join("|"), "giu"), explanations };
  return terms;
}

/** Split a text of the page's language into texts and, where it first uses a term, nodes. @param {string} text */
export function markTerms(text) {
  const { pattern, explanations } = getTerms(),
    seen = new Set(),
    parts = [];
  let end = 0;
  for (const { 0: word, index } of text.matchAll(pattern)) {
    const explanation = explanations.get(word.toLowerCase());
    if (seen.has(explanation)) continue;
    seen.add(explanation);
    parts.push(text.slice(end, index), createTerm(word, explanation));
    end = index + word.length;
  }
  return [...parts, text.slice(end)];
}

function createTerm(word, explanation) {
  // Shift the explanation to the left where it would not fit into the window.
  const shift = ({ currentTarget: node }) => {
    const space = innerWidth - MAX_WIDTH - 12 - node.getBoundingClientRect().left;
    node.style.setProperty("--shift", `${Math.min(0, space)}px`);
  };
  return button(word, null, {
    class: "term",
    "data-about": explanation,
    "aria-description": explanation,
    "onpointerenter onfocus": shift,
  });
}
