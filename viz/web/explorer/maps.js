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
    sourceColumns: keys.filter((key) => key.positions[0] < sourceLength).length,
    titles: { rows: rows.title, columns: columns.title },
  };
}

/**
 * Create the maps of a scene.
 * @param {object} setup
 * @param {any} setup.scene what the explorer shows
 * @param {(name: string, trace: any, fields: any) => Promise<any>} setup.ask asks the server about a translation
 * @param {(row: number, column: number) => boolean} setup.isPointed whether a cell of a large map is pointed at
 * @param {(trace: any, part: any) => void} setup.show draws a part of a translation that has arrived
 * @param {(error: any) => void} setup.tell shows a message
 */
export function createMaps({ scene, ask, isPointed, show, tell }) {
  let isAsking = false;
  const lackingThumbnails = new Set(); // translations whose thumbnails a comparison waits for

  // Request a part of a translation unless a request is under way. An exported file has no address to ask about.
  async function request(name, trace, fields, store = (part) => trace.add(part)) {
    if (isAsking || !trace.address) return;
    isAsking = true;
    const { error, ...part } = await ask(name, trace, fields);
    if (!error) await store(part);
    else if (name === "overlay") trace.overlays.set(fields.as, { refused: error });
    isAsking = false;
    if (error && name !== "overlay") tell(error);
    else show(trace, part);
  }

  // Request layers, and a kind's thumbnails if they are missing.
  const askLayers = (trace, layers, kind) =>
    request("layers", trace, { wanted: layers, thumbnails: trace.lacks(kind) ? [kind] : [] });

  // Return a map, null while it is missing, or {refused: words}. Missing layers are requested only
  // for the translation that is shown.
  function mapOf(trace, state) {
    const view = states.viewOf(state),
      overlay = states.overlayOf(state, scene.overlays);
    if (overlay) return overlayOf(trace, overlay, view);
    if (trace.kinds[view.kind].large) return largeMapOf(trace, view);
    const missing = model.missingLayers(trace, view);
    if (missing.length && trace === scene.trace) askLayers(trace, missing, view.kind);
    return missing.length ? null : model.scoreMap(trace, view);
  }

  function overlayOf(trace, overlay, view) {
    const as = overlayKey(overlay, view),
      map = trace.overlays.get(as);
    if (!map)
      request("overlay", trace, { overlay: overlay.id, view, as }, async (part) =>
        trace.overlays.set(as, await overlayMap(part.overlay, trace)),
      );
    return map ?? null;
  }

  function largeMapOf(trace, view) {
    const map = createLargeMap(trace, view),
      { pyramid } = map;
    if (pyramid.begun) return map;
    if (trace === scene.trace) tiles(map, pyramid.within(pyramid.whole));
    return null;
  }

  const tiles = ({ head }, missing) =>
    request("tiles", scene.trace, { head, wanted: missing.slice(0, MOST_TILES) });

  // Request the exact weight of a cell of a large map; its tile has one byte per cell.
  function exact(map, row, column) {
    const { exact: values } = map.pyramid,
      place = `${row}.${column}`;
    if (map !== scene.map || !isPointed(row, column) || values.has(place)) return;
    if (isAsking) setTimeout(() => exact(map, row, column), RETRY_PAUSE);
    const store = ({ cell }) => values.set(place, cell.value);
    request("cell", scene.trace, { head: map.head, row, column }, store);
  }

  // Request ahead: thumbnails of the other kinds, then the other layers of this kind one by one.
  function askAhead() {
    const { trace, state } = scene,
      { kind } = state;
    if (isAsking) return;
    const lacking = [...lackingThumbnails].find((trace) => trace.lacks(kind));
    if (lacking) {
      lackingThumbnails.delete(lacking); // requested once, because the server may have forgotten it
      return askLayers(lacking, [], kind);
    }
    if (!trace.lazy) return;
    const strip = trace.kinds[kind].large ? trace.kinds[kind].readings.indexOf(null) : -1;
    if (strip >= 0) return request("layers", trace, { strips: [[kind, strip]] });
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
  };
}
