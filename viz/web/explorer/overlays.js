// The maps that the server computes to be shown in attention's place (viz/ui/overlays.py). The page knows nothing of what they
// are: it asks for the one that is looked at, keeps it with its translation, and draws what its descriptor says.
import { store } from "../store/store.js";
import * as states from "./state.js";
import { CODECS, unpack } from "./trace.js";

const KEPT = 100; // maps of one translation

// A name for what an answer depends on: the same for all heads where the overlay is.
function keyOf(overlay, view) {
  const place = { head: [view.layer, view.head], layer: [view.layer], sentence: [] }[overlay.scope];
  return JSON.stringify([
    overlay.id,
    view.kind,
    ...place,
    view.words,
    view.special,
    view.predicted,
    ...(overlay.asks ? [store.state.asked] : []),
  ]);
}

// A descriptor of viz/wire/payload.py -> the map to draw, as scoreMap (explorer/model.js) makes them of attention.
export async function mapOf(sent, { kinds, tokens }) {
  const axis = ({ labels, positions }) =>
    labels.map((label, i) => ({ label, positions: positions[i] }));
  const columns = axis(sent.columns),
    sourceLength = tokens.source.labels.length;
  // Source and prefix side by side: more columns than the kind has keys.
  const joint = (columns.at(-1)?.positions.at(-1) ?? 0) >= kinds[sent.kind].keys;
  return {
    values: CODECS[sent.codec](await unpack(sent.data)),
    rows: axis(sent.rows),
    columns,
    unit: sent.unit,
    signed: sent.signed,
    range: sent.range,
    overlay: sent.id,
    attention: false,
    hidden: null,
    joint,
    sourceColumns: joint
      ? columns.filter((column) => column.positions[0] < sourceLength).length
      : columns.length,
    titles: { rows: sent.rows.title, columns: sent.columns.title },
  };
}

// available: what the server offers, {id, title, about, kinds, scope, model, asks} each
export function createOverlays(available = []) {
  const find = (state) =>
    available.find((one) => one.id === state.overlay && one.kinds.includes(state.kind)) || null;
  return {
    available,
    find,
    // The same state, without an overlay that there is not.
    fitted: (state) => (state.overlay && !find(state) ? { ...state, overlay: "" } : state),
    // The map that a state shows, {refused: in words} where the server gave none, or null while it is not here.
    kept: (trace, state) => trace.overlays.get(keyOf(find(state), states.viewOf(state))) || null,
    refuse: (trace, name, refused) => trace.overlays.set(name, { refused }),
    question(state) {
      const overlay = find(state),
        view = states.viewOf(state);
      return { overlay: overlay.id, view, as: keyOf(overlay, view) };
    },
    async keep(trace, name, sent) {
      trace.overlays.set(name, await mapOf(sent, trace));
      if (trace.overlays.size > KEPT) trace.overlays.delete(trace.overlays.keys().next().value);
    },
    // The next one of this kind, after the last one attention again.
    next(state) {
      const names = [
        "",
        ...available.filter((one) => one.kinds.includes(state.kind)).map((one) => one.id),
      ];
      return names[(names.indexOf(state.overlay) + 1) % names.length];
    },
  };
}
