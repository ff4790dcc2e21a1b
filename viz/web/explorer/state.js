// What a person has chosen to look at, and the link that brings it back.
import { clamp } from "../core/keys.js";
import { KINDS } from "../core/kinds.js";
import { linkFields } from "../core/links.js";

export const CHOICES = {
  kind: Object.keys(KINDS),
  view: ["map", "lines", "text", "compare"],
  combine: ["single", "mean", "max", "rollout"],
  special: ["show", "hide", "renormalise"],
  transform: ["linear", "sqrt", "log"],
  colours: ["viridis", "cividis", "greys"],
  range: ["fixed", "own"],
  compare: ["pair", "grid"],
};

// predicted: whether decoder rows carry the token predicted or the one read, kind by kind; null: both. query and key: the
// pinned row and column, as token positions. heads: the [layer, head] pairs chosen besides the selected one. overlay: what is
// shown in attention's place, of the selected head alone; "" for attention. beside: the sentence that stands beside this one
// in the comparison, where the same model translates it; "" for none.
export function initialState() {
  return {
    kind: "cross",
    layer: 0,
    head: 0,
    view: "map",
    combine: "single",
    heads: [],
    words: false,
    glosses: false,
    special: "show",
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
  };
}

// Which of a row's two tokens puts words together and is hidden as a symbol, where a row carries both.
const COUNTS = { cross: true, decoder_self: false, alignment: true };

// The options of scoreMap (explorer/model.js).
export function viewOf(state) {
  return {
    kind: state.kind,
    layer: state.layer,
    head: state.head,
    heads: state.overlay ? [] : state.heads,
    combine: state.overlay ? "single" : state.combine,
    words: state.words,
    special: state.special,
    predicted: Boolean(state.predicted[state.kind] ?? COUNTS[state.kind]),
  };
}

// Of a large map: a head's alone, as it is.
const ALONE = { view: "map", combine: "single", words: false, special: "show", overlay: "" };

// What a state shows in attention's place, of these descriptors {id, title, about, kinds, scope, asks}; null for attention.
export const overlayOf = (state, overlays) =>
  overlays.find(({ id, kinds }) => id === state.overlay && kinds.includes(state.kind)) ?? null;

// The same state, inside the limits of a trace, without an overlay that there is not.
export function fitState(given, trace, overlays) {
  // Another network may have other kinds of attention; a recurrent one has no layers to roll out.
  const state = trace.kinds[given.kind]
    ? { ...given }
    : withKind(given, trace.kinds.cross ? "cross" : Object.keys(trace.kinds)[0]);
  if (state.kind === "alignment" && state.combine === "rollout") state.combine = "single";
  const { layers, heads, queries, keys, large } = trace.kinds[state.kind];
  const within = (value, count) => (value !== null && value < count ? value : null);
  return {
    ...state,
    overlay: overlayOf(state, overlays) ? state.overlay : "",
    ...(large ? ALONE : {}),
    layer: Math.min(state.layer, layers - 1),
    head: Math.min(state.head, heads - 1),
    heads: state.heads.filter(([layer, head]) => layer < layers && head < heads && !large),
    query: within(state.query, queries),
    key: within(state.key, keys),
  };
}

// Another kind: what is pinned stays pinned on an axis that both kinds have.
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

// The same state after what a person changed. predicted: of the kind of this state.
export function changeState(state, { predicted, ...changes }) {
  const isOther = changes.kind && changes.kind !== state.kind;
  const next = { ...(isOther ? withKind(state, changes.kind) : state), ...changes };
  if (predicted !== undefined) next.predicted = { ...next.predicted, [next.kind]: predicted };
  // Several heads as one map: of attention alone.
  if (changes.heads?.length || (changes.combine || "single") !== "single") next.overlay = "";
  // Lines show several heads one by one, all other views their mean.
  if (changes.view && next.heads.length > 1 && !next.overlay) {
    const [from, to] = changes.view === "lines" ? ["mean", "single"] : ["single", "mean"];
    if (next.combine === from) next.combine = to;
  }
  return next;
}

// The head so many layers below and heads to the right.
export const stepHead = (state, { layers, heads }, down, right) => ({
  layer: clamp(state.layer + down, layers),
  head: clamp(state.head + right, heads),
});

// The next head of all layers, or by -1 the one before; of maps of all heads of a layer, the next layer.
export function pageHead(state, { layers, heads }, by) {
  if (state.combine !== "single" && !state.heads.length)
    return stepHead(state, { layers, heads }, by, 0);
  const at = clamp(state.layer * heads + state.head + by, layers * heads);
  return { layer: Math.floor(at / heads), head: at % heads };
}

// These heads added to the choice; if all of them are in it, taken out. Another head joins the selected one. A single
// head is shown as it is, not as the mean of one.
export function toggleHeads(state, pairs) {
  const within = (list, pair) => list.some((other) => other.join() === pair.join());
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

// What the server and the other tabs know of a state.
export const selectionOf = ({ kind, layer, head, query, key }) => ({
  kind,
  layer,
  head,
  query,
  key,
});

// A joint map lists the source before the prefix: there a key of the decoder's own stands further right.
export const keyOffset = ({ kind }, map, trace) =>
  map.joint && kind === "decoder_self" ? trace.tokens.source.labels.length : 0;

// Row and column of a map that stand for the pinned tokens; null where they are hidden or nothing is pinned.
export function pinnedCells(state, map, trace) {
  const find = (items, position) => {
    const at = items.findIndex((item) => item.positions.includes(position));
    return at < 0 ? null : at;
  };
  const key = state.key === null ? null : state.key + keyOffset(state, map, trace);
  return { row: find(map.rows, state.query), column: find(map.columns, key) };
}

// Each row's two tokens, [read, written], where a row carries both: a decoder's, piece by piece; of a map so large
// that labels are few, one.
export function rowPairs(state, map, trace) {
  const decoder = trace.rowTokens(state.kind, true) !== trace.tokens.source;
  if (!decoder || map.pyramid || state.words || (state.predicted[state.kind] ?? null) !== null)
    return null;
  const { read, predicted } = trace.tokens;
  return map.rows.map(({ positions: [at] }) => [read.labels[at], predicted.labels[at]]);
}

// Of a word's rows the one whose token was the least certain when it was written: that is the one to ask about.
const leastCertain = (positions, { kind }, trace) => {
  const sure = trace.tokens.predicted.log_probability ?? [];
  return kind === "encoder_self"
    ? positions[0]
    : positions.reduce((least, i) => (sure[i] < sure[least] ? i : least));
};

// The same state with the tokens of a row and a column of its map pinned, or freed where they are pinned already.
export function togglePin(state, map, trace, { row, column }) {
  const query = row === null ? null : leastCertain(map.rows[row].positions, state, trace);
  const key =
    column === null ? null : map.columns[column].positions[0] - keyOffset(state, map, trace);
  const again = query === state.query && key === state.key;
  return { ...state, query: again ? null : query, key: again || key < 0 ? null : key };
}

// "text=..&direction=..&checkpoint=..&kind=..": only what differs from the initial state, after what says what to translate.
export function toFragment(state, trace) {
  const start = initialState(),
    fields = linkFields(trace, { kind: state.kind, layer: state.layer + 1, head: state.head + 1 });
  for (const name of [...Object.keys(CHOICES), "coverage", "overlay", "beside"])
    if (state[name] !== start[name]) fields.set(name, state[name]);
  if (state.heads.length)
    fields.set("heads", state.heads.map(([l, h]) => `${l + 1}.${h + 1}`).join(" "));
  for (const name of ["words", "glosses"]) if (state[name]) fields.set(name, "1");
  for (const [kind, predicted] of Object.entries(state.predicted))
    if (predicted !== null) fields.set(`${kind}_rows`, predicted ? "predicted" : "read");
  for (const name of ["query", "key"]) if (state[name] !== null) fields.set(name, state[name] + 1);
  return fields.toString();
}

// {text, direction, checkpoint, interventions, state} and of a beam search its width, or null where the fragment is no link
// of ours. Unknown values are left at their start.
export function parseFragment(fragment) {
  const fields = new URLSearchParams(fragment.replace(/^#/, ""));
  if (!fields.has("text")) return null;
  const state = initialState();
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
  for (const name of ["words", "glosses"]) state[name] = fields.get(name) === "1";
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

// What a row's and a column's word became, by a position of it: functions. Rows stand for the token that is written;
// what a decoder reads of its own is one place behind. Null for a translation that has no glosses.
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
