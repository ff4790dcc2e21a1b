// All layers x heads of one kind as thumbnails: one button with a canvas each, one colour scale for all.
import { paint } from "../../core/colours.js";
import { button as plainButton, el } from "../../core/dom.js";
import { fixed } from "../../core/format.js";
import { createGrid } from "../../core/grid.js";
import { t } from "../../core/language.js";
import * as naming from "../words.js";

const SIDE = 64; // cells a side; larger maps show the largest weight of each block

const marks = (trace, ...head) =>
  trace
    .names(...head)
    .map(({ mark }) => mark)
    .join(" ");

// hooks: select(layer, head), toggle([[layer, head], ..]), hover(layer, head) or hover(null)
export function createAtlas(hooks) {
  const root = el("div", {});
  let grid = null,
    buttons = []; // [layer][head]
  let built = "", // how many buttons there are
    said = ""; // of what they say something
  const several = plainButton(
    t("Choose several"),
    () => several.setAttribute("aria-pressed", several.ariaPressed === "false"),
    { class: "plain several", "aria-pressed": "false" },
  );

  function build(layers, heads) {
    const all = (length, pair) => Array.from({ length }, (_, i) => pair(i));
    const group = (text, title, pairs) => ({ text, title, act: () => hooks.toggle(pairs) });
    const cell = (layer, head) => ({
      class: "thumbnail",
      data: { "data-layer": layer, "data-head": head },
      content: [el("canvas", { "aria-hidden": "true" })],
    });
    grid = createGrid(
      {
        kind: "thumbnails",
        corner: group(
          t("all"),
          t("Choose every head"),
          all(layers * heads, (i) => [Math.floor(i / heads), i % heads]),
        ),
        columns: all(heads, (head) =>
          group(
            `H${head + 1}`,
            t("Choose head {head} of every layer", { head: head + 1 }),
            all(layers, (layer) => [layer, head]),
          ),
        ),
        rows: all(layers, (layer) =>
          group(
            `L${layer + 1}`,
            t("Choose all heads of layer {layer}", { layer: layer + 1 }),
            all(heads, (head) => [layer, head]),
          ),
        ),
        cells: all(layers, (layer) => all(heads, (head) => cell(layer, head))),
      },
      {
        quiet: true,
        walks: false,
        act: (layer, head, event) =>
          several.ariaPressed === "true" || event.shiftKey || event.ctrlKey || event.metaKey
            ? hooks.toggle([[layer, head]])
            : hooks.select(layer, head),
        point: (layer, head) => hooks.hover(layer ?? null, head),
      },
    );
    buttons = grid.nodes;
    root.replaceChildren(grid.root);
  }

  // Another sentence's heads take the same buttons: to lay out new ones would hold up its first picture.
  function name(trace, kind) {
    const { layers, heads, entropies, readings, title } = trace.kinds[kind];
    grid.root.ariaLabel = t("{title}: {layers} layers of {heads} heads", { title, layers, heads });
    each((button, layer, head) => {
      const named = naming.named(trace, kind, layer, head);
      const place = { layer: layer + 1, head: head + 1 };
      const label = readings[layer]
        ? t("Layer {layer}, head {head}: {reading}, entropy {bits} bits", {
            ...place,
            reading: readings[layer][head],
            bits: fixed(entropies[layer][head], 2),
          })
        : t("Layer {layer} · Head {head}", place);
      button.ariaLabel = named ? `${label}; ${named}` : label;
      const mark = named
        ? [el("i", { class: "mark", "aria-hidden": "true" }, marks(trace, kind, layer, head))]
        : [];
      if (named || button.lastChild !== button.firstChild)
        button.replaceChildren(button.firstChild, ...mark);
    });
  }

  const each = (act) =>
    buttons.forEach((row, layer) => row.forEach((button, head) => act(button, layer, head)));

  return {
    root,
    several,
    draw(trace, kind, colouring) {
      const { layers, heads, readings } = trace.kinds[kind],
        size = `${layers} ${heads}`,
        told = !readings.includes(null), // of large maps they come later
        about = `${trace.key} ${kind} ${told}`;
      if (built !== size) build(layers, heads);
      if (built !== size || said !== about) name(trace, kind);
      [built, said] = [size, about];
      each(({ firstChild: canvas }, layer, head) => {
        const small = trace.thumbnail(kind, layer, head, SIDE);
        if (small) paint(canvas, small, colouring.colour);
        else canvas.width = canvas.height = 1; // blank until it comes
      });
    },
    select(state) {
      const chosen = new Set(state.heads.map((pair) => pair.join()));
      each((button, layer, head) => {
        const selected = layer === state.layer && head === state.head;
        button.tabIndex = selected ? 0 : -1;
        button.setAttribute("aria-pressed", selected || chosen.has(`${layer},${head}`));
        button.classList.toggle("selected", selected);
        button.classList.toggle("chosen", chosen.has(`${layer},${head}`));
      });
    },
    focus: (layer, head) => buttons[layer]?.[head]?.focus(),
    canvas: (layer, head) => buttons[layer][head].firstChild,
  };
}
