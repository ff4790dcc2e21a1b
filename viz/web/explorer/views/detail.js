// One map as a Plotly heatmap; a canvas shows it until Plotly has loaded, and in files without Plotly.
import { paintMap } from "../../core/colours.js";
import { afterPaint, el } from "../../core/dom.js";
import { clamp } from "../../core/keys.js";
import { loadPlotly, nextTask } from "../../core/plotly.js";
import { createStage, measure, positionAt, wholeMap } from "./frame.js";

// Return the figure of the cells alone: labels and marks are elements, which stay when the head changes.
function heatmapFigure({ map, colouring, size }) {
  const width = map.columns.length,
    place = (value) => (Number.isNaN(value) ? null : colouring.place(value)),
    rowOf = (_, row) => Array.from(map.values.subarray(row * width, (row + 1) * width), place),
    clear = "rgba(0,0,0,0)";
  const scale = { zmin: 0, zmax: 1, colorscale: colouring.plotly, showscale: false };
  return {
    data: [{ type: "heatmap", z: map.rows.map(rowOf), ...scale, hoverinfo: "skip" }],
    layout: {
      paper_bgcolor: clear,
      plot_bgcolor: clear,
      width: size.plotWidth,
      height: size.plotHeight,
      margin: { l: 0, r: 0, t: 0, b: 0, pad: 0 },
      xaxis: { visible: false, range: [-0.5, width - 0.5] },
      yaxis: { visible: false, range: [map.rows.length - 0.5, -0.5] },
    },
    config: { staticPlot: true },
  };
}

/**
 * Create a map.
 * @param {any} hooks hover(row, column) and pin(row, column), with null for a whole column or row; hover(null, null) on leaving;
 *   play(map, row)
 */
export function createDetail(hooks) {
  const stage = createStage(hooks),
    heatmap = el("div", { class: "heatmap" });
  stage.plot.after(heatmap);

  async function drawHeatmap(drawing) {
    heatmap.style.visibility = "hidden"; // it still shows the map before
    await afterPaint().then(loadPlotly).then(nextTask);
    if (stage.current !== drawing) return;
    const { left, top } = drawing.size;
    Plotly.react(positionAt(heatmap, { left, top }), heatmapFigure(drawing));
    heatmap.style.visibility = "";
  }

  stage.listenKeys((key, step) => {
    const { current, cursor, pinned } = stage,
      { rows, columns } = current.map,
      row = cursor?.row ?? pinned.row ?? 0,
      column = cursor?.column ?? pinned.column ?? 0;
    const [down, right] = (cursor && step) || [0, 0]; // the first arrow only shows the cursor
    if (step)
      stage.point({
        row: clamp(row + down, rows.length),
        column: clamp(column + right, columns.length),
      });
    else if (key === "Enter" || key === " ") hooks.pin(row, column);
    else if (key === "r") hooks.pin(row, null);
    else if (key === "k") hooks.pin(null, column);
    else if (key === "n") hooks.play(current.map, row);
    else return false;
  });

  return {
    root: stage.root,
    /**
     * Draw a map.
     * @param {any} map of scoreMap() in model.js @param {any} colouring of scale.js @param {any} titles {rows, columns, label}
     * @param {any} [options] compact: without a colour bar; height: to fill; highest: the largest height
     */
    draw(map, colouring, titles, options = {}) {
      const width = stage.root.parentElement.clientWidth || 640,
        size = measure(map, colouring, titles, { ...options, width }),
        cells = { values: map.values, rows: map.rows.length, columns: map.columns.length };
      paintMap(stage.plot, cells, colouring.colour);
      stage.show({ map, colouring, size, titles, seen: wholeMap(map) });
      stage.surround(size);
      drawHeatmap(stage.current).catch(() => {}); // without Plotly, the canvas stays
    },
    pin: stage.pin,
    light: stage.light,
  };
}
