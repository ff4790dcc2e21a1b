// The explorer's sentences: titles, readings, hints and the status line, put together from data.
import { el, isTouch, shorten } from "../core/dom.js";
import { textParts, toText, say, t } from "../core/language.js";
import * as states from "./state.js";
import { valueText } from "./views/scale.js";

const GUIDES = {
  alignment: say(
    "Each row is a step of the translation: bright cells are the source words whose states the recurrent decoder asked for.",
  ),
  cross: say(
    "Each row is a step of the translation: bright cells are the source words the model looked at while it wrote that token.",
  ),
  encoder_self: say(
    "Each row is a source token: bright cells are the tokens of the sentence it drew on for its own meaning.",
  ),
  decoder_self: say(
    "Each row is a step of the translation: bright cells are the earlier tokens it looked back at. The upper right is empty: nothing looks ahead.",
  ),
};

const SENTENCE_HINTS = {
  alignment: say("What each word of the translation read in the sentence. Point at a word."),
  cross: say("What each word of the translation read in the sentence. Point at a word."),
  encoder_self: say("What each word, below, read of its own sentence. Point at a word."),
  decoder_self: say("What the model read of its own words while it wrote the next. Point at one."),
};
export const sentenceHint = (state) => toText(SENTENCE_HINTS[state.kind]);

/** Return how to read the view; text and comparison need only the hint of the status line. */
export function viewGuide(state, overlay) {
  if (!overlay) {
    if (state.view === "lines") return t("The thicker a line, the larger the weight.");
    return state.view === "map" ? toText(GUIDES[state.kind]) : "";
  }
  const title = toText(overlay.title);
  if (state.view !== "map")
    return t("Not attention but “{title}”: the text below the heading says what a number means.", {
      title,
    });
  return state.kind === "encoder_self"
    ? t(
        "Not attention but “{title}”: each row is still a source token; the text below the heading says what a cell means.",
        { title },
      )
    : t(
        "Not attention but “{title}”: each row is still a step of the translation; the text below the heading says what a cell means.",
        { title },
      );
}

export function thumbnailsTip(overlay) {
  const how = isTouch
    ? t(
        "Rows are layers, columns heads; one scale for all. Tap a head to open it; a label, or “Choose several” in the view options, chooses several.",
      )
    : t(
        "Rows are layers, columns heads; one scale for all. Click opens a head; shift-click, or a label, chooses several.",
      );
  return overlay
    ? `${t("These small pictures show attention, whatever is shown large.")} ${how}`
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

/** Return a map's axis titles {rows, row, columns, pairs}; row: the title of rows that are named by one token. */
export function axisTitles(state, map, trace) {
  const pairs = states.rowPairs(state, map, trace);
  let row = t("query: the token it reads"),
    columns = t("key: source token");
  if (state.kind === "encoder_self") row = t("query: source token");
  else if (states.viewOf(state).predicted) row = t("query: the token it writes");
  if (map.joint) columns = t("key: source tokens, then target prefix");
  else if (state.kind === "decoder_self") columns = t("key: target token read");
  if (map.titles) [row, columns] = [toText(map.titles.rows), toText(map.titles.columns)];
  return { rows: pairs ? t("query: the token it reads → writes") : row, row, columns, pairs };
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

/** Return the line below the heading: what the numbers are, and a single head's pattern. */
export function mapReading(state, trace, map, overlay = null) {
  if (overlay) return toText(overlay.about);
  const phrases = [];
  if (state.combine === "single" && state.view === "lines" && state.heads.length > 1)
    phrases.push(t("attention weights, head by head"));
  else if (state.combine === "single") {
    const { entropies, readings } = trace.kinds[state.kind];
    const words = readings[state.layer]?.[state.head], // a large map's readings arrive later
      entropy = entropies[state.layer]?.[state.head];
    if (words) phrases.push(toText(words), t("entropy {bits} bits", { bits: entropy.toFixed(2) }));
  } else {
    phrases.push(map.unit);
    if (state.combine === "rollout")
      phrases.push(
        t("0.5 × attention + 0.5 × residual, layer after layer (Abnar and Zuidema 2020)"),
      );
  }
  const share = `${(100 * map.hidden).toFixed(1)}%`;
  if (map.hidden !== null) phrases.push(t("{share} of the mass was on hidden tokens", { share }));
  return phrases.join("  ·  ");
}

const token = (label) => el("bdi", { class: "token" }, label);

// Name a row; a decoder's row by both of its tokens.
function rowName(map, row, trace, kind) {
  const { label, positions } = map.rows[row],
    { read, predicted, source } = trace.tokens;
  if (trace.rowTokens(kind, true) === source || positions.length > 1) return [token(label)];
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
export function describeCell(map, row, column, trace, kind) {
  const unit = map.overlay ? [" (", el("span", { class: "unit" }, map.unit), ")"] : [];
  const name = row !== null ? rowName(map, row, trace, kind) : [token(map.columns[column].label)];
  if (row !== null && column !== null) {
    const value = cellValue(map, row, column);
    name.push(" · ", token(map.columns[column].label));
    return value ? [...name, ": ", value, ...unit] : name;
  }
  if (map.pyramid) return name;
  const at = (r, c) => map.values[r * map.columns.length + c];
  const values =
    row !== null ? map.columns.map((_, c) => at(row, c)) : map.rows.map((_, r) => at(r, column));
  const others = strongestIndices(values, 5).flatMap((i, place) => [
    ...(place ? [", "] : []),
    token((row !== null ? map.columns : map.rows)[i].label),
    ` ${valueText(map, values[i])}`,
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
  const name = `${toText(trace.kinds[state.kind].title)}, ${mapHeading(state, used, overlay)}. ${mapReading(state, trace, map, overlay)}.`;
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
  const names = trace
    .names(kind, layer, head)
    .map(({ title, value }) => `${toText(title)} ${value.toFixed(2)}`);
  if (!names.length) return reading;
  const values = { n: trace.marks.sentences, names: names.join(", ") };
  return `${reading}; ${t("over {n} sentences: {names}", values)}`;
}
