// All heads of one kind of attention as thumbnails: a grid of layers and heads, a canvas each, on
// one colour scale.
import { paintMap } from "../../core/colours.js";
import { button as plainButton, el } from "../../core/dom.js";
import { createGrid } from "../../core/grid.js";
import { t } from "../../core/language.js";
import { headsOfLayer } from "../model.js";
import * as naming from "../words.js";

/**
 * Create the thumbnails.
 * @param {{select: (layer: number, head: number) => void, toggle: (pairs: number[][]) => void,
 *   hover: (layer: number | null, head?: number) => void}} hooks toggle: adds heads to the choice or removes them
 */
export function createThumbnails(hooks) {
  const root = el("div", {});
  let grid = null,
    drawnFor = ""; // what the grid is about
  const severalButton = plainButton(
    t("Choose several"),
    () => severalButton.setAttribute("aria-pressed", severalButton.ariaPressed === "false"),
    { class: "plain several", "aria-pressed": "false" },
  );

  function build(trace, kind) {
    const { layers, heads, title } = trace.kinds[kind];
    const all = (length, item) => Array.from({ length }, (_, i) => item(i));
    const group = (text, title, pairs) => ({ text, title, act: () => hooks.toggle(pairs) });
    const layerOf = (layer) => headsOfLayer(trace, kind, layer);
    const column = (head) => {
      const title = t("Choose head {head} of every layer", { head: head + 1 }),
        pairs = all(layers, (layer) => [layer, head]);
      return group(`H${head + 1}`, title, pairs);
    };
    const row = (layer) => {
      const title = t("Choose all heads of layer {layer}", { layer: layer + 1 });
      return group(`L${layer + 1}`, title, layerOf(layer));
    };
    const cell = ([layer, head]) => {
      const marks = trace.names(kind, layer, head).map(({ mark }) => mark);
      return {
        class: "thumbnail",
        data: { "data-layer": layer, "data-head": head },
        name: naming.headLabel(trace, kind, layer, head),
        content: [
          el("canvas", { "aria-hidden": "true" }),
          marks.length > 0 && el("i", { class: "mark", "aria-hidden": "true" }, marks.join(" ")),
        ],
      };
    };
    const focused = grid?.focused();
    grid = createGrid(
      {
        kind: "thumbnails",
        name: t("{title}: {layers} layers of {heads} heads", { title, layers, heads }),
        corner: group(t("all"), t("Choose every head"), all(layers, layerOf).flat()),
        columns: all(heads, column),
        rows: all(layers, row),
        cells: all(layers, (layer) => layerOf(layer).map(cell)),
      },
      {
        quiet: true,
        walks: false,
        act: (layer, head, event) =>
          severalButton.ariaPressed === "true" || event.shiftKey || event.ctrlKey || event.metaKey
            ? hooks.toggle([[layer, head]])
            : hooks.select(layer, head),
        point: (layer, head) => hooks.hover(layer ?? null, head),
      },
    );
    root.replaceChildren(grid.root);
    if (focused) grid.focus(focused);
  }

  const each = (act) =>
    grid.nodes.forEach((row, layer) => row.forEach((button, head) => act(button, layer, head)));

  return {
    root,
    several: severalButton,
    draw(trace, kind, colouring) {
      const isRead = !trace.kinds[kind].readings.includes(null), // a large map's readings arrive later
        about = `${trace.key} ${kind} ${isRead}`;
      if (drawnFor !== about) build(trace, kind);
      drawnFor = about;
      each(({ firstChild: canvas }, layer, head) => {
        const thumbnail = trace.thumbnail(kind, layer, head);
        if (thumbnail) paintMap(canvas, thumbnail, colouring.colour);
        else canvas.width = canvas.height = 1; // blank until it arrives
      });
    },
    select(state) {
      const chosenHeads = new Set(state.heads.map((pair) => pair.join()));
      each((button, layer, head) => {
        const isSelected = layer === state.layer && head === state.head,
          isChosen = chosenHeads.has(`${layer},${head}`);
        button.tabIndex = isSelected ? 0 : -1;
        button.setAttribute("aria-pressed", isSelected || isChosen);
        button.classList.toggle("selected", isSelected);
        button.classList.toggle("chosen", isChosen);
      });
    },
    focus: (layer, head) => grid.nodes[layer]?.[head]?.focus(),
  };
}
