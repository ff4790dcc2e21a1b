// One step's attention in every layer and head: a strip of cells for each head, over the source and over the prefix. Of a
// recurrent network its alignment, and the decoder's state before and after the step.
import { paintMap, sequentialScale } from "../core/colours.js";
import { button, el, shorten } from "../core/dom.js";
import { arrowStep, clamp, cellAt } from "../core/keys.js";
import { KINDS } from "../core/kinds.js";
import { say, t, toText } from "../core/language.js";
import { openLink } from "../core/links.js";
import { drawNumbers } from "../lab/maps.js";
import { createPicture } from "../picture/copy.js";
import { chipText } from "./tokens.js";

/** @type {[string, any][]} */
const STRIPS = [
  ["cross", say("Cross-attention over the source")],
  ["alignment", say("Alignment: attention over the source")],
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
  const strips = STRIPS.map(([kind, name]) => createStrip(kind, name, colour, hooks, status)),
    states = createStates();
  const ramp = `background: linear-gradient(90deg, ${colours.join(",")})`;
  const rowHint = el("span", {}, t("Each row is a head: layer · head.")),
    legend = el("p", { class: "legend caption" }, [
      `${t("weight")} 0 `,
      el("i", { class: "ramp", style: ramp }),
      " 1",
      rowHint,
    ]);
  const picture = el("div", {}, [
    el("div", { class: "strips" }, [strips.map((strip) => strip.root)]),
    legend,
    states.root,
  ]);
  /** @param {Path} path */
  function open(path) {
    for (const strip of strips) strip.open(path);
    legend.hidden = !Object.keys(path.rows).length;
    rowHint.hidden = Boolean(path.states); // its one row has no name
    states.open(path);
  }
  const root = el("section", { class: "reading-pane" }, [
    el("h2", {}, title),
    createPicture(picture, hooks.about(title)),
    status,
  ]);
  return {
    root,
    open,
    /** @param {number} step @param {Selection} selection */
    step(step, selection) {
      for (const strip of strips) strip.step(step, selection);
      states.step(step);
    },
  };
}

// Create the figure of a recurrent decoder's state before and after a step, with links to what is computed from it.
function createStates() {
  const title = el("figcaption", { class: "caption" }),
    rows = el("div", { class: "rows" }),
    note = el("p", { class: "caption" });
  let current = 0; // the step
  const stages = button(
    t("The stages of this attention"),
    () => openLink({ tab: "train", panel: "additive", set1: current + 1 }),
    { class: "plain action" },
  );
  const gates = button(
    t("The gates of this step"),
    () => openLink({ tab: "train", panel: "gates", set2: current + 1 }),
    { class: "plain action" },
  );
  const root = el("figure", { class: "states" }, title, rows, note, stages, gates);
  /** @type {any} */
  let path = null;

  function open(newPath) {
    path = newPath;
    root.hidden = !path.states;
    if (root.hidden) return;
    title.replaceChildren(t("The decoder’s state: {n} numbers", { n: path.states.width }));
    const isQuery = path.sourceKind !== undefined;
    stages.hidden = !isQuery;
    note.replaceChildren(
      isQuery
        ? t(
            "The state before the step is the query. The state after it, with the token read and the context, scores the next token.",
          )
        : t("The state after the step, with the token read, scores the next token."),
    );
  }

  function step(newStep) {
    current = newStep;
    if (!path?.states) return;
    const names = [t("before"), t("after")].slice(0, current < path.length ? 2 : 1);
    rows.replaceChildren(
      ...names.flatMap((name, i) => {
        const values = path.states.row(current + i),
          canvas = drawNumbers(values, values.length, path.states.limit, true);
        Object.assign(canvas, { role: "img", ariaLabel: `${title.textContent}: ${name}` });
        return [el("span", { class: "caption" }, name), canvas];
      }),
    );
  }
  return { root, open, step };
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
    root.hidden = !path.rows[kind];
    if (root.hidden) return;
    const { layers, heads, keys } = path.kinds[kind];
    tokens = KINDS[kind].columns === "source" ? path.source : path.read;
    root.style.setProperty("--keys", keys);
    stack.ariaLabel = path.states
      ? toText(title)
      : t("{title}: every layer and head; arrow keys choose one", { title });
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
            options[layer].map((_, head) =>
              el("span", {}, path.states ? null : `${layer + 1}·${head + 1}`),
            ),
          ]),
          el("div", { class: "cells" }, canvas, el("i", { class: "mark" }), options[layer]),
        ]),
      ),
    );
  }

  function step(newStep, selection) {
    if (root.hidden) return;
    current = newStep;
    selected = selection.kind === kind ? selection : null;
    const { layers, heads, keys } = path.kinds[kind],
      visible = tokens === path.source ? keys : current + 1;
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
    const values = {
      token: tokens[cell.key].text,
      weight: path.row(kind, cell.layer, cell.head, current)[cell.key].toFixed(4),
    };
    const place = { layer: cell.layer + 1, head: cell.head + 1 };
    status.textContent = path.states
      ? t("On “{token}”: {weight}", values)
      : t("Layer {layer}, head {head} on “{token}”: {weight}", { ...place, ...values });
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
