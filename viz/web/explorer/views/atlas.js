// All layers x heads of one kind as thumbnails: one button with a canvas each, one colour scale for all.
import { paint } from "../../core/colours.js";
import { el } from "../../core/dom.js";
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
  const root = el("div", { class: "all-heads" });
  let buttons = []; // [layer][head]
  let drawn = null;
  const several = el(
    "button",
    {
      type: "button",
      class: "plain several",
      "aria-pressed": "false",
      onclick: () =>
        several.setAttribute("aria-pressed", several.getAttribute("aria-pressed") === "false"),
    },
    t("Choose several"),
  );

  function build(trace, kind) {
    const { layers, heads, entropies, readings, title } = trace.kinds[kind];
    const all = (length, pair) => Array.from({ length }, (_, i) => pair(i));
    const group = (text, title, pairs) => ({ text, title, act: () => hooks.toggle(pairs) });
    const cell = (layer, head) => {
      const named = naming.named(trace, kind, layer, head);
      const place = { layer: layer + 1, head: head + 1 };
      const label = readings[layer]
        ? t("Layer {layer}, head {head}: {reading}, entropy {bits} bits", {
            ...place,
            reading: readings[layer][head],
            bits: fixed(entropies[layer][head], 2),
          })
        : t("Layer {layer} · Head {head}", place);
      return {
        class: "thumbnail",
        name: named ? `${label}; ${named}` : label,
        data: { "data-layer": layer, "data-head": head },
        content: [
          el("canvas", { "aria-hidden": "true" }),
          named
            ? el("i", { class: "mark", "aria-hidden": "true" }, marks(trace, kind, layer, head))
            : null,
        ],
      };
    };
    const grid = createGrid(
      {
        name: t("{title}: {layers} layers of {heads} heads", { title, layers, heads }),
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

  return {
    root,
    several,
    draw(trace, kind, colouring) {
      const told = !trace.kinds[kind].readings.includes(null), // of large maps they come later
        frame = `${trace.key} ${kind} ${told}`;
      if (drawn !== frame) build(trace, kind);
      drawn = frame;
      buttons.forEach((row, layer) =>
        row.forEach((button, head) =>
          paint(button.firstChild, trace.thumbnail(kind, layer, head, SIDE), colouring.colour),
        ),
      );
    },
    select(state) {
      const chosen = new Set(state.heads.map((pair) => pair.join()));
      buttons.forEach((row, layer) =>
        row.forEach((button, head) => {
          const selected = layer === state.layer && head === state.head;
          button.tabIndex = selected ? 0 : -1;
          button.setAttribute("aria-pressed", selected || chosen.has(`${layer},${head}`));
          button.classList.toggle("selected", selected);
          button.classList.toggle("chosen", chosen.has(`${layer},${head}`));
        }),
      );
    },
    focus: (layer, head) => buttons[layer]?.[head]?.focus(),
    canvas: (layer, head) => buttons[layer][head].firstChild,
  };
}
