// Everything the mouse can do, from the keyboard.
import { arrow, isFor, typed } from "../core/keys.js";
import { KINDS } from "../core/kinds.js";
import * as model from "./model.js";
import * as states from "./state.js";

const CYCLES = { h: "combine", s: "special", g: "transform", v: "colours" };
const VIEWS = { m: "map", l: "lines", t: "text", c: "compare" };

export function listenKeys(
  root,
  { state, trace, update, step, toggleHeads, thumbnails, views, help, overlays },
) {
  const next = (name) => {
    const all = states.CHOICES[name];
    update({ [name]: all[(all.indexOf(state()[name]) + 1) % all.length] });
  };

  function move([down, right], event) {
    step(down, right);
    const { layer, head } = state();
    if (event.shiftKey) toggleHeads([[layer, head]]);
    if (event.target.classList?.contains("thumbnail")) thumbnails.focus(layer, head);
  }

  function handle(event) {
    const { key } = event,
      now = state();
    if (arrow(event)) {
      if (event.target.type === "range") return false;
      move(arrow(event), event);
    } else if (key === "1" || key === "2" || key === "3")
      update({ kind: Object.keys(KINDS)[key - 1] });
    else if (VIEWS[key]) update({ view: VIEWS[key] });
    else if (CYCLES[key]) next(CYCLES[key]);
    else if (key === "o" && overlays.available.length) update({ overlay: overlays.next(now) });
    else if (key === "x") toggleHeads([[now.layer, now.head]]);
    else if (key === "y") toggleHeads(model.allHeads(trace(), now.kind, now.layer));
    else if (key === "w") update({ words: !now.words });
    else if (key === "p" && now.kind !== "encoder_self")
      update({ predicted: { null: true, true: false, false: null }[now.predicted[now.kind]] });
    else if (key === "d") views.focus();
    else if (key === "a") thumbnails.focus(now.layer, now.head);
    else if (key === "Escape") update({ query: null, key: null, heads: [] });
    else if (key === "?") help.open();
    else return false;
    return true;
  }

  document.addEventListener("keydown", (event) => {
    if (trace() && isFor(root, event) && !typed(event) && handle(event)) event.preventDefault();
  });
}
