// Two columns of tokens joined by lines: width and opacity show the weight, colour the head.
import { lineDash } from "../../core/colours.js";
import { el, rangeField, shorten, svg } from "../../core/dom.js";
import { actAsButton } from "../../core/keys.js";
import { textParts, say, t } from "../../core/language.js";
import * as model from "../model.js";

const ROW = 24,
  HIGHEST = 40, // pixels per row where there is room
  HEAD = 22, // pixels above the rows
  GAP = 8,
  BUCKETS = 10;
const LABEL = 160,
  LABEL_SMALL = 104,
  LABEL_LARGE = 196;

// Return the edges of one head as ten paths, one per strength, to keep nodes few. limit: the value
// of full strength.
function edgePaths(edges, { colour, dash, limit }, { x1, x2, y }) {
  const middle = (x1 + x2) / 2,
    curve = (from, to) => `M${x1} ${from}C${middle} ${from} ${middle} ${to} ${x2} ${to}`;
  const paths = new Array(BUCKETS).fill("");
  for (const { row, column, value } of edges) {
    const bucket = Math.min(BUCKETS - 1, Math.floor((Math.abs(value) / limit) * BUCKETS));
    paths[bucket] += curve(y(row), y(column));
  }
  return paths.flatMap((d, i) => {
    const strength = (i + 0.5) / BUCKETS,
      look = {
        fill: "none",
        stroke: colour,
        "stroke-width": (0.6 + 4.4 * strength).toFixed(2),
        "stroke-opacity": (0.12 + 0.8 * strength).toFixed(2),
        "stroke-linecap": "round",
        "stroke-dasharray": dash,
      };
    return d ? [svg("path", { d, ...look })] : [];
  });
}

/**
 * Create the lines.
 * @param {any} hooks scene, hover(row, column), pin(row, column) and update(changes)
 */
export function createLines(hooks) {
  const range = { min: 5, max: 100, step: 5, id: "atlas-coverage" },
    slider = rangeField(null, range, (coverage) => hooks.update({ coverage }));
  const amount = el("output", {}),
    key = el("div", { class: "head-key" }),
    canvas = el("div", { class: "lines-canvas" });
  const cover = textParts(say("Edges that cover {share} of each row's weight", { share: amount })),
    bar = el("div", { class: "lines-bar" }, el("label", {}, cover, slider), key);
  const root = el("div", { class: "lines" }, bar, canvas);
  let current = null; // {layers, geometry, group, tokens}

  // Draw the edges of one token, {row} or {column}, or of all.
  function drawEdges({ row = null, column = null } = {}) {
    const { layers, geometry, group } = current;
    const isShown = (edge) =>
      row !== null ? edge.row === row : column === null || edge.column === column;
    group.replaceChildren(
      ...layers.flatMap((layer) => edgePaths(layer.edges.filter(isShown), layer, geometry)),
    );
  }

  function point(row, column) {
    drawEdges({ row, column });
    hooks.hover(row, column);
  }

  // at: {row, column}, one of them null; text: shortened to its room
  function token(name, text, at, { label: width, x2, y }) {
    const middle = y(at.row ?? at.column),
      [x, edge, anchor] =
        at.row === null ? [x2 + GAP, x2 + GAP + 4, "start"] : [0, width - 4, "end"];
    const written = svg("text", { x: edge, y: middle + 4.5, "text-anchor": anchor }, text);
    return svg(
      "g",
      {
        class: "line-token",
        ...actAsButton(() => hooks.pin(at.row, at.column)),
        "aria-label": name,
        "onmouseenter onfocus": () => point(at.row, at.column),
        "onmouseleave onblur": () => point(null, null),
      },
      [svg("rect", { x, y: middle - 11, width, height: ROW - 2, rx: 4 }), written],
    );
  }

  return {
    root,
    /**
     * @param {any[]} layers [{name, colour, map, limit, sign}] with maps of one shape; sign: of the edges to draw, 0 for all
     * @param {any} titles @param {number} highest pixels on the first screen, or Infinity for no limit
     */
    draw(layers, titles, highest) {
      const { rows, columns } = layers[0].map,
        { coverage } = hooks.scene.state,
        width = Math.max(300, root.clientWidth || 600),
        label = width < 460 ? LABEL_SMALL : width < 640 ? LABEL : LABEL_LARGE;
      const drawingWidth = Math.min(width, 720),
        rowCount = Math.max(rows.length, columns.length),
        free = highest === Infinity ? 0 : highest - bar.offsetHeight - 16 - HEAD,
        line = Math.max(ROW, Math.min(HIGHEST, Math.floor(free / rowCount))),
        height = HEAD + line * rowCount + 6;
      const geometry = {
        label,
        x1: label + GAP,
        x2: drawingWidth - label - GAP,
        y: (i) => HEAD + line * (i + 0.5),
      };
      slider.value = coverage;
      amount.textContent = `${coverage}%`;
      const dashOf = ({ colour }) => lineDash(hooks.scene.trace.colours, colour);
      const swatch = (layer) => {
        const look = { stroke: layer.colour, "stroke-width": 4, "stroke-linecap": "round" },
          line = { x1: 3, x2: 37, y1: 6, y2: 6, "stroke-dasharray": dashOf(layer), ...look };
        return el("span", {}, svg("svg", { width: 40, height: 12 }, svg("line", line)), layer.name);
      };
      key.replaceChildren(...(layers.length > 1 ? layers : []).map(swatch));
      const room = Math.round(label / 8),
        half = (text) => shorten(text, Math.floor(room / 2) - 1);
      const ofRows = rows.map((row, i) => {
        const text = titles.pairs?.[i].map(half).join(" → ") ?? shorten(row.label, room),
          name = t("query {n}: {token}", { n: i + 1, token: row.label });
        return token(name, text, { row: i, column: null }, geometry);
      });
      const ofColumns = columns.map(({ label: text }, i) => {
        const name = t("key {n}: {token}", { n: i + 1, token: text });
        return token(name, shorten(text, room), { row: null, column: i }, geometry);
      });
      const group = svg("g", { class: "edges" }),
        above = [titles.rows, titles.columns].map((text) =>
          svg("text", { y: 13, class: "caption" }, text),
        );
      const size = { width: drawingWidth, height, viewBox: `0 0 ${drawingWidth} ${height}` },
        about = { role: "group", "aria-label": titles.label };
      canvas.replaceChildren(svg("svg", { ...size, ...about }, above, group, ofRows, ofColumns));
      const edgesOf = ({ map, sign }) =>
        model.strongestEdges(map, coverage / 100).filter(({ value }) => !sign || value * sign > 0);
      current = {
        layers: layers.map((layer) => ({
          ...layer,
          dash: dashOf(layer),
          edges: edgesOf(layer),
        })),
        geometry,
        group,
        tokens: { row: ofRows, column: ofColumns },
      };
      // Align each title with its column; one that is too wide starts at the picture's edge.
      const [left, right] = above.map((node) => node.getComputedTextLength()),
        inner = label + GAP - 4;
      above[0].setAttribute("x", Math.max(0, inner - left));
      above[1].setAttribute("x", Math.min(drawingWidth - inner, drawingWidth - right));
      drawEdges();
    },
    pin(at) {
      if (!current) return; // a focus that leaves the view before this one
      for (const [side, nodes] of Object.entries(current.tokens))
        nodes.forEach((node, i) => node.classList.toggle("pinned", i === at[side]));
      current.pinned = at;
      drawEdges(at);
    },
    /** @param {any} lit {rows, columns} of the lit word, or null */
    light(lit) {
      if (!current) return;
      const [row = null] = lit?.rows ?? [],
        [column = null] = lit?.columns ?? [];
      drawEdges(row === null && column === null ? current.pinned : { row, column });
    },
  };
}
