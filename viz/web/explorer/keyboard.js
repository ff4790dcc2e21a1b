// The explorer's keys, and a dialog that lists them and explains the marks in tokens and on heads.
import { button, el } from "../core/dom.js";
import { arrowStep, isKeyFor, isTyping } from "../core/keys.js";
import { KINDS } from "../core/kinds.js";
import { say, t } from "../core/language.js";
import * as model from "./model.js";
import * as states from "./state.js";

const CYCLES = { h: "combine", s: "special", g: "transform", v: "colours" };
const VIEWS = { m: "map", l: "lines", t: "text", c: "compare" };

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
  [say("Shift + t"), say("test the lit word by hiding source words; on a word, t alone does")],
  ["Enter, r, k", say("on the map: pin the cell, its row, its column")],
  ["n", say("on the map and in the tree: play the row as sound; Esc stops it")],
  ["Esc", say("unpin; let go of the lit word; close this")],
];
const MARKS = [
  ["\u2581", say("a space before the piece: ▁hund begins a word, er continues one")],
  ["‹C3›", say("one byte of a character that the vocabulary cannot spell")],
  ["<2en>", say("the first source token: the language to translate into")],
  [
    "<s> </s>",
    say("begin and end. Idle heads often park their attention there: a sink, not a meaning"),
  ],
];

/**
 * Create the dialog of keys and marks.
 * @param {any} scene what the explorer shows @param {boolean} app whether it is part of the app
 */
export function createHelp(scene, app) {
  const keys = [...KEYS];
  if (scene.overlays.length)
    keys.splice(5, 0, ["o", say("attention, or another measure in its place")]);
  if (app) keys.push(["f", say("full screen: the picture under the pointer, or the map")]);
  const list = (rows) =>
    el("dl", {}, [rows.map(([name, words]) => [el("dt", {}, name), el("dd", {}, words)])]);
  const habits = el("div", {});
  const root = el("dialog", { class: "help", "aria-label": t("Keys and marks") }, [
    el("h2", { tabindex: "-1", autofocus: true }, t("Keys")), // focused, so that the dialog opens at its top
    list(keys),
    el("h2", {}, t("Marks in tokens")),
    list(MARKS),
    habits,
    el("p", {}, [
      t("Attention weights are evidence of where a head looked, not an explanation of the answer."),
    ]),
    button(t("Close"), () => root.close()),
  ]);
  function open() {
    // The habits by which a survey named this model's heads.
    const { named = [], sentences } = scene.trace?.marks ?? {},
      titles = new Map(named.map(({ mark, title }) => [mark, title]));
    habits.replaceChildren();
    if (titles.size)
      habits.append(
        el("h2", {}, t("Marks on heads: habits over {n} sentences", { n: sentences })),
        list([...titles]),
      );
    root.showModal();
  }
  const opener = button(`${t("Keys and marks")} (?)`, open, { class: "plain help-button" });
  return { root, open, button: opener };
}

/**
 * Listen to the explorer's keys.
 * @param {HTMLElement} root
 * @param {{scene: any, acts: any, thumbnails: any, views: any, help: any}} setup acts: the explorer's update(changes),
 *   step(down, right), toggleHeads(pairs), test(), letGo(), and hush(), which stops the sound and returns
 *   whether there was one
 */
export function listenKeys(root, { scene, acts, thumbnails, views, help }) {
  const { update, step, toggleHeads, test, letGo, hush } = acts;
  const after = (all, value) => all[(all.indexOf(value) + 1) % all.length];

  function move(down, right, event) {
    step(down, right);
    const { layer, head } = scene.state;
    if (event.shiftKey) toggleHeads([[layer, head]]);
    if (event.target.classList?.contains("thumbnail")) thumbnails.focus(layer, head);
  }

  function handle(event) {
    const { key } = event,
      { state, overlays } = scene,
      { kind, layer, head } = state;
    if (arrowStep(event)) {
      if (event.target.type === "range") return false;
      move(...arrowStep(event), event);
    } else if (key === "1" || key === "2" || key === "3")
      update({ kind: Object.keys(KINDS)[key - 1] });
    else if (VIEWS[key]) update({ view: VIEWS[key] });
    else if (CYCLES[key])
      update({ [CYCLES[key]]: after(states.CHOICES[CYCLES[key]], state[CYCLES[key]]) });
    else if (key === "o" && overlays.length) {
      const ids = overlays
        .filter((overlay) => overlay.kinds.includes(kind))
        .map((overlay) => overlay.id);
      update({ overlay: after(["", ...ids], state.overlay) });
    } else if (key === "x") toggleHeads([[layer, head]]);
    else if (key === "y") toggleHeads(model.headsOfLayer(scene.trace, kind, layer));
    else if (key === "w") update({ words: !state.words });
    else if (key === "p" && kind !== "encoder_self")
      update({ predicted: after([null, true, false], state.predicted[kind]) });
    else if (key === "d") views.focus();
    else if (key === "a") thumbnails.focus(layer, head);
    else if (key === "T") test();
    else if (key === "Escape") {
      if (hush()) return true;
      letGo();
      update({ query: null, key: null, heads: [] });
    } else if (key === "?") help.open();
    else return false;
    return true;
  }

  document.addEventListener("keydown", (event) => {
    if (scene.trace && isKeyFor(root, event) && !isTyping(event) && handle(event))
      event.preventDefault();
  });
}
