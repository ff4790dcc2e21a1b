// One map as a Plotly heatmap, and until Plotly is there as a canvas. Plotly draws the cells; pointing, pinning and the keyboard's cursor are a layer of our own
// above it, so that a redraw costs no more than the picture, and touch still scrolls the page.
import { paint } from "../../core/colours.js";
import { el, escape, painted, themed } from "../../core/dom.js";
import { arrow, clamp, modified } from "../../core/keys.js";
import { said } from "../../core/language.js";
import { inTurn, plotly } from "../../core/plotly.js";
import { CONFIG, FONT, createStage } from "./frame.js";

function places(map, colouring) {
  const { values } = map,
    width = map.columns.length;
  return map.rows.map((_, row) =>
    Array.from({ length: width }, (_, column) => {
      const value = values[row * width + column];
      return Number.isNaN(value) ? null : colouring.place(value);
    }),
  );
}

const heatmap = (map, colouring) => ({
  type: "heatmap",
  z: places(map, colouring),
  zmin: 0,
  zmax: 1,
  colorscale: colouring.plotly,
  hoverinfo: "skip",
});

// The cells alone, as large as the frame leaves room for.
function cells(map, colouring, size) {
  const hidden = { visible: false, fixedrange: true };
  return {
    data: [{ ...heatmap(map, colouring), showscale: false }],
    layout: {
      width: size.plotWidth,
      height: size.plotHeight,
      margin: { l: 0, r: 0, t: 0, b: 0, pad: 0 },
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      xaxis: { ...hidden, range: [-0.5, map.columns.length - 0.5] },
      yaxis: { ...hidden, range: [map.rows.length - 0.5, -0.5] },
    },
  };
}

// The whole picture with its labels, for export.
function figure({ map, colouring, size, titles }) {
  const font = FONT;
  const width = map.columns.length;
  const axis = (ticks, title, options) => ({
    tickmode: "array",
    tickvals: ticks.shown,
    ticktext: ticks.texts.map(escape),
    showgrid: false,
    zeroline: false,
    ticks: "",
    fixedrange: true,
    title: { text: title, standoff: 6, font: { size: font, color: themed("--atlas-muted") } },
    tickfont: { size: font, color: themed("--atlas-ink") },
    ticklabelstandoff: 4,
    ...options,
  });
  return {
    data: [
      {
        ...heatmap(map, colouring),
        xgap: width <= 30 ? 1 : 0,
        ygap: width <= 30 ? 1 : 0,
        showscale: size.right > 30,
        colorbar: {
          thickness: 10,
          outlinewidth: 0,
          x: 1.02,
          xpad: 2,
          len: 1,
          tickvals: colouring.ticks.places,
          ticktext: colouring.ticks.texts,
          tickfont: { size: 11, color: themed("--atlas-muted") },
          ...(colouring.unit
            ? {
                title: {
                  text: escape(said(colouring.unit)),
                  side: "right",
                  font: { size: 11 },
                },
              }
            : {}),
        },
      },
    ],
    layout: {
      width: size.width,
      height: size.height,
      margin: { l: size.left, r: size.right, t: size.top, b: 8, pad: 0 },
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: themed("--atlas-font"), size: font },
      xaxis: axis(size.columns, titles.columns, {
        side: "top",
        tickangle: size.angle,
        range: [-0.5, width - 0.5],
      }),
      yaxis: axis(size.rows, size.rowTitle, { range: [map.rows.length - 0.5, -0.5] }),
      shapes: map.joint
        ? [
            {
              type: "line",
              x0: map.sourceColumns - 0.5,
              x1: map.sourceColumns - 0.5,
              y0: -0.5,
              y1: map.rows.length - 0.5,
              line: { color: themed("--atlas-accent"), width: 2 },
            },
          ]
        : [],
    },
  };
}

// hooks: hover(row, column), pin(row, column) with null for a whole column or row, hover(null, null) on leaving
export function createDetail(hooks) {
  const { root, plot, frame, marks } = createStage();
  let current = null; // {map, colouring, size, titles, pinned}
  let cursor = null;

  // Plot pixels -> {row, column}; beside the labels one of them is null.
  function cellAt(event) {
    const { map, size } = current,
      box = root.getBoundingClientRect();
    const scale = size.width / box.width; // of a presentation
    const x = (event.clientX - box.left) * scale - size.left,
      y = (event.clientY - box.top) * scale - size.top;
    const column = Math.floor((x / size.plotWidth) * map.columns.length);
    const row = Math.floor((y / size.plotHeight) * map.rows.length);
    const inColumns = column >= 0 && column < map.columns.length,
      inRows = row >= 0 && row < map.rows.length;
    if (inColumns && inRows) return { row, column };
    if (inRows && x < 0) return { row, column: null };
    if (inColumns && y < 0) return { row: null, column };
    return null;
  }

  function box(kind, row, column) {
    const { map, size } = current;
    const height = size.plotHeight / map.rows.length,
      width = size.plotWidth / map.columns.length;
    const node = el("div", { class: `mark ${kind}` });
    node.style.left = `${size.left + (column === null ? 0 : column * width)}px`;
    node.style.width = `${column === null ? size.plotWidth : width}px`;
    node.style.top = `${size.top + (row === null ? 0 : row * height)}px`;
    node.style.height = `${row === null ? size.plotHeight : height}px`;
    return node;
  }

  // The same cells in the same colours, long before Plotly has drawn them, let alone been fetched and read: the first
  // picture that one sees of a sentence. It stays below Plotly's, which the browser decodes a frame later, until the next
  // one.
  function sketch(map, colouring, size) {
    const canvas = root.querySelector(".sketch") || el("canvas", { class: "sketch" });
    paint(
      canvas,
      { values: map.values, rows: map.rows.length, columns: map.columns.length },
      colouring.colour,
    );
    Object.assign(canvas.style, {
      left: `${size.left}px`,
      top: `${size.top}px`,
      width: `${size.plotWidth}px`,
      height: `${size.plotHeight}px`,
    });
    plot.before(canvas);
    plot.style.visibility = "hidden"; // it shows what was there before
  }

  function mark(pinned) {
    const nodes = [];
    if (pinned.row !== null && pinned.column !== null)
      nodes.push(box("pinned cell", pinned.row, pinned.column));
    if (pinned.row !== null) nodes.push(box("pinned", pinned.row, null));
    if (pinned.column !== null) nodes.push(box("pinned", null, pinned.column));
    if (cursor) nodes.push(box("cursor", cursor.row, cursor.column));
    marks.replaceChildren(...nodes);
  }

  function moveCursor(row, column) {
    cursor = row === null && column === null ? null : { row, column };
    mark(current.pinned);
    hooks.hover(row, column);
  }

  root.addEventListener("pointermove", (event) => {
    if (!current || event.pointerType === "touch") return;
    const cell = cellAt(event);
    if (cell ? !cursor || cell.row !== cursor.row || cell.column !== cursor.column : cursor)
      moveCursor(cell?.row ?? null, cell?.column ?? null);
  });
  root.addEventListener("pointerleave", () => current && cursor && moveCursor(null, null));
  root.addEventListener("click", (event) => {
    const cell = current && cellAt(event);
    if (cell) hooks.pin(cell.row, cell.column);
  });
  root.addEventListener("keydown", (event) => {
    const step = arrow(event);
    if (!current || modified(event)) return;
    const at = {
      row: cursor?.row ?? current.pinned.row ?? 0,
      column: cursor?.column ?? current.pinned.column ?? 0,
    };
    if (step) {
      moveCursor(
        cursor ? clamp(at.row + step[0], current.map.rows.length) : at.row,
        cursor ? clamp(at.column + step[1], current.map.columns.length) : at.column,
      );
    } else if (event.key === "Enter" || event.key === " ") hooks.pin(at.row, at.column);
    else if (event.key === "r") hooks.pin(at.row, null);
    else if (event.key === "k") hooks.pin(null, at.column);
    else return;
    event.preventDefault();
    event.stopPropagation();
  });

  return {
    root,
    // map: of scoreMap (explorer/model.js); pinned: {row, column}; titles: {rows, columns, label}; compact: without a colour
    // bar; width: of what it stands in, where that was measured already; height: what there is to fill, in pixels, or
    // as high as the cells are wide
    draw(
      map,
      colouring,
      pinned,
      titles,
      { compact = false, width = 0, height = null, highest } = {},
    ) {
      const size = frame.draw(map, colouring, titles, {
        width: width || root.parentElement.clientWidth || 640,
        compact,
        height,
        highest,
      });
      const another = size !== current?.size; // what stands around the cells is drawn anew, too
      current = { map, colouring, size, titles, pinned };
      cursor = null;
      const picture = () => {
        const { data, layout } = cells(map, colouring, size);
        Plotly.react(plot, data, layout, CONFIG);
        plot.style.visibility = "";
      };
      const mine = current;
      if (window.Plotly && !another) {
        root.querySelector(".sketch")?.remove();
        picture();
      } else {
        sketch(map, colouring, size);
        const ready = window.Plotly ? painted() : plotly();
        ready.then(() => inTurn(() => current === mine && picture()));
      }
      Object.assign(plot.style, { left: `${size.left}px`, top: `${size.top}px` });
      Object.assign(root.style, { width: `${size.width}px`, height: `${size.height}px` });
      root.setAttribute("aria-label", titles.label);
      mark(pinned);
    },
    pin(pinned) {
      current.pinned = pinned;
      mark(pinned);
    },
    figure: () => figure(current),
    pinned: () => current.pinned,
  };
}
