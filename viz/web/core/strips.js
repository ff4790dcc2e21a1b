// Vectors as strips of cells (viz/wire/inside.py): a cell of several numbers holds the one of the largest absolute
// value, or the first one.

/**
 * Decode strips: a function from a row to its cells, and the value at full colour.
 * @param {{cells: number, group: number, unit: number, data: string}} strips group: numbers of a cell
 */
export function decodeStrips({ cells, group, unit, data }) {
  const bytes = Int8Array.from(atob(data), (character) => character.charCodeAt(0));
  const all = Array.from(bytes, (value) => value * unit);
  return {
    row: (/** @type {number} */ index) => all.slice(index * cells, (index + 1) * cells),
    limit: 127 * unit,
    group,
  };
}
