// One branch of the tree as the page holds it: every step's candidates and attention rows. No page is needed here.
import { Trace, base64ToBytes, decodeWeights } from "../explorer/trace.js";

export class Path {
  // payload: viz/wire/steps.py, path_payload; held: the path whose shared steps it leaves out
  static async from(payload, held) {
    const path = new Path(),
      steps = [...(payload.shared ? held.steps.slice(0, payload.shared) : []), ...payload.steps];
    const { number, vocabulary, source, read, kinds, respelled, blocks, rows } = payload;
    Object.assign(path, { number, vocabulary, source, read, kinds, respelled, steps });
    path.length = steps.length;
    path.details = null;
    path.maps = null;
    if (rows) path.maps = grown(held, payload);
    else if (blocks.length) path.maps = await Trace.from({ kinds, blocks });
    path.sent = new Map(); // step -> rows of long paths, which come some at a time
    path.awaited = new Set(); // steps whose rows were asked for
    payload.blocks = [];
    return path;
  }

  // Whether step's attention is here.
  has(step) {
    return this.maps !== null || this.sent.has(step);
  }

  addRows({ first, last, rows }) {
    const all = Object.entries(rows).map(([kind, packed]) => [
      kind,
      decodeWeights(base64ToBytes(packed)),
    ]);
    for (let step = first; step < last; step++) {
      const found = {};
      for (const [kind, values] of all) {
        const { layers, heads, keys } = this.kinds[kind];
        found[kind] = new Float32Array(layers * heads * keys);
        for (let head = 0; head < layers * heads; head++) {
          const from = (head * (last - first) + step - first) * keys;
          found[kind].set(values.subarray(from, from + keys), head * keys);
        }
      }
      this.sent.set(step, found);
    }
  }

  // The first of some steps whose rows are not here; null where there is none, or it is on its way.
  lacking(from, to) {
    for (let step = from; step < Math.min(to, this.length); step++)
      if (!this.has(step)) return this.awaited.has(step) ? null : step;
    return null;
  }

  // One head's weights over the keys at a step.
  row(kind, layer, head, step) {
    const { heads, keys } = this.kinds[kind];
    if (this.maps)
      return this.maps.head(kind, layer, head).subarray(step * keys, (step + 1) * keys);
    const start = (layer * heads + head) * keys;
    return this.sent.get(step)[kind].subarray(start, start + keys);
  }

  // The mean over all layers and heads.
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
  // details are here (temperature 1 needs none).
  candidates(step, temperature) {
    const { candidates } = this.steps[step];
    if (temperature === 1) return candidates;
    const normaliser = this.detail("log_normalisers", step, temperature);
    if (normaliser === null) return null;
    return candidates.map((c) => ({
      ...c,
      probability: Math.exp(Math.log(c.probability) / temperature - normaliser),
    }));
  }

  taken(step, temperature) {
    const normaliser = this.detail("log_normalisers", step, temperature);
    return normaliser === null
      ? null
      : Math.exp(this.steps[step].log_probability / temperature - normaliser);
  }

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

// The maps of a path that shares its first steps with one that is here: those rows are copied. What a row has beyond
// its own step is 0, so that rows of another length fit.
function grown(held, { kinds, rows, shared }) {
  const maps = new Trace({ kinds });
  for (const [kind, packed] of Object.entries(rows)) {
    const { layers, heads, queries, keys } = kinds[kind],
      size = queries * keys,
      more = (queries - shared) * keys;
    const added = decodeWeights(base64ToBytes(packed)),
      width = Math.min(keys, held.kinds[kind].keys);
    for (let layer = 0; layer < layers; layer++) {
      const values = (maps.weights[kind][layer] = new Float32Array(heads * size));
      for (let head = 0; head < heads; head++) {
        for (let step = 0; step < shared; step++) {
          const row = held.row(kind, layer, head, step).subarray(0, width);
          values.set(row, head * size + step * keys);
        }
        const from = (layer * heads + head) * more;
        values.set(added.subarray(from, from + more), head * size + shared * keys);
      }
    }
  }
  return maps;
}

// What the page has of a tree and shows of it: so much need not be sent again.
export const holding = (tree, path) => ({
  tree: tree.key,
  branches: tree.branches.map((branch) => branch.number),
  path: path.number,
});

// A tree as it was sent, with the branches that the page has.
export function completed(sent, tree) {
  const known = (number) => tree.branches.find((branch) => branch.number === number);
  const branches = sent.branches.map((one) => (typeof one === "number" ? known(one) : one));
  return { ...sent, branches };
}

// What tokens say.
export const written = (tokens) =>
  tokens
    .filter((token) => !token.symbol)
    .map((token) => token.text)
    .join("")
    .replaceAll("\u2581", " ")
    .trim();
