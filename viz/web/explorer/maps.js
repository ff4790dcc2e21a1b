// Finds the map of a state, and requests what the page does not have yet: layers, thumbnails,
// tiles, overlays. One request at a time, because an answer has up to about 1 MB. An overlay's map
// (viz/explorer/overlays.py) is computed by the server; the page draws what its descriptor says.
import { store } from "../store/store.js";
import * as model from "./model.js";
import * as states from "./state.js";
import { CODECS, unpack } from "./trace.js";
import { createLargeMap } from "./views/pyramid.js";

const MOST_TILES = 40; // per request
const RETRY_PAUSE = 150; // milliseconds until the request for a cell is repeated, if another request was under way
const PATIENCE = 15000; // milliseconds after which a request counts as lost
const MOST_OVERLAYS = 100; // overlays per translation

// Return a key of everything an overlay's map depends on: heads share it where the map does not
// depend on the head.
function overlayKey(overlay, view) {
  const place = { head: [view.layer, view.head], layer: [view.layer], sentence: [] }[overlay.scope],
    question = overlay.asks ? [store.state.asked] : [];
  const { kind, words, special, predicted } = view;
  return JSON.stringify([overlay.id, kind, ...place, words, special, predicted, ...question]);
}

// Convert an overlay's map of viz/wire/payload.py to the form of scoreMap() in model.js.
async function overlayMap({ rows, columns, codec, data, ...descriptor }, { kinds, tokens }) {
  const axis = ({ labels, positions }) =>
    labels.map((label, i) => ({ label, positions: positions[i] }));
  const keys = axis(columns),
    sourceLength = tokens.source.labels.length;
  // A joint map has the source's and the prefix's columns, more than the kind has keys.
  const joint = (keys.at(-1)?.positions.at(-1) ?? 0) >= kinds[descriptor.kind].keys;
  return {
    values: CODECS[codec](await unpack(data)),
    rows: axis(rows),
    columns: keys,
    unit: descriptor.unit,
    signed: descriptor.signed,
    range: descriptor.range,
    overlay: descriptor.id,
    attention: false,
    hidden: null,
    joint,
    sourceColumns: joint
      ? keys.filter((key) => key.positions[0] < sourceLength).length
      : keys.length,
    titles: { rows: rows.title, columns: columns.title },
  };
}

/**
 * Create the maps of a scene.
 * @param {object} setup
 * @param {any} setup.scene what the explorer shows
 * @param {(name: string, fields: any) => void} setup.ask sends a question to the server
 * @param {(row: number, column: number) => boolean} setup.isPointed whether a cell of a large map is pointed at
 */
export function createMaps({ scene, ask, isPointed }) {
  let requestedAt = null; // time of the request under way, or null
  const lackingThumbnails = new Set(); // translations whose thumbnails a comparison waits for
  const traceOf = (key) => scene.traces.find((trace) => trace.key === key);

  // Send a request unless one is under way; return whether it was sent.
  function request(event, question) {
    const now = performance.now();
    if (requestedAt !== null && now - requestedAt < PATIENCE) return false;
    requestedAt = now;
    ask(event, question);
    return true;
  }

  // Request layers, and a kind's thumbnails if they are missing.
  const askLayers = (trace, layers, kind) =>
    request("layers", {
      key: trace.key,
      wanted: layers,
      thumbnails: trace.lacks(kind) ? [kind] : [],
    });

  // Return a map, null while it is missing, or {refused: words}. Missing layers are requested only
  // for the translation that is shown.
  function mapOf(trace, state) {
    const view = states.viewOf(state),
      overlay = states.overlayOf(state, scene.overlays);
    if (overlay) {
      const as = overlayKey(overlay, view),
        map = trace.overlays.get(as);
      if (!map) request("overlay", { key: trace.key, overlay: overlay.id, view, as });
      return map ?? null;
    }
    if (trace.kinds[view.kind].large) return largeMapOf(trace, view);
    const missing = model.missingLayers(trace, view);
    if (missing.length && trace === scene.trace) askLayers(trace, missing, view.kind);
    return missing.length ? null : model.scoreMap(trace, view);
  }

  function largeMapOf(trace, view) {
    const map = createLargeMap(trace, view),
      { pyramid } = map;
    if (pyramid.begun) return map;
    if (trace === scene.trace) tiles(map, pyramid.within(pyramid.whole));
    return null;
  }

  const tiles = ({ head }, missing) =>
    request("tiles", { key: scene.trace.key, head, wanted: missing.slice(0, MOST_TILES) });

  // Request the exact weight of a cell of a large map; its tile has one byte per cell.
  function exact(map, row, column) {
    if (map !== scene.map || !isPointed(row, column)) return;
    if (map.pyramid.exact.has(`${row}.${column}`)) return;
    if (!request("cell", { key: scene.trace.key, head: map.head, row, column }))
      setTimeout(() => exact(map, row, column), RETRY_PAUSE);
  }

  // Request ahead: thumbnails of the other kinds, then the other layers of this kind one by one.
  function askAhead() {
    const { trace, state } = scene,
      { kind } = state;
    if (requestedAt !== null) return;
    const lacking = [...lackingThumbnails].find((trace) => trace.lacks(kind));
    if (lacking) {
      lackingThumbnails.delete(lacking); // requested once, because the server may have forgotten it
      return askLayers(lacking, [], kind);
    }
    if (!trace.lazy) return;
    const strip = trace.kinds[kind].large ? trace.kinds[kind].readings.indexOf(null) : -1;
    if (strip >= 0) return request("layers", { key: trace.key, strips: [[kind, strip]] });
    const lackingKind = [kind, ...Object.keys(trace.kinds)].find((name) => trace.lacks(name));
    if (lackingKind) return askLayers(trace, [], lackingKind);
    const next = trace.kinds[kind].large ? -1 : trace.weights[kind].indexOf(null);
    if (next >= 0) askLayers(trace, [[kind, next]], kind);
  }

  return {
    mapOf,
    tiles,
    exact,
    askAhead,
    lackingThumbnails, // each drawing clears and fills it
    // Receive the exact weight of a cell of a large map.
    receiveCell(key, { head, row, column, value }) {
      const pyramid = traceOf(key)?.pyramid(...head);
      pyramid?.exact.set(`${row}.${column}`, value);
      requestedAt = null;
    },
    // Add the parts of an answer to their translation. Returns it once they are all there, so that
    // it is redrawn once.
    async receiveParts({ key, layers = [], thumbnails = [], strips = [], tiles, overlay, as }) {
      const trace = traceOf(key);
      if (trace) {
        for (const block of layers) await trace.add(block);
        for (const thumbnail of thumbnails) await trace.addThumbnails(thumbnail);
        for (const strip of strips) await trace.addStrip(strip);
        if (tiles) await trace.addTiles(tiles);
        if (overlay) trace.overlays.set(as, await overlayMap(overlay, trace));
        if (trace.overlays.size > MOST_OVERLAYS)
          trace.overlays.delete(trace.overlays.keys().next().value);
      }
      requestedAt = null;
      return trace;
    },
    // Receive an error. as: the key of the overlay that was requested, if any. Returns whether the
    // error is about a map of the translation that is shown.
    receiveError({ key, as, error }) {
      const trace = as && traceOf(key);
      trace?.overlays.set(as, { refused: error });
      requestedAt = null;
      return Boolean(trace) && trace === scene.trace;
    },
  };
}
