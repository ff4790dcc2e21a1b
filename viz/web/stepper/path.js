// One branch of the tree of translations: every step's candidates and attention rows, decoded. It needs no DOM.
import { Trace, base64ToBytes, decodeWeights } from "../explorer/trace.js";

export class Path {
  /** @type {number} steps */ length;
  /** @type {any[]} candidates of each step */ steps;
  /** @type {any} sizes of each kind of attention */ kinds;
  /** @type {string} */ text;
  /** @type {any} what temperatures and lenses need, once it has arrived */ details;
  /** @type {any} attention of all steps, or null for a long path */ maps;
  /** @type {Map<number, any>} step -> kind -> weights, of a long path */ rows;
  /** @type {Set<number>} steps whose rows have been requested */ requested;

  // Decode a payload (viz/wire/steps.py, path_payload). base: the path whose first steps the payload leaves out because
  // both share them.
  static async from(payload, base) {
    const path = new Path(),
      { number, vocabulary, source, read, kinds, respelled, blocks, rows, shared } = payload;
    const steps = [...(shared ? base.steps.slice(0, shared) : []), ...payload.steps];
    Object.assign(path, { number, vocabulary, source, read, kinds, respelled, steps });
    path.length = steps.length;
    path.details = null;
    path.maps = null;
    if (rows) path.maps = extendMaps(base, payload);
    else if (blocks.length) path.maps = await Trace.from({ kinds, blocks });
    path.rows = new Map();
    path.requested = new Set();
    payload.blocks = [];
    return path;
  }

  // Whether the attention of a step has arrived.
  has(step) {
    return this.maps !== null || this.rows.has(step);
  }

  // Add the rows of the steps from first to last - 1 (viz/wire/steps.py, rows_payload).
  addRows({ first, last, rows }) {
    const decoded = Object.entries(rows).map(
      ([kind, packed]) => /** @type {const} */ ([kind, decodeWeights(base64ToBytes(packed))]),
    );
    for (let step = first; step < last; step++) {
      const weights = {};
      for (const [kind, values] of decoded) {
        const { layers, heads, keys } = this.kinds[kind];
        weights[kind] = new Float32Array(layers * heads * keys);
        for (let head = 0; head < layers * heads; head++) {
          const start = (head * (last - first) + step - first) * keys;
          weights[kind].set(values.subarray(start, start + keys), head * keys);
        }
      }
      this.rows.set(step, weights);
    }
  }

  // The first step from `start` to `end` - 1 whose rows are missing; null if there is none, or if it has been requested.
  firstMissing(start, end) {
    for (let step = start; step < Math.min(end, this.length); step++)
      if (!this.has(step)) return this.requested.has(step) ? null : step;
    return null;
  }

  // The weights of a head over the keys at a step.
  row(kind, layer, head, step) {
    const { heads, keys } = this.kinds[kind];
    if (this.maps)
      return this.maps.head(kind, layer, head).subarray(step * keys, (step + 1) * keys);
    const start = (layer * heads + head) * keys;
    return this.rows.get(step)[kind].subarray(start, start + keys);
  }

  // The mean of the weights over all layers and heads.
  meanRow(kind, step) {
    const { layers, heads, keys } = this.kinds[kind];
    const mean = new Float64Array(keys);
    for (let layer = 0; layer < layers; layer++)
      for (let head = 0; head < heads; head++)
        for (const [key, weight] of this.row(kind, layer, head, step).entries())
          mean[key] += weight / (layers * heads);
    return mean;
  }

  // The candidates of a step with their probabilities at a temperature, over the whole vocabulary; null until the
  // details have arrived (temperature 1 needs none).
  candidates(step, temperature) {
    const { candidates } = this.steps[step];
    if (temperature === 1) return candidates;
    const normaliser = this.detail("log_normalisers", step, temperature);
    if (normaliser === null) return null;
    return candidates.map((candidate) => ({
      ...candidate,
      probability: Math.exp(Math.log(candidate.probability) / temperature - normaliser),
    }));
  }

  // The probability of the token that was written, or null as above.
  probability(step, temperature) {
    const normaliser = this.detail("log_normalisers", step, temperature);
    return normaliser === null
      ? null
      : Math.exp(this.steps[step].log_probability / temperature - normaliser);
  }

  // The entropy of a step in bits, or null as above.
  entropy(step, temperature) {
    return this.detail("entropies", step, temperature);
  }

  detail(name, step, temperature) {
    if (temperature === 1) return name === "entropies" ? this.steps[step].entropy : 0;
    if (!this.details) return null;
    const at = this.details.temperatures.findIndex((t) => Math.abs(t - temperature) < 1e-6);
    return at < 0 ? null : this.details[name][at][step];
  }
}

// The maps of a path that shares its first steps with `base`, whose rows are copied. A row is 0 beyond its own step, so a
// row of another length can be cut or padded.
function extendMaps(base, { kinds, rows, shared }) {
  const maps = new Trace({ kinds });
  for (const [kind, packed] of Object.entries(rows)) {
    const { layers, heads, queries, keys } = kinds[kind],
      size = queries * keys,
      newSize = (queries - shared) * keys;
    const newRows = decodeWeights(base64ToBytes(packed)),
      width = Math.min(keys, base.kinds[kind].keys);
    for (let layer = 0; layer < layers; layer++) {
      const values = (maps.weights[kind][layer] = new Float32Array(heads * size));
      for (let head = 0; head < heads; head++) {
        for (let step = 0; step < shared; step++) {
          const row = base.row(kind, layer, head, step).subarray(0, width);
          values.set(row, head * size + step * keys);
        }
        const start = (layer * heads + head) * newSize;
        values.set(newRows.subarray(start, start + newSize), head * size + shared * keys);
      }
    }
  }
  return maps;
}

// Which tree, branches and path the page already has, so that the server need not send them again.
export const describeHeld = (tree, path) => ({
  tree: tree.key,
  branches: tree.branches.map((branch) => branch.number),
  path: path.number,
});

// A tree as the server sent it, with the branches that it left out because the page has them.
export function mergeTree(received, tree) {
  const known = (number) => tree.branches.find((branch) => branch.number === number);
  const branches = received.branches.map((branch) =>
    typeof branch === "number" ? known(branch) : branch,
  );
  return { ...received, branches };
}

// The text of tokens.
export const textOf = (tokens) =>
  tokens
    .filter((token) => !token.symbol)
    .map((token) => token.text)
    .join("")
    .replaceAll("\u2581", " ")
    .trim();
