// The stage of a heatmap: a canvas of its cells, and around it plain elements for token labels, axis
// titles, grid lines, the colour bar, and marks above the cells.
import { el, shorten, cssVariable } from "../../core/dom.js";
import { formatPercent } from "../../core/format.js";
import { arrowStep, hasModifier } from "../../core/keys.js";
import { t } from "../../core/language.js";

const TICKS = 40;
const ROW = 18; // pixels of a row that is lowered so that the map fits the screen
const TICK_SPACE = 14; // pixels per label at least
const FONT = 12;
const LONGEST_LABEL = 130,
  LONGEST_PAIR = 170,
  PAIRED = 0.33; // share of the width for labels of two tokens; beyond it, rows are named by one token
const PAIR = " → ";
const GRID = 40; // columns up to which grid lines separate cells
const SIGNED = 0.25; // strength of a colour from which its sign is written
const FIGURE = { least: 0.1, width: 20, height: 13, wide: 33 }; // weight and pixels from which a cell has its figure
export const NONE = { row: null, column: null }; // no cell
const UNLIT = { rows: [], columns: [], decisive: [] };
let pen = null; // measures texts

function textWidth(text) {
  if (!pen) {
    pen = document.createElement("canvas").getContext("2d");
    pen.font = `${FONT}px ${cssVariable("--atlas-font")}`;
  }
  return pen.measureText(text).width;
}

/** Position an element: {left, top, ...} in pixels. */
export function positionAt(node, place) {
  for (const [side, pixels] of Object.entries(place)) node.style[side] = `${pixels}px`;
  return node;
}

// Return how many items share a label, so that labels have room.
const tickStep = (count, space) =>
  Math.max(1, Math.ceil(count / Math.max(1, Math.min(TICKS, Math.floor(space / TICK_SPACE)))));

// Return an axis's labels: {shown, labels, widest}; shown: indices of the labelled items; labels: a text
// each, or two if pairs has both tokens of each item.
function axisTicks(items, space, pairs = null) {
  const step = tickStep(items.length, space),
    labelled = [...items.keys()].filter((i) => i % step === 0),
    last = items.length - 1;
  if (last % step) labelled.splice(labelled.length > 1 ? -1 : 1, 1, last); // always label the last item
  const labels = labelled.map((i) =>
    pairs ? pairs[i].map((text) => shorten(text, 12)) : shorten(items[i].label),
  );
  const widths = labels.map((label) => textWidth([label].flat().join(PAIR))),
    longest = pairs ? LONGEST_PAIR : LONGEST_LABEL;
  return { shown: labelled, labels, widest: Math.min(longest, Math.max(8, ...widths)) };
}

// Return the labels of the visible part of a large map's axis.
function visibleTicks(items, first, count, room) {
  const step = tickStep(count, room),
    isShown = (i) => i % step === 0 && i + 0.5 >= first && i + 0.5 <= first + count;
  const labelled = [...items.keys()].filter(isShown);
  return { shown: labelled, labels: labelled.map((i) => shorten(items[i].label, 14)) };
}

export function largeTicks(map, { plotWidth, plotHeight }, seen) {
  const rows = visibleTicks(map.rows, seen.y, seen.height, plotHeight),
    columns = visibleTicks(map.columns, seen.x, seen.width, plotWidth);
  return { rows, columns, angle: -50 };
}

/** Whether a map of this width has room for both tokens of its rows. */
const fitsBeside = (labels, width) => labels.widest <= PAIRED * width;
export const fitsBothTokens = (items, pairs, width) =>
  fitsBeside(axisTicks(items, Infinity, pairs), width);

// Return the sizes of a map in pixels: margins for the labels, and cells as square as possible.
// place: {width, compact, height, highest}; height: the height to fill; highest: the largest height that keeps rows
// legible.
export function measure(map, { ticks }, titles, place) {
  const { width, compact = false, height = null, highest: maximum = Infinity } = place;
  const unit = Math.max(56, Math.ceil(Math.max(...ticks.texts.map(textWidth))) + 19); // distance of the unit from the bar, whose numbers are between
  const space = height ? height - 100 : Infinity,
    pairLabels = axisTicks(map.rows, space, titles.pairs),
    rows = titles.pairs && !fitsBeside(pairLabels, width) ? axisTicks(map.rows, space) : pairLabels;
  // Without a bar, the last column's turned label needs the room.
  const last = 14 + Math.ceil(0.65 * textWidth(shorten(map.columns.at(-1).label)));
  const [beside, above] = titles.corner ? [22, 22] : [38, 40]; // room for the axes' titles
  const left =
      Math.max(Math.ceil(rows.widest), titles.corner ? textWidth(titles.corner[0]) : 0) + beside,
    right = compact ? last : map.overlay ? unit + 28 : 58;
  const filling = (above) => Math.min(40, (height - above - 8) / map.rows.length); // fills the given height
  const inner = Math.max(80, width - left - right),
    widest = height ? Math.max(8, 2 * filling(90)) : 54;
  const columns = axisTicks(map.columns, Math.min(inner, widest * map.columns.length));
  const snap = (cell) => (cell >= 8 ? Math.floor(cell) : cell); // so that grid lines fall on pixels
  const cellWidth = snap(Math.min(54, widest, inner / map.columns.length));
  const between = cellWidth * (columns.shown[1] || 1);
  const angle = columns.widest + 8 < between ? 0 : between > 15 ? -50 : -90;
  const turned = Math.ceil(columns.widest * Math.abs(Math.sin((angle * Math.PI) / 180))),
    top = angle === 0 ? above + 6 : turned + above;
  const legible = map.rows.length <= TICKS ? TICK_SPACE : 0; // labels must not overlap
  const highest = Math.max(legible, Math.max(300, inner * 1.15) / map.rows.length),
    lowest = 130 / map.rows.length,
    room = Math.max(ROW, (maximum - top - 8) / map.rows.length),
    square = Math.max(lowest, Math.min(highest, 40, Math.max(cellWidth, 15)));
  const cellHeight = snap(height ? filling(top) : Math.min(room, square));
  const plotWidth = cellWidth * map.columns.length,
    plotHeight = cellHeight * map.rows.length;
  return {
    rows,
    rowTitle: rows === pairLabels ? titles.rows : titles.row,
    columns,
    left,
    top,
    compact,
    unit,
    angle,
    plotWidth,
    plotHeight,
    width: left + plotWidth + right,
    height: top + plotHeight + 8,
  };
}

// text: one token, or a pair
function createLabel(text, kind, place) {
  const content = Array.isArray(text)
    ? el("bdi", { dir: "ltr" }, [
        el("span", { class: "read" }, text[0], PAIR),
        el("span", { class: "token" }, text[1]),
      ])
    : el("bdi", {}, text);
  return positionAt(el("span", { class: `axis-label ${kind}` }, content), place);
}

/** Return the visible part of a map that is drawn whole: {x, y, width, height} in cells. */
export function wholeMap({ rows, columns }) {
  return { x: 0, y: 0, width: columns.length, height: rows.length };
}

// Return the labels of the visible cells.
function createLabels({ size, titles, seen }, { rows, columns, angle, rowTitle = titles.rows }) {
  const { left, top, width, height, plotWidth, plotHeight } = size;
  const ofRows = rows.shown.map((row, i) =>
    createLabel(rows.labels[i], "row", {
      right: width - left + 6,
      top: top + ((row + 0.5 - seen.y) / seen.height) * plotHeight,
    }),
  );
  const ofColumns = columns.shown.map((column, i) => {
    const node = createLabel(columns.labels[i], angle ? "column turned" : "column", {
      left: left + ((column + 0.5 - seen.x) / seen.width) * plotWidth,
      bottom: height - top + 5,
    });
    node.style.rotate = `${angle}deg`;
    return node;
  });
  // The rows' title is centred on the rows, moved to stay inside the picture, and cut if it is
  // longer than the picture.
  const half = Math.min(height, textWidth(rowTitle)) / 2,
    middle = Math.max(half, Math.min(top + plotHeight / 2, height - half));
  if (titles.corner) {
    const fits = (text) => textWidth(text) <= left - 6,
      [down, across] = titles.corner.map((text) => (fits(text) ? text : "")),
      note = positionAt(el("span", { class: "axis-label title corner" }), {
        right: width - left + 6,
        bottom: height - top + 5,
      });
    note.append(...(angle && across ? [across, el("br")] : []), down);
    return [...ofRows, ...ofColumns, note];
  }
  return [
    ...ofRows,
    ...ofColumns,
    createLabel(rowTitle, "title row-title", { top: middle, maxWidth: height }),
    createLabel(titles.columns, "title", { left: left + plotWidth / 2 }),
  ];
}

// Return the lines between the visible cells: where a sentence ends, and between all cells if they are few.
function createLines(drawing) {
  const { map, seen, size } = drawing,
    { left, top, plotWidth, plotHeight } = size;
  const isRuled = map.columns.length <= GRID && map.rows.length <= GRID;
  const lines = (items, side, first, pixels) =>
    items.map(({ ends }, i) => {
      if (!ends && !isRuled) return null;
      const line = el("i", { class: `${ends ? "bound" : "rule"} ${side}` });
      return positionAt(line, { [side]: (i + 1 - first) * pixels });
    });
  const node = el("div", { class: "cells" }, [
    lines(map.columns, "left", seen.x, plotWidth / seen.width),
    lines(map.rows, "top", seen.y, plotHeight / seen.height),
    map.joint &&
      positionAt(el("i", { class: "divider" }), {
        left: (map.sourceColumns * plotWidth) / seen.width - 1,
      }),
  ]);
  return positionAt(node, { left, top, width: plotWidth, height: plotHeight });
}

// Return the figures in the cells of a map of weights, and the signs in those of a signed map, where they fit.
function createFigures({ map, colouring, seen, size: { plotWidth, plotHeight } }) {
  const [width, height] = [plotWidth / seen.width, plotHeight / seen.height];
  if (map.pyramid || (map.overlay && !map.signed)) return [];
  if (width < FIGURE.width || height < FIGURE.height) return [];
  const textOf = map.signed
    ? (value) => (colouring.strength(value) < SIGNED ? "" : value < 0 ? "−" : "+")
    : (value) =>
        value < FIGURE.least
          ? ""
          : width < FIGURE.wide
            ? (100 * value).toFixed(0)
            : formatPercent(value);
  return Array.from(map.values, (value, i) => {
    const text = Number.isNaN(value) ? "" : textOf(value);
    if (!text) return null;
    const row = Math.floor(i / map.columns.length),
      [red, green, blue] = colouring.colour(value),
      tone = 0.299 * red + 0.587 * green + 0.114 * blue > 128 ? "dark" : "light";
    return positionAt(el("b", { class: `figure ${tone}` }, text), {
      left: (i % map.columns.length) * width,
      top: row * height,
      width,
      height,
      lineHeight: height,
    });
  });
}

function createColourBar({ colours, ticks, unit }, size) {
  const style = `background: linear-gradient(to top, ${colours.join(", ")})`,
    tick = (text, i) => el("span", { style: `bottom: ${100 * ticks.places[i]}%` }, text);
  const bar = el("div", { class: "colour-bar", style }, [
    ticks.texts.map(tick),
    unit ? el("b", { class: "unit", style: `left: ${size.unit}px` }, unit) : null,
  ]);
  const { left, top, plotWidth, plotHeight } = size;
  return positionAt(bar, { left: left + plotWidth + 12, top, height: plotHeight });
}

// Return what a frame depends on, as a text: all but the weights and the figures in the cells.
function describeFrame({ map, colouring, seen, size, titles }, labels) {
  const { colours, ticks, unit } = colouring,
    endsOf = (items) => items.map(({ ends }) => Boolean(ends)),
    bounds = [endsOf(map.rows), endsOf(map.columns), map.joint && map.sourceColumns];
  const { rows, columns, corner } = titles;
  return JSON.stringify({
    labels,
    rows,
    columns,
    corner,
    size,
    seen,
    bounds,
    colours,
    ticks,
    unit,
  });
}

/**
 * Create the stage of a map: a canvas `plot` of its cells, the frame around them, and the marks above them.
 * @param {{hover: (row: number | null, column: number | null) => void, [name: string]: any}} hooks hover: null for a whole
 *   row or column, and for both on leaving
 * @param {string} [name] class of the stage
 */
export function createStage(hooks, name = "") {
  const plot = el("canvas", { class: "plot" }),
    frame = el("div", { class: "frame", "aria-hidden": "true" }),
    marks = el("div", { class: "marks" });
  const figures = el("div"); // in the cells
  let drawnFrame = ""; // the description of the frame on the page
  const about = { tabindex: "0", role: "application", "aria-roledescription": t("heatmap") },
    root = el("div", { class: `detail ${name}`.trim(), ...about }, plot, frame, marks);

  // Return the [start, end] of an item in pixels, cut to the visible part; of null, the whole axis.
  function span(at, first, count, room) {
    if (at === null) return [0, room];
    const from = ((at - first) * room) / count;
    return [Math.max(0, from), Math.min(room, from + room / count)];
  }

  function box(kind, row, column) {
    const { size, seen } = stage.current,
      [left, right] = span(column, seen.x, seen.width, size.plotWidth),
      [top, bottom] = span(row, seen.y, seen.height, size.plotHeight);
    if (right <= left || bottom <= top) return null;
    return positionAt(el("div", { class: `mark ${kind}` }), {
      left: size.left + left,
      width: Math.max(2, right - left),
      top: size.top + top,
      height: Math.max(2, bottom - top),
    });
  }

  // Return the shades beside the lit rows or columns, their frame, and the frame of the decisive cells.
  function litBoxes({ rows, columns, decisive }) {
    const { map } = stage.current,
      [along, count] = rows.length ? [rows, map.rows.length] : [columns, map.columns.length];
    if (!along.length) return [];
    const boxOf = (kind, at) => (rows.length ? box(kind, at, null) : box(kind, null, at));
    const others = Array.from({ length: count }, (_, i) => i).filter((i) => !along.includes(i));
    return [
      ...others.map((i) => boxOf("shade", i)),
      ...along.map((i) => boxOf("lit", i)),
      ...decisive.flatMap((at) => rows.map((i) => box("decisive", i, at))),
    ];
  }

  function mark() {
    const { cursor, pinned, lit } = stage,
      { row, column } = pinned;
    const nodes = [
      ...litBoxes(lit),
      row !== null && column !== null && box("pinned cell", row, column),
      row !== null && box("pinned", row, null),
      column !== null && box("pinned", null, column),
      cursor && box("cursor", cursor.row, cursor.column),
    ];
    marks.replaceChildren(...nodes.filter(Boolean));
  }

  const stage = {
    root,
    plot,
    current: null, // what show() got
    pinned: NONE,
    lit: UNLIT, // see light()
    cursor: null, // {row, column} under the pointer or the keyboard's cursor
    isDragged: false,
    /**
     * Lay out a picture around its cells and set its name.
     * @param {any} drawing {map, colouring, size, titles, seen}; seen: {x, y, width, height} of the visible cells
     */
    show(drawing) {
      Object.assign(stage, { current: drawing, pinned: NONE, lit: UNLIT, cursor: null });
      const { left, top, width, height, plotWidth, plotHeight } = drawing.size;
      positionAt(plot, { left, top, width: plotWidth, height: plotHeight });
      positionAt(root, { width, height });
      root.setAttribute("aria-label", drawing.titles.label);
    },
    /**
     * Draw the frame around the visible cells, unless it is there already: to draw it takes longer than the cells.
     * @param {any} labels {rows, columns, angle}
     */
    surround(labels) {
      const { colouring, size } = stage.current,
        description = describeFrame(stage.current, labels);
      if (description !== drawnFrame) {
        const cells = createLines(stage.current);
        cells.prepend(figures);
        frame.replaceChildren(
          cells,
          ...createLabels(stage.current, labels),
          ...(size.compact ? [] : [createColourBar(colouring, size)]),
        );
        drawnFrame = description;
      }
      figures.replaceChildren(...createFigures(stage.current).filter(Boolean));
      mark();
    },
    point(cell) {
      const { cursor } = stage;
      if (cell?.row === cursor?.row && cell?.column === cursor?.column) return;
      stage.cursor = cell;
      mark();
      hooks.hover(cell?.row ?? null, cell?.column ?? null);
    },
    pin(pinned) {
      stage.pinned = pinned;
      mark();
    },
    /** Light rows or columns, and mark decisive columns. @param {any} lit {rows, columns, decisive}: indices */
    light(lit) {
      stage.lit = lit ?? UNLIT;
      if (stage.current) mark();
    },
    // Return where an event points, as shares of the cells' width and height.
    place(event) {
      const { size } = stage.current,
        box = root.getBoundingClientRect(),
        scale = size.width / box.width; // a presentation scales the page
      return [
        ((event.clientX - box.left) * scale - size.left) / size.plotWidth,
        ((event.clientY - box.top) * scale - size.top) / size.plotHeight,
      ];
    },
    // Listen to an event once something is drawn.
    listen: (name, act, options) =>
      root.addEventListener(name, (event) => stage.current && act(event), options),
    // Listen to keys: act(key, step) gets the step of an arrow key, and returns whether the key has a meaning.
    listenKeys: (act) =>
      stage.listen("keydown", (event) => {
        if (hasModifier(event) || act(event.key, arrowStep(event)) === false) return;
        event.preventDefault();
        event.stopPropagation();
      }),
  };

  // Return the {row, column} at which an event points; beside a label one of them is null.
  function cellAt(event) {
    const [across, down] = stage.place(event),
      { x, y, width, height } = stage.current.seen;
    const column = across >= 0 && across < 1 ? Math.floor(x + across * width) : null,
      row = down >= 0 && down < 1 ? Math.floor(y + down * height) : null;
    const isCell = row !== null && column !== null,
      isLabel = (row !== null && across < 0) || (column !== null && down < 0);
    return isCell || isLabel ? { row, column } : null;
  }
  stage.listen("pointermove", (event) => {
    if (event.pointerType !== "touch" && !stage.isDragged) stage.point(cellAt(event));
  });
  stage.listen("pointerleave", () => stage.point(null));
  stage.listen("click", (event) => {
    const cell = stage.isDragged ? null : cellAt(event);
    if (cell) hooks.pin(cell.row, cell.column);
  });
  return stage;
}
