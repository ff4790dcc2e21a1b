// One map as a heatmap.
import { paintMap } from "../../core/colours.js";
import { clamp } from "../../core/keys.js";
import { createStage, measure, wholeMap } from "./frame.js";

/**
 * Create a map.
 * @param {any} hooks hover(row, column) and pin(row, column), with null for a whole column or row; hover(null, null) on leaving
 */
export function createDetail(hooks) {
  const stage = createStage(hooks);

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
    },
    pin: stage.pin,
  };
}
