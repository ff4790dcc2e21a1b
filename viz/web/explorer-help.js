// The overlay that lists the keys and explains the marks in tokens.
(function (atlas) {
  "use strict";

  const KEYS = [
    ["← → ↑ ↓", "another head, another layer; on the map: move the cursor"],
    ["Shift + arrow", "the same, and add the head to the choice"],
    ["1 2 3", "cross, encoder self, decoder self"],
    ["m l t c", "map, lines, text, compare"],
    ["h", "one head, mean, maximum, rollout"],
    ["x y", "add this head, or this layer's heads, to a choice of several; again: take them out"],
    ["w", "subwords or whole words"],
    ["s", "special tokens shown, hidden, hidden and rescaled"],
    ["p", "rows by the token predicted or the token read"],
    ["g / v", "another scale / other colours"],
    ["d", "go to the map, lines or text; a: back to the atlas"],
    ["Enter, r, k", "on the map: pin the cell, its row, its column"],
    ["Esc", "unpin; close this"],
  ];
  const MARKS = [
    ["\u2581", "a space before the piece: ▁hund begins a word, er continues one"],
    ["‹C3›", "one byte of a character that the vocabulary cannot spell"],
    ["<2en>", "the first source token: the language to translate into"],
    ["<s> </s>", "begin and end. Heads with nothing to do often rest there: a sink, not a meaning"],
  ];

  function create() {
    const el = atlas.element;
    const list = (rows) => el("dl", {}, rows.flatMap(([name, words]) => [el("dt", {}, name), el("dd", {}, words)]));
    const close = el("button", { type: "button", class: "plain", onclick: () => root.close() }, "Close");
    const root = el("dialog", { class: "help", "aria-label": "Keys and marks" },
      el("h2", {}, "Keys"), list(KEYS), el("h2", {}, "Marks in tokens"), list(MARKS),
      el("p", {}, "Attention weights are evidence of where a head looked, not an explanation of the answer."), close);
    const open = () => root.showModal();
    return { root, open, button: el("button", { type: "button", class: "plain help-button", onclick: open }, "Keys and marks (?)") };
  }

  atlas.explorerHelp = { create };
})(globalThis.AttentionAtlas);
