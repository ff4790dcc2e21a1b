// A translation in the page's memory: a payload of viz/wire/payload.py, decoded. Layers may be
// added later.
import { KINDS } from "../core/kinds.js";
import { Pyramid } from "./views/pyramid.js";

const MOST_ENCODED = 2_000_000; // weights that a request may carry
const PYRAMIDS = 8; // large maps kept per translation
const THUMBNAIL_SIZE = 64; // cells per side; of larger maps, each cell is the largest weight of a block

// uint16 code -> weight, see viz/wire/codecs.py
const DECODED = new Float32Array(65536);
for (let code = 0; code < 65536; code++) DECODED[code] = Math.pow(code / 65535, 4);

export const base64ToBytes = (text) =>
  Uint8Array.fromBase64?.(text) ??
  Uint8Array.from(atob(text), (character) => character.charCodeAt(0));

/** Return the bytes of a text of viz/wire/codecs.py, or a promise of them if it is compressed. */
export const unpack = (text) => (text.startsWith("=") ? base64ToBytes(text.slice(1)) : unzip(text));

// Not through a Blob, which the browser would first hand to another process.
async function unzip(text) {
  const packed = new Response(/** @type {any} */ (base64ToBytes(text))).body,
    stream = packed.pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

export function decodeWeights(codes) {
  const count = codes.length / 2;
  const weights = new Float32Array(count);
  for (let i = 0; i < count; i++) weights[i] = DECODED[(codes[i] << 8) | codes[count + i]];
  return weights;
}

// Decode int16 codes that follow their largest absolute value; see viz/wire/codecs.py.
function decodeSigned(data) {
  const limit = new DataView(data.buffer, data.byteOffset, 4).getFloat32(0, true),
    codes = data.subarray(4),
    count = codes.length / 2;
  return Float32Array.from({ length: count }, (_, i) => {
    const code = (((codes[i] << 8) | codes[count + i]) << 16) >> 16; // sign extension
    return code === -32768 ? NaN : Math.sign(code) * limit * Math.pow(Math.abs(code) / 32767, 4);
  });
}

// codec -> function from bytes to values
export const CODECS = {
  root16: decodeWeights,
  root2: (codes) => Float32Array.from(codes, (code) => (code / 255) ** 2),
  root8: (codes) => Float32Array.from(codes, (code) => Math.pow(code / 255, 4)),
  signed16: decodeSigned,
  float32: (data) => new Float32Array(data.buffer),
};

const decodeBlock = async ({ codec, data }) => CODECS[codec](await unpack(data));

/**
 * A translation: the fields of its payload, and the parts that have arrived. weights[kind][layer] is a Float32Array
 * [heads, query, key], or null until it arrives.
 */
export class Trace {
  /** @type {Record<string, any>} title, sizes, entropies and readings of each kind of attention */ kinds;
  /** @type {Record<string, any>} source, read and predicted tokens */ tokens;
  /** @type {any} names of heads, of a survey */ marks;
  /** @type {boolean} whether layers may arrive later */ lazy;

  /** @param {any} payload */
  constructor({ blocks, thumbnails, strips, tiles, ...fields }) {
    Object.assign(this, fields);
    this.weights = Object.fromEntries(
      Object.entries(this.kinds).map(([kind, { layers }]) => [kind, new Array(layers).fill(null)]),
    );
    this.thumbnails = {};
    this.strips = {}; // kind -> thumbnails of large maps, per layer
    this.pyramids = new Map(); // "kind.layer.head" -> Pyramid of a large map
    this.overlays = new Map(); // overlayKey() -> map or {refused}; see maps.js
  }

  // Return the names that a survey gave a head: [{mark, title, value}], usually none.
  names(kind, layer, head) {
    const { named = [] } = this.marks ?? {};
    return named
      .filter((named) => named.kind === kind)
      .flatMap(({ mark, title, heads }) =>
        heads
          .filter(([l, h]) => l === layer && h === head)
          .map(([, , value]) => ({ mark, title, value })),
      );
  }

  static async from(payload) {
    const trace = new Trace(payload);
    await trace.add({ ...payload, layers: payload.blocks });
    return trace;
  }

  // Add parts: blocks of layers, thumbnails of kinds, strips of large maps' thumbnails, and tiles of a head or several.
  async add({ layers = [], thumbnails = [], strips = [], tiles = [] }) {
    await Promise.all([
      ...layers.map((block) => this.#addLayers(block)),
      ...thumbnails.map((block) => this.#addThumbnails(block)),
      ...strips.map((strip) => this.#addStrip(strip)),
      ...[tiles].flat().map((block) => this.#addTiles(block)),
    ]);
  }

  async #addLayers(block) {
    const values = await decodeBlock(block),
      { heads, queries, keys } = this.kinds[block.kind],
      size = heads * queries * keys;
    for (let layer = block.first; layer < block.last; layer++) {
      const start = (layer - block.first) * size;
      this.weights[block.kind][layer] = values.subarray(start, start + size);
    }
  }

  async #addThumbnails(block) {
    this.thumbnails[block.kind] = { ...block, values: await decodeBlock(block) };
  }

  // Add a layer's thumbnails and readings, for a kind whose maps are large.
  async #addStrip(strip) {
    const { kind, layer } = strip;
    (this.strips[kind] ||= [])[layer] = { ...strip, values: await decodeBlock(strip) };
    this.kinds[kind].entropies[layer] = strip.entropies;
    this.kinds[kind].readings[layer] = strip.readings;
  }

  async #addTiles({ kind, layer, head, tiles }) {
    const pyramid = this.pyramid(kind, layer, head);
    for (const tile of tiles) {
      const [largest, mean] = await Promise.all([
        unpack(tile.largest),
        tile.mean && unpack(tile.mean),
      ]);
      pyramid.add(tile, largest, mean);
    }
  }

  pyramid(kind, layer, head) {
    const name = `${kind}.${layer}.${head}`,
      { queries, keys } = this.kinds[kind];
    const pyramid = this.pyramids.get(name) ?? new Pyramid(queries, keys);
    this.pyramids.delete(name); // move it to the end: the first is dropped
    this.pyramids.set(name, pyramid);
    if (this.pyramids.size > PYRAMIDS) this.pyramids.delete(this.pyramids.keys().next().value);
    return pyramid;
  }

  // Whether nothing of some heads of a kind has arrived.
  lacks(kind) {
    const isDrawable = this.kinds[kind].large || this.thumbnails[kind];
    return this.lazy && !isDrawable && this.weights[kind].includes(null);
  }

  // Return kind -> the encoded weights of each layer; null for a layer that is missing or exceeds
  // the request's limit.
  encoded() {
    let budget = MOST_ENCODED;
    const layer = (weights) => {
      if (!weights || weights.length > budget) return null;
      budget -= weights.length;
      return encodeWeights(weights);
    };
    return Object.fromEntries(
      Object.keys(this.kinds).map((kind) => [kind, this.weights[kind].map(layer)]),
    );
  }

  head(kind, layer, head) {
    const { queries, keys } = this.kinds[kind];
    return this.weights[kind][layer].subarray(head * queries * keys, (head + 1) * queries * keys);
  }

  // Return {values, rows, columns} with at most `size` cells a side, or null if it has not arrived.
  thumbnail(kind, layer, head, size = THUMBNAIL_SIZE) {
    const { heads, queries, keys } = this.kinds[kind];
    if (this.weights[kind][layer])
      return poolMax(this.head(kind, layer, head), queries, keys, size);
    const strip = this.strips[kind]?.[layer],
      { rows, columns, values } = strip ?? this.thumbnails[kind] ?? {};
    if (!values) return null;
    const start = (strip ? head : layer * heads + head) * rows * columns;
    return poolMax(values.subarray(start, start + rows * columns), rows, columns, size);
  }

  rowTokens(kind, predicted) {
    if (KINDS[kind].rows === "source") return this.tokens.source;
    return predicted ? this.tokens.predicted : this.tokens.read;
  }

  keyTokens(kind) {
    return KINDS[kind].columns === "target" ? this.tokens.read : this.tokens.source;
  }
}

/** Encode weights as root16 of viz/wire/codecs.py; decoded weights get their codes back. */
export function encodeWeights(weights) {
  const codes = new Uint8Array(2 * weights.length);
  weights.forEach((weight, i) => {
    const code = Math.round(Math.sqrt(Math.sqrt(weight)) * 65535);
    codes[i] = code >> 8;
    codes[weights.length + i] = code & 255;
  });
  const characters = () => Array.from(codes, (code) => String.fromCharCode(code)).join("");
  return `=${codes.toBase64?.() ?? btoa(characters())}`;
}

// Reduce a map to `size` cells a side by the maximum of each block, so that thin lines stay
// visible.
function poolMax(values, rows, columns, size) {
  if (rows <= size && columns <= size) return { values, rows, columns };
  const height = Math.min(rows, size),
    width = Math.min(columns, size);
  const pooled = new Float32Array(height * width);
  for (let r = 0; r < rows; r++) {
    const target = blockOf(r, rows, height) * width;
    for (let c = 0; c < columns; c++) {
      const at = target + blockOf(c, columns, width),
        value = values[r * columns + c];
      if (value > pooled[at]) pooled[at] = value;
    }
  }
  return { values: pooled, rows: height, columns: width };
}

// Return the last block that begins at or before i; block b begins at floor(b * length / blocks).
const blockOf = (i, length, blocks) => Math.ceil(((i + 1) * blocks) / length) - 1;
