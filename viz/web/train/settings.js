// The choices of one toy, as a form: each control is a field of model/training/toy/settings.py.
import { el } from "../core/dom.js";
import { said, say, t } from "../core/language.js";

const NETWORKS = [
  ["transformer", say("Transformer")],
  ["gru", say("GRU with additive attention")],
  ["gru-plain", say("GRU without attention")],
];
const POSITIONS = [
  ["interleaved", say("sines and cosines")],
  ["learned", say("learned")],
  ["relative", say("by distance, in the scores")],
  ["none", say("none")],
];
const OPTIMIZERS = [
  ["adam", say("Adam with warm-up")],
  ["sgd", say("SGD with momentum")],
];
// field, words, what it teaches; of Transformers alone?, and under which name the change was measured
const SWITCHES = [
  [
    "look_ahead_mask",
    say("Look-ahead mask"),
    say(
      "Without it a row of the decoder sees the tokens after it: the network learns to copy them, and has nothing to copy when it decodes.",
    ),
    true,
  ],
  [
    "residual",
    say("Residual connections"),
    say(
      "Without them each layer replaces the stream and does not add to it: little of the gradient reaches the first layers.",
    ),
    true,
  ],
  [
    "scale_scores",
    say("Division by √d_k"),
    say(
      "Without it scores are √d_k times as far apart, and the softmax is sharper from the start.",
    ),
    true,
  ],
  [
    "norm_first",
    say("Norm before each sub-layer"),
    say("Off: the norm stands after the sum, as in the paper."),
    true,
  ],
  [
    "count_padding",
    say("Loss counts padding"),
    say("Shorter sentences are filled up, and the loss rewards predicting the filling."),
    false,
  ],
];
const START = {
  network: "transformer",
  layers: 2,
  heads: 4,
  d_model: 64,
  positions: "interleaved",
  look_ahead_mask: true,
  norm_first: true,
  scale_scores: true,
  residual: true,
  dropout: 0,
  label_smoothing: 0,
  optimizer: "adam",
  count_padding: false,
  seed: 1,
};

// side: "a" or "b"; options: what the server tells once. Returns {node, values(), set(values)}.
export function createSettings(side, options, title) {
  const fields = new Map();
  const id = (name) => `train-${side}-${name}`;

  function select(name, words, choices) {
    const node = el(
      "select",
      { id: id(name), onchange: update },
      choices.map(([value, text]) => el("option", { value }, text)),
    );
    fields.set(name, {
      node,
      read: () => (typeof START[name] === "number" ? Number(node.value) : node.value),
      put: (v) => (node.value = String(v)),
    });
    return el("label", { class: "field", for: id(name) }, el("span", {}, words), node);
  }
  const numbers = (name) => options.choices[name].map((value) => [value, String(value)]);
  const rates = [0, 0.1, 0.2, 0.3].map((value) => [value, String(value)]);

  function toggle([name, words, about, transformer]) {
    const node = el("input", { type: "checkbox", id: id(name), onchange: update });
    fields.set(name, {
      node,
      transformer,
      read: () => node.checked,
      put: (v) => (node.checked = v),
    });
    return el(
      "div",
      { class: "switch" },
      el("label", { for: id(name) }, node, el("span", {}, words)),
      el(
        "small",
        {},
        about,
        ...(options.measured[name] || []).map((words) => el("span", { class: "measured" }, words)),
      ),
    );
  }

  const seed = el("input", { type: "number", id: id("seed"), min: 0, max: 999, step: 1 });
  fields.set("seed", {
    node: seed,
    read: () => Math.min(999, Math.max(0, Math.floor(Number(seed.value) || 0))),
    put: (v) => (seed.value = v),
  });
  const measured = [
    "positions_none",
    "positions_learned",
    "dropout",
    "label_smoothing",
    "optimizer",
  ];
  const names = {
    positions_none: say("no positions"),
    positions_learned: say("learned positions"),
    dropout: say("dropout 0.1"),
    label_smoothing: say("label smoothing 0.1"),
    optimizer: say("SGD with momentum"),
  };
  const node = el(
    "fieldset",
    { class: "settings" },
    el("legend", {}, title),
    el(
      "div",
      { class: "fields" },
      select("network", t("Network"), NETWORKS),
      select("layers", t("Layers per side"), numbers("layers")),
      select("heads", t("Heads per layer"), numbers("heads")),
      select("d_model", "d_model", numbers("d_model")),
      select("positions", t("Position encoding"), POSITIONS),
      select("optimizer", t("Optimiser"), OPTIMIZERS),
      select("dropout", t("Dropout"), rates),
      select("label_smoothing", t("Label smoothing"), rates),
      el("label", { class: "field", for: id("seed") }, el("span", {}, t("Seed")), seed),
    ),
    el(
      "details",
      {},
      el("summary", {}, t("Switches, and what each was measured to do")),
      el("div", { class: "switches" }, SWITCHES.map(toggle)),
      el(
        "p",
        { class: "note" },
        t(
          "Measured with five seeds on the first corpus; the loss is that of the whole corpus, without smoothing.",
        ),
      ),
      el(
        "ul",
        { class: "note" },
        measured
          .filter((name) => options.measured[name])
          .map((name) =>
            el(
              "li",
              {},
              el("b", {}, names[name]),
              " ",
              options.measured[name].map(said).join("; "),
            ),
          ),
      ),
    ),
  );

  function update() {
    const transformer = fields.get("network").read() === "transformer";
    for (const name of ["layers", "heads", "positions"])
      fields.get(name).node.disabled = !transformer;
    for (const field of fields.values()) if (field.transformer) field.node.disabled = !transformer;
  }
  const set = (values) => {
    for (const [name, value] of Object.entries({ ...START, ...values }))
      fields.get(name).put(value);
    update();
  };
  set({});
  return {
    node,
    set,
    values: () => Object.fromEntries([...fields].map(([name, field]) => [name, field.read()])),
  };
}
