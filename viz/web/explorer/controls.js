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
 */
export function createSegmented(label, options, onPick, keys = {}) {
  const buttons = Object.entries(options).map(([value, text]) => {
    const key = keys[value],
      title = key ? t("{label} (key {key})", { label: text, key }) : null;
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
    show: (value) => field.value !== value && (field.value = value),
  };
  menu.offer(Object.entries(options));
  return menu;
}

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
  const kind = createSegmented(
    t("Kind of attention"),
    of("short"),
    (value) => update({ kind: value }),
    of("key"),
  );
  const view = createSegmented(
    t("View"),
    { map: t("Map"), lines: t("Lines"), text: t("Text"), compare: t("Compare") },
    (value) => update({ view: value }),
    VIEW_KEYS,
  );
  // A menu that sets a field of the state.
  const choice = (name, label, options, title) =>
    createSelect(label, options, (value) => update({ [name]: value }), title);
  const overlay = choice(
    "overlay",
    t("Measure"),
    {
      "": t("attention weight"),
      ...Object.fromEntries(overlays.map((o) => [o.id, toText(o.title)])),
    },
    t("What a cell shows: attention, or something computed in its place"),
  );
  overlay.root.classList.add("wide");
  const combine = choice(
    "combine",
    t("Heads"),
    { single: t("one head"), mean: t("mean"), max: t("maximum"), rollout: t("rollout") },
    t("One head, or several as one map. Shift-click thumbnails to choose which."),
  );
  const words = createSelect(
    t("Tokens"),
    { pieces: t("subwords"), words: t("whole words") },
    (value) => update({ words: value === "words" }),
    t("Whole words: sum over a word's keys, mean over its queries; rows still sum to 1"),
  );
  const glosses = createSelect(
    t("Glosses"),
    { "": t("none"), links: t("from the model's links") },
    (value) => update({ glosses: value === "links" }),
    t(
      "Below each word of the sentences, what it became, as linked by the model's own attention: a guess",
    ),
  );
  const special = choice(
    "special",
    t("Special"),
    { show: t("shown"), hide: t("hidden"), renormalise: t("hidden, rows rescaled") },
    t("The language symbol, <s> and </s>"),
  );
  const rows = createSelect(
    t("Rows"),
    {
      both: t("reads → writes"),
      predicted: t("the token it writes"),
      read: t("the token it reads"),
    },
    (value) => update({ predicted: value === "both" ? null : value === "predicted" }),
    t("A decoder row reads one token and writes the next"),
  );
  const transform = choice("transform", t("Scale"), {
    linear: t("linear"),
    sqrt: t("square root"),
    log: t("logarithmic"),
  });
  const range = choice("range", t("Range"), { fixed: t("0 to 1"), own: t("own maximum") });
  const colours = choice("colours", t("Colours"), {
    viridis: "viridis",
    cividis: "cividis",
    greys: t("greys"),
  });
  const sentence = createSelect(t("Sentence"), {}, open, t("Your last translations stay here"));
  sentence.root.classList.add("wide", "history");
  const stateMenus = { overlay, combine, special, transform, range, colours };
  const menus = [combine, words, glosses, special, rows, transform, range, colours, sentence];
  if (overlays.length) menus.unshift(overlay);
  const roots = menus.map((menu) => menu.root);
  return {
    kind: kind.root,
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
      rows.field.disabled = state.kind === "encoder_self";
      const [low, high] = (map?.range ?? [0, 1]).map((value) => formatSignificant(value, 3));
      range.field.options[0].textContent = t("{low} to {high}", { low, high });
      kind.show(state.kind);
      view.show(state.view);
      for (const [name, menu] of Object.entries(stateMenus)) menu.show(state[name]);
      words.show(state.words ? "words" : "pieces");
      glosses.show(state.glosses ? "links" : "");
      const { [state.kind]: predicted = false } = state.predicted; // an encoder's rows have one token
      rows.show({ null: "both", true: "predicted", false: "read" }[predicted]);
    },
  };
}
