// A map of more than 256 tokens a side, drawn from image tiles. Each tile is from the level of the
// pyramid (viz/wire/tiles.py) whose cells are at least one pixel, so that a single bright cell stays
// visible at any zoom. Wheel, dragging and keys zoom and move.
import { createStage, largeTicks, wholeMap } from "./frame.js";

const LEFT = 104, // pixels around the cells
  TOP = 92,
  RIGHT = 58;
const CLOSEST = 8; // cells per side at the closest zoom
const REST = 120; // milliseconds that the pointer rests before the exact weight is requested
const STEP = 1.3; // zoom factor of a key or a wheel's notch
const STILL = 4; // pixels up to which a drag counts as a click

const within = (value, least, most) => Math.max(least, Math.min(value, most));

// place: {width, height, highest}
function measure(map, { width, height, highest }) {
  const shape = map.columns.length / map.rows.length;
  const room = (height ?? Math.min(highest, 900)) - TOP - 8,
    inner = Math.max(120, width - LEFT - RIGHT);
  const plotHeight = Math.max(160, Math.min(room, inner / shape)),
    plotWidth = Math.min(inner, Math.max(160, plotHeight * shape));
  return {
    left: LEFT,
    top: TOP,
    unit: RIGHT,
    plotWidth,
    plotHeight,
    width: LEFT + plotWidth + RIGHT,
    height: TOP + plotHeight + 8,
  };
}

/**
 * Create a large map.
 * @param {any} hooks those of createDetail(), tiles(map, wanted) to fetch [level, row, column] tiles, and exact(map, row,
 *   column) to fetch a weight
 */
export function createLarge(hooks) {
  let frame = 0,
    rest = null,
    grip = null; // start of a drag

  function hover(row, column) {
    clearTimeout(rest);
    hooks.hover(row, column);
    const { map } = stage.current;
    if (row !== null && column !== null)
      rest = setTimeout(() => hooks.exact(map, row, column), REST);
  }
  const stage = createStage({ ...hooks, hover }, "large"),
    { root, plot } = stage;

  // Return the visible tiles. While some are missing, the tiles of the whole map lie below them.
  function visibleTiles() {
    const { map, size, seen } = stage.current,
      { pyramid } = map;
    const finest = Math.max(seen.width / size.plotWidth, seen.height / size.plotHeight);
    const tiles = pyramid.within(pyramid.level(finest), seen.x, seen.y, seen.width, seen.height),
      missing = tiles.filter((tile) => !pyramid.tile(...tile));
    if (missing.length) hooks.tiles(map, missing);
    return [...(missing.length ? pyramid.within(pyramid.whole) : []), ...tiles].filter((tile) =>
      pyramid.tile(...tile),
    );
  }

  function render() {
    frame = 0;
    const { map, colouring, size, seen } = stage.current;
    plot.width = size.plotWidth * devicePixelRatio;
    plot.height = size.plotHeight * devicePixelRatio;
    const pen = plot.getContext("2d");
    pen.imageSmoothingEnabled = false;
    pen.scale(plot.width / seen.width, plot.height / seen.height);
    pen.translate(-seen.x, -seen.y);
    for (const tile of visibleTiles()) {
      const { picture, x, y, width, height } = map.pyramid.picture(tile, colouring);
      pen.drawImage(picture, x, y, width, height);
    }
    stage.surround(largeTicks(map, size, seen));
  }

  const schedule = () => (frame ||= requestAnimationFrame(render));

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

  const zoom = (event) => {
    if (event.deltaY > 0 && zoomOf(stage.current) === 1) return; // the whole map is visible: let the page scroll
    event.preventDefault();
    const notches = -event.deltaY / (event.deltaMode ? 3 : 100);
    zoomBy(
      STEP ** notches,
      stage.place(event).map((share) => within(share, 0, 1)),
    );
  };
  stage.listen("wheel", zoom, { passive: false });
  stage.listen("pointerdown", (event) => {
    const { clientX, clientY, button } = event;
    if (!button) grip = { clientX, clientY, place: stage.place(event), seen: stage.current.seen };
  });
  stage.listen("pointermove", (event) => {
    if (!grip) return;
    const distance = Math.hypot(event.clientX - grip.clientX, event.clientY - grip.clientY);
    if (!stage.isDragged && distance < STILL) return;
    if (!stage.isDragged) root.setPointerCapture(event.pointerId);
    stage.isDragged = true;
    root.classList.add("dragged");
    const [across, down] = stage.place(event).map((share, i) => share - grip.place[i]),
      { x, y, width, height } = grip.seen;
    showPart({ x: x - across * width, y: y - down * height });
  });
  const release = () => {
    grip = null;
    root.classList.remove("dragged");
    setTimeout(() => (stage.isDragged = false)); // after the click event that follows
  };
  stage.listen("pointerup", release);
  stage.listen("pointercancel", release);
  stage.listenKeys((key, arrow) => {
    const { x, y, width, height } = stage.current.seen,
      step = zoomOf(stage.current) > 1 && arrow;
    if (step) showPart({ x: x + (step[1] * width) / 8, y: y + (step[0] * height) / 8 });
    else if (key === "+" || key === "=") zoomBy(STEP);
    else if (key === "-") zoomBy(1 / STEP);
    else if (key === "0") showPart({ zoom: 1 });
    else return false;
  });

  return {
    root,
    // Draw a map, as createDetail() does. The visible part stays for another head of the same kind.
    draw(map, colouring, titles, options) {
      const before = stage.current,
        isSame = before?.map.trace === map.trace && before.map.kind === map.kind;
      const width = root.parentElement.clientWidth || 640,
        size = measure(map, { ...options, width }),
        seen = isSame ? before.seen : wholeMap(map);
      stage.show({ map, colouring, size, titles, seen });
      render();
    },
    pin: stage.pin,
    light: stage.light,
    redraw: () => root.isConnected && render(), // after tiles arrived
    cursor: () => stage.cursor,
  };
}
