// The pyramid of one large map, as far as its tiles have come (viz/wire/tiles.py).
import { paintMap } from "../../core/colours.js";
import { axisEntry, unitOf } from "../model.js";

const SIDE = 256; // cells a side of a tile
const TOP = 64; // and of the highest level

export class Pyramid {
  constructor(rows, columns) {
    this.sizes = [[rows, columns]];
    while (Math.max(...this.sizes.at(-1)) > TOP)
      this.sizes.push(this.sizes.at(-1).map((length) => Math.ceil(length / 2)));
    this.whole = this.sizes.findIndex((size) => Math.max(...size) <= SIDE); // the first level that is a single tile
    this.tiles = new Map(); // "level.row.column" -> {rows, columns, largest, mean: Uint8Array}; as last drawn also {look, source}
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

  // Of a picture with so many cells a pixel: the level with at most one.
  level(finest) {
    const level = Math.max(0, Math.ceil(Math.log2(finest) - 1e-9));
    return Math.min(level, this.sizes.length - 1);
  }

  // [level, row, column] of a level's tiles that cover a part of the map.
  within(level, x = 0, y = 0, width = Infinity, height = Infinity) {
    const side = SIDE * 2 ** level,
      [rows, columns] = this.sizes[0],
      found = [];
    const [last, right] = [Math.min(rows, y + height), Math.min(columns, x + width)];
    for (let row = Math.floor(y / side); row * side < last; row++)
      for (let column = Math.floor(x / side); column * side < right; column++)
        found.push([level, row, column]);
    return found;
  }

  // What is known of a cell: {exact}, or of the finest block around it {largest, mean, side}.
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

  // The largest weight of all.
  get maximum() {
    const top = this.tile(this.whole, 0, 0);
    return top ? (top.largest.reduce((a, b) => Math.max(a, b), 0) / 255) ** 2 : 1;
  }

  // A tile as an image of a Plotly layout, one pixel a cell.
  image([level, row, column], colouring) {
    const tile = this.tile(level, row, column),
      look = [...colouring.colours, colouring.maximum, ...colouring.ticks.texts].join();
    if (tile.look !== look) Object.assign(tile, { look, source: tileImage(tile, colouring) });
    const side = 2 ** level;
    return {
      source: tile.source,
      name: `${level}.${row}.${column} ${look}`,
      xref: "x",
      yref: "y",
      x: column * SIDE * side - 0.5,
      y: row * SIDE * side - 0.5,
      sizex: tile.columns * side, // the last block of a row may be smaller: the figure ends before it does
      sizey: tile.rows * side,
      sizing: "stretch",
      layer: "below",
    };
  }
}

// The address of an image of a tile's largest weights.
function tileImage({ rows, columns, largest }, { colour }) {
  const canvas = document.createElement("canvas"),
    colours = Array.from({ length: 256 }, (_, code) => colour((code / 255) ** 2));
  paintMap(canvas, { values: largest, rows, columns }, (code) => colours[code]);
  return canvas.toDataURL();
}

// A map of more tokens than are drawn as a heatmap: a head's alone, of which tiles come as they are looked at.
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
