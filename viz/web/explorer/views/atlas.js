// All heads of one kind of attention as thumbnails: a grid of layers and heads, a canvas each, on
// one colour scale.
import { paintMap } from "../../core/colours.js";
import { el, isTouch } from "../../core/dom.js";
import { createGrid } from "../../core/grid.js";
import { t } from "../../core/language.js";
import { cellsOf } from "../lit.js";
import * as model from "../model.js";
import * as states from "../state.js";
import * as naming from "../words.js";

const REST = 90, // milliseconds that the pointer rests on a thumbnail to preview its head
  SMALL = 64 * 64; // cells up to which a thumbnail merges words and hides tokens as the large map does
const { headsOfLayer } = model;

/**
 * Create the thumbnails.
 * @param {{select: (layer: number, head: number) => void, toggle: (pairs: number[][]) => void,
 *   hover: (layer: number | null, head?: number) => void, preview: (pair: number[] | null) => void}} hooks toggle: adds heads to the
 *   choice or removes them; preview: the pointer rests on a head, null on leaving
 */
export function createThumbnails(hooks) {
  const root = el("div", {});
  let marked = { root: null, text: "" }, // the grid that light() has marked, and how
    grid = null,
    drawnFor = "", // what the grid is about
    resting = null,
    axes = null; // {rows, columns} of the thumbnails, if they show the words or tokens of the large map
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
        act: (layer, head, event) => {
          clearTimeout(resting);
          if (event.shiftKey || event.ctrlKey || event.metaKey) hooks.toggle([[layer, head]]);
          else hooks.select(layer, head);
        },
        point: (layer, head) => {
          hooks.hover(layer ?? null, head);
          clearTimeout(resting);
          if (isTouch) return;
          if (layer === undefined) hooks.preview(null);
          else resting = setTimeout(hooks.preview, REST, [layer, head]);
        },
      },
    );
    root.replaceChildren(grid.root);
    if (focused) grid.focus(focused);
  }

  const each = (act) =>
    grid.nodes.forEach((row, layer) => row.forEach((button, head) => act(button, layer, head)));

  return {
    root,
    draw(trace, state, colouring) {
      const { kind } = state,
        isRead = !trace.kinds[kind].readings.includes(null), // a large map's readings arrive later
        about = `${trace.key} ${kind} ${isRead}`;
      if (drawnFor !== about) build(trace, kind);
      drawnFor = about;
      axes = null;
      const { queries, keys } = trace.kinds[kind];
      const thumbnailOf = (layer, head) => {
        if (!trace.weights[kind][layer] || queries * keys > SMALL)
          return trace.thumbnail(kind, layer, head);
        const view = { ...states.viewOf(state), layer, head, heads: [], combine: "single" };
        axes = model.scoreMap(trace, view);
        return { values: axes.values, rows: axes.rows.length, columns: axes.columns.length };
      };
      each(({ firstChild: canvas }, layer, head) => {
        const thumbnail = thumbnailOf(layer, head);
        if (thumbnail) paintMap(canvas, thumbnail, colouring.colour);
        else canvas.width = canvas.height = 1; // blank until it arrives
      });
    },
    /**
     * Light a word's row or column in every thumbnail, and frame the decisive cell.
     * @param {any} lit {isRow, positions} or null @param {any} decisive {positions} of the decisive column, or null
     */
    light(lit, decisive) {
      if (!grid) return false;
      const { style } = grid.root,
        spanOf = (items, positions) => {
          const at = cellsOf(items, positions);
          return at.length
            ? [at[0], at.at(-1) + 1 - at[0]].map((n) => `${(100 * n) / items.length}%`)
            : null;
        },
        own = lit && axes && spanOf(lit.isRow ? axes.rows : axes.columns, lit.positions),
        mark = own && lit.isRow && decisive ? spanOf(axes.columns, decisive.positions) : null;
      const isFramed = Boolean(mark),
        text = JSON.stringify([own, mark, lit?.isRow]);
      if (marked.root === grid.root && marked.text === text) return isFramed;
      marked = { root: grid.root, text };
      grid.root.dataset.lit = own ? (lit.isRow ? "row" : "column") : "";
      grid.root.classList.toggle("decided", isFramed);
      const [start, size] = own ?? [],
        [left, width] = mark ?? [];
      for (const [name, value] of Object.entries({ start, size, left, width }))
        if (value) style.setProperty(`--${name}`, value);
      return isFramed;
    },
    preview: (pair) =>
      grid &&
      each((button, layer, head) =>
        button.classList.toggle("previewed", pair?.join() === `${layer},${head}`),
      ),
    select(state, colours) {
      const chosenHeads = new Set(state.heads.map((pair) => pair.join()));
      each((button, layer, head) => {
        const isSelected = layer === state.layer && head === state.head,
          isChosen = chosenHeads.has(`${layer},${head}`);
        button.tabIndex = isSelected ? 0 : -1;
        button.setAttribute("aria-pressed", isSelected || isChosen);
        button.classList.toggle("selected", isSelected);
        button.classList.toggle("chosen", isChosen);
        button.style.setProperty("--c", colours.get(`${layer}.${head}`) ?? "");
      });
    },
    focus: (layer, head) => grid.nodes[layer]?.[head]?.focus(),
  };
}
