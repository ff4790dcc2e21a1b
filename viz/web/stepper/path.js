// One branch of the tree of translations: every step's candidates and attention rows, decoded. It needs no DOM.
import { Trace, base64ToBytes, decodeWeights } from "../explorer/trace.js";

/** @typedef {string} Kind "cross" or "decoder_self" */
/** @typedef {{text: string, symbol: boolean}} Token */

/** A branch from the first step to the last. A long path has no maps: its rows are sent a few steps at a time. */
export class Path {
  /**
   * @param {any} payload viz/wire/steps.py, path_payload
   * @param {any[]} steps
   * @param {Trace | null} maps of all steps; null for a long path
   */
  constructor({ number, vocabulary, source, read, kinds, respelled }, steps, maps) {
    /** @type {number} */
    this.number = number; // of the branch
    /** @type {number} */
    this.vocabulary = vocabulary;
    /** @type {Token[]} */
    this.source = source;
    /** @type {Token[]} */
    this.read = read; // what the decoder reads at each step
    this.kinds = kinds; // kind -> {layers, heads, queries, keys}
    /** @type {Token[] | null} */
    this.respelled = respelled; // how the tokenizer would split the text of the branch, if differently
    this.steps = steps;
    this.length = steps.length;
    this.maps = maps;
    /** @type {Map<number, Record<string, Float32Array>>} */
    this.rows = new Map(); // step -> kind -> weights, of a long path
    /** @type {Set<number>} */
    this.requested = new Set(); // steps whose rows have been requested
    /** @type {any} */
    this.details = null; // what temperatures and lenses need, once the server has sent it
    this.text = ""; // of the source
  }

  /**
   * Decode a payload.
   * @param {any} payload viz/wire/steps.py, path_payload
   * @param {Path | null} [base] the path whose first steps the payload leaves out because both share them
   */
  static async from(payload, base) {
    const { kinds, blocks, rows, shared } = payload;
    const steps = [...(shared && base ? base.steps.slice(0, shared) : []), ...payload.steps];
    let maps = null;
    if (rows && base) maps = extendMaps(base, payload);
    else if (blocks.length) maps = await Trace.from({ kinds, blocks });
    payload.blocks = [];
    return new Path(payload, steps, maps);
  }

  /** Whether the attention of a step has arrived. @param {number} step */
  has(step) {
    return this.maps !== null || this.rows.has(step);
  }

  /**
   * Add the rows of the steps from first to last - 1.
   * @param {{first: number, last: number, rows: Record<string, string>}} payload viz/wire/steps.py, rows_payload
   */
  addRows({ first, last, rows }) {
    const decoded = new Map();
    for (const [kind, packed] of Object.entries(rows))
      decoded.set(kind, decodeWeights(base64ToBytes(packed)));
    for (let step = first; step < last; step++) {
      /** @type {Record<string, Float32Array>} */
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

  /**
   * The first step from `start` to `end` - 1 whose rows are missing; null if there is none, or if it has been requested.
   * @param {number} start @param {number} end
   */
  firstMissing(start, end) {
    for (let step = start; step < Math.min(end, this.length); step++)
      if (!this.has(step)) return this.requested.has(step) ? null : step;
    return null;
  }

  /**
   * The weights of a head over the keys at a step that has arrived.
   * @param {Kind} kind @param {number} layer @param {number} head @param {number} step
   * @returns {Float32Array}
   */
  row(kind, layer, head, step) {
    const { heads, keys } = this.kinds[kind];
    if (this.maps)
      return this.maps.head(kind, layer, head).subarray(step * keys, (step + 1) * keys);
    const start = (layer * heads + head) * keys;
    const weights = /** @type {Record<string, Float32Array>} */ (this.rows.get(step))[kind];
    return weights.subarray(start, start + keys);
  }

  /** The mean of the weights over all layers and heads. @param {Kind} kind @param {number} step */
  meanRow(kind, step) {
    const { layers, heads, keys } = this.kinds[kind];
    const mean = new Float64Array(keys);
    for (let layer = 0; layer < layers; layer++)
      for (let head = 0; head < heads; head++)
        for (const [key, weight] of this.row(kind, layer, head, step).entries())
          mean[key] += weight / (layers * heads);
    return mean;
  }

  /**
   * The candidates of a step with their probabilities at a temperature, over the whole vocabulary; null until the details
   * have arrived (temperature 1 needs none).
   * @param {number} step @param {number} temperature
   */
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

  /**
   * The probability of the token that was written, or null as above.
   * @param {number} step @param {number} temperature
   */
  probability(step, temperature) {
    const normaliser = this.detail("log_normalisers", step, temperature);
    return normaliser === null
      ? null
      : Math.exp(this.steps[step].log_probability / temperature - normaliser);
  }

  /** The entropy of a step in bits, or null as above. @param {number} step @param {number} temperature */
  entropy(step, temperature) {
    return this.detail("entropies", step, temperature);
  }

  /** @param {"log_normalisers" | "entropies"} name @param {number} step @param {number} temperature */
  detail(name, step, temperature) {
    if (temperature === 1) return name === "entropies" ? this.steps[step].entropy : 0;
    if (!this.details) return null;
    const at = this.details.temperatures.findIndex((t) => Math.abs(t - temperature) < 1e-6);
    return at < 0 ? null : this.details[name][at][step];
  }
}

/**
 * The maps of a path that shares its first steps with `base`, whose rows are copied. A row is 0 beyond its own step, so a row
 * of another length can be cut or padded.
 * @param {Path} base @param {any} payload
 */
function extendMaps(base, { kinds, rows, shared }) {
  const maps = new Trace(/** @type {any} */ ({ kinds }));
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

/**
 * Which tree, branches and path the page already has, so that the server need not send them again.
 * @param {any} tree @param {Path} path
 */
export const describeHeld = (tree, path) => ({
  tree: tree.key,
  branches: tree.branches.map((branch) => branch.number),
  path: path.number,
});

/**
 * A tree as the server sent it, with the branches that it left out because the page has them.
 * @param {any} received @param {any} tree the tree that the page has
 */
export function mergeTree(received, tree) {
  const known = (/** @type {number} */ number) =>
    tree.branches.find((branch) => branch.number === number);
  const branches = received.branches.map((/** @type {any} */ branch) =>
    typeof branch === "number" ? known(branch) : branch,
  );
  return { ...received, branches };
}

/** The text of tokens, without symbols. @param {Token[]} tokens */
export const textOf = (tokens) =>
  tokens
    .filter((token) => !token.symbol)
    .map((token) => token.text)
    .join("")
    .replaceAll("\u2581", " ")
    .trim();
