// All layers x heads of one kind as thumbnails: one button with a canvas each, one colour scale for all.
import { el } from "../../core/dom.js";
import { t } from "../../core/language.js";
import * as naming from "../words.js";

const SIDE = 64; // cells a side; larger maps show the largest weight of each block

// Draw values [rows, columns] one pixel a cell; CSS enlarges it. Blank rows (NaN) stay transparent, as what is null: not
// sent yet.
export function paint(canvas, map, colouring) {
  if (!map) return;
  const { values, rows, columns } = map;
  if (canvas.width !== columns) canvas.width = columns;
  if (canvas.height !== rows) canvas.height = rows;
  const image = new ImageData(columns, rows),
    data = image.data,
    { place, steps } = colouring;
  for (let i = 0; i < values.length; i++) {
    if (Number.isNaN(values[i])) continue;
    const colour = steps[Math.round(place(values[i]) * 255)];
    data[4 * i] = colour[0];
    data[4 * i + 1] = colour[1];
    data[4 * i + 2] = colour[2];
    data[4 * i + 3] = 255;
  }
  canvas.getContext("2d").putImageData(image, 0, 0);
}

// hooks: select(layer, head), toggle([[layer, head], ..]), hover(layer, head) or hover(null)
export function createAtlas(hooks) {
  const root = el("div", { class: "thumbnails", role: "group" });
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

  const at = (event) => {
    const button = event.target.closest("button");
    return button ? [Number(button.dataset.layer), Number(button.dataset.head)] : null;
  };
  root.addEventListener("click", (event) => {
    const place = at(event);
    if (!place) return;
    const adding =
      several.getAttribute("aria-pressed") === "true" ||
      event.shiftKey ||
      event.ctrlKey ||
      event.metaKey;
    if (adding) hooks.toggle([place]);
    else hooks.select(...place);
  });
  root.addEventListener("mouseover", (event) => at(event) && hooks.hover(...at(event)));
  root.addEventListener("mouseleave", () => hooks.hover(null));

  function build(trace, kind) {
    const { layers, heads, entropies, readings } = trace.kinds[kind],
      title = naming.TITLES[kind];
    root.style.setProperty("--heads", heads);
    root.setAttribute(
      "aria-label",
      t("{title}: {layers} layers of {heads} heads", { title, layers, heads }),
    );
    const all = (length, pair) => Array.from({ length }, (_, i) => pair(i));
    const heading = (text, title, pairs) =>
      el(
        "span",
        { class: "heading", title, "aria-hidden": "true", onclick: () => hooks.toggle(pairs) },
        text,
      );
    root.replaceChildren(
      heading(
        t("all"),
        t("Choose every head"),
        all(layers * heads, (i) => [Math.floor(i / heads), i % heads]),
      ),
    );
    for (let head = 0; head < heads; head++) {
      root.append(
        heading(
          `H${head + 1}`,
          t("Choose head {head} of every layer", { head: head + 1 }),
          all(layers, (layer) => [layer, head]),
        ),
      );
    }
    buttons = [];
    for (let layer = 0; layer < layers; layer++) {
      root.append(
        heading(
          `L${layer + 1}`,
          t("Choose all heads of layer {layer}", { layer: layer + 1 }),
          all(heads, (head) => [layer, head]),
        ),
      );
      buttons.push(
        Array.from({ length: heads }, (_, head) => {
          const reading = readings[layer][head],
            entropy = entropies[layer][head],
            named = naming.named(trace, kind, layer, head);
          const label = t("Layer {layer}, head {head}: {reading}, entropy {bits} bits", {
            layer: layer + 1,
            head: head + 1,
            reading,
            bits: entropy.toFixed(2),
          });
          const button = el(
            "button",
            {
              type: "button",
              class: "thumbnail",
              tabindex: "-1",
              "data-layer": layer,
              "data-head": head,
              "aria-label": named ? `${label}; ${named}` : label,
            },
            el("canvas", { "aria-hidden": "true" }),
            named
              ? el(
                  "i",
                  { class: "mark", "aria-hidden": "true" },
                  trace
                    .names(kind, layer, head)
                    .map(({ mark }) => mark)
                    .join(" "),
                )
              : null,
          );
          root.append(button);
          return button;
        }),
      );
    }
  }

  return {
    root,
    several,
    draw(trace, kind, colouring) {
      const frame = `${trace.key} ${kind}`;
      if (drawn !== frame) build(trace, kind);
      drawn = frame;
      buttons.forEach((row, layer) =>
        row.forEach((button, head) =>
          paint(button.firstChild, trace.thumbnail(kind, layer, head, SIDE), colouring),
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
