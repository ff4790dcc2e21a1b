// Beam search: its settings, its best hypotheses, and the tree that it searched.
import { el, shorten, svg } from "../../core/dom.js";
import { say, t } from "../../core/language.js";
import { pictured } from "../../picture/copy.js";
import * as drawing from "../../picture/drawing.js";
import { fixed, percent } from "../../core/format.js";

const COLUMN = 116,
  ROW = 24,
  BOX = 102;
const FATES = {
  kept: say("kept"),
  pruned: say("pruned"),
  finished: say("finished"),
  stopped: say("stopped by the limit"),
};

// The ids from the first token to a node.
function prefix(nodes, index) {
  const ids = [];
  for (let at = index; at !== null; at = nodes[at].parent) ids.unshift(nodes[at].id);
  return ids;
}

// hooks: search(width, penalty), node(ids), about(title): of a picture
export function createBeam(hooks) {
  const width = el(
    "select",
    { "aria-label": t("Beam width") },
    Array.from({ length: 8 }, (_, i) => el("option", { value: i + 1, selected: i === 3 }, i + 1)),
  );
  const penalty = el("input", {
    type: "range",
    min: "0",
    max: "2",
    step: "0.1",
    value: "0",
    "aria-label": t("Length penalty"),
  });
  const value = el("output", {}, "0.0");
  penalty.addEventListener("input", () => (value.textContent = Number(penalty.value).toFixed(1)));
  const content = el("div", { class: "searched" }),
    status = el("p", { class: "caption", "aria-live": "polite" });
  const root = el(
    "div",
    { class: "beam" },
    el(
      "form",
      {
        class: "settings",
        onsubmit: (event) => {
          event.preventDefault();
          hooks.search(Number(width.value), Number(penalty.value));
        },
      },
      el("label", {}, `${t("Width")} `, width),
      el("label", {}, `${t("Length penalty")} α `, penalty, value),
      el("button", { type: "submit", class: "plain strong" }, t("Search")),
      el("span", { class: "caption" }, t("score = log-probability ÷ ((5 + length) / 6)^α")),
    ),
    content,
    status,
  );

  function show({ nodes, hypotheses }) {
    const best = new Set();
    for (let at = hypotheses[0].node; at !== null; at = nodes[at].parent) best.add(at);
    const list = el(
      "ol",
      { class: "hypotheses" },
      hypotheses.map((h) => {
        const ids = prefix(nodes, h.node),
          words = pieces(nodes, h.node);
        return el(
          "li",
          {},
          el(
            "button",
            { type: "button", class: "branch", onclick: () => hooks.node(ids) },
            el("span", { class: "number" }, fixed(h.score, 2)),
            el("span", { class: "sentence", dir: "auto" }, words || t("(nothing)")),
            el(
              "span",
              { class: "about" },
              `${t("log-probability {value}", { value: fixed(h.total, 2) })}${h.finished ? "" : `, ${t("unfinished")}`}`,
            ),
          ),
        );
      }),
    );
    const tree = el("div", { class: "whole" }, drawn(nodes, best));
    content.replaceChildren(
      list,
      legend(),
      pictured(
        el(
          "div",
          {
            class: "scroll forest",
            tabindex: "0",
            role: "group",
            "aria-label": t("Search tree"),
          },
          tree,
        ),
        { ...hooks.about(t("Search tree")), svg: () => drawing.element(tree) },
      ),
    );
  }

  const pieces = (nodes, index) => {
    const texts = [];
    for (let at = index; at !== null; at = nodes[at].parent)
      if (!nodes[at].symbol) texts.unshift(nodes[at].text);
    return texts.join("").replaceAll("\u2581", " ").trim();
  };

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
    const byDepth = new Map();
    nodes.forEach((node, i) => byDepth.set(node.depth, [...(byDepth.get(node.depth) || []), i]));
    const places = new Map();
    for (const indexes of byDepth.values()) {
      const going = indexes.filter((i) => nodes[i].fate !== "pruned"),
        dropped = indexes.filter((i) => nodes[i].fate === "pruned");
      const order = (list) => [...list].sort((a, b) => nodes[b].total - nodes[a].total);
      [...order(going), ...order(dropped).slice(0, Math.max(2, Number(width.value)))].forEach(
        (i, row) => places.set(i, { x: (nodes[i].depth - 1) * COLUMN + 4, y: row * ROW + 4 }),
      );
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
        words = t("{prefix} — log-probability {total}, this token {p}, {fate}", {
          prefix: pieces(nodes, i),
          total: fixed(node.total, 3),
          p: percent(node.probability),
          fate: FATES[node.fate],
        });
      right = Math.max(right, x + BOX);
      bottom = Math.max(bottom, y + ROW);
      if (from) {
        const x0 = from.x + BOX,
          y0 = from.y + 9,
          y1 = y + 9,
          bend = (COLUMN - BOX) / 2;
        edges.push(
          svg("path", {
            class: `edge ${node.fate}${best.has(i) ? " best" : ""}`,
            d: `M${x0},${y0} C${x0 + bend},${y0} ${x - bend},${y1} ${x},${y1}`,
          }),
        );
      }
      const group = svg(
        "g",
        {
          class: `node ${node.fate}${best.has(i) ? " best" : ""}`,
          transform: `translate(${x},${y})`,
          role: "button",
          tabindex: node.fate === "pruned" ? "-1" : "0",
          "aria-label": words,
          "data-node": i,
        },
        svg("rect", { width: BOX, height: 19, rx: 4 }),
        svg("text", { x: 5, y: 13.5 }),
        svg("text", { x: BOX - 4, y: 13.5, class: "p" }),
      );
      group.children[1].textContent = shorten(node.text, 9);
      group.children[2].textContent = percent(node.probability).replace("≈ ", "");
      const open = () => hooks.node(prefix(nodes, i));
      group.addEventListener("click", open);
      group.addEventListener(
        "keydown",
        (event) =>
          (event.key === "Enter" || event.key === " ") &&
          (event.preventDefault(), event.stopPropagation(), open()),
      );
      for (const name of ["mouseenter", "focus"])
        group.addEventListener(name, () => (status.textContent = words));
      boxes.push(group);
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
