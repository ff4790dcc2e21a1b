// The explorer's controls: segmented buttons and labelled selects over the state; nothing here computes.
import { significant } from "../core/format.js";
import { el } from "../core/dom.js";
import { KINDS } from "../core/kinds.js";
import { said, say, t } from "../core/language.js";
import * as naming from "./words.js";

// A row of buttons of which one is pressed. options: [[value, label, key]]
export function segmented(label, options, onPick) {
  const buttons = options.map(([value, text, key]) =>
    el(
      "button",
      {
        type: "button",
        "data-value": value,
        title: key ? t("{label} (key {key})", { label: text, key }) : null,
        onclick: () => onPick(value),
      },
      text,
    ),
  );
  return {
    root: el("div", { class: "segmented", role: "group", "aria-label": label }, buttons),
    show: (value) =>
      buttons.forEach((button) =>
        button.setAttribute("aria-pressed", button.dataset.value === value),
      ),
  };
}

export function select(label, options, onPick, title) {
  const field = el(
    "select",
    { onchange: (event) => onPick(event.target.value) },
    options.map(([value, text]) => el("option", { value }, text)),
  );
  return {
    root: el("label", { class: "field", title }, el("span", {}, label), field),
    show: (value) => {
      if (field.value !== value) field.value = value;
    },
    enable: (enabled) => {
      field.disabled = !enabled;
    },
    field,
  };
}

const VIEWS = [
  ["map", say("Map"), "m"],
  ["lines", say("Lines"), "l"],
  ["text", say("Text"), "t"],
  ["compare", say("Compare"), "c"],
];

// update(changes) is called with what a person changed, open(key) with the sentence to show; overlays: of overlays.js.
export function createControls(update, open, overlays) {
  const kind = segmented(
    t("Kind of attention"),
    Object.entries(KINDS).map(([name, { short, key }]) => [name, short, key]),
    (value) => update({ kind: value }),
  );
  const view = segmented(t("View"), VIEWS, (value) => update({ view: value }));
  const combine = select(
    t("Heads"),
    [
      ["single", t("one head")],
      ["mean", t("mean")],
      ["max", t("maximum")],
      ["rollout", t("rollout")],
    ],
    (value) => update({ combine: value }),
    t("One head, or several as one map. Shift-click thumbnails to choose which."),
  );
  const words = select(
    t("Tokens"),
    [
      ["pieces", t("subwords")],
      ["words", t("whole words")],
    ],
    (value) => update({ words: value === "words" }),
    t("Whole words: sum over a word's keys, mean over its queries; rows still sum to 1"),
  );
  const glosses = select(
    t("Glosses"),
    [
      ["", t("none")],
      ["links", t("from the model's links")],
    ],
    (value) => update({ glosses: value === "links" }),
    t(
      "Below each word of the sentences, what it became, as linked by the model's own attention: a guess",
    ),
  );
  const special = select(
    t("Special"),
    [
      ["show", t("shown")],
      ["hide", t("hidden")],
      ["renormalise", t("hidden, rows rescaled")],
    ],
    (value) => update({ special: value }),
    t("The language symbol, <s> and </s>"),
  );
  const rows = select(
    t("Rows"),
    [
      ["both", t("reads → writes")],
      ["predicted", t("the token it writes")],
      ["read", t("the token it reads")],
    ],
    (value) => update({ predicted: value === "both" ? null : value === "predicted" }),
    t("A decoder row reads one token and writes the next"),
  );
  const transform = select(
    t("Scale"),
    [
      ["linear", t("linear")],
      ["sqrt", t("square root")],
      ["log", t("logarithmic")],
    ],
    (value) => update({ transform: value }),
  );
  const range = select(
    t("Range"),
    [
      ["fixed", t("0 to 1")],
      ["own", t("own maximum")],
    ],
    (value) => update({ range: value }),
  );
  const colours = select(
    t("Colours"),
    [
      ["viridis", "viridis"],
      ["cividis", "cividis"],
      ["greys", t("greys")],
    ],
    (value) => update({ colours: value }),
  );
  const sentence = select(t("Sentence"), [], open, t("Your last translations stay here"));
  sentence.root.classList.add("wide", "history");
  const overlay = select(
    t("Measure"),
    [["", t("attention weight")], ...overlays.available.map(({ id, title }) => [id, said(title)])],
    (value) => update({ overlay: value }),
    t("What a cell shows: attention, or something computed in its place"),
  );
  overlay.root.classList.add("wide");
  const fields = {
    ...(overlays.available.length ? { overlay } : {}),
    combine,
    words,
    glosses,
    special,
    rows,
    transform,
    range,
    colours,
  };
  return {
    kind: kind.root,
    view: view.root,
    options: el(
      "div",
      { class: "options" },
      Object.values(fields).map((field) => field.root),
      sentence.root,
    ),
    history(traces, shown) {
      sentence.field.replaceChildren(
        ...[...traces]
          .reverse()
          .map((one) =>
            el(
              "option",
              { value: one.key },
              `${one.payload.finished ? "" : `(${t("unfinished")}) `}${naming.name(one, traces, 60)}`,
            ),
          ),
      );
      sentence.show(shown.key);
      glosses.root.hidden = !shown.payload.glosses;
      for (const button of kind.root.children) button.hidden = !shown.kinds[button.dataset.value];
    },
    // map: what is shown, or null while it is not there
    show(state, map) {
      overlay.show(state.overlay);
      const large = Boolean(map?.pyramid); // of so large a map a head's alone is shown, as it is
      for (const field of [overlay, words, special]) field.enable(!large);
      for (const button of view.root.children)
        button.disabled = large && button.dataset.value !== "map";
      combine.enable(!state.overlay && !large);
      colours.enable(!map?.signed);
      const [low, high] = (map?.range || [0, 1]).map((value) => significant(value, 3));
      range.field.options[0].textContent = map?.range
        ? t("{low} to {high}", { low, high })
        : t("0 to 1");
      kind.show(state.kind);
      view.show(state.view);
      for (const name of ["combine", "special", "transform", "range", "colours"])
        fields[name].show(state[name]);
      words.show(state.words ? "words" : "pieces");
      glosses.show(state.glosses ? "links" : "");
      const { [state.kind]: predicted = false } = state.predicted; // an encoder's rows read
      rows.show({ null: "both", true: "predicted", false: "read" }[predicted]);
      rows.enable(state.kind !== "encoder_self");
    },
  };
}
