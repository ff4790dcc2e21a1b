// The pyramid of a large map: the tiles that have arrived, at several resolutions
// (viz/wire/tiles.py).
import { paintMap } from "../../core/colours.js";
import { axisEntry, unitOf } from "../model.js";

const SIDE = 256; // cells per side of a tile
const TOP = 64; // cells per side of the coarsest level, at most

export class Pyramid {
  constructor(rows, columns) {
    this.sizes = [[rows, columns]];
    while (Math.max(...this.sizes.at(-1)) > TOP)
      this.sizes.push(this.sizes.at(-1).map((length) => Math.ceil(length / 2)));
    this.whole = this.sizes.findIndex((size) => Math.max(...size) <= SIDE); // the first level that fits one tile
    this.tiles = new Map(); // "level.row.column" -> {rows, columns, largest, mean: Uint8Array}, and once drawn {look, picture}
    this.exact = new Map(); // "row.column" -> weight
  }

  tile(level, row, column) {
    return this.tiles.get(`${level}.${row}.${column}`);
  }

  get begun() {
    return Boolean(this.tile(this.whole, 0, 0));
  }

  add({ level, row, column, rows, columns }, largest, mean) {
    this.tiles.set(`${level}.${row}.${column}`, { rows, columns, largest, mean: mean ?? largest });
  }

  // Return the finest level with at most one cell per pixel; finest: cells per pixel of the map
  // itself.
  level(finest) {
    const level = Math.max(0, Math.ceil(Math.log2(finest) - 1e-9));
    return Math.min(level, this.sizes.length - 1);
  }

  // Return the [level, row, column] tiles that cover a part of the map.
  within(level, x = 0, y = 0, width = Infinity, height = Infinity) {
    const side = SIDE * 2 ** level,
      [rows, columns] = this.sizes[0],
      tiles = [];
    const [last, right] = [Math.min(rows, y + height), Math.min(columns, x + width)];
    for (let row = Math.floor(y / side); row * side < last; row++)
      for (let column = Math.floor(x / side); column * side < right; column++)
        tiles.push([level, row, column]);
    return tiles;
  }

  // Return what is known of a cell: {exact}, or {largest, mean, side} of the finest block around
  // it, or null.
  at(row, column) {
    const exact = this.exact.get(`${row}.${column}`);
    if (exact !== undefined) return { exact };
    for (let level = 0; level <= this.whole; level++) {
      const [r, c] = [row >> level, column >> level];
      const tile = this.tile(level, Math.floor(r / SIDE), Math.floor(c / SIDE));
      if (!tile) continue;
      const cell = (r % SIDE) * tile.columns + (c % SIDE);
      return {
        largest: (tile.largest[cell] / 255) ** 2,
        mean: (tile.mean[cell] / 255) ** 2,
        side: 2 ** level,
      };
    }
    return null;
  }

  // The largest weight of the map, as far as it is known.
  get maximum() {
    const top = this.tile(this.whole, 0, 0);
    return top ? (top.largest.reduce((a, b) => Math.max(a, b), 0) / 255) ** 2 : 1;
  }

  // Return a tile as a canvas of one pixel per cell, and its place in cells of the map. The last block may reach beyond
  // the map.
  picture([level, row, column], colouring) {
    const tile = this.tile(level, row, column),
      look = [...colouring.colours, colouring.maximum, ...colouring.ticks.texts].join(),
      side = 2 ** level;
    if (tile.look !== look) {
      const picture = document.createElement("canvas"),
        colours = Array.from({ length: 256 }, (_, code) => colouring.colour((code / 255) ** 2));
      paintMap(picture, { ...tile, values: tile.largest }, (code) => colours[code]);
      Object.assign(tile, { look, picture });
    }
    return {
      picture: tile.picture,
      x: column * SIDE * side,
      y: row * SIDE * side,
      width: tile.columns * side,
      height: tile.rows * side,
    };
  }
}

/** Return the map of one head with more tokens than a heatmap can show; its tiles arrive as they are looked at. */
export function createLargeMap(trace, view) {
  const { kind, layer, head } = view,
    queries = trace.rowTokens(kind, view.predicted),
    keys = trace.keyTokens(kind);
  return {
    trace: trace.key,
    kind,
    head: [kind, layer, head],
    pyramid: trace.pyramid(kind, layer, head),
    rows: Array.from(queries.labels.keys(), axisEntry(queries)),
    columns: Array.from(keys.labels.keys(), axisEntry(keys)),
    unit: unitOf(view, [[layer, head]]),
    attention: true,
    hidden: null,
    joint: false,
  };
}
