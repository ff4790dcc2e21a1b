// Where everything stands. The picture has two axes: the flow, from the typed words to the next one, and the rows, one for each
// word. On a wide screen the flow runs to the right, on a narrow one down. An opened stage stretches along the flow and the
// others fold, so that a word stays in its row.
import {
  depthOf,
  isDecoder,
  isLayer,
  keySide,
  kindOf,
  querySide,
  stagesOf,
  subsOf,
} from "./place.js";

const NARROW = 700; // pixels
const WIDE = {
  lead: 52,
  tail: 20,
  gap: 30,
  lane: 84,
  pitch: [30, 40, 36],
  overview: { words: 98, embed: 56, memory: 84, out: 170, ff: 20 },
  target: { words: 84, embed: 36 },
  folded: { layer: 26, memory: 24, embed: 14, out: 92 },
  shut: { layer: 16, memory: 14, embed: 10, out: 44, words: 18 },
  inside: { stream: 60, attention: 86, ff: 84, added: 70, head: 9 },
};
const TALL = {
  lead: 4,
  tail: 4,
  gap: 14,
  lane: 46,
  pitch: [24, 26, 34],
  overview: { words: 74, embed: 20, layer: [46, 66], memory: 66, out: 180, ff: 12 },
  target: { words: 62, embed: 16 },
  folded: { layer: 18, memory: 20, embed: 12, out: 52 },
  shut: { layer: 12, memory: 10, embed: 8, out: 52, words: 18 },
  inside: { stream: 44, attention: 60, ff: 50, added: 44, head: 9 },
  open: 640,
  openHead: 860,
};

// Divide [a, b] among parts {id: length, or {grow}} in order.
function divide(spans, a, b, parts) {
  const entries = Object.entries(parts);
  const sum = (value) => entries.reduce((total, [, part]) => total + value(part), 0);
  const fixed = sum((part) => (part.grow ? 0 : part)),
    grow = sum((part) => part.grow ?? 0);
  let start = a;
  for (const [id, part] of entries) {
    const length = part.grow ? (part.grow / grow) * (b - a - fixed) : part;
    spans[id] = { a: start, b: start + length };
    start += length;
  }
}

// The length of each stage along the flow.
function stageLengths(view, model, set, tall) {
  const { open } = view,
    depth = depthOf(open);
  /** @type {Record<string, any>} */
  const lengths = {};
  for (const id of stagesOf(model)) {
    const name = isLayer(id) ? "layer" : id;
    if (!depth)
      lengths[id] = !isLayer(id)
        ? set.overview[id]
        : tall
          ? set.overview.layer[Number(isDecoder(id))]
          : { grow: isDecoder(id) ? 1.35 : 1 };
    else if (id === open.stage)
      lengths[id] = !tall
        ? { grow: 1 }
        : depth === 2
          ? set.openHead
          : id === "out"
            ? 460
            : set.open;
    else lengths[id] = (depth === 2 ? set.shut : set.folded)[name] ?? set.overview[id];
  }
  if (depth && open.stage === "written") lengths.memory = tall ? 420 : { grow: 1 };
  if (depth && (isDecoder(open.stage) || open.stage === "out")) {
    lengths.memory = set.overview.memory; // cross-attention reads its words
    lengths.words = depth === 2 ? set.shut.words : set.overview.words;
  } else if (depth === 2) lengths.words = set.overview.words;
  return lengths;
}

// The sub-layers of a layer along the flow, and the heads of the one that is open.
function divideLayer(spans, stage, view, model, set) {
  const { a, b } = spans[stage],
    isOpen = view.open?.stage === stage,
    depth = isOpen ? depthOf(view.open) : 0;
  /** @type {Record<string, any>} */
  const parts = { [`${stage}.in`]: depth === 1 ? 10 : 3 };
  for (const sub of subsOf(model, stage)) {
    const grow = { grow: sub === "cross" ? 1.3 : 1 };
    if (!depth)
      parts[`${stage}.${sub}`] = sub === "ff" ? Math.min(set.overview.ff, (b - a) * 0.24) : grow;
    else if (view.open.sub === sub) parts[`${stage}.${sub}`] = { grow: 1 };
    else if (depth === 2) parts[`${stage}.${sub}`] = 14;
    else parts[`${stage}.${sub}`] = sub === "ff" ? set.inside.ff : set.inside.attention;
  }
  parts[`${stage}.end`] = depth === 1 ? 10 : 3;
  divide(spans, a, b, parts);
  if (!isOpen || view.open.sub === "ff") return;
  const sub = spans[`${stage}.${view.open.sub}`],
    { heads } = model.sides[isDecoder(stage) ? "decoder" : "encoder"];
  const columns = {};
  for (let head = 0; head < heads; head++)
    columns[`${stage}.${view.open.sub}.h${head}`] =
      depth === 2 && head !== view.open.head ? Math.min(set.inside.head, 80 / heads) : { grow: 1 };
  divide(
    spans,
    sub.a + (depth === 1 ? set.inside.stream : 4),
    sub.b - (depth === 1 ? set.inside.added : 14),
    columns,
  );
}

// The share of the room that each row takes: the side that is looked at is large, words that are not written yet are small.
function weighRow(side, view, row) {
  const depth = depthOf(view.open);
  if (!depth) return 1;
  const { stage, sub } = view.open,
    kind = isLayer(stage) && sub !== "ff" ? kindOf(stage, sub) : null;
  const own = isDecoder(stage) || stage === "written" || stage === "out" ? "decoder" : "encoder";
  if (depth === 2) {
    if (keySide(kind) === side) return 1;
    if (side === "decoder" && row.at[0] > view.step) return 0.14;
    return kind === "cross" ? 0.6 : 0.32;
  }
  if (side === "decoder" && row.at[0] > view.step) return 0.3;
  return side === own || kind === "cross" || stage === "out" ? 1 : 0.42;
}

/** A piece of a word: "-ing" if it goes on a word. @param {{text: string, symbol: boolean}} token @param {number} position */
function pieceLabel({ text, symbol }, position) {
  if (symbol) return text;
  const goesOn = position > 0 && !text.startsWith("▁") && /\p{L}/u.test(text);
  return goesOn ? `-${text}` : text.replace("▁", "") || "▁";
}

/**
 * The rows of a side: words, or where a head is open pieces. More than the window's pieces are one row after them ("others").
 * @param {any} model @param {any} view @param {string} side
 */
function rowsOf(model, view, side) {
  const { rows, tokens, pooled } = model.sides[side];
  const kind = depthOf(view.open) < 2 ? null : kindOf(view.open.stage, view.open.sub),
    isKeys = kind !== null && keySide(kind) === side;
  if (kind === null || (!isKeys && pooled))
    return rows.map(({ at, label, symbol }, index) => ({
      side,
      index,
      at,
      label,
      symbol,
      key: index,
    }));
  const size = Math.min(tokens.length, isKeys ? (view.window?.count ?? 24) : 24);
  const middle = querySide(kind) === side ? view.query : 0;
  const first = isKeys
    ? Math.min(view.window?.first ?? 0, tokens.length - size)
    : Math.max(0, Math.min(middle - size / 2, tokens.length - size));
  const pieces = tokens.slice(Math.floor(first), Math.floor(first) + size);
  const list = pieces.map((token, i) => {
    const position = Math.floor(first) + i,
      label = pieceLabel(token, position);
    return {
      side,
      index: i,
      at: [position, position + 1],
      label,
      symbol: token.symbol,
      key: position,
    };
  });
  if (isKeys && size < tokens.length)
    list.push({
      side,
      index: size,
      at: [tokens.length, tokens.length],
      label: "…",
      symbol: true,
      key: -1,
      isOthers: true,
    });
  return list;
}

function placeRows(rows, weights, start, unit, most) {
  let edge = start;
  return rows.map((row, index) => {
    const pitch = Math.min(most, unit) * weights[index];
    edge += pitch;
    return { ...row, id: `${row.side}${row.at[0]}`, pitch, c: edge - pitch / 2 };
  });
}

/**
 * Lay out the picture.
 * @param {any} view @param {any} model @param {{width: number, height: number}} size in pixels
 * @returns {any} spans {a, b} along the flow by id, the rows of both sides, and the picture's own size
 */
export function arrange(view, model, size) {
  const tall = size.width < NARROW,
    set = tall ? TALL : WIDE,
    depth = depthOf(view.open);
  const lengths = stageLengths(view, model, set, tall);
  const flow = tall ? Object.values(lengths).reduce((sum, x) => sum + x, 0) : size.width;
  const spans = {};
  divide(spans, 0, flow, lengths);
  for (const stage of stagesOf(model))
    if (isLayer(stage)) divideLayer(spans, stage, view, model, set);
  const first = spans.dec0.a,
    wordsLength = Math.min(set.target.words, first - 12);
  const embedLength =
    view.open?.stage === "written"
      ? first - spans.embed.b - wordsLength - 20
      : Math.min(set.target.embed, first * 0.08 + 6);
  spans.written = { a: first - embedLength, b: first };
  spans.inputs = { a: spans.written.a - wordsLength, b: spans.written.a };

  const across = tall ? size.width : size.height,
    gap = depth === 2 ? set.lane : set.gap,
    room = across - set.lead - set.tail - gap;
  const source = rowsOf(model, view, "encoder"),
    target = rowsOf(model, view, "decoder");
  const weights = [source, target].map((rows) => rows.map((row) => weighRow(row.side, view, row)));
  const unit = room / weights.flat().reduce((sum, x) => sum + x, 0);
  const encoder = placeRows(source, weights[0], set.lead, unit, set.pitch[depth]),
    middle = encoder.at(-1).c + encoder.at(-1).pitch / 2,
    decoder = placeRows(target, weights[1], middle + gap, unit, set.pitch[depth]);
  return {
    tall,
    set,
    depth,
    flow,
    across,
    spans,
    encoder,
    decoder,
    lead: set.lead,
    gap: { a: middle, b: middle + gap },
    bottom: decoder.at(-1).c + decoder.at(-1).pitch / 2,
  };
}

/** Return pairs of coordinates that two layouts share, in order: what only one of them has moves between these. */
export function knotsOf(from, to) {
  const pair = (keys, get) => {
    const list = keys
      .map((key) => [get(from, key), get(to, key)])
      .sort((p, q) => p[0] - q[0] || p[1] - q[1]);
    return list.filter(([x, y], i) => !i || (x > list[i - 1][0] && y > list[i - 1][1]));
  };
  const ids = Object.keys(from.spans).filter(
    (id) => to.spans[id] && !["written", "inputs"].includes(id),
  );
  const ends = ids.flatMap((id) => [
    [id, "a"],
    [id, "b"],
  ]);
  const across = [["lead"], ["gap", "a"], ["gap", "b"], ["bottom"]];
  return {
    flow: pair(ends, (layout, [id, end]) => layout.spans[id][end]),
    across: pair(across, (layout, path) => path.reduce((value, name) => value[name], layout)),
  };
}

/** Return where a coordinate of one layout lies in the other, linear between the knots. i: which of a knot's two it is. */
export function carry(x, knots, i) {
  const j = 1 - i;
  if (!knots.length) return x;
  if (x <= knots[0][i]) return knots[0][j] + x - knots[0][i];
  for (let n = 1; n < knots.length; n++) {
    const [low, high] = [knots[n - 1], knots[n]];
    if (x <= high[i]) return low[j] + ((x - low[i]) / (high[i] - low[i] || 1)) * (high[j] - low[j]);
  }
  const last = knots.at(-1);
  return last[j] + x - last[i];
}
