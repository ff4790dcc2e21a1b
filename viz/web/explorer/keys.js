// Everything the mouse can do, from the keyboard.
import * as model from "./model.js";
import * as states from "./state.js";

const CYCLES = { h: "combine", s: "special", g: "transform", v: "colours" };
const VIEWS = { m: "map", l: "lines", t: "text", c: "compare" };
const ARROWS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

// Keys are ours where the explorer has the focus, or nothing on the page has.
function isOurs(root, event) {
  if (event.altKey || event.ctrlKey || event.metaKey || !root.offsetParent) return false;
  const target = event.target;
  if (target.closest("input:not([type=range]), textarea, select, [contenteditable], dialog"))
    return false;
  return target === document.body || root.contains(target);
}

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
    if (ARROWS[key]) {
      if (event.target.type === "range") return false;
      move(ARROWS[key], event);
    } else if (key === "1" || key === "2" || key === "3")
      update({ kind: ["cross", "encoder_self", "decoder_self"][key - 1] });
    else if (VIEWS[key]) update({ view: VIEWS[key] });
    else if (CYCLES[key]) next(CYCLES[key]);
    else if (key === "o" && overlays.available.length) update({ overlay: overlays.next(now) });
    else if (key === "x") toggleHeads([[now.layer, now.head]]);
    else if (key === "y") toggleHeads(model.allHeads(trace(), now.kind, now.layer));
    else if (key === "w") update({ words: !now.words });
    else if (key === "p" && now.kind !== "encoder_self")
      update({ predicted: !now.predicted[now.kind] });
    else if (key === "d") views.focus();
    else if (key === "a") thumbnails.focus(now.layer, now.head);
    else if (key === "Escape") update({ query: null, key: null, heads: [] });
    else if (key === "?") help.open();
    else return false;
    return true;
  }

  document.addEventListener("keydown", (event) => {
    if (trace() && isOurs(root, event) && handle(event)) event.preventDefault();
  });
}
