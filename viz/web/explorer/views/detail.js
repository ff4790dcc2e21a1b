// One map as a Plotly heatmap; until Plotly has loaded, as a canvas.
import { paintMap } from "../../core/colours.js";
import { el, escapeTags, afterPaint, cssVariable } from "../../core/dom.js";
import { arrowStep, clamp, hasModifier } from "../../core/keys.js";
import { toText } from "../../core/language.js";
import { enqueueDrawing, loadPlotly } from "../../core/plotly.js";
import { CONFIG, cellsLayout, createStage, positionAt, wholeLayout, wholeMap } from "./frame.js";

function heatmap({ map, colouring }) {
  const width = map.columns.length,
    place = (value) => (Number.isNaN(value) ? null : colouring.place(value));
  const z = map.rows.map((_, row) =>
    Array.from(map.values.subarray(row * width, (row + 1) * width), place),
  );
  return { type: "heatmap", z, zmin: 0, zmax: 1, colorscale: colouring.plotly, hoverinfo: "skip" };
}

// Return the figure of the whole picture with labels, for export.
function figure(current) {
  const { map, colouring, size } = current,
    { ticks, unit } = colouring,
    gap = map.columns.length <= 30 ? 1 : 0;
  const title = { text: escapeTags(toText(unit)), side: "right", font: { size: 11 } },
    colorbar = {
      thickness: 10,
      outlinewidth: 0,
      x: 1.02,
      xpad: 2,
      len: 1,
      tickvals: ticks.places,
      ticktext: ticks.texts,
      tickfont: { size: 11, color: cssVariable("--atlas-muted") },
      ...(unit ? { title } : {}),
    };
  const showscale = size.right > 30,
    divider = {
      type: "line",
      x0: map.sourceColumns - 0.5,
      x1: map.sourceColumns - 0.5,
      y0: -0.5,
      y1: map.rows.length - 0.5,
      line: { color: cssVariable("--atlas-accent"), width: 2 },
    };
  return {
    data: [{ ...heatmap(current), xgap: gap, ygap: gap, showscale, colorbar }],
    layout: { ...wholeLayout(current, size), shapes: map.joint ? [divider] : [] },
  };
}

/**
 * Create a map.
 * @param {any} hooks hover(row, column) and pin(row, column), with null for a whole column or row; hover(null, null) on leaving
 */
export function createDetail(hooks) {
  const stage = createStage(hooks),
    { root, plot } = stage;

  // Draw the cells on a canvas, which is there long before Plotly: the first picture of a sentence.
  // It stays below Plotly's picture, which the browser decodes a frame later, until the next one.
  function sketch({ map, colouring, size }) {
    const canvas = root.querySelector(".sketch") || el("canvas", { class: "sketch" }),
      cells = { values: map.values, rows: map.rows.length, columns: map.columns.length },
      { left, top, plotWidth: width, plotHeight: height } = size;
    paintMap(canvas, cells, colouring.colour);
    plot.before(positionAt(canvas, { left, top, width, height }));
    plot.style.visibility = "hidden"; // it still shows the map before
  }

  function picture() {
    const data = [{ ...heatmap(stage.current), showscale: false }];
    Plotly.react(plot, data, cellsLayout(stage.current), CONFIG);
    plot.style.visibility = "";
  }

  root.addEventListener("pointermove", (event) => {
    const { current, cursor } = stage;
    if (!current || event.pointerType === "touch") return;
    const cell = stage.cellAt(event);
    if (cell?.row !== cursor?.row || cell?.column !== cursor?.column) stage.point(cell);
  });
  root.addEventListener("pointerleave", () => stage.cursor && stage.point(null));
  root.addEventListener("click", (event) => {
    const cell = stage.current && stage.cellAt(event);
    if (cell) hooks.pin(cell.row, cell.column);
  });
  root.addEventListener("keydown", (event) => {
    const { current, cursor } = stage,
      step = arrowStep(event);
    if (!current || hasModifier(event)) return;
    const { map, pinned } = current,
      row = cursor?.row ?? pinned.row ?? 0,
      column = cursor?.column ?? pinned.column ?? 0;
    if (step && cursor)
      stage.point({
        row: clamp(row + step[0], map.rows.length),
        column: clamp(column + step[1], map.columns.length),
      });
    else if (step) stage.point({ row, column });
    else if (event.key === "Enter" || event.key === " ") hooks.pin(row, column);
    else if (event.key === "r") hooks.pin(row, null);
    else if (event.key === "k") hooks.pin(null, column);
    else return;
    event.preventDefault();
    event.stopPropagation();
  });

  return {
    root,
    /**
     * Draw a map.
     * @param {any} map of scoreMap() in model.js @param {any} colouring of scale.js
     * @param {any} pinned {row, column} @param {any} titles {rows, columns, label}
     * @param {any} [options] compact: without a colour bar; width: of its place, if it was measured; height: to fill; highest:
     *   the largest height
     */
    draw(
      map,
      colouring,
      pinned,
      titles,
      { compact = false, width = 0, height = null, highest } = {},
    ) {
      const place = {
          width: width || root.parentElement.clientWidth || 640,
          compact,
          height,
          highest,
        },
        size = stage.surround(map, colouring, titles, place);
      const isSame = size === stage.current?.size; // otherwise the frame is redrawn, too
      const seen = wholeMap(map),
        drawing = (stage.current = { map, colouring, size, titles, pinned, seen });
      stage.cursor = null;
      if (window.Plotly && isSame) {
        root.querySelector(".sketch")?.remove();
        picture();
      } else {
        sketch(drawing);
        const ready = window.Plotly ? afterPaint() : loadPlotly();
        ready.then(() => enqueueDrawing(() => stage.current === drawing && picture()));
      }
      stage.show();
    },
    pin: stage.pin,
    figure: () => figure(stage.current),
    pinned: () => stage.current.pinned,
  };
}
