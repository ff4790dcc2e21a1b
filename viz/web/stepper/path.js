// One branch of the tree of translations: every step's candidates and attention rows, decoded. It needs no DOM.
import { KINDS } from "../core/kinds.js";
import { decodeStrips } from "../core/strips.js";
import { base64ToBytes, decodeWeights } from "../explorer/trace.js";

/** @typedef {string} Kind of the decoder's attention, such as "cross" */
/** @typedef {{text: string, symbol: boolean, byte?: boolean}} Token */

/** A branch from the first step to the last. The attention rows of a long path are sent a few steps at a time. */
export class Path {
  /** @param {any} payload viz/wire/steps.py, path_payload */
  constructor({ number, vocabulary, source, read, kinds, respelled, steps, states, rows }) {
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
    /** @type {any[]} */
    this.steps = steps;
    /** @type {number} */
    this.length = steps.length;
    /** @type {Record<string, Float32Array[][]>} */
    this.rows = {}; // kind -> [step][layer * heads + head]: the weights over the keys
    for (const kind of Object.keys(kinds)) if (KINDS[kind].rows === "target") this.rows[kind] = [];
    // the kind that reads the source: cross-attention, or a recurrent network's alignment; none if that has no attention
    this.sourceKind = Object.keys(this.rows).find((kind) => KINDS[kind].columns === "source");
    // of a recurrent decoder: {row, limit, width}, its state before the first step and after each
    this.states = states && { ...decodeStrips(states), width: states.width };
    /** @type {Set<number>} */
    this.requested = new Set(); // steps whose rows have been requested
    /** @type {any} */
    this.details = null; // what temperatures and lenses need, once the server has sent it
    if (rows) this.addRows({ first: 0, last: this.length, rows });
  }

  /** Whether the attention of a step has arrived. @param {number} step */
  has(step) {
    return Object.values(this.rows).every((rows) => rows[step] !== undefined);
  }

  /**
   * Add the rows of the steps from first to last - 1.
   * @param {{first: number, last: number, rows: Record<string, string>}} payload viz/wire/steps.py, rows_payload
   */
  addRows({ first, last, rows }) {
    for (const [kind, packed] of Object.entries(rows)) {
      const { layers, heads, keys } = this.kinds[kind],
        values = decodeWeights(base64ToBytes(packed));
      for (let step = first; step < last; step++)
        this.rows[kind][step] = Array.from({ length: layers * heads }, (_, head) => {
          const start = (head * (last - first) + step - first) * keys;
          return values.subarray(start, start + keys);
        });
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
    return this.rows[kind][step][layer * this.kinds[kind].heads + head];
  }

  /** The mean of the weights over all layers and heads. @param {Kind} kind @param {number} step */
  meanRow(kind, step) {
    const mean = new Float64Array(this.kinds[kind].keys),
      rows = this.rows[kind][step];
    for (const row of rows) row.forEach((weight, key) => (mean[key] += weight / rows.length));
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
    const normaliser = this.logNormaliser(step, temperature);
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
    const normaliser = this.logNormaliser(step, temperature);
    return normaliser === null
      ? null
      : Math.exp(this.steps[step].log_probability / temperature - normaliser);
  }

  /** @param {number} step @param {number} temperature */
  logNormaliser(step, temperature) {
    if (temperature === 1) return 0;
    if (!this.details) return null;
    const at = this.details.temperatures.findIndex((t) => Math.abs(t - temperature) < 1e-6);
    return at < 0 ? null : this.details.log_normalisers[at][step];
  }
}

/** The text of tokens, without symbols. @param {Token[]} tokens */
export const textOf = (tokens) =>
  tokens
    .filter((token) => !token.symbol)
    .map((token) => token.text)
    .join("")
    .replaceAll("\u2581", " ")
    .trim();
