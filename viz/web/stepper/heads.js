// One step's attention of every layer and head: a strip of cells a head, over the source and over the prefix.
import { paintMap, sequentialScale } from "../core/colours.js";
import { el, shorten } from "../core/dom.js";
import { say, t } from "../core/language.js";
import { arrowStep, clamp, cellAt } from "../core/keys.js";
import { createPicture } from "../picture/copy.js";
import { chipText } from "./tokens.js";

const KINDS = [
  ["cross", say("Cross-attention over the source")],
  ["decoder_self", say("Look back over the prefix")],
];
const LABELS = 64; // columns above which their tokens are not written out

// hooks: select(kind, layer, head), about(title): of a picture
export function createHeads(hooks, colours) {
  const colour = sequentialScale(colours);
  const status = el("p", { class: "caption reading", "aria-live": "polite" });
  const pictures = KINDS.map(([kind, title]) => picture(kind, title, hooks, status));
  const legend = el(
    "p",
    { class: "legend caption" },
    `${t("weight")} 0 `,
    el("i", { class: "ramp", style: `background: linear-gradient(90deg, ${colours.join(",")})` }),
    " 1",
  );
  const root = el(
    "section",
    { class: "reading-pane" },
    el("h2", {}, t("What this step reads")),
    createPicture(
      el(
        "div",
        {},
        el(
          "div",
          { class: "strips" },
          pictures.map((one) => one.root),
        ),
        legend,
      ),
      hooks.about(t("What this step reads")),
    ),
    status,
  );
  return {
    root,
    open: (path) => pictures.forEach((one) => one.open(path)),
    step: (at, selection) => pictures.forEach((one) => one.step(at, selection, colour)),
  };
}

function picture(kind, title, hooks, status) {
  const labels = el("div", { class: "columns", "aria-hidden": "true" });
  const stack = el("div", {
    class: "stack",
    tabindex: "0",
    role: "listbox",
    "aria-label": t("{title}: every layer and head; arrow keys choose one", { title }),
  });
  const root = el(
    "figure",
    { class: `strip ${kind}` },
    el("figcaption", { class: "caption" }, title),
    el("div", { class: "scroll" }, labels, stack),
  );
  let path = null,
    canvases = [],
    options = [],
    at = 0,
    selected = null;

  function open(next) {
    path = next;
    const { layers, heads, keys } = path.kinds[kind],
      tokens = kind === "cross" ? path.source : path.read;
    root.style.setProperty("--keys", keys);
    stack.style.setProperty("--heads", heads);
    labels.replaceChildren(
      ...(keys > LABELS ? [] : tokens.map((token) => el("span", {}, shorten(chipText(token), 10)))),
    );
    canvases = Array.from({ length: layers }, () => el("canvas", { "aria-hidden": "true" }));
    // What a screen reader walks through; the eye has the canvas.
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
        el(
          "div",
          { class: "layer", role: "group" },
          el("span", { class: "heading", "aria-hidden": "true" }, `L${layer + 1}`),
          el("div", { class: "cells" }, canvas, el("i", { class: "mark" }), options[layer]),
        ),
      ),
    );
  }

  function step(now, selection, colour) {
    at = now;
    selected = selection.kind === kind ? selection : null;
    const { layers, heads, keys } = path.kinds[kind],
      seen = kind === "cross" ? keys : at + 1;
    const shown = at < path.length && path.has(at);
    for (let layer = 0; layer < layers; layer++) {
      const values = new Float32Array(heads * keys).fill(NaN);
      for (let head = 0; shown && head < heads; head++)
        values.set(path.row(kind, layer, head, at).slice(0, seen), head * keys);
      paintMap(canvases[layer], { values, rows: heads, columns: keys }, colour);
      const mark = canvases[layer].nextSibling;
      mark.hidden = !shown || !selected || selected.layer !== layer;
      if (!mark.hidden) mark.style.top = `${(100 * selected.head) / heads}%`;
    }
    const chosen = selected && options[selected.layer]?.[selected.head];
    if (chosen?.ariaSelected !== "true") {
      options.flat().forEach((option) => (option.ariaSelected = String(option === chosen)));
      stack.setAttribute("aria-activedescendant", chosen?.id ?? "");
    }
    [...labels.children].forEach((label, i) => label.classList.toggle("ahead", i >= seen));
  }

  function place(event) {
    const canvas = event.target.closest(".cells")?.firstChild;
    if (!canvas) return null;
    const { heads, keys } = path.kinds[kind],
      [head, key] = cellAt(event, canvas, heads, keys);
    return { layer: canvases.indexOf(canvas), head, key };
  }

  stack.addEventListener("mousemove", (event) => {
    const found = place(event);
    if (!found || at >= path.length || !path.has(at)) return;
    const tokens = kind === "cross" ? path.source : path.read,
      weight = path.row(kind, found.layer, found.head, at)[found.key];
    status.textContent = t("Layer {layer}, head {head} on “{token}”: {weight}", {
      layer: found.layer + 1,
      head: found.head + 1,
      token: tokens[found.key].text,
      weight: weight.toFixed(4),
    });
  });
  stack.addEventListener("mouseleave", () => (status.textContent = ""));
  stack.addEventListener("click", (event) => {
    const found = place(event);
    if (found) hooks.select(kind, found.layer, found.head);
  });
  stack.addEventListener("keydown", (event) => {
    const [move] = arrowStep(event) ?? [0];
    if (!move) return;
    const { layers, heads } = path.kinds[kind];
    const now = selected ? selected.layer * heads + selected.head : -1;
    const next = clamp(now + move, layers * heads);
    hooks.select(kind, Math.floor(next / heads), next % heads);
    event.preventDefault();
    event.stopPropagation();
  });
  return { root, open, step };
}
