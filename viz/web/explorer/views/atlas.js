// All heads of one kind of attention as thumbnails: a grid of layers and heads, a canvas each, on
// one colour scale.
import { paintMap } from "../../core/colours.js";
import { button as plainButton, el } from "../../core/dom.js";
import { formatFixed } from "../../core/format.js";
import { createGrid } from "../../core/grid.js";
import { t } from "../../core/language.js";
import * as naming from "../words.js";

export const THUMBNAIL_SIZE = 64; // cells per side; of larger maps, each cell is the largest weight of a block

/**
 * Create the thumbnails.
 * @param {{select: (layer: number, head: number) => void, toggle: (pairs: number[][]) => void,
 *   hover: (layer: number | null, head?: number) => void}} hooks toggle: adds heads to the choice or removes them
 */
export function createThumbnails(hooks) {
  const root = el("div", {});
  let grid = null,
    size = "", // "layers heads" of the grid
    namedFor = ""; // what the buttons' names are about
  const severalButton = plainButton(
    t("Choose several"),
    () => severalButton.setAttribute("aria-pressed", severalButton.ariaPressed === "false"),
    { class: "plain several", "aria-pressed": "false" },
  );

  function build(layers, heads) {
    const all = (length, item) => Array.from({ length }, (_, i) => item(i));
    const group = (text, title, pairs) => ({ text, title, act: () => hooks.toggle(pairs) });
    const layerOf = (layer) => all(heads, (head) => [layer, head]);
    const column = (head) => {
      const pairs = all(layers, (layer) => [layer, head]);
      return group(
        `H${head + 1}`,
        t("Choose head {head} of every layer", { head: head + 1 }),
        pairs,
      );
    };
    const row = (layer) => {
      const title = t("Choose all heads of layer {layer}", { layer: layer + 1 });
      return group(`L${layer + 1}`, title, layerOf(layer));
    };
    const cell = ([layer, head]) => ({
      class: "thumbnail",
      data: { "data-layer": layer, "data-head": head },
      content: el("canvas", { "aria-hidden": "true" }),
    });
    grid = createGrid(
      {
        kind: "thumbnails",
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
  }

  const each = (act) =>
    grid.nodes.forEach((row, layer) => row.forEach((button, head) => act(button, layer, head)));

  // Another sentence reuses the buttons: creating new ones would delay its first picture.
  function name(trace, kind) {
    const { layers, heads, entropies, readings, title } = trace.kinds[kind];
    grid.root.ariaLabel = t("{title}: {layers} layers of {heads} heads", { title, layers, heads });
    each((button, layer, head) => {
      const names = naming.headNames(trace, kind, layer, head),
        place = { layer: layer + 1, head: head + 1 };
      const label = readings[layer]
        ? t("Layer {layer}, head {head}: {reading}, entropy {bits} bits", {
            ...place,
            reading: readings[layer][head],
            bits: formatFixed(entropies[layer][head], 2),
          })
        : t("Layer {layer} · Head {head}", place);
      button.ariaLabel = names ? `${label}; ${names}` : label;
      const marks = trace.names(kind, layer, head).map(({ mark }) => mark),
        mark = el("i", { class: "mark", "aria-hidden": "true" }, marks.join(" "));
      if (names) button.replaceChildren(button.firstChild, mark);
      else if (button.children.length > 1) button.lastChild.remove();
    });
  }

  return {
    root,
    several: severalButton,
    draw(trace, kind, colouring) {
      const { layers, heads, readings } = trace.kinds[kind],
        isRead = !readings.includes(null), // a large map's readings arrive later
        about = `${trace.key} ${kind} ${isRead}`,
        isOther = size !== `${layers} ${heads}`;
      if (isOther) build(layers, heads);
      if (isOther || namedFor !== about) name(trace, kind);
      size = `${layers} ${heads}`;
      namedFor = about;
      each(({ firstChild: canvas }, layer, head) => {
        const thumbnail = trace.thumbnail(kind, layer, head, THUMBNAIL_SIZE);
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
