// A map of more than 256 tokens a side, as a Plotly figure made of image tiles. Each tile is from
// the level of the pyramid (viz/wire/tiles.py) whose cells are at least one pixel, so that a single
// bright cell stays visible at any zoom. Wheel, dragging and keys zoom and move.
import { cssVariable } from "../../core/dom.js";
import { arrowStep, hasModifier } from "../../core/keys.js";
import { loadPlotly } from "../../core/plotly.js";
import {
  CONFIG,
  cellsLayout,
  createStage,
  largeTicks,
  axisRanges,
  wholeLayout,
  wholeMap,
} from "./frame.js";

const LEFT = 104, // pixels around the cells
  TOP = 92,
  RIGHT = 58;
const CLOSEST = 8; // cells per side at the closest zoom
const REST = 120; // milliseconds that the pointer rests before the exact weight is requested
const STEP = 1.3; // zoom factor of a key or a wheel's notch
const STILL = 4; // pixels up to which a drag counts as a click

const within = (value, least, most) => Math.max(least, Math.min(value, most));

/** @param {any} map @param {any} place {width, compact, height, highest} */
function measure(map, { width, compact, height, highest = Infinity }) {
  const right = compact ? 14 : RIGHT,
    shape = map.columns.length / map.rows.length;
  const room = (height ?? Math.min(highest, 900)) - TOP - 8,
    inner = Math.max(120, width - LEFT - right);
  const plotHeight = Math.max(160, Math.min(room, inner / shape)),
    plotWidth = Math.min(inner, Math.max(160, plotHeight * shape));
  return {
    left: LEFT,
    top: TOP,
    right,
    plotWidth,
    plotHeight,
    width: LEFT + plotWidth + right,
    height: TOP + plotHeight + 8,
  };
}

// Return lines between a document's sentences.
function bounds({ rows, columns }) {
  const line = { color: cssVariable("--atlas-accent"), width: 1, dash: "dot" };
  const ends = (items) => items.flatMap(({ ends }, i) => (ends ? [i + 0.5] : []));
  const across = ends(columns).map((x) => ({ x0: x, x1: x, y0: -0.5, y1: rows.length }));
  const down = ends(rows).map((y) => ({ y0: y, y1: y, x0: -0.5, x1: columns.length }));
  return [...across, ...down].map((place) => ({ type: "line", line, ...place }));
}

/**
 * Create a large map.
 * @param {any} hooks those of createDetail(), tiles(map, wanted) to fetch [level, row, column] tiles, and exact(map, row,
 *   column) to fetch a weight
 */
export function createLarge(hooks) {
  const stage = createStage(hooks, "large"),
    { root, plot } = stage;
  let drawnTiles = "", // tiles of the figure, as JSON
    frame = 0,
    rest = null,
    grip = null; // start of a drag

  // Return the visible tiles as images. While some are missing, the tiles of the whole map lie
  // below them.
  function images() {
    const { map, colouring, size, seen } = stage.current,
      { pyramid } = map;
    const finest = Math.max(seen.width / size.plotWidth, seen.height / size.plotHeight);
    const tiles = pyramid.within(pyramid.level(finest), seen.x, seen.y, seen.width, seen.height),
      missing = tiles.filter((tile) => !pyramid.tile(...tile));
    if (missing.length) hooks.tiles(map, missing);
    return [...(missing.length ? pyramid.within(pyramid.whole) : []), ...tiles]
      .filter((tile) => pyramid.tile(...tile))
      .map((tile) => pyramid.image(tile, colouring));
  }

  // Return the figure with a layout of frame.js.
  const figure = (layout, tiles) => ({
    data: [{ type: "scatter", x: [null], y: [null], hoverinfo: "skip" }],
    layout: { ...layout, images: tiles, shapes: bounds(stage.current.map) },
  });

  function render() {
    frame = 0;
    if (!stage.current || !window.Plotly) return;
    const { map, size, seen } = stage.current,
      tiles = images();
    const key = JSON.stringify([map.head, tiles.map(({ name }) => name), size]);
    if (key !== drawnTiles) {
      drawnTiles = key;
      const { data, layout } = figure(cellsLayout(stage.current), tiles);
      Plotly.react(plot, data, layout, CONFIG);
    } else Plotly.relayout(plot, axisRanges(seen));
    drawAround();
  }

  const schedule = () => (frame ||= requestAnimationFrame(render));

  // Draw labels and marks of the visible part.
  function drawAround() {
    stage.surroundPart(stage.current);
    stage.mark();
  }

  const zoomOf = ({ map, seen }) => map.columns.length / seen.width;
  function limitZoom(zoom) {
    const { rows, columns } = stage.current.map;
    return within(zoom, 1, Math.max(columns.length, rows.length) / CLOSEST);
  }

  /** Show a part of the map. @param {{x?: number, y?: number, zoom?: number}} part first column and row, and enlargement */
  function showPart({ x, y, zoom = zoomOf(stage.current) }) {
    const { map, seen } = stage.current,
      times = limitZoom(zoom),
      width = map.columns.length / times,
      height = map.rows.length / times;
    stage.current.seen = {
      x: within(x ?? seen.x, 0, map.columns.length - width),
      y: within(y ?? seen.y, 0, map.rows.length - height),
      width,
      height,
    };
    root.style.touchAction = times > 1 ? "none" : "pan-y";
    schedule();
  }

  /** Zoom around a point. @param {number} factor @param {number[]} point in shares of the picture */
  function zoomBy(factor, [across, down] = [0.5, 0.5]) {
    const { x, y, width, height } = stage.current.seen,
      before = zoomOf(stage.current),
      zoom = limitZoom(before * factor),
      shrunk = 1 - before / zoom;
    showPart({ zoom, x: x + width * across * shrunk, y: y + height * down * shrunk });
  }

  function point(cell) {
    clearTimeout(rest);
    stage.point(cell);
    const { map } = stage.current;
    if (cell && cell.row !== null && cell.column !== null)
      rest = setTimeout(() => hooks.exact(map, cell.row, cell.column), REST);
  }

  // Ignore events until something is drawn.
  const listen = (name, heard, options) =>
    root.addEventListener(name, (event) => stage.current && heard(event), options);
  const zoom = (event) => {
    if (event.deltaY > 0 && zoomOf(stage.current) === 1) return; // the whole map is visible: let the page scroll
    event.preventDefault();
    const notches = -event.deltaY / (event.deltaMode ? 3 : 100);
    zoomBy(
      STEP ** notches,
      stage.place(event).map((share) => within(share, 0, 1)),
    );
  };
  listen("wheel", zoom, { passive: false });
  listen("pointerdown", (event) => {
    const { clientX, clientY, button } = event;
    if (!button) grip = { clientX, clientY, place: stage.place(event), seen: stage.current.seen };
  });
  listen("pointermove", (event) => {
    if (!grip && event.pointerType !== "touch") point(stage.cellAt(event));
    if (!grip) return;
    const distance = Math.hypot(event.clientX - grip.clientX, event.clientY - grip.clientY);
    if (!grip.moved && distance < STILL) return;
    if (!grip.moved) root.setPointerCapture(event.pointerId);
    grip.moved = true;
    root.classList.add("dragged");
    const [across, down] = stage.place(event).map((share, i) => share - grip.place[i]),
      { x, y, width, height } = grip.seen;
    showPart({ x: x - across * width, y: y - down * height });
  });
  const release = () => {
    root.classList.remove("dragged");
    setTimeout(() => (grip = null)); // after the click event that follows
  };
  listen("pointerup", release);
  listen("pointercancel", release);
  listen("pointerleave", () => point(null)); // a drag captures the pointer: fires when it ends
  listen("click", (event) => {
    const cell = grip?.moved ? null : stage.cellAt(event);
    if (cell) hooks.pin(cell.row, cell.column);
  });
  listen("keydown", (event) => {
    if (hasModifier(event)) return;
    const { x, y, width, height } = stage.current.seen,
      step = zoomOf(stage.current) > 1 && arrowStep(event);
    if (step) showPart({ x: x + (step[1] * width) / 8, y: y + (step[0] * height) / 8 });
    else if (event.key === "+" || event.key === "=") zoomBy(STEP);
    else if (event.key === "-") zoomBy(1 / STEP);
    else if (event.key === "0") showPart({ zoom: 1 });
    else return;
    event.preventDefault();
    event.stopPropagation();
  });

  return {
    root,
    // Draw a map, as createDetail() does. The visible part stays for another head of the same kind.
    draw(map, colouring, pinned, titles, options = {}) {
      const before = stage.current,
        isSame = before?.map.trace === map.trace && before.map.kind === map.kind;
      const size = measure(map, { width: root.parentElement.clientWidth || 640, ...options }),
        seen = isSame ? before.seen : wholeMap(map);
      stage.current = { map, colouring, size, titles, pinned, seen };
      stage.cursor = null;
      stage.surroundPart(stage.current);
      stage.show();
      loadPlotly().then(schedule);
    },
    pin: stage.pin,
    redraw: () => root.isConnected && render(), // after tiles arrived
    cursor: () => stage.cursor,
    figure() {
      const { map, size, seen } = stage.current;
      return figure(wholeLayout(stage.current, largeTicks(map, size, seen)), images());
    },
    pinned: () => stage.current.pinned,
  };
}
