// Beam search: its settings, its best hypotheses, and the tree that it searched.
import { button, el, menu, shorten, svg } from "../../core/dom.js";
import { say, t } from "../../core/language.js";
import { createPicture } from "../../picture/copy.js";
import * as drawing from "../../picture/drawing.js";
import { formatFixed, formatPercent } from "../../core/format.js";
import { written } from "../path.js";

const COLUMN = 116,
  ROW = 24,
  BOX = 102;
const FATES = {
  kept: say("kept"),
  pruned: say("pruned"),
  finished: say("finished"),
  stopped: say("stopped by the limit"),
};

// The nodes from the first token to one of them.
function pathTo(nodes, index) {
  const path = [];
  for (let at = index; at !== null; at = nodes[at].parent) path.unshift(nodes[at]);
  return path;
}

// hooks: search(width, penalty), node(ids), about(title): of a picture
export function createBeam(hooks) {
  const widths = Array.from({ length: 8 }, (_, i) => [i + 1, i + 1]),
    width = menu(widths, 4, { "aria-label": t("Beam width") });
  const value = el("output", {}, "0.0");
  const penalty = el("input", {
    type: "range",
    min: "0",
    max: "2",
    step: "0.1",
    value: "0",
    "aria-label": t("Length penalty"),
    oninput: () => (value.textContent = Number(penalty.value).toFixed(1)),
  });
  const content = el("div", { class: "searched" }),
    status = el("p", { class: "caption", "aria-live": "polite" });
  function submit(event) {
    event.preventDefault();
    hooks.search(Number(width.value), Number(penalty.value));
  }
  const root = el(
    "div",
    { class: "beam" },
    el(
      "form",
      { class: "settings", onsubmit: submit },
      el("label", {}, `${t("Width")} `, width),
      el("label", {}, `${t("Length penalty")} α `, penalty, value),
      button(t("Search"), null, { type: "submit", class: "plain strong" }),
      el("span", { class: "caption" }, t("score = log-probability ÷ ((5 + length) / 6)^α")),
    ),
    content,
    status,
  );

  function show({ nodes, hypotheses }) {
    const hypothesis = ({ node, score, total, finished }) => {
      const about = t("log-probability {value}", { value: formatFixed(total, 2) }),
        path = pathTo(nodes, node);
      const parts = [
        el("span", { class: "number" }, formatFixed(score, 2)),
        el("span", { class: "sentence", dir: "auto" }, written(path) || t("(nothing)")),
        el("span", { class: "about" }, finished ? about : `${about}, ${t("unfinished")}`),
      ];
      return el(
        "li",
        {},
        button(parts, () => open(path), { class: "branch" }),
      );
    };
    const best = new Set(pathTo(nodes, hypotheses[0].node)),
      tree = el("div", { class: "whole" }, drawn(nodes, best)),
      title = t("Search tree");
    content.replaceChildren(
      el("ol", { class: "hypotheses" }, hypotheses.map(hypothesis)),
      legend(),
      createPicture(
        el(
          "div",
          { class: "scroll forest", tabindex: "0", role: "group", "aria-label": title },
          tree,
        ),
        { ...hooks.about(title), svg: () => drawing.elementSvg(tree) },
      ),
    );
  }

  const open = (path) => hooks.node(path.map((node) => node.id));

  const legend = () =>
    el(
      "p",
      { class: "legend caption" },
      ["kept", "finished", "pruned"].map((fate) =>
        el("span", {}, el("i", { class: `swatch ${fate}` }), FATES[fate]),
      ),
      el("span", {}, el("i", { class: "swatch best" }), t("the best hypothesis")),
      t(
        "Choose a node to open its prefix. Of the pruned candidates, the best of each step are drawn.",
      ),
    );

  function layout(nodes) {
    const byDepth = Map.groupBy(nodes.keys(), (i) => nodes[i].depth);
    const places = new Map();
    for (const indexes of byDepth.values()) {
      const ordered = indexes.sort((a, b) => nodes[b].total - nodes[a].total),
        going = ordered.filter((i) => nodes[i].fate !== "pruned"),
        dropped = ordered.filter((i) => nodes[i].fate === "pruned");
      const shown = [...going, ...dropped.slice(0, Math.max(2, Number(width.value)))];
      for (const [row, i] of shown.entries())
        places.set(i, { x: (nodes[i].depth - 1) * COLUMN + 4, y: row * ROW + 4 });
    }
    return places;
  }

  function drawn(nodes, best) {
    const places = layout(nodes),
      edges = [],
      boxes = [];
    let right = 0,
      bottom = 0;
    for (const [i, { x, y }] of places) {
      const node = nodes[i],
        from = places.get(node.parent),
        path = pathTo(nodes, i),
        look = `${node.fate}${best.has(node) ? " best" : ""}`;
      right = Math.max(right, x + BOX);
      bottom = Math.max(bottom, y + ROW);
      if (from) {
        const x0 = from.x + BOX,
          y0 = from.y + 9,
          y1 = y + 9,
          bend = (COLUMN - BOX) / 2;
        const d = `M${x0},${y0} C${x0 + bend},${y0} ${x - bend},${y1} ${x},${y1}`;
        edges.push(svg("path", { class: `edge ${look}`, d }));
      }
      const words = t("{prefix} — log-probability {total}, this token {p}, {fate}", {
        prefix: written(path),
        total: formatFixed(node.total, 3),
        p: formatPercent(node.probability),
        fate: FATES[node.fate],
      });
      const say = () => (status.textContent = words);
      boxes.push(
        svg(
          "g",
          {
            class: `node ${look}`,
            transform: `translate(${x},${y})`,
            role: "button",
            tabindex: node.fate === "pruned" ? "-1" : "0",
            "aria-label": words,
            "data-node": i,
            onclick: () => open(path),
            onkeydown: (event) => {
              if (event.key !== "Enter" && event.key !== " ") return;
              event.preventDefault();
              event.stopPropagation();
              open(path);
            },
            onmouseenter: say,
            onfocus: say,
          },
          svg("rect", { width: BOX, height: 19, rx: 4 }),
          svg("text", { x: 5, y: 13.5 }, shorten(node.text, 9)),
          svg(
            "text",
            { x: BOX - 4, y: 13.5, class: "p" },
            formatPercent(node.probability).replace("≈ ", ""),
          ),
        ),
      );
    }
    return svg(
      "svg",
      { width: right + 6, height: bottom + 6, class: "search-tree" },
      ...edges,
      ...boxes,
    );
  }

  return { root, show, clear: () => content.replaceChildren() };
}
