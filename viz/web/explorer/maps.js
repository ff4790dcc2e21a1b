// The map that a state shows, from what has come of its translation. What has not is asked for, and is kept with that
// translation when it comes: one question at a time, since an answer carries up to about 1 MB.
// A map may be one that the server computes to be shown in attention's place (viz/explorer/overlays.py). The page knows nothing of
// what it is: it draws what its descriptor says.
import { store } from "../store/store.js";
import * as model from "./model.js";
import * as states from "./state.js";
import { CODECS, unpack } from "./trace.js";
import { createLargeMap } from "./views/pyramid.js";

const TILES = 40; // of a large map that are asked for at once
const BUSY = 150; // milliseconds after which a number is asked for again that had to wait for another question
const PATIENCE = 15000; // milliseconds after which an answer is no longer waited for
const KEPT = 100; // overlays of one translation

// A name for what an overlay's map depends on: the same for all heads where the overlay is.
function overlayKey(overlay, view) {
  const place = { head: [view.layer, view.head], layer: [view.layer], sentence: [] }[overlay.scope],
    asked = overlay.asks ? [store.state.asked] : [];
  const { kind, words, special, predicted } = view;
  return JSON.stringify([overlay.id, kind, ...place, words, special, predicted, ...asked]);
}

// A descriptor of viz/wire/payload.py -> the map to draw, as scoreMap (model.js) makes them of attention.
async function overlayMap({ rows, columns, codec, data, ...sent }, { kinds, tokens }) {
  const axis = ({ labels, positions }) =>
    labels.map((label, i) => ({ label, positions: positions[i] }));
  const keys = axis(columns),
    sourceLength = tokens.source.labels.length;
  // Source and prefix side by side: more columns than the kind has keys.
  const joint = (keys.at(-1)?.positions.at(-1) ?? 0) >= kinds[sent.kind].keys;
  return {
    values: CODECS[codec](await unpack(data)),
    rows: axis(rows),
    columns: keys,
    unit: sent.unit,
    signed: sent.signed,
    range: sent.range,
    overlay: sent.id,
    attention: false,
    hidden: null,
    joint,
    sourceColumns: joint
      ? keys.filter((key) => key.positions[0] < sourceLength).length
      : keys.length,
    titles: { rows: rows.title, columns: columns.title },
  };
}

// scene: what is looked at; ask(event, question): of the server; isPointed(row, column): whether that cell of a large map is.
export function createMaps({ scene, ask, isPointed }) {
  let asked = null; // when something was asked for that has not come yet
  const beside = new Set(); // translations of which a view waits for thumbnails
  const traceOf = (key) => scene.traces.find((one) => one.key === key);

  // Whether it was asked: one question waits for another.
  function request(event, question) {
    const now = performance.now();
    if (asked !== null && now - asked < PATIENCE) return false;
    asked = now;
    ask(event, question);
    return true;
  }

  // Layers, and the thumbnails of a kind where it lacks them.
  const askLayers = (trace, wanted, kind) =>
    request("layers", { key: trace.key, wanted, thumbnails: trace.lacks(kind) ? [kind] : [] });

  // The map, null where it has not been sent, or {refused: words}. What is missing is asked for, but for layers of a translation
  // that is not shown itself.
  function mapOf(trace, state) {
    const view = states.viewOf(state),
      overlay = states.overlayOf(state, scene.overlays);
    if (overlay) {
      const as = overlayKey(overlay, view),
        found = trace.overlays.get(as);
      if (!found) request("overlay", { key: trace.key, overlay: overlay.id, view, as });
      return found ?? null;
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

  const tiles = ({ head }, wanted) =>
    request("tiles", { key: scene.trace.key, head, wanted: wanted.slice(0, TILES) });

  // Ask for the number of a cell of a large map, of which a tile has a byte.
  function exact(map, row, column) {
    if (map !== scene.map || !isPointed(row, column)) return;
    if (map.pyramid.exact.has(`${row}.${column}`)) return;
    if (!request("cell", { key: scene.trace.key, head: map.head, row, column }))
      setTimeout(() => exact(map, row, column), BUSY);
  }

  // While a person looks at one layer, the thumbnails of the other kinds come, then the other layers of this one, one by one.
  function askAhead() {
    const { trace, state } = scene,
      { kind } = state;
    if (asked !== null) return;
    const waiting = [...beside].find((one) => one.lacks(kind));
    if (waiting) {
      beside.delete(waiting); // asked for once: what is no longer remembered would be asked for without end
      return askLayers(waiting, [], kind);
    }
    if (!trace.lazy) return;
    const strip = trace.kinds[kind].large ? trace.kinds[kind].readings.indexOf(null) : -1;
    if (strip >= 0) return request("layers", { key: trace.key, strips: [[kind, strip]] });
    const small = [kind, ...Object.keys(trace.kinds)].find((one) => trace.lacks(one));
    if (small) return askLayers(trace, [], small);
    const next = trace.kinds[kind].large ? -1 : trace.weights[kind].indexOf(null);
    if (next >= 0) askLayers(trace, [[kind, next]], kind);
  }

  return {
    mapOf,
    tiles,
    exact,
    askAhead,
    beside, // a new drawing says anew which
    takeExact(key, { head, row, column, value }) {
      const pyramid = traceOf(key)?.pyramid(...head);
      pyramid?.exact.set(`${row}.${column}`, value);
      asked = null;
    },
    // Parts of a translation, which is returned once it has them all: a redraw in between would ask for the same again.
    async take({ key, layers = [], thumbnails = [], strips = [], tiles, overlay, as }) {
      const trace = traceOf(key);
      if (trace) {
        for (const block of layers) await trace.add(block);
        for (const small of thumbnails) await trace.addThumbnails(small);
        for (const strip of strips) await trace.addStrip(strip);
        if (tiles) await trace.addTiles(tiles);
        if (overlay) trace.overlays.set(as, await overlayMap(overlay, trace));
        if (trace.overlays.size > KEPT) trace.overlays.delete(trace.overlays.keys().next().value);
      }
      asked = null;
      return trace;
    },
    // There is no answer, for this reason. Returns whether it is about the translation that is shown, as a map of it.
    refuse({ key, as, error }) {
      const trace = as && traceOf(key);
      trace?.overlays.set(as, { refused: error });
      asked = null;
      return Boolean(trace) && trace === scene.trace;
    },
  };
}
