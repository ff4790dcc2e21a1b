// The explorer's computations: which map a view shows, from the weights of a payload
// (viz/wire/payload.py). Pure functions, without a page. viz/maps/reduce.py computes the same in
// Python, and tests/page/explorer/test_parity.py compares the two.
import { t } from "../core/language.js";

/** Return the [layer, head] pairs that a view combines. */
export function usedHeads(trace, view) {
  if (view.combine === "single") return [[view.layer, view.head]];
  if (view.combine === "rollout" || !view.heads.length)
    return headsOfLayer(trace, view.kind, view.layer);
  return view.heads;
}

export function headsOfLayer(trace, kind, layer) {
  return Array.from({ length: trace.kinds[kind].heads }, (_, head) => [layer, head]);
}

/** Return the [kind, layer] pairs whose weights a view needs. */
function neededLayers(trace, view) {
  const upTo = (kind, count) => Array.from({ length: count }, (_, layer) => [kind, layer]);
  if (view.combine !== "rollout") {
    const layers = new Set(usedHeads(trace, view).map(([layer]) => layer));
    return [...layers].map((layer) => [view.kind, layer]);
  }
  if (view.kind === "encoder_self") return upTo("encoder_self", view.layer + 1);
  return [
    ...upTo("encoder_self", trace.kinds.encoder_self.layers),
    ...upTo("decoder_self", view.layer + 1),
    ...upTo("cross", view.layer + 1),
  ];
}

/** Return the [kind, layer] pairs that a view needs and the page does not have yet. */
export const missingLayers = (trace, view) =>
  neededLayers(trace, view).filter(([kind, layer]) => !trace.weights[kind][layer]);

/**
 * Return a function from a token's index to its row or column: {label, positions, special, ends}; ends: the token ends a
 * sentence that others follow.
 */
export const axisEntry = (tokens) => {
  const ends = new Set(tokens.ends);
  return (i) => ({
    label: tokens.labels[i],
    positions: [i],
    special: Boolean(tokens.special[i]),
    ends: ends.has(i),
  });
};

function combineHeads(trace, kind, heads, combine) {
  const { queries, keys } = trace.kinds[kind],
    map = new Float64Array(queries * keys);
  for (const [layer, head] of heads)
    trace.head(kind, layer, head).forEach((weight, i) => (map[i] = combine(map[i], weight)));
  return map;
}

const meanOfHeads = (trace, kind, heads) =>
  combineHeads(trace, kind, heads, (sum, weight) => sum + weight / heads.length);

// Multiply a [n, m] and b [m, p].
function multiply(a, b, n, m, p) {
  const out = new Float64Array(n * p);
  for (let i = 0; i < n; i++) {
    for (let k = 0; k < m; k++) {
      const factor = a[i * m + k];
      if (factor === 0) continue;
      for (let j = 0; j < p; j++) out[i * p + j] += factor * b[k * p + j];
    }
  }
  return out;
}

// Return the encoder's attention rollout after `layers` layers (Abnar and Zuidema 2020): R_l = (0.5
// mean over heads(W_l) + 0.5 I) R_(l-1).
function rollout(trace, layers) {
  const n = trace.kinds.encoder_self.queries;
  let flow = new Float64Array(n * n);
  for (let i = 0; i < n; i++) flow[i * n + i] = 1;
  for (let layer = 0; layer < layers; layer++) {
    flow = multiply(halfWithIdentity(trace, "encoder_self", layer, n), flow, n, n, n);
  }
  return flow;
}

function halfWithIdentity(trace, kind, layer, n) {
  const mixed = meanOfHeads(trace, kind, headsOfLayer(trace, kind, layer));
  for (let i = 0; i < mixed.length; i++) mixed[i] *= 0.5;
  for (let i = 0; i < n; i++) mixed[i * n + i] += 0.5;
  return mixed;
}

// Return the decoder's rollout over [source | prefix]; decoder_rollout in viz/maps/reduce.py has
// the formula.
function decoderRollout(trace, layers) {
  const { queries: target, keys: source } = trace.kinds.cross,
    width = source + target;
  const encoder = rollout(trace, trace.kinds.encoder_self.layers);
  let flow = new Float64Array(target * width);
  for (let i = 0; i < target; i++) flow[i * width + source + i] = 1;
  for (let layer = 0; layer < layers; layer++) {
    const self = halfWithIdentity(trace, "decoder_self", layer, target),
      mean = meanOfHeads(trace, "cross", headsOfLayer(trace, "cross", layer)),
      across = multiply(mean, encoder, target, source, source);
    flow = multiply(self, flow, target, target, width).map((value) => 0.5 * value);
    for (let i = 0; i < target; i++)
      for (let j = 0; j < source; j++) flow[i * width + j] += 0.5 * across[i * source + j];
  }
  return flow;
}

// Keep these rows and columns of values [row, width], and rescale the rows if `renormalise`. A row
// whose weight is all hidden becomes NaN. hidden: the mean share of the rows' weight that is not
// kept.
function hideTokens(values, width, rows, columns, renormalise) {
  const keptValues = new Float64Array(rows.length * columns.length);
  let hidden = 0;
  rows.forEach((row, i) => {
    const rowValues = values.subarray(row * width, (row + 1) * width),
      some = columns.map((column) => rowValues[column]),
      sum = (numbers) => numbers.reduce((total, value) => total + value, 0),
      total = sum(some);
    hidden += 1 - total / sum(rowValues);
    if (!(total > 0)) some.fill(NaN);
    keptValues.set(renormalise ? some.map((value) => value / total) : some, i * columns.length);
  });
  return { values: keptValues, hidden: rows.length ? hidden / rows.length : null };
}

// Merge tokens into words: sum over a word's keys, mean over its queries. For scores that are not
// attention, the maximum over both. NaN rows do not count.
function mergeWords(values, width, rows, columns, attention) {
  const out = new Float64Array(rows.length * columns.length).fill(NaN);
  const add = attention ? (a, b) => a + b : Math.max;
  rows.forEach((group, i) => {
    const present = group.filter((row) => !Number.isNaN(values[row * width]));
    if (!present.length) return;
    columns.forEach((keys, j) => {
      let total = attention ? 0 : -Infinity;
      for (const row of present)
        for (const key of keys) total = add(total, values[row * width + key]);
      out[i * columns.length + j] = attention ? total / present.length : total;
    });
  });
  return out;
}

export function unitOf(view, used) {
  if (view.combine === "rollout")
    return t("attention rollout, input to layer {layer}", { layer: view.layer + 1 });
  if (view.combine === "single" || used.length === 1) return t("attention weight");
  if (view.combine === "max")
    return t("largest weight of {n} heads (a score, not attention)", { n: used.length });
  return t("mean attention weight of {n} heads", { n: used.length });
}

function combinedWeights(trace, view, used) {
  const { kind } = view;
  if (view.combine === "rollout")
    return (kind === "encoder_self" ? rollout : decoderRollout)(trace, view.layer + 1);
  if (used.length === 1) return trace.head(kind, ...used[0]);
  return view.combine === "max"
    ? combineHeads(trace, kind, used, Math.max)
    : meanOfHeads(trace, kind, used);
}

function joinTokens(first, second) {
  const offset = first.labels.length;
  return {
    labels: [...first.labels, ...second.labels],
    special: [...first.special, ...second.special],
    ends: [...(first.ends ?? []), ...(second.ends ?? []).map((i) => i + offset)],
    word_labels: [...first.word_labels, ...second.word_labels],
    words: [...first.words, ...second.words.map((group) => group.map((i) => i + offset))],
  };
}

// Return the words of these tokens as rows or columns; places: the indices of a word's tokens among
// the visible ones.
function wordsOf(tokens, visible) {
  const places = new Map(visible.map((position, place) => [position, place]));
  return tokens.words
    .map((positions, word) => ({
      label: tokens.word_labels[word],
      positions,
      places: positions.map((position) => places.get(position)),
      ends: Boolean(tokens.ends?.includes(positions.at(-1))),
    }))
    .filter(({ places: [first] }) => first !== undefined);
}

/** Return the words of these tokens, without special ones: [{label, positions}]. */
export const plainWords = (tokens) =>
  wordsOf(
    tokens,
    [...tokens.special.keys()].filter((i) => !tokens.special[i]),
  );

/**
 * Return the map of a view, as score_map of viz/maps/reduce.py does.
 *
 * @param {any} trace @param {any} view of viewOf() in state.js
 * @returns {any} {values, rows, columns, unit, attention, hidden, joint, sourceColumns}: values row by row, NaN where blank;
 *   rows and columns {label, positions}; sourceColumns: the index at which a joint map's prefix begins
 */
export function scoreMap(trace, view) {
  const used = usedHeads(trace, view),
    joint = view.combine === "rollout" && view.kind !== "encoder_self",
    attention = view.combine !== "max";
  const queries = trace.rowTokens(view.kind, view.predicted);
  const keys = joint
    ? joinTokens(trace.tokens.source, trace.tokens.read)
    : trace.keyTokens(view.kind);
  const visible = ({ special }) =>
    [...special.keys()].filter((i) => view.special === "show" || !special[i]);
  const shownRows = visible(queries),
    shownColumns = visible(keys);
  let values = combinedWeights(trace, view, used),
    hidden = null;
  if (view.special !== "show") {
    const isScaled = view.special === "renormalise" && attention;
    const masked = hideTokens(values, keys.labels.length, shownRows, shownColumns, isScaled);
    values = masked.values;
    if (attention) hidden = masked.hidden;
  }
  let rows = shownRows.map(axisEntry(queries)),
    columns = shownColumns.map(axisEntry(keys));
  if (view.words) {
    rows = wordsOf(queries, shownRows);
    columns = wordsOf(keys, shownColumns);
    const places = [rows, columns].map((words) => words.map((word) => word.places));
    values = mergeWords(values, shownColumns.length, ...places, attention);
  }
  const source = joint ? trace.tokens.source.labels.length : Infinity,
    sourceColumns = columns.filter(({ positions: [first] }) => first < source).length;
  const unit = unitOf(view, used);
  return { values, rows, columns, unit, attention, hidden, joint, sourceColumns };
}

/**
 * Return the fewest cells of each row that cover a share of its absolute mass: [{row, column, value}].
 * @param {any} map @param {number} coverage 0 to 1
 */
export function strongestEdges(map, coverage) {
  const width = map.columns.length,
    strongest = [];
  for (let row = 0; row < map.rows.length; row++) {
    const values = map.values.subarray(row * width, (row + 1) * width);
    if (Number.isNaN(values[0])) continue;
    const order = Array.from(values.keys()).sort(
      (a, b) => Math.abs(values[b]) - Math.abs(values[a]) || a - b,
    );
    const total = values.reduce((sum, value) => sum + Math.abs(value), 0);
    let covered = 0;
    for (const column of order) {
      if (covered >= coverage * total - 1e-9 || values[column] === 0) break;
      strongest.push({ row, column, value: values[column] });
      covered += Math.abs(values[column]);
    }
  }
  return strongest;
}

/**
 * Return a map as CSV: keys in the first line, queries in the first column. Nine significant digits represent a float32
 * exactly; NaN is an empty cell. A label that a spreadsheet would run as a formula gets an apostrophe, as in
 * viz/export/table.py.
 * @param {any} map @param {string[][] | null} [pairs] the two tokens that name each row, where both do
 */
export function toCsv(map, pairs = null) {
  const inert = (text) => (/^'*[=+\-@\t\r\n＝＋－＠]/.test(text) ? `'${text}` : text);
  const quoted = (text) => `"${inert(text).replaceAll('"', '""')}"`;
  const number = (value) => (Number.isNaN(value) ? "" : String(Number(value.toPrecision(9))));
  const width = map.columns.length;
  const heading = ["query \\ key", ...map.columns.map(({ label }) => label)].map(quoted);
  const rows = map.rows.map(({ label }, r) => [
    quoted(pairs?.[r].join(" → ") ?? label),
    ...Array.from(map.values.subarray(r * width, (r + 1) * width), number),
  ]);
  return [heading, ...rows].map((cells) => `${cells.join(",")}\r\n`).join("");
}
