// The map that a state shows, from what has come of its translation. What has not is asked for, and is kept with that
// translation when it comes.
import * as model from "../model.js";
import * as states from "../state.js";
import { largeMap } from "../views/pyramid.js";
import { createRequests } from "./requests.js";

const TILES = 40; // of a large map that are asked for at once
const BUSY = 150; // milliseconds after which a number is asked for again that had to wait for another question

// scene: what is looked at; ask(event, question): of the server; isPointed(row, column): whether that cell of a large map is.
export function createMaps({ scene, overlays, ask, isPointed }) {
  const requests = createRequests(ask, () => performance.now());
  const owner = (key) => scene.traces.find((one) => one.key === key);

  // Null where it has not been sent. Then it is asked for, but for layers of a translation that is not shown itself.
  function mapOf(one, wanted) {
    const view = states.viewOf(wanted);
    if (wanted.overlay) {
      const kept = overlays.kept(one, wanted);
      if (!kept) requests.request("overlay", { key: one.key, ...overlays.question(wanted) });
      return kept?.refused ? null : kept;
    }
    if (one.kinds[view.kind].large) return largeMapOf(one, view);
    const missing = model.missing(one, view);
    if (missing.length && one === scene.trace) requests.layers(one, missing, view.kind);
    return missing.length ? null : model.scoreMap(one, view);
  }

  function largeMapOf(one, view) {
    const found = largeMap(one, view),
      { pyramid } = found;
    if (pyramid.begun) return found;
    if (one === scene.trace) tiles(found, pyramid.within(pyramid.whole));
    return null;
  }

  const tiles = ({ head }, wanted) =>
    requests.request("tiles", { key: scene.trace.key, head, wanted: wanted.slice(0, TILES) });

  // The number of a cell of a large map, of which a tile has a byte.
  function exact(map, row, column) {
    if (map !== scene.map || !isPointed(row, column)) return;
    if (map.pyramid.exact.has(`${row}.${column}`)) return;
    if (!requests.request("cell", { key: scene.trace.key, head: map.head, row, column }))
      setTimeout(() => exact(map, row, column), BUSY);
  }

  return {
    mapOf,
    tiles,
    exact,
    askFor: requests.waitFor,
    waitForNone: requests.waitForNone,
    ahead: () => requests.ahead(scene.trace, scene.state.kind),
    takeExact(key, { head, row, column, value }) {
      owner(key)
        ?.pyramid(...head)
        .exact.set(`${row}.${column}`, value);
      requests.answered();
    },
    // Parts of a translation, which is returned once it has them all: a redraw in between would ask for the same again.
    async take({ key, layers = [], thumbnails = [], strips = [], tiles, overlay, as }) {
      const one = owner(key);
      if (one) {
        for (const block of layers) await one.add(block);
        for (const small of thumbnails) await one.addThumbnails(small);
        for (const strip of strips) await one.addStrip(strip);
        if (tiles) await one.addTiles(tiles);
        if (overlay) await overlays.keep(one, as, overlay);
      }
      requests.answered();
      return one;
    },
    // There is no answer, for this reason. Returns whether it is about the translation that is shown, as a map of it.
    refuse({ key, as, error }) {
      const one = owner(key);
      if (one && as) overlays.refuse(one, as, error);
      requests.answered();
      return Boolean(one && as) && one === scene.trace;
    },
  };
}
