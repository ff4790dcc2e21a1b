// The settings of a network that is trained on the page, as a form: each control is a field of model/training/toy/settings.py.
import { button, el, menu } from "../core/dom.js";
import { formatSignificant } from "../core/format.js";
import { clamp } from "../core/keys.js";
import { say, t } from "../core/language.js";

const NETWORKS = [
  ["transformer", say("Transformer")],
  ["encoder", say("Encoder only, a class for each sentence")],
  ["decoder", say("Decoder only, the next word")],
  ["gru", say("GRU with additive attention")],
  ["gru-plain", say("GRU without attention")],
];
const POSITIONS = [
  ["interleaved", say("sines and cosines")],
  ["learned", say("learned")],
  ["relative", say("by distance, in the scores")],
  ["none", say("none")],
  ["count", say("a count")],
  ["normalised", say("a count, normalised")],
  ["binary", say("binary digits")],
  ["sine", say("sines alone")],
  ["tutorial", say("sines and cosines, wrong exponents")],
];
const OPTIMIZERS = [
  ["adam", say("Adam")],
  ["sgd", say("SGD with momentum")],
];
const STARTS = [
  ["xavier", say("Xavier (by fan-in and fan-out)")],
  ["torch", say("PyTorch’s defaults")],
];
const NORMS = [
  ["layer", say("Layer norm")],
  ["new", say("Mistake: layer norm created anew in every pass")],
  ["batch", say("Mistake: batch norm")],
  ["outside", say("Mistake: ε outside the root, over n − 1")],
];
// Field, label, and what switching it teaches.
const SWITCHES = [
  [
    "look_ahead_mask",
    say("Look-ahead mask"),
    say(
      "Without it, a decoder row sees later tokens: the network learns to copy them, and has nothing to copy when it decodes.",
    ),
  ],
  [
    "residual",
    say("Residual connections"),
    say(
      "Without them, each layer replaces the residual stream instead of adding to it, and little of the gradient reaches the first layers.",
    ),
  ],
  [
    "scale_scores",
    say("Division by √d_k"),
    say(
      "Without it, scores are √d_k times as far apart, and the softmax is sharper from the start.",
    ),
  ],
  [
    "scale_embedding",
    say("Embeddings times √d_model"),
    say("Without it, the position code is larger than the embedding it is added to."),
  ],
  ["biases", say("Biases"), say("A constant added after each matrix product. T5 has none.")],
  [
    "separate",
    say("Separate vocabularies"),
    say("One vocabulary per language, and no shared embedding."),
  ],
  [
    "own_output",
    say("Separate output matrix"),
    say(
      "Off: logits are products with the target embeddings. With PyTorch’s defaults those are N(0, 1), and the first loss is about ten times that of a random guess; a separate matrix starts at the loss of a random guess.",
    ),
  ],
  [
    "warmup",
    say("Warm-up"),
    say("The learning rate grows for 30 updates, then decays. Off: a constant learning rate."),
  ],
  [
    "norm_first",
    say("Norm before each sub-layer"),
    say("Off: the norm comes after the sum, as in the paper."),
  ],
  [
    "count_padding",
    say("Loss counts padding"),
    say("Shorter sentences are padded, and the loss rewards predicting the padding."),
  ],
  [
    "softmax_twice",
    say("Mistake: softmax before the loss"),
    say(
      "The loss applies a softmax itself. Of probabilities, a second one is nearly uniform, so this loss stays large and its gradient small.",
    ),
  ],
  [
    "hides_itself",
    say("Mistake: triu with k = 0"),
    say(
      "The mask hides the diagonal, too: a row attends to earlier tokens only. Its own token still reaches it through the residual stream.",
    ),
  ],
];
const OF_TRANSFORMERS = [
  "layers",
  "decoder_layers",
  "heads",
  "d_ff",
  "positions",
  "norm",
  "attention_dropout",
  "feedforward_dropout",
  ...SWITCHES.map(([name]) => String(name)).filter(
    (name) => !["warmup", "count_padding", "softmax_twice"].includes(name),
  ),
];
// The fields that a network lacks.
const OF_TWO_STACKS = ["decoder_layers", "separate", "own_output", "norm", "hides_itself"];
const LACKING = {
  transformer: [],
  encoder: [...OF_TWO_STACKS, "look_ahead_mask", "label_smoothing"],
  decoder: OF_TWO_STACKS,
  gru: OF_TRANSFORMERS,
  "gru-plain": OF_TRANSFORMERS,
};

// A drawer over the side of the page, beside which the curves stay visible. One is open at a time.
function createDrawer(title, ...content) {
  const close = () => {
    root.open = false;
    root.firstChild.focus();
  };
  const root = el(
    "details",
    { name: "train-drawer", onkeydown: (event) => event.key === "Escape" && close() },
    el("summary", {}, title),
    el("div", { class: "drawer" }, [
      button("✕", close, { class: "close", "aria-label": t("Close") }),
      content,
    ]),
  );
  return root;
}

/**
 * Create the form.
 * @param {"a" | "b"} side
 * @param {{
 *   settings: Record<string, any>, choices: Record<string, number[]>, measured: Record<string, any[]>,
 * }} options the defaults; the numbers that a field may have; the losses with and without a change
 * @param {string} title
 */
export function createSettings(side, options, title) {
  const defaults = options.settings;
  const fields = new Map(); // name -> its control
  const id = (name) => `train-${side}-${name}`;

  function createSelect(name, words, choices) {
    const node = menu(choices, null, { id: id(name), onchange: update });
    fields.set(name, node);
    return el("label", { class: "field", for: id(name) }, el("span", {}, words), node);
  }
  const numbers = (name) =>
    options.choices[name].map((value) => [value, value === 1 / 30 ? "1/30" : String(value)]);
  const rates = [0, 0.1, 0.2, 0.3].map((value) => [value, String(value)]);

  // The measured losses with a change and with the defaults, as bars on one logarithmic scale for all changes.
  const logs = Object.values(options.measured)
    .flat()
    .flatMap(({ changed, default: plain }) => [...changed, ...plain].map(Math.log));
  const [low, high] = [Math.min(...logs), Math.max(...logs)],
    position = (loss) => (100 * (Math.log(loss) - low)) / (high - low);
  const createBar = (kind, [least, most]) =>
    el("i", {
      class: kind,
      style: `left: ${position(least).toFixed(1)}%; width: max(3px, ${(position(most) - position(least)).toFixed(1)}%)`,
    });
  function createMeasurement({ about, where, changed, default: plain }) {
    const verdict = changed[1] < plain[0] ? " lower" : changed[0] > plain[1] ? " higher" : "";
    return el("span", { class: `measured${verdict}`, title: about }, [
      el("span", { class: "sr-only" }, about),
      el("span", { "aria-hidden": "true" }, where),
      el("span", { class: "track" }, createBar("default", plain), createBar("changed", changed)),
      el("span", { "aria-hidden": "true" }, [
        changed.map((loss) => formatSignificant(loss, 3)).join(" – "),
      ]),
    ]);
  }

  function createSwitch([name, words, about]) {
    const node = el("input", { type: "checkbox", id: id(name), onchange: update });
    fields.set(name, node);
    return el("div", { class: "switch" }, [
      el("label", { for: id(name) }, node, el("span", {}, words)),
      el("small", {}, about, options.measured[name].map(createMeasurement)),
    ]);
  }

  const limitSeed = () => (seed.value = clamp(Math.floor(Number(seed.value)), 1000)),
    limits = { type: "number", min: 0, max: 999, step: 1 },
    seed = el("input", { id: id("seed"), ...limits, onchange: limitSeed });
  fields.set("seed", seed);
  // The measured changes that are no switch.
  const changes = [
    ...POSITIONS.filter(([code]) => code !== defaults.positions).map(([code, words]) => [
      `positions_${code}`,
      t("Positions: {code}", { code: words }),
    ]),
    ["heads_1", t("heads: {n}", { n: 1 })],
    ["heads_2", t("heads: {n}", { n: 2 })],
    ["heads_8", t("heads: {n}", { n: 8 })],
    ["layers_1", t("layers: encoder {n}, decoder {m}", { n: 1, m: 2 })],
    ["decoder_layers_1", t("layers: encoder {n}, decoder {m}", { n: 2, m: 1 })],
    ["d_ff_1", t("d_ff {n} × d_model", { n: 1 })],
    ["d_ff_4", t("d_ff {n} × d_model", { n: 4 })],
    ["dropout", t("dropout 0.1")],
    ["attention_dropout", t("dropout 0.1 on attention weights")],
    ["feedforward_dropout", t("dropout 0.1 in the feed-forward")],
    ["label_smoothing", t("label smoothing 0.1")],
    ...["0.1", "0.3", "3", "10"].map((n) => [`rate_${n}`, t("Learning rate × {n}", { n })]),
    ["optimizer", t("SGD with momentum")],
    ["momentum_0", t("SGD without momentum")],
    ...NORMS.slice(1).map(([norm, words]) => [`norm_${norm}`, words]),
    ["start", t("PyTorch’s default initialisation")],
    ["start_own_output", t("PyTorch’s default initialisation, separate output matrix")],
  ];
  const node = el("fieldset", { class: "settings" }, [
    el("legend", {}, title),
    el("div", { class: "fields" }, [
      createSelect("network", t("Network"), NETWORKS),
      createSelect("layers", t("Encoder layers"), numbers("layers")),
      createSelect("heads", t("Heads per layer"), numbers("heads")),
      createSelect("d_model", "d_model", numbers("d_model")),
      createSelect("positions", t("Position encoding"), POSITIONS),
      createSelect("optimizer", t("Optimiser"), OPTIMIZERS),
      createSelect("dropout", t("Dropout"), rates),
      createSelect("label_smoothing", t("Label smoothing"), rates),
      el("label", { class: "field", for: id("seed") }, el("span", {}, t("Seed")), seed),
    ]),
    createDrawer(
      t("Switches and their measured effect"),
      el("div", { class: "fields" }, [
        createSelect("decoder_layers", t("Decoder layers"), [
          ["0", t("as many as the encoder")],
          ...numbers("decoder_layers").slice(1),
        ]),
        createSelect("d_ff", t("d_ff, times d_model"), numbers("d_ff")),
        createSelect("attention_dropout", t("Dropout on attention weights"), rates),
        createSelect("feedforward_dropout", t("Dropout in the feed-forward"), rates),
        createSelect("rate", t("Learning rate, × default"), numbers("rate")),
        createSelect("momentum", t("Momentum of SGD"), numbers("momentum")),
        createSelect("start", t("Initialisation"), STARTS),
        createSelect("norm", t("Norm"), NORMS),
      ]),
      el("div", { class: "switches" }, SWITCHES.map(createSwitch)),
      el("p", { class: "note", "data-terms": "" }, [
        t(
          "Measured with five seeds on the first corpus, position codes also on the word-order corpus. The loss is over the whole corpus, without smoothing.",
        ),
        " ",
        t(
          "Each bar spans the smallest to the largest loss on a logarithmic scale, higher to the right: grey for the default, coloured with the change (orange: reliably higher, blue: reliably lower).",
        ),
      ]),
      el("ul", { class: "note" }, [
        changes.map(([name, words]) =>
          el("li", {}, el("b", {}, words), options.measured[String(name)].map(createMeasurement)),
        ),
      ]),
    ),
  ]);

  function read(name) {
    const node = fields.get(name);
    if (node.type === "checkbox") return node.checked;
    return typeof defaults[name] === "number" ? Number(node.value) : node.value;
  }
  function update() {
    const isAdam = read("optimizer") === "adam";
    for (const [name, node] of fields) node.disabled = LACKING[read("network")].includes(name);
    fields.get("momentum").disabled = isAdam;
    fields.get("warmup").disabled = !isAdam;
  }
  function set(values) {
    for (const [name, value] of Object.entries(values)) {
      const node = fields.get(name);
      if (node.type === "checkbox") node.checked = value;
      else node.value = value;
    }
    update();
  }
  set(defaults);
  const values = () => Object.fromEntries([...fields.keys()].map((name) => [name, read(name)]));
  return { node, set, values };
}
