// The terms of the field: where a text first uses one, a line on it is there on hover and on focus.
import { el } from "../core/dom.js";
import { say, toText } from "../core/language.js";

const WIDEST = 320; // pixels of such a line, with its edges
// As a text may write a term, one way after the other, and what it means.
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
const CHINESE = /[\u3040-\u9fff]/, // its words stand without spaces
  KOREAN = /[\uac00-\ud7af]/, // and its words have endings
  BEFORE = "(?<![\\p{L}\\p{M}])",
  AFTER = "(?![\\p{L}\\p{M}])";

let known = null; // of the page's language: a pattern that finds every term, and what each means
function terms() {
  if (known) return known;
  const ways = TERMS.flatMap(([names, about]) =>
    toText(names)
      .split("|")
      .map((name) => [name, toText(about)]),
  );
  // Each group has its ends once: a letter of any script takes the browser a while to compile.
  const group = (chosen, before, after) => {
    const names = ways.flatMap(([name]) => (chosen(name) ? [name] : []));
    return names.length ? [`${before}(?:${names.join("|")})${after}`] : [];
  };
  const found = [
    ...group((name) => CHINESE.test(name), "", ""),
    ...group((name) => KOREAN.test(name), BEFORE, ""),
    ...group((name) => !CHINESE.test(name) && !KOREAN.test(name), BEFORE, AFTER),
  ];
  known = [
    new RegExp(found.join("|"), "giu"),
    new Map(ways.map(([name, about]) => [name.toLowerCase(), about])),
  ];
  return known;
}

// A text of the page's language, as texts and nodes.
export function glossed(text) {
  const [pattern, meanings] = terms(),
    seen = new Set(),
    parts = [];
  let end = 0;
  for (const { 0: word, index } of text.matchAll(pattern)) {
    const about = meanings.get(word.toLowerCase());
    if (seen.has(about)) continue;
    seen.add(about);
    parts.push(text.slice(end, index), term(word, about));
    end = index + word.length;
  }
  return [...parts, text.slice(end)];
}

function term(word, about) {
  const inside = ({ currentTarget: node }) => {
    const room = innerWidth - WIDEST - 12 - node.getBoundingClientRect().left;
    node.style.setProperty("--shift", `${Math.min(0, room)}px`);
  };
  return el(
    "button",
    {
      type: "button",
      class: "term",
      "data-about": about,
      "aria-description": about,
      onpointerenter: inside,
      onfocus: inside,
    },
    word,
  );
}
