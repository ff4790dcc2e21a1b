// The explorer's sentences: titles, readings, hints and the status line, put together from data.
import { el, isTouch, shorten } from "../core/dom.js";
import { textParts, toText, say, t } from "../core/language.js";
import * as states from "./state.js";
import { valueText } from "./views/scale.js";
import { formatPercent } from "../core/format.js";

const GUIDES = {
  alignment: say(
    "Each row is a step of the translation: bright cells are the source words whose states the recurrent decoder asked for.",
  ),
  cross: say(
    "Each row is a step of the translation: bright cells are the source words the model looked at while it wrote that token.",
  ),
  encoder_self: say("Each row is a source token: bright cells are the tokens it attended to."),
  decoder_self: say(
    "Each row is a step of the translation: bright cells are the earlier tokens it looked back at. The upper right is empty: nothing looks ahead.",
  ),
};

const LIT_HINTS = {
  alignment: say("What each translated word attends to. Point at a word."),
  cross: say("What each translated word attends to. Point at a word."),
  encoder_self: say("What each word attends to in its own sentence. Point at a word."),
  decoder_self: say(
    "Which of its own earlier words the model looked at while writing the next. Point at a word.",
  ),
};
const LIT_HINTS_TOUCH = {
  alignment: say("What each translated word attends to. Tap a word."),
  cross: say("What each translated word attends to. Tap a word."),
  encoder_self: say("What each word attends to in its own sentence. Tap a word."),
  decoder_self: say(
    "Which of its own earlier words the model looked at while writing the next. Tap a word.",
  ),
};

/** Say how to light a word: of the sentence (isSource) or of its translation. @param {boolean} isSource */
export function pointingHint(isSource) {
  if (isTouch)
    return isSource ? t("Tap a word of the sentence.") : t("Tap a word of the translation.");
  return isSource
    ? t("Point at a word of the sentence.")
    : t("Point at a word of the translation.");
}

/** Return what the lit word attends to, or what attends to it; without one, what the lines show. @param {any} lit of lit.js */
export function litReading({ kind }, lit) {
  if (!lit) return toText((isTouch ? LIT_HINTS_TOUCH : LIT_HINTS)[kind]);
  if (!lit.strongest.length)
    return t("This head puts its weight on special tokens here, not on words.");
  const others = lit.strongest
    .map((i) => `“${lit.items[i].label}” ${formatPercent(lit.items[i].weight)}`)
    .join(", ");
  return lit.isRow
    ? t("“{word}” attends to {others}", { word: lit.label, others })
    : t("“{word}” is attended to by {others}", { word: lit.label, others });
}

/** Return how to read the view; text and comparison need only the hint of the status line. */
export function viewGuide(state, overlay) {
  if (!overlay) {
    if (state.view === "lines") return t("The thicker a line, the larger the weight.");
    return state.view === "map" ? toText(GUIDES[state.kind]) : "";
  }
  const title = toText(overlay.title);
  if (state.view !== "map")
    return t(
      "This view shows “{title}”, not attention. The text below the heading says what a number means.",
      { title },
    );
  return state.kind === "encoder_self"
    ? t(
        "This map shows “{title}”, not attention. Each row is still a source token; the text below the heading says what a cell means.",
        { title },
      )
    : t(
        "This map shows “{title}”, not attention. Each row is still a step of the translation; the text below the heading says what a cell means.",
        { title },
      );
}

export function thumbnailsTip(overlay) {
  const how = isTouch
    ? t("Tap a thumbnail to open its head; tap chips to select several.")
    : t("Click a thumbnail to open its head; click chips to select several.");
  return overlay
    ? `${t("The thumbnails always show attention, whatever the large map shows.")} ${how}`
    : how;
}

/**
 * Return a translation's name in a list: its sentence; if others have the same sentence, also its own words from where it
 * departs from them.
 */
export function traceName(trace, traces, limit) {
  const others = traces.filter(
    (candidate) =>
      candidate !== trace &&
      candidate.text === trace.text &&
      candidate.direction === trace.direction,
  );
  if (!others.length) return shorten(trace.text, limit);
  const { labels: tokens, special } = trace.tokens.predicted;
  const shared = (sameText) => {
    const at = tokens.findIndex((token, i) => token !== sameText.tokens.predicted.labels[i]);
    return at < 0 ? tokens.length : at;
  };
  const written = (from) =>
    tokens
      .filter((_, i) => i >= from && !special[i])
      .join("")
      .replaceAll("\u2581", " ")
      .trim();
  let from = Math.max(...others.map(shared));
  while (from > 0 && !(tokens[from]?.startsWith("\u2581") && written(from))) from--;
  const decoded = (translation) => toText(translation.decoding);
  if (!written(from) && others.some((translation) => decoded(translation) !== decoded(trace)))
    return `${shorten(trace.text, limit - 14)} (${decoded(trace)})`;
  const ownWords = `${from ? "… " : ""}${written(from)}`,
    room = Math.max(16, Math.floor(limit * 0.4));
  return `${shorten(trace.text, room)} → ${shorten(ownWords, limit - room)}`;
}

// What a row does, and what it does to a column, for the corner of a map of words.
const CORNERS = {
  alignment: [say("wrote ↓"), say("looked at →")],
  cross: [say("wrote ↓"), say("looked at →")],
  encoder_self: [say("word ↓"), say("looks at →")],
  decoder_self: [say("after ↓"), say("looked at →")],
};

/**
 * Return a map's axis titles {rows, row, columns, pairs, corner}; row: the title of rows that are named by one token; corner: a
 * short note in place of titles, for maps of words.
 */
export function axisTitles(state, map, trace) {
  const pairs = states.rowPairs(state, map, trace);
  let row = t("query: the token it reads"),
    columns = t("key: source token");
  if (state.kind === "encoder_self") row = t("query: source token");
  else if (states.viewOf(state).predicted) row = t("query: the token it writes");
  if (map.joint) columns = t("key: source tokens, then target prefix");
  else if (state.kind === "decoder_self") columns = t("key: target token read");
  if (map.titles) [row, columns] = [toText(map.titles.rows), toText(map.titles.columns)];
  const isPlain = state.words && state.predicted[state.kind] === null && !map.titles && !map.joint,
    corner = isPlain ? CORNERS[state.kind].map(toText) : null;
  return {
    rows: pairs ? t("query: the token it reads → writes") : row,
    row,
    columns,
    pairs,
    corner,
  };
}

export function mapHeading(state, used, overlay = null) {
  const place = (layer, head) =>
    t("Layer {layer} · Head {head}", { layer: layer + 1, head: head + 1 });
  const layer = { layer: state.layer + 1 },
    isChosen = state.heads.length > 0;
  if (overlay?.scope === "head")
    return `${place(state.layer, state.head)} · ${toText(overlay.title)}`;
  if (overlay?.scope === "layer") return `${t("Layer {layer}", layer)} · ${toText(overlay.title)}`;
  if (overlay) return toText(overlay.title);
  if (state.combine === "single" && state.view === "lines" && state.heads.length > 1)
    return t("{n} heads, each in its colour", { n: state.heads.length });
  if (state.combine === "rollout") return t("Rollout up to layer {layer}", layer);
  if (used.length === 1) return place(...used[0]);
  const where = { n: used.length, layer: used[0][0] + 1 };
  if (state.combine === "mean")
    return isChosen
      ? t("Mean of {n} chosen heads", where)
      : t("Mean of all {n} heads of layer {layer}", where);
  return isChosen
    ? t("Maximum of {n} chosen heads", where)
    : t("Maximum of all {n} heads of layer {layer}", where);
}

/** Return a single head's pattern, "" while it is missing. */
export function headReading({ kind, layer, head }, trace) {
  const { entropies, readings } = trace.kinds[kind],
    words = readings[layer]?.[head]; // a large map's readings arrive later
  return words
    ? `${toText(words)}  ·  ${t("entropy {bits} bits", { bits: entropies[layer][head].toFixed(2) })}`
    : "";
}

/** Return the line below the heading: what the numbers of an overlay or of a combined map are; "" for a single head. */
export function mapReading(state, map, overlay = null) {
  if (overlay) return toText(overlay.about);
  const phrases = [];
  if (state.combine === "single" && state.view === "lines" && state.heads.length > 1)
    phrases.push(t("attention weights, head by head"));
  else if (state.combine !== "single") {
    phrases.push(map.unit);
    if (state.combine === "rollout")
      phrases.push(
        t("0.5 × attention + 0.5 × residual, layer after layer (Abnar and Zuidema 2020)"),
      );
  }
  return phrases.join("  ·  ");
}

/** Return what share of a map's weight is on tokens that are hidden, or what the pieces are if they are shown. */
export function hiddenShare(state, map) {
  if (states.showsPieces(state)) return t("The model's pieces; ▁ marks the start of a word.");
  if (map.hidden === null) return "";
  const share = `${(100 * map.hidden).toFixed(1)}%`;
  return state.special === "renormalise"
    ? t("{share} of the weight is on special tokens; the rows are rescaled without it.", { share })
    : t("{share} of the weight is on special tokens, not shown here.", { share });
}

const token = (label) => el("bdi", { class: "token" }, label);

// Name a row; a decoder's row by both of its tokens, a row of words by its word and the word before or after it.
function rowName(map, row, trace, state) {
  const { label, positions } = map.rows[row],
    { read, predicted, source } = trace.tokens;
  if (trace.rowTokens(state.kind, true) === source) return [token(label)];
  if (state.words) {
    const isWritten = states.viewOf(state).predicted,
      near = map.rows[row + (isWritten ? -1 : 1)]?.label;
    if (near === undefined) return [token(label)];
    const words = { word: token(label), near: token(near) };
    return textParts(
      isWritten
        ? say("wrote {word}, had just read {near}", words)
        : say("read {word}, writes {near} next", words),
    );
  }
  return textParts(
    say("reads {read} → writes {written}", {
      read: token(read.labels[positions[0]]),
      written: token(predicted.labels[positions[0]]),
    }),
  );
}

// Return a cell's value; of a large map by its tile, until the exact weight has arrived, or null.
function cellValue(map, row, column) {
  const { pyramid, values, columns } = map,
    known = pyramid ? pyramid.at(row, column) : { exact: values[row * columns.length + column] };
  if (!known) return null;
  const { exact, side } = known;
  if (exact !== undefined) return el("strong", {}, valueText(map, exact));
  const [largest, mean] = [known.largest, known.mean].map((value) => `≈ ${valueText(map, value)}`);
  if (side === 1) return largest;
  const block = { side, largest, mean };
  return t("{side} × {side} cells here: largest {largest}, mean {mean}", block);
}

/** Return texts and nodes that describe a cell, a row or a column of a map. */
export function describeCell(map, row, column, trace, state) {
  const unit = map.overlay ? [" (", el("span", { class: "unit" }, map.unit), ")"] : [];
  const name = row !== null ? rowName(map, row, trace, state) : [token(map.columns[column].label)];
  if (row !== null && column !== null) {
    const value = cellValue(map, row, column);
    name.push(" · ", token(map.columns[column].label));
    return value ? [...name, ": ", value, ...unit] : name;
  }
  if (map.pyramid) return name;
  const at = (r, c) => map.values[r * map.columns.length + c];
  const values =
    row !== null ? map.columns.map((_, c) => at(row, c)) : map.rows.map((_, r) => at(r, column));
  const others = strongestIndices(values, 3).flatMap((i, place) => [
    ...(place ? [", "] : []),
    token((row !== null ? map.columns : map.rows)[i].label),
    ` ${map.attention ? formatPercent(values[i]) : valueText(map, values[i])}`,
  ]);
  if (map.overlay)
    return [
      ...textParts(say("{token}: furthest from 0 with {others}", { token: name, others })),
      ...unit,
    ];
  if (row === null)
    return textParts(say("{token} gets most from {others}", { token: name, others }));
  return map.attention
    ? textParts(say("{row}: attends to {others}", { row: name, others }))
    : textParts(say("{row}: scores highest with {others}", { row: name, others }));
}

/** Return the indices of the values furthest from 0. */
export const strongestIndices = (values, count) =>
  [...values.keys()]
    .filter((i) => Math.abs(values[i]) > 0)
    .sort((a, b) => Math.abs(values[b]) - Math.abs(values[a]))
    .slice(0, count);

/** Return the selected map in a sentence or two, for screen readers. */
export function mapSummary(state, trace, map, used, overlay = null) {
  const reading = mapReading(state, map, overlay) || headReading(state, trace);
  const name = `${toText(trace.kinds[state.kind].title)}, ${mapHeading(state, used, overlay)}. ${reading}.`;
  const rows = map.rows.length,
    columns = map.columns.length;
  if (map.pyramid) return `${name} ${t("{rows} rows, {columns} columns.", { rows, columns })}`;
  const edges = strongestIndices(map.values, 3)
    .filter((i) => map.overlay || map.values[i] > 0.05)
    .map((i) =>
      t("{query} to {key} {weight}", {
        query: map.rows[Math.floor(i / columns)].label,
        key: map.columns[i % columns].label,
        weight: valueText(map, map.values[i]),
      }),
    )
    .join("; ");
  const words = { rows, columns, edges: edges || t("none above 0.05") };
  return `${name} ${t("{rows} rows, {columns} columns. Strongest: {edges}.", words)}`;
}

/** Return the names that a survey gave a head, with their numbers; "" without any. */
export function headNames(trace, kind, layer, head) {
  const names = trace
    .names(kind, layer, head)
    .map(({ title, value }) => `${toText(title)} ${value.toFixed(2)}`);
  if (!names.length) return "";
  return t("over {n} sentences: {names}", { n: trace.marks.sentences, names: names.join(", ") });
}

/** Return a head's place, its reading, and the names that a survey gave it. */
export function headLabel(trace, kind, layer, head) {
  const { entropies, readings } = trace.kinds[kind],
    place = { layer: layer + 1, head: head + 1 };
  const reading = readings[layer]
    ? t("Layer {layer}, head {head}: {reading}, entropy {bits} bits", {
        ...place,
        reading: readings[layer][head],
        bits: entropies[layer][head].toFixed(2),
      })
    : t("Layer {layer} · Head {head}", place);
  return [reading, headNames(trace, kind, layer, head)].filter(Boolean).join("; ");
}
