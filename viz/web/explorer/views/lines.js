// Two columns of tokens joined by lines: width and opacity are the weight, colour is the head.
import { el, shorten, svg } from "../../core/dom.js";
import { parts, say, t } from "../../core/language.js";
import * as model from "../model.js";

const ROW = 24,
  HIGHEST = 40, // of a row where there is room
  GAP = 8,
  BUCKETS = 10;
const LABEL = 160,
  LABEL_SMALL = 104,
  LABEL_LARGE = 196;

// Edges of one head as one path for each of ten strengths: a few nodes however many edges there are. limit: the value at
// full strength.
function strands(edges, { colour, limit }, geometry) {
  const buckets = Array.from({ length: BUCKETS }, () => []);
  for (const edge of edges)
    buckets[Math.min(BUCKETS - 1, Math.floor((Math.abs(edge.value) / limit) * BUCKETS))].push(edge);
  return buckets.flatMap((bucket, i) => {
    if (!bucket.length) return [];
    const d = bucket
      .map(({ row, column }) => {
        const y1 = geometry.y(row),
          y2 = geometry.y(column),
          middle = (geometry.x1 + geometry.x2) / 2;
        return `M${geometry.x1} ${y1}C${middle} ${y1} ${middle} ${y2} ${geometry.x2} ${y2}`;
      })
      .join("");
    const strength = (i + 0.5) / BUCKETS;
    return [
      svg("path", {
        d,
        fill: "none",
        stroke: colour,
        "stroke-width": (0.6 + 4.4 * strength).toFixed(2),
        "stroke-opacity": (0.12 + 0.8 * strength).toFixed(2),
        "stroke-linecap": "round",
      }),
    ];
  });
}

// hooks: hover(row, column), pin(row, column), update(changes)
export function createLines(hooks) {
  const slider = el("input", {
    type: "range",
    min: "5",
    max: "100",
    step: "5",
    id: "atlas-coverage",
    oninput: (event) => hooks.update({ coverage: Number(event.target.value) }),
  });
  const amount = el("output", {});
  const key = el("div", { class: "head-key" });
  const canvas = el("div", { class: "lines-canvas" });
  const root = el(
    "div",
    { class: "lines" },
    el(
      "div",
      { class: "lines-bar" },
      el(
        "label",
        {},
        parts(say("Edges that cover {share} of each row's weight", { share: amount })),
        slider,
      ),
      key,
    ),
    canvas,
  );
  let current = null;
  let focused = null; // {side: "row" or "column", index}

  function shownEdges(layer) {
    if (!focused) return layer.edges;
    return layer.edges.filter((edge) => edge[focused.side] === focused.index);
  }

  function isolate(side, index) {
    focused = side === null ? null : { side, index };
    drawEdges();
    if (side === null) hooks.hover(null, null);
    else hooks.hover(side === "row" ? index : null, side === "column" ? index : null);
  }

  function drawEdges() {
    const { layers, group, geometry } = current;
    group.replaceChildren(
      ...layers.flatMap((layer) => strands(shownEdges(layer), layer, geometry)),
    );
  }

  // pair: in place of the label two tokens, of a row that carries both
  function token(side, index, label, geometry, pair) {
    const left = side === "row",
      x = left ? 0 : geometry.x2 + GAP,
      width = geometry.label;
    const text = svg("text", {
      x: left ? x + width - 4 : x + 4,
      y: geometry.y(index) + 4.5,
      "text-anchor": left ? "end" : "start",
    });
    const room = Math.round(width / 8);
    text.textContent = pair
      ? pair.map((one) => shorten(one, Math.floor(room / 2) - 1)).join(" → ")
      : shorten(label, room);
    const node = svg(
      "g",
      {
        class: "line-token",
        tabindex: "0",
        role: "button",
        "aria-label": left
          ? t("query {n}: {token}", { n: index + 1, token: label })
          : t("key {n}: {token}", { n: index + 1, token: label }),
      },
      svg("rect", { x, y: geometry.y(index) - 11, width, height: ROW - 2, rx: 4 }),
      text,
    );
    node.addEventListener("mouseenter", () => isolate(side, index));
    node.addEventListener("mouseleave", () => isolate(null));
    node.addEventListener("focus", () => isolate(side, index));
    node.addEventListener("blur", () => isolate(null));
    const choose = () => hooks.pin(left ? index : null, left ? null : index);
    node.addEventListener("click", choose);
    node.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      choose();
    });
    return node;
  }

  return {
    root,
    // layers: [{name, colour, map, limit, sign}], their maps of one shape; sign: of the edges to draw, 0 for all. highest:
    // what the first screen has for it, if that is known
    draw(layers, state, titles, { highest = 0 } = {}) {
      const first = layers[0].map,
        width = Math.max(300, root.clientWidth || 600);
      const label = width < 460 ? LABEL_SMALL : width < 640 ? LABEL : LABEL_LARGE;
      const full = Math.min(width, 720),
        head = 22,
        most = Math.max(first.rows.length, first.columns.length),
        bar = root.firstChild.offsetHeight + 16,
        line = Math.max(ROW, Math.min(HIGHEST, Math.floor((highest - bar - head) / most)));
      const geometry = {
        label,
        x1: label + GAP,
        x2: full - label - GAP,
        y: (i) => head + line * (i + 0.5),
      };
      const height = head + line * most + 6;
      slider.value = state.coverage;
      amount.textContent = `${state.coverage}%`;
      key.replaceChildren(
        ...(layers.length > 1 ? layers : []).map(({ name, colour }) =>
          el("span", {}, el("i", { style: `background: ${colour}` }), name),
        ),
      );
      const group = svg("g", { class: "edges" });
      const caption = (text) => {
        const node = svg("text", { y: 13, class: "caption" });
        node.textContent = text;
        return node;
      };
      const above = [caption(titles.rows), caption(titles.columns)];
      const picture = svg(
        "svg",
        {
          width: full,
          height,
          viewBox: `0 0 ${full} ${height}`,
          role: "group",
          "aria-label": titles.label,
        },
        ...above,
        group,
        ...first.rows.map((row, i) => token("row", i, row.label, geometry, titles.pairs?.[i])),
        ...first.columns.map((column, i) => token("column", i, column.label, geometry)),
      );
      current = {
        layers: layers.map((layer) => ({
          ...layer,
          edges: model
            .edges(layer.map, state.coverage / 100)
            .filter((edge) => !layer.sign || edge.value * layer.sign > 0),
        })),
        group,
        geometry,
        picture,
      };
      focused = null;
      canvas.replaceChildren(picture);
      // Each title ends, or begins, where its column's tokens do; one that is longer than they are wide, at the page's edge.
      const [rows, columns] = above.map((node) => node.getComputedTextLength()),
        room = label + GAP - 4;
      above[0].setAttribute("x", Math.max(0, room - rows));
      above[1].setAttribute("x", Math.min(full - room, full - columns));
      drawEdges();
    },
    pin({ row, column }) {
      if (!current) return;
      canvas.querySelectorAll(".line-token").forEach((node, i) => {
        const rows = current.layers[0].map.rows.length;
        node.classList.toggle("pinned", i < rows ? i === row : i - rows === column);
      });
      if (row !== null || column !== null) {
        focused = row !== null ? { side: "row", index: row } : { side: "column", index: column };
        drawEdges();
      } else if (focused) {
        focused = null;
        drawEdges();
      }
    },
    picture: () => current.picture,
  };
}
