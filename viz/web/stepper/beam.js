// The panel of beam search: its settings, its best hypotheses, and the tree that it searched.
import { button, el, form, menu, rangeField, shorten, svg } from "../core/dom.js";
import { formatFixed, formatPercent } from "../core/format.js";
import { actAsButton } from "../core/keys.js";
import { say, t } from "../core/language.js";
import { createPicture } from "../picture/copy.js";
import * as drawing from "../picture/drawing.js";
import { textOf } from "./path.js";

const COLUMN = 116, // pixels from a node to the next step's
  ROW = 24,
  BOX = 102; // width of a node
const FATES = {
  kept: say("kept"),
  pruned: say("pruned"),
  finished: say("finished"),
  stopped: say("stopped by the limit"),
};

/** The nodes from the first token to the node at an index. @param {any[]} nodes @param {number} index */
function pathTo(nodes, index) {
  const path = [];
  for (let i = index; i !== null; i = nodes[i].parent) path.unshift(nodes[i]);
  return path;
}

/**
 * Create the panel.
 * @param {{
 *   search: (width: number, penalty: number) => void,
 *   open: (ids: number[]) => void,
 *   about: import("./heads.js").DescribePicture,
 * }} hooks search asks the server; show() draws its answer. open opens the branch that begins with these tokens
 */
export function createBeam(hooks) {
  const widths = Array.from({ length: 8 }, (_, i) => [i + 1, i + 1]),
    width = menu(widths, 4, { "aria-label": t("Beam width") });
  const output = el("output", {}, "0.0"),
    range = { max: 2, step: 0.1, value: 0 };
  const penalty = rangeField(
    t("Length penalty"),
    range,
    (value) => (output.textContent = value.toFixed(1)),
  );
  const content = el("div", { class: "searched" }),
    status = el("p", { class: "caption", "aria-live": "polite" });
  const search = () => hooks.search(Number(width.value), Number(penalty.value));
  const root = el("div", { class: "beam" }, [
    form({ class: "settings" }, search, [
      el("label", {}, `${t("Width")} `, width),
      el("label", {}, `${t("Length penalty")} α `, penalty, output),
      button(t("Search"), null, { type: "submit", class: "plain strong" }),
      el(
        "span",
        { class: "caption", "data-terms": "" },
        t("score = log-probability ÷ ((5 + length) / 6)^α"),
      ),
    ]),
    content,
    status,
  ]);

  const open = (path) => hooks.open(path.map((node) => node.id));

  /** @param {{nodes: any[], hypotheses: any[]}} search viz/wire/steps.py, beam_payload */
  function show({ nodes, hypotheses }) {
    const hypothesis = ({ node, score, total, finished }) => {
      const path = pathTo(nodes, node),
        logProbability = t("log-probability {value}", { value: formatFixed(total, 2) });
      const parts = [
        el("span", { class: "number" }, formatFixed(score, 2)),
        el("span", { class: "sentence", dir: "auto" }, textOf(path) || t("(nothing)")),
        el("span", { class: "about" }, [
          finished ? logProbability : `${logProbability}, ${t("unfinished")}`,
        ]),
      ];
      const choice = button(parts, () => open(path), { class: "branch" });
      return el("li", {}, choice);
    };
    const best = new Set(pathTo(nodes, hypotheses[0].node)),
      tree = el("div", { class: "whole" }, drawTree(nodes, best)),
      title = t("Search tree"),
      forest = { class: "scroll forest", tabindex: "0", role: "group", "aria-label": title };
    content.replaceChildren(
      el("ol", { class: "hypotheses" }, hypotheses.map(hypothesis)),
      legend(),
      createPicture(el("div", forest, tree), {
        ...hooks.about(title),
        svg: () => drawing.elementSvg(tree),
      }),
    );
  }

  const legend = () =>
    el("p", { class: "legend caption" }, [
      ["kept", "finished", "pruned"].map((fate) =>
        el("span", {}, el("i", { class: `swatch ${fate}` }), FATES[fate]),
      ),
      el("span", {}, el("i", { class: "swatch best" }), t("the best hypothesis")),
      t(
        "Choose a node to open its prefix. Only the best pruned candidates of each step are shown.",
      ),
    ]);

  // Where nodes are drawn: index -> {x, y}. The most probable nodes of a step are on top. Of its pruned nodes, only as many as
  // the beam is wide are drawn.
  function layout(nodes) {
    const places = new Map(),
      isPruned = (i) => nodes[i].fate === "pruned";
    for (const indexes of Map.groupBy(nodes.keys(), (i) => nodes[i].depth).values()) {
      indexes.sort((a, b) => nodes[b].total - nodes[a].total);
      const pruned = indexes.filter(isPruned).slice(0, Math.max(2, Number(width.value)));
      for (const [row, i] of [...indexes.filter((i) => !isPruned(i)), ...pruned].entries())
        places.set(i, { x: (nodes[i].depth - 1) * COLUMN + 4, y: row * ROW + 4 });
    }
    return places;
  }

  // best: the nodes of the best hypothesis.
  function drawTree(nodes, best) {
    const places = layout(nodes),
      edges = [],
      boxes = [];
    for (const [i, { x, y }] of places) {
      const node = nodes[i],
        parent = places.get(node.parent),
        look = `${node.fate}${best.has(node) ? " best" : ""}`;
      if (parent) {
        const bend = (COLUMN - BOX) / 2,
          [x0, y0, y1] = [parent.x + BOX, parent.y + 9, y + 9];
        const d = `M${x0},${y0} C${x0 + bend},${y0} ${x - bend},${y1} ${x},${y1}`;
        edges.push(svg("path", { class: `edge ${look}`, d }));
      }
      boxes.push(drawNode(node, pathTo(nodes, i), look, `translate(${x},${y})`));
    }
    const right = Math.max(...[...places.values()].map(({ x }) => x + BOX)),
      bottom = Math.max(...[...places.values()].map(({ y }) => y + ROW));
    return svg("svg", { width: right + 6, height: bottom + 6, class: "search-tree" }, [
      edges,
      boxes,
    ]);
  }

  function drawNode(node, path, look, transform) {
    const words = t("{prefix} — log-probability {total}, this token {p}, {fate}", {
      prefix: textOf(path),
      total: formatFixed(node.total, 3),
      p: formatPercent(node.probability),
      fate: FATES[node.fate],
    });
    const percentage = formatPercent(node.probability).replace("≈ ", "");
    return svg(
      "g",
      {
        class: `node ${look}`,
        transform,
        ...actAsButton(() => open(path)),
        tabindex: node.fate === "pruned" ? "-1" : "0",
        "aria-label": words,
        "onmouseenter onfocus": () => (status.textContent = words),
      },
      svg("rect", { width: BOX, height: 19, rx: 4 }),
      svg("text", { x: 5, y: 13.5 }, shorten(node.text, 9)),
      svg("text", { x: BOX - 4, y: 13.5, class: "p" }, percentage),
    );
  }

  return { root, show, clear: () => content.replaceChildren() };
}
