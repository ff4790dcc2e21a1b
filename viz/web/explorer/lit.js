// The lit word: the word of the two sentences that is pointed at, pinned, or was pointed at last; what it attends to, and what a
// test by hiding says of it. Pure functions of a map of whole words (scoreMap() in model.js); {row, column} has one null.
import { strongestIndices } from "./words.js";

export const FAINT = 0.04, // smaller weights are neither drawn nor named
  DECIDES = 0.7; // nats that a decisive word costs: its loss halves a probability
const SOFT = 0.1, // a head that puts less on its strongest word looked at none
  OTHERS = 0.3, // least weight of another head that attends to the decisive word
  NAMED_HEADS = 2;

export const isNone = (at) => !at || (at.row === null && at.column === null);

/**
 * Return the lit word's weights with the words of the other axis, or null if nothing is lit.
 * @param {any} map @param {any} at {row, column}
 * @returns {any} {isRow, index, label, positions, items: [{label, positions, weight}], strongest: indices of items, hidden}; hidden:
 *   the share of a row's weight that is on special tokens
 */
export function litWeights(map, at) {
  if (isNone(at)) return null;
  const isRow = at.row !== null,
    index = isRow ? at.row : at.column,
    [own, others] = isRow ? [map.rows, map.columns] : [map.columns, map.rows],
    width = map.columns.length;
  if (!own[index]) return null;
  const weight = (i) => map.values[isRow ? index * width + i : i * width + index],
    items = others.map((item, i) => ({ ...item, weight: weight(i) || 0 })),
    sum = items.reduce((total, item) => total + item.weight, 0);
  return {
    ...own[index],
    isRow,
    index,
    items,
    strongest: strongestIndices(
      items.map((item) => item.weight),
      3,
    ).filter((i) => items[i].weight >= FAINT),
    hidden: isRow ? Math.max(0, 1 - sum) : 0,
  };
}

/** Return the item that a row attends to most, or null if it attends to no word. */
export const looked = ({ items, strongest }) =>
  strongest.length && items[strongest[0]].weight >= SOFT ? strongest[0] : null;

/**
 * Return what hiding each source word did, as {p, all, order, written}: `all` has an effect or null for each of the columns,
 * `order` their indices by loss, the largest first; `written`: the already written word that costs most, if it costs 2 nats.
 * @param {any} removals of page_removals @param {any[]} columns words of the source
 */
export function effectsOf({ p, words }, columns) {
  const ordinary = words.filter(({ special, loss }) => !special && loss !== null),
    source = ordinary.filter((word) => word.source);
  const all = columns.map(
    ({ positions }) =>
      source.find((word) => word.positions.some((at) => positions.includes(at))) ?? null,
  );
  const order = [...all.keys()].filter((i) => all[i]).sort((a, b) => all[b].loss - all[a].loss);
  const [written = null] = ordinary
    .filter((word) => !word.source && word.loss > 2)
    .sort((a, b) => b.loss - a.loss);
  return { p, all, order, written };
}

/**
 * Return the verdict of a test: {most, own, agrees}. most: the column of the decisive word, or null if no single word decides;
 * own: the column that the row looked at, or null; agrees: "yes", "partly" or "no", whether it looked at what matters.
 */
export function verdictOf({ all, order }, lit) {
  const own = looked(lit),
    [first = null] = order,
    most = first !== null && all[first].loss >= DECIDES ? first : null;
  if (most === null || own === null || own === most) return { most, own, agrees: "yes" };
  const isBoth = (all[own]?.loss ?? 0) > all[most].loss / 2;
  return { most, own, agrees: isBoth ? "partly" : "no" };
}

/** Return the heads that attend most to a column in a row, [layer, head, weight], of maps of single heads. */
export const headsThatLook = (maps, row, column) =>
  maps
    .map(([layer, head, map]) => [layer, head, map.values[row * map.columns.length + column]])
    .filter(([, , weight]) => weight > OTHERS)
    .sort((a, b) => b[2] - a[2])
    .slice(0, NAMED_HEADS);

/** Return the rows or columns of a map that belong to a word: those with one of its positions. */
export const cellsOf = (items, positions) =>
  [...items.keys()].filter((i) => items[i].positions.some((at) => positions.includes(at)));
