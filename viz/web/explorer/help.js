// The overlay that lists the keys and explains the marks in tokens and on heads.
import { button, el } from "../core/dom.js";
import { say, t } from "../core/language.js";

const KEYS = [
  ["← → ↑ ↓", say("another head, another layer; on the map: move the cursor")],
  [say("Shift + arrow"), say("the same, and add the head to the choice")],
  ["1 2 3", say("cross, encoder self, decoder self")],
  ["m l t c", say("map, lines, text, compare")],
  ["h", say("one head, mean, maximum, rollout")],
  [
    "x y",
    say("add this head, or this layer's heads, to a selection of several; again: remove them"),
  ],
  ["w", say("subwords or whole words")],
  ["s", say("special tokens shown, hidden, hidden and rescaled")],
  ["p", say("rows by both tokens, the one they write, the one they read")],
  ["g / v", say("another scale / other colours")],
  ["d", say("go to the map, lines or text; a: back to the atlas")],
  ["Enter, r, k", say("on the map: pin the cell, its row, its column")],
  ["Esc", say("unpin; close this")],
];
const MARKS = [
  ["\u2581", say("a space before the piece: ▁hund begins a word, er continues one")],
  ["‹C3›", say("one byte of a character that the vocabulary cannot spell")],
  ["<2en>", say("the first source token: the language to translate into")],
  [
    "<s> </s>",
    say("begin and end. Heads with nothing to do often rest there: a sink, not a meaning"),
  ],
];

// overlays: whether there is anything to show in attention's place; app: whether it stands in the app; trace(): the
// translation that is shown
export function createHelp(overlays, app, trace) {
  const keys = [
    ...(overlays
      ? KEYS.toSpliced(5, 0, ["o", say("attention, or another measure in its place")])
      : KEYS),
    ...(app
      ? [["f", say("a presentation: the picture that is pointed at, or the map, fills the screen")]]
      : []),
  ];
  const list = (rows) =>
    el(
      "dl",
      {},
      rows.flatMap(([name, words]) => [el("dt", {}, name), el("dd", {}, words)]),
    );
  const named = el("div", {});
  // What a survey names the heads of this model by.
  function name() {
    const { named: found = [], sentences } = trace()?.payload.marks ?? {};
    const titles = new Map(found.map(({ mark, title }) => [mark, title]));
    named.replaceChildren(
      ...(titles.size
        ? [
            el("h2", {}, t("Marks on heads: habits over {n} sentences", { n: sentences })),
            list([...titles]),
          ]
        : []),
    );
  }
  const root = el(
    "dialog",
    { class: "help", "aria-label": t("Keys and marks") },
    el("h2", { tabindex: "-1", autofocus: true }, t("Keys")), // it opens at its top
    list(keys),
    el("h2", {}, t("Marks in tokens")),
    list(MARKS),
    named,
    el(
      "p",
      {},
      t("Attention weights are evidence of where a head looked, not an explanation of the answer."),
    ),
    button(t("Close"), () => root.close()),
  );
  const open = () => (name(), root.showModal());
  return {
    root,
    open,
    button: button(`${t("Keys and marks")} (?)`, open, { class: "plain help-button" }),
  };
}
