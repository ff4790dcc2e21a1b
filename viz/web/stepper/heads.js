// One step's attention in every layer and head: a strip of cells for each head, over the source and over the prefix.
import { paintMap, sequentialScale } from "../core/colours.js";
import { el, shorten } from "../core/dom.js";
import { arrowStep, clamp, cellAt } from "../core/keys.js";
import { say, t } from "../core/language.js";
import { createPicture } from "../picture/copy.js";
import { chipText } from "./tokens.js";

/** @type {[string, any][]} */
const KINDS = [
  ["cross", say("Cross-attention over the source")],
  ["decoder_self", say("Attention to the words already written")],
];
const MAX_LABELS = 64; // with more columns than this, their tokens are not written out

/** @typedef {import("./path.js").Path} Path */
/** @typedef {{kind: string, layer: number, head: number}} Selection a head */
/** @typedef {(title: string) => {title: () => string, caption: () => string}} DescribePicture */

/**
 * Create the pane of heads.
 * @param {{select: (kind: string, layer: number, head: number) => void, about: DescribePicture}} hooks
 * @param {string[]} colours of weights from 0 to 1
 */
export function createHeads(hooks, colours) {
  const colour = sequentialScale(colours),
    title = t("What this step reads");
  const status = el("p", { class: "caption reading", "aria-live": "polite" });
  const strips = KINDS.map(([kind, name]) => createStrip(kind, name, colour, hooks, status));
  const ramp = `background: linear-gradient(90deg, ${colours.join(",")})`;
  const picture = el("div", {}, [
    el("div", { class: "strips" }, [strips.map((strip) => strip.root)]),
    el("p", { class: "legend caption" }, [
      `${t("weight")} 0 `,
      el("i", { class: "ramp", style: ramp }),
      " 1",
      el("span", {}, t("Each row is a head: layer · head.")),
    ]),
  ]);
  const root = el("section", { class: "reading-pane" }, [
    el("h2", {}, title),
    createPicture(picture, hooks.about(title)),
    status,
  ]);
  return {
    root,
    /** @param {Path} path */
    open: (path) => strips.forEach((strip) => strip.open(path)),
    /** @param {number} step @param {Selection} selection */
    step: (step, selection) => strips.forEach((strip) => strip.step(step, selection)),
  };
}

/**
 * Create the strip of a kind of attention: a canvas for each layer, a row of pixels for each head.
 * @param {string} kind @param {any} title @param {(weight: number) => number[]} colour @param {any} hooks @param {any} status
 */
function createStrip(kind, title, colour, hooks, status) {
  const labels = el("div", { class: "columns", "aria-hidden": "true" });
  const stack = el("div", {
    class: "stack",
    tabindex: "0",
    role: "listbox",
    "aria-label": t("{title}: every layer and head; arrow keys choose one", { title }),
  });
  const root = el("figure", { class: `strip ${kind}` }, [
    el("figcaption", { class: "caption" }, title),
    el("div", { class: "scroll" }, labels, stack),
  ]);
  /** @type {any} */
  let path = null;
  let tokens = [], // of the columns
    canvases = [], // one for each layer
    options = [], // [layer][head]: what a screen reader reads in place of the canvases
    current = 0, // the step
    selected = null; // the selected head, if it is of this kind

  const hasRows = () => current < path.length && path.has(current);

  function open(newPath) {
    path = newPath;
    const { layers, heads, keys } = path.kinds[kind];
    tokens = kind === "cross" ? path.source : path.read;
    root.style.setProperty("--keys", keys);
    stack.style.setProperty("--heads", heads);
    const labelled = keys > MAX_LABELS ? [] : tokens;
    labels.replaceChildren(
      ...labelled.map((token) => el("span", {}, shorten(chipText(token), 10))),
    );
    canvases = Array.from({ length: layers }, () => el("canvas", { "aria-hidden": "true" }));
    options = canvases.map((_, layer) =>
      Array.from({ length: heads }, (_, head) =>
        el("i", {
          id: `${kind}-${layer}-${head}`,
          role: "option",
          "aria-label": t("Layer {layer} · Head {head}", { layer: layer + 1, head: head + 1 }),
        }),
      ),
    );
    stack.replaceChildren(
      ...canvases.map((canvas, layer) =>
        el("div", { class: "layer", role: "group" }, [
          el("div", { class: "names", "aria-hidden": "true" }, [
            options[layer].map((_, head) => el("span", {}, `${layer + 1}·${head + 1}`)),
          ]),
          el("div", { class: "cells" }, canvas, el("i", { class: "mark" }), options[layer]),
        ]),
      ),
    );
  }

  function step(newStep, selection) {
    current = newStep;
    selected = selection.kind === kind ? selection : null;
    const { layers, heads, keys } = path.kinds[kind],
      visible = kind === "cross" ? keys : current + 1;
    for (let layer = 0; layer < layers; layer++) {
      const values = new Float32Array(heads * keys).fill(NaN);
      for (let head = 0; hasRows() && head < heads; head++)
        values.set(path.row(kind, layer, head, current).slice(0, visible), head * keys);
      paintMap(canvases[layer], { values, rows: heads, columns: keys }, colour);
      const mark = canvases[layer].nextSibling;
      mark.hidden = !hasRows() || selected?.layer !== layer;
      if (!mark.hidden) mark.style.top = `${(100 * selected.head) / heads}%`;
    }
    const option = selected && options[selected.layer]?.[selected.head];
    if (option?.ariaSelected !== "true") {
      options.flat().forEach((node) => (node.ariaSelected = String(node === option)));
      stack.setAttribute("aria-activedescendant", option?.id ?? "");
    }
    [...labels.children].forEach((label, i) => label.classList.toggle("ahead", i >= visible));
  }

  // The cell that an event points at: {layer, head, key}, or null.
  function cellUnder(event) {
    const canvas = event.target.closest(".cells")?.firstChild;
    if (!canvas) return null;
    const { heads, keys } = path.kinds[kind],
      [head, key] = cellAt(event, canvas, heads, keys);
    return { layer: canvases.indexOf(canvas), head, key };
  }

  stack.addEventListener("mousemove", (event) => {
    const cell = cellUnder(event);
    if (!cell || !hasRows()) return;
    status.textContent = t("Layer {layer}, head {head} on “{token}”: {weight}", {
      layer: cell.layer + 1,
      head: cell.head + 1,
      token: tokens[cell.key].text,
      weight: path.row(kind, cell.layer, cell.head, current)[cell.key].toFixed(4),
    });
  });
  stack.addEventListener("mouseleave", () => (status.textContent = ""));
  stack.addEventListener("click", (event) => {
    const cell = cellUnder(event);
    if (cell) hooks.select(kind, cell.layer, cell.head);
  });
  stack.addEventListener("keydown", (event) => {
    const [move] = arrowStep(event) ?? [0];
    if (!move) return;
    const { layers, heads } = path.kinds[kind],
      index = selected ? selected.layer * heads + selected.head : -1,
      next = clamp(index + move, layers * heads);
    hooks.select(kind, Math.floor(next / heads), next % heads);
    event.preventDefault();
    event.stopPropagation();
  });
  return { root, open, step };
}
