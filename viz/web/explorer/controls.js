// The explorer's controls: rows of buttons and menus that change its state.
import { formatSignificant } from "../core/format.js";
import { button as plainButton, el } from "../core/dom.js";
import { KINDS } from "../core/kinds.js";
import { toText, t } from "../core/language.js";
import * as naming from "./words.js";

/**
 * Create a row of buttons of which one is pressed.
 * @param {string} label @param {Record<string, any>} options value -> label @param {(value: string) => void} onPick
 * @param {Record<string, string>} [keys] value -> the key that does the same
 * @param {Record<string, any>} [names] value -> its name beside the key, if the label is more than that
 */
export function createSegmented(label, options, onPick, keys = {}, names = options) {
  const buttons = Object.entries(options).map(([value, text]) => {
    const key = keys[value],
      title = key ? t("{label} (key {key})", { label: names[value], key }) : null;
    return plainButton(text, () => onPick(value), { "data-value": value, title, class: null });
  });
  return {
    root: el("div", { class: "segmented", role: "group", "aria-label": label }, buttons),
    buttons,
    show: (value) =>
      buttons.forEach((button) =>
        button.setAttribute("aria-pressed", button.dataset.value === value),
      ),
  };
}

/**
 * Create a labelled menu.
 * @param {string} label @param {Record<string, any>} options value -> text @param {(value: string) => void} onPick
 * @param {string | null} [title] tooltip
 */
export function createSelect(label, options, onPick, title = null) {
  const field = el("select", { onchange: () => onPick(field.value) });
  const menu = {
    root: el("label", { class: "field", title }, el("span", {}, label), field),
    field,
    offer: (entries) =>
      field.replaceChildren(...entries.map(([value, text]) => el("option", { value }, text))),
    show: (value) => (field.value = value),
  };
  menu.offer(Object.entries(options));
  return menu;
}

// Menus have texts as values: the values of the state that they stand for.
const VALUES = { null: null, true: true, false: false };
const VIEW_KEYS = { map: "m", lines: "l", text: "t", compare: "c" };

/**
 * Create all controls.
 * @param {any[]} overlays descriptors of maps that can replace attention
 * @param {(changes: any) => void} update called with changes of the state
 * @param {(key: string) => void} open called with the translation to show
 */
export function createControls(overlays, update, open) {
  const kinds = Object.entries(KINDS),
    of = (name) => Object.fromEntries(kinds.map(([kind, about]) => [kind, about[name]]));
  const lines = Object.fromEntries(
    kinds.map(([kind, { short, line }]) => [
      kind,
      el("span", {}, el("b", {}, short), el("span", { class: "line" }, line)),
    ]),
  );
  const kind = createSegmented(
    t("Kind of attention"),
    lines,
    (value) => update({ kind: value }),
    of("key"),
    of("short"),
  );
  kind.root.classList.add("kinds");
  const drawn = createSegmented(
    t("Lines of"),
    { head: t("this head"), alignment: t("alignment heads") },
    (value) => update({ lines: value }),
  );
  const view = createSegmented(
    t("View"),
    { map: t("Map"), lines: t("Lines"), text: t("Text"), compare: t("Compare") },
    (value) => update({ view: value }),
    VIEW_KEYS,
  );
  const measures = Object.fromEntries(overlays.map(({ id, title }) => [id, toText(title)]));
  // Menus by the field of the state that they set: label, options value -> text, tooltip.
  const settings = {
    overlay: [
      t("Measure"),
      { "": t("attention weight"), ...measures },
      t("What a cell shows: attention, or something computed in its place"),
    ],
    combine: [
      t("Heads"),
      { single: t("one head"), mean: t("mean"), max: t("maximum"), rollout: t("rollout") },
      t("One head, or several as one map. The chips choose which."),
    ],
    words: [
      t("Tokens"),
      { false: t("subwords"), true: t("whole words") },
      t("Whole words: sum over a word's keys, mean over its queries; rows still sum to 1"),
    ],
    glosses: [
      t("Glosses"),
      { foreign: t("of words in another language"), all: t("of all words"), none: t("none") },
      t(
        "Below each word of the sentences, what it became, as linked by the model's own attention: a guess",
      ),
    ],
    special: [
      t("Special tokens"),
      { show: t("shown"), hide: t("hidden"), renormalise: t("hidden, rows rescaled") },
      t("The language symbol, <s> and </s>"),
    ],
    predicted: [
      t("Rows"),
      { null: t("reads → writes"), true: t("the token it writes"), false: t("the token it reads") },
      t("A decoder row reads one token and writes the next"),
    ],
    transform: [t("Scale"), { linear: t("linear"), sqrt: t("square root"), log: t("logarithmic") }],
    range: [t("Range"), { fixed: t("0 to 1"), own: t("own maximum") }],
    colours: [t("Colours"), { viridis: "viridis", cividis: "cividis", greys: t("greys") }],
  };
  const menus = Object.fromEntries(
    Object.entries(settings).map(([name, [label, options, title]]) => {
      const pick = (value) => update({ [name]: value in VALUES ? VALUES[value] : value });
      return [name, createSelect(label, options, pick, title)];
    }),
  );
  const { overlay, combine, words, glosses, special, predicted, range, colours } = menus;
  overlay.root.classList.add("wide");
  overlay.root.hidden = !overlays.length;
  const sentence = createSelect(t("Sentence"), {}, open, t("Your last translations stay here"));
  sentence.root.classList.add("wide", "history");
  const roots = [...Object.values(menus), sentence].map((menu) => menu.root);
  return {
    kind: kind.root,
    lines: drawn.root,
    view: view.root,
    options: el("div", { class: "options" }, roots),
    history(traces, current) {
      const unfinished = `(${t("unfinished")}) `,
        name = (trace) =>
          `${trace.finished ? "" : unfinished}${naming.traceName(trace, traces, 60)}`;
      sentence.offer(traces.toReversed().map((trace) => [trace.key, name(trace)]));
      sentence.show(current.key);
      glosses.root.hidden = !current.glosses;
      for (const button of kind.buttons) button.hidden = !current.kinds[button.dataset.value];
    },
    // Show a state. map: the map that is drawn, or null while it is missing.
    show(state, map) {
      const large = Boolean(map?.pyramid); // a large map shows one head's weights, unchanged
      for (const { field } of [overlay, words, special]) field.disabled = large;
      for (const button of view.buttons) button.disabled = large && button.dataset.value !== "map";
      combine.field.disabled = large || Boolean(state.overlay);
      colours.field.disabled = Boolean(map?.signed);
      predicted.field.disabled = state.kind === "encoder_self";
      const [low, high] = (map?.range ?? [0, 1]).map((value) => formatSignificant(value, 3));
      range.field.options[0].textContent = t("{low} to {high}", { low, high });
      kind.show(state.kind);
      drawn.show(state.lines);
      view.show(state.view);
      const { [state.kind]: named = false } = state.predicted; // an encoder's rows have one token
      for (const [name, menu] of Object.entries(menus))
        menu.show(String(name === "predicted" ? named : state[name]));
    },
  };
}
