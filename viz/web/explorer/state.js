// The explorer's state – what a person chose to look at – with the functions that change it, and
// its form as the fields of a link.
import { clamp } from "../core/keys.js";
import { KINDS } from "../core/kinds.js";
import { VERSION, linkFields } from "../core/links.js";

export const CHOICES = {
  kind: Object.keys(KINDS),
  view: ["map", "lines", "text", "compare"],
  combine: ["single", "mean", "max", "rollout"],
  special: ["show", "hide", "renormalise"],
  transform: ["linear", "sqrt", "log"],
  colours: ["viridis", "cividis", "greys"],
  range: ["fixed", "own"],
  compare: ["pair", "grid"],
  lines: ["head", "alignment"],
  glosses: ["foreign", "all", "none"],
};
const WORDS = { words: true, special: "hide" }, // whole words, without special tokens
  PIECES = { words: false, special: "show" };

/**
 * Return the state before anything is chosen.
 *
 * - predicted: per kind, whether a decoder row is named by the token it predicts or the one it reads; null: by both
 * - query, key: the pinned row and column, as token positions
 * - heads: [layer, head] pairs chosen in addition to the selected head
 * - overlay: the id of a map that replaces the selected head's attention; "" for attention
 * - beside: a sentence to compare with, translated by the same model; "" for none
 * - glosses: whether words that are not of the page's language, all words, or none have their counterpart below them
 * - lines: whether the lines between the words show the selected heads or those that align words
 * - layer, head: null until a translation arrives: the head that fitState() opens
 */
export function initialState() {
  return {
    kind: "cross",
    layer: null,
    head: null,
    view: "map",
    combine: "single",
    heads: [],
    ...WORDS,
    glosses: "foreign",
    predicted: { cross: null, decoder_self: null, alignment: null },
    transform: "linear",
    colours: "viridis",
    range: "fixed",
    coverage: 70,
    query: null,
    key: null,
    compare: "pair",
    overlay: "",
    beside: "",
    lines: "head",
  };
}

/** Return the state that links without a version start from. */
const firstState = () => ({
  ...initialState(),
  ...PIECES,
  glosses: "none",
  layer: 0,
  head: 0,
});

/** Whether a state shows the model's pieces, with special tokens. */
export const showsPieces = ({ words, special }) => !words && special === "show";

/** Return the change from whole words to the model's pieces, or back. */
export const togglePieces = (state) => (showsPieces(state) ? WORDS : PIECES);

// Where a row has two tokens: whether the predicted one decides about words and special tokens.
const COUNTS = { cross: true, decoder_self: false, alignment: true };

/** Return the options of scoreMap() in model.js. */
export function viewOf({ kind, layer, head, words, special, ...state }) {
  const heads = state.overlay ? [] : state.heads,
    combine = state.overlay ? "single" : state.combine,
    predicted = Boolean(state.predicted[kind] ?? COUNTS[kind]);
  return { kind, layer, head, heads, combine, words, special, predicted };
}

// Settings of a large map: one head's weights, unchanged.
const ALONE = { view: "map", combine: "single", words: false, special: "show", overlay: "" };

/** Return the descriptor {id, title, about, kinds, scope, asks} of the overlay that replaces attention, or null. */
export const overlayOf = (state, overlays) =>
  overlays.find(({ id, kinds }) => id === state.overlay && kinds.includes(state.kind)) ?? null;

/** Return the state limited to what a trace has: its kinds, heads and tokens, and the available overlays. */
export function fitState(previous, trace, overlays) {
  // Networks differ in their kinds of attention, and a recurrent one has no layers to roll out.
  const state = trace.kinds[previous.kind]
    ? { ...previous }
    : withKind(previous, trace.kinds.cross ? "cross" : Object.keys(trace.kinds)[0]);
  if (state.kind === "alignment" && state.combine === "rollout") state.combine = "single";
  const { layers, heads, queries, keys, large } = trace.kinds[state.kind];
  const [layer, head] = trace.alignment?.opens ?? [0, 0];
  const within = (value, count) => (value !== null && value < count ? value : null);
  return {
    ...state,
    overlay: overlayOf(state, overlays) ? state.overlay : "",
    ...(large ? ALONE : {}),
    layer: Math.min(state.layer ?? layer, layers - 1),
    head: Math.min(state.head ?? head, heads - 1),
    lines: trace.alignment?.linked_by.length ? state.lines : "head",
    heads: state.heads.filter(([layer, head]) => layer < layers && head < heads && !large),
    query: within(state.query, queries),
    key: within(state.key, keys),
  };
}

// Change the kind; a pin stays if both kinds have its axis.
function withKind(state, kind) {
  const [now, before] = [KINDS[kind], KINDS[state.kind]];
  return {
    ...state,
    kind,
    heads: [],
    combine: state.heads.length ? "single" : state.combine,
    query: now.rows === before.rows ? state.query : null,
    key: now.columns === before.columns ? state.key : null,
  };
}

/** Return the state after a person's changes. changes.predicted is the setting for the current kind. */
export function changeState(state, { predicted, ...changes }) {
  const isOther = changes.kind && changes.kind !== state.kind;
  const next = { ...(isOther ? withKind(state, changes.kind) : state), ...changes };
  if (predicted !== undefined) next.predicted = { ...next.predicted, [next.kind]: predicted };
  // Only attention is combined over heads.
  if (changes.heads?.length || (changes.combine || "single") !== "single") next.overlay = "";
  // Lines show several heads separately; all other views show their mean.
  if (changes.view && next.heads.length > 1 && !next.overlay) {
    const [from, to] = changes.view === "lines" ? ["mean", "single"] : ["single", "mean"];
    if (next.combine === from) next.combine = to;
  }
  return next;
}

/** Return the {layer, head} that lies `down` layers and `right` heads away. */
export const stepHead = (state, { layers, heads }, down, right) => ({
  layer: clamp(state.layer + down, layers),
  head: clamp(state.head + right, heads),
});

/** Return the next (by 1) or previous (by -1) head over all layers; of a layer's combined map, the next layer. */
export function pageHead(state, { layers, heads }, by) {
  if (state.combine !== "single" && !state.heads.length)
    return stepHead(state, { layers, heads }, by, 0);
  const at = clamp(state.layer * heads + state.head + by, layers * heads);
  return { layer: Math.floor(at / heads), head: at % heads };
}

/**
 * Add these [layer, head] pairs to the chosen heads; if all of them are chosen, remove them. A further head joins the selected
 * one. A single head is shown as it is, not as a mean.
 */
export function toggleHeads(state, pairs) {
  const within = (list, pair) => list.some((member) => member.join() === pair.join());
  const selected = [[state.layer, state.head]],
    joins = pairs.length === 1 && !within(pairs, selected[0]);
  const start = state.heads.length || !joins ? state.heads : selected;
  const heads = pairs.every((pair) => within(start, pair))
    ? start.filter((pair) => !within(pairs, pair))
    : [...start, ...pairs.filter((pair) => !within(start, pair))];
  if (heads.length < 2) {
    const [layer, head] = heads[0] ?? selected[0];
    return { layer, head, heads, combine: "single" };
  }
  return {
    heads,
    combine: state.combine === "single" && state.view !== "lines" ? "mean" : state.combine,
  };
}

/** Return what the server and the other tabs know of a state. */
export function selectionOf({ kind, layer, head, query, key }) {
  return { kind, layer, head, query, key };
}

/** Return the offset of the decoder's own keys: a joint map lists the source before the prefix. */
export const keyOffset = ({ kind }, map, trace) =>
  map.joint && kind === "decoder_self" ? trace.tokens.source.labels.length : 0;

/** Return the {row, column} of the pinned tokens in a map; null where none is pinned or it is hidden. */
export function pinnedCells(state, map, trace) {
  const find = (items, position) => {
    const at = items.findIndex((item) => item.positions.includes(position));
    return at < 0 ? null : at;
  };
  const key = state.key === null ? null : state.key + keyOffset(state, map, trace);
  return { row: find(map.rows, state.query), column: find(map.columns, key) };
}

/**
 * Return each row's [read, written] tokens, where a decoder's rows are named by both; null for words, for large maps (which
 * have few labels), and where the state chooses one of them.
 */
export function rowPairs(state, map, trace) {
  const decoder = trace.rowTokens(state.kind, true) !== trace.tokens.source;
  if (!decoder || map.pyramid || state.words || (state.predicted[state.kind] ?? null) !== null)
    return null;
  const { read, predicted } = trace.tokens;
  return map.rows.map(({ positions: [at] }) => [read.labels[at], predicted.labels[at]]);
}

// Of the tokens of a written word, return the least certain one: the one to ask about.
const leastCertain = (positions, { kind }, trace) => {
  const sure = trace.tokens.predicted.log_probability ?? [];
  return kind === "encoder_self"
    ? positions[0]
    : positions.reduce((least, i) => (sure[i] < sure[least] ? i : least));
};

/** Pin the tokens of a row and a column of a map, or unpin them if they are pinned. */
export function togglePin(state, map, trace, { row, column }) {
  const query = row === null ? null : leastCertain(map.rows[row].positions, state, trace);
  const key =
    column === null ? null : map.columns[column].positions[0] - keyOffset(state, map, trace);
  const isPinned = query === state.query && key === state.key;
  return { ...state, query: isPinned ? null : query, key: isPinned || key < 0 ? null : key };
}

/** Return a link's fields as text: the translation, and what differs from the initial state. */
export function toFragment(state, trace) {
  const start = initialState(),
    fields = linkFields(trace, { kind: state.kind, layer: state.layer + 1, head: state.head + 1 });
  for (const name of [...Object.keys(CHOICES), "coverage", "overlay", "beside"])
    if (state[name] !== start[name]) fields.set(name, state[name]);
  if (state.heads.length)
    fields.set("heads", state.heads.map(([l, h]) => `${l + 1}.${h + 1}`).join(" "));
  if (state.words !== start.words) fields.set("words", state.words ? "1" : "0");
  for (const [kind, predicted] of Object.entries(state.predicted))
    if (predicted !== null) fields.set(`${kind}_rows`, predicted ? "predicted" : "read");
  for (const name of ["query", "key"]) if (state[name] !== null) fields.set(name, state[name] + 1);
  return fields.toString();
}

/**
 * Parse a link's fields: {text, direction, checkpoint, interventions, state}, and {beam} for a beam search; null if it names no
 * text. Unknown values are ignored.
 */
export function parseFragment(fragment) {
  const fields = new URLSearchParams(fragment.replace(/^#/, ""));
  if (!fields.has("text")) return null;
  const isNew = fields.get("v") === VERSION,
    state = isNew ? initialState() : firstState();
  for (const [name, allowed] of Object.entries(CHOICES))
    if (allowed.includes(fields.get(name))) state[name] = fields.get(name);
  const number = (text, fallback) =>
    /^\d{1,4}$/.test(text || "") && Number(text) > 0 ? Number(text) - 1 : fallback;
  for (const name of ["layer", "head", "query", "key"])
    state[name] = number(fields.get(name), state[name]);
  state.heads = (fields.get("heads") || "")
    .split(" ")
    .map((pair) => pair.split(".").map((part) => number(part, null)))
    .filter((pair) => pair.length === 2 && !pair.includes(null));
  if (fields.has("words")) state.words = fields.get("words") === "1";
  if (fields.get("glosses") === "1") state.glosses = "all"; // links without a version
  if (/^\w{1,40}$/.test(fields.get("overlay") || "")) state.overlay = fields.get("overlay");
  state.beside = fields.get("beside") || "";
  const coverage = Number(fields.get("coverage"));
  if (coverage >= 5 && coverage <= 100) state.coverage = coverage;
  for (const kind of Object.keys(state.predicted)) {
    const rows = fields.get(`${kind}_rows`);
    if (rows === "predicted" || rows === "read") state.predicted[kind] = rows === "predicted";
  }
  const beam = /^[2-8]$/.test(fields.get("beam") || "") ? { beam: Number(fields.get("beam")) } : {};
  const names = ["text", "direction", "checkpoint", "interventions"],
    named = Object.fromEntries(names.map((name) => [name, fields.get(name) ?? ""]));
  return { ...named, ...beam, state };
}

/**
 * Return functions {rows, columns} from a position to its gloss: the word that it is linked to. A row is the token that is
 * written; a decoder's own keys are one position behind. Null for a translation without glosses.
 */
export function glossesOf({ kind }, trace) {
  const { source, target } = trace.glosses ?? {};
  if (!source) return null;
  const read = { source: (i) => source[i] ?? "", target: (i) => target[i] ?? "" };
  if (kind === "encoder_self") return { rows: read.source, columns: read.source };
  return {
    rows: read.target,
    columns: kind === "decoder_self" ? (i) => read.target(i - 1) : read.source,
  };
}
