// What stands around a heatmap: token labels, axis titles, grid lines, colour bar. Plain elements, built anew only when
// the tokens or sizes change: labels are most of what a Plotly redraw costs (30 of 40 ms at 30 tokens), and a change
// of head leaves them as they are.
import { el, shorten } from "../../core/dom.js";
import { said, t } from "../../core/language.js";

const TICKS = 40;
const ROW = 18; // pixels of a row that is made lower, so that the map is whole on the screen
const TICK_SPACE = 14; // pixels that a label needs at least
export const FONT = 12;
const LONGEST_LABEL = 130,
  LONGEST_PAIR = 170,
  PAIRED = 0.33; // of the width that labels of two tokens may take; else a row carries one
const PAIR = " → ";
const GRID = 40; // columns up to which cells are told apart by lines
const widths = new Map();
let measuring = null;

function textWidth(text) {
  if (!widths.has(text)) {
    if (!measuring) {
      measuring = document.createElement("canvas").getContext("2d");
      measuring.font = `${FONT}px ${getComputedStyle(document.body).getPropertyValue("--atlas-font")}`;
    }
    if (widths.size > 5000) widths.clear();
    widths.set(text, measuring.measureText(text).width);
  }
  return widths.get(text);
}

// pairs: in place of an item's label two, of which both are shown
function axisTicks(items, space, pairs = null) {
  const step = Math.max(
    1,
    Math.ceil(items.length / Math.max(1, Math.min(TICKS, Math.floor(space / TICK_SPACE)))),
  );
  const shown = items.map((_, i) => i).filter((i) => i % step === 0),
    last = items.length - 1;
  if (last % step) shown.splice(shown.length > 1 ? -1 : 1, 1, last); // the end is named, too
  const two = pairs && shown.map((i) => pairs[i].map((text) => shorten(text, 12)));
  const texts = two
      ? two.map((pair) => pair.join(PAIR))
      : shown.map((i) => shorten(items[i].label)),
    longest = two ? LONGEST_PAIR : LONGEST_LABEL;
  return { shown, texts, two, widest: Math.min(longest, Math.max(8, ...texts.map(textWidth))) };
}

// Whether rows of a map this wide can carry both of their tokens.
const fits = (labels, width) => labels.widest <= PAIRED * width;
export const namesBoth = (items, pairs, width) => fits(axisTicks(items, Infinity, pairs), width);

// Sizes in pixels: margins that hold the labels, cells as square as the panel allows.
// height: what there is to fill; highest: what there is at most, as far as rows stay legible.
function measure(map, { width, compact, height, highest: most = Infinity }, { ticks, titles }) {
  const unit = Math.max(56, Math.ceil(Math.max(...ticks.texts.map(textWidth))) + 19); // where it stands, beside the bar and its numbers
  const space = height ? height - 100 : Infinity,
    both = axisTicks(map.rows, space, titles.pairs),
    rows = titles.pairs && !fits(both, width) ? axisTicks(map.rows, space) : both;
  // Beside a map without a bar the last column's label, turned, needs its room.
  const last = 14 + Math.ceil(0.65 * textWidth(shorten(map.columns.at(-1).label)));
  const left = Math.ceil(rows.widest) + 38,
    right = compact ? last : map.overlay ? unit + 28 : 58;
  const filling = (above) => Math.min(40, (height - above - 8) / map.rows.length); // the height that is given
  const inner = Math.max(80, width - left - right),
    widest = height ? Math.max(8, 2 * filling(90)) : 54;
  const columns = axisTicks(map.columns, Math.min(inner, widest * map.columns.length));
  const whole = (cell) => (cell >= 8 ? Math.floor(cell) : cell); // lines between cells then fall on pixels
  const cellWidth = whole(Math.min(54, widest, inner / map.columns.length));
  const between = cellWidth * (columns.shown[1] || 1);
  const angle = columns.widest + 8 < between ? 0 : between > 15 ? -50 : -90;
  const top =
    angle === 0 ? 46 : Math.ceil(columns.widest * Math.abs(Math.sin((angle * Math.PI) / 180))) + 40;
  const legible = map.rows.length <= TICKS ? TICK_SPACE : 0; // no label upon another
  const highest = Math.max(legible, Math.max(300, inner * 1.15) / map.rows.length),
    lowest = 130 / map.rows.length,
    room = Math.max(ROW, (most - top - 8) / map.rows.length);
  const cellHeight = whole(
    height
      ? filling(top)
      : Math.min(room, Math.max(lowest, Math.min(highest, 40, Math.max(cellWidth, 15)))),
  );
  return {
    rows,
    rowTitle: rows === both ? titles.rows : titles.row,
    columns,
    left,
    right,
    top,
    unit,
    cellWidth,
    cellHeight,
    angle,
    plotWidth: cellWidth * map.columns.length,
    plotHeight: cellHeight * map.rows.length,
    width: left + cellWidth * map.columns.length + right,
    height: top + cellHeight * map.rows.length + 8,
  };
}

function label(text, kind, style) {
  const whole = Array.isArray(text)
    ? el(
        "bdi",
        { dir: "ltr" },
        el("span", { class: "read" }, text[0], PAIR),
        el("span", { class: "token" }, text[1]),
      )
    : el("bdi", {}, text);
  const node = el("span", { class: `axis-label ${kind}` }, whole);
  Object.assign(node.style, style);
  return node;
}

// Beside the middle of the rows; where it is longer than they are high, higher up; longer than the picture: it is cut.
function rowLabel(text, { top, plotHeight, height }) {
  const half = Math.min(height, textWidth(text)) / 2,
    at = Math.max(half, Math.min(top + plotHeight / 2, height - half));
  return label(text, "title row-title", { top: `${at}px`, maxWidth: `${height}px` });
}

function labels(size, titles) {
  const { rows, rowTitle, columns, left, top, cellWidth, cellHeight, angle } = size;
  const px = (value) => `${value}px`;
  return [
    ...rows.shown.map((row, i) =>
      label(rows.two?.[i] ?? rows.texts[i], "row", {
        right: px(size.width - left + 6),
        top: px(top + (row + 0.5) * cellHeight),
      }),
    ),
    ...columns.shown.map((column, i) =>
      label(columns.texts[i], angle ? "column turned" : "column", {
        left: px(left + (column + 0.5) * cellWidth),
        bottom: px(size.height - top + 5),
        rotate: `${angle}deg`,
      }),
    ),
    rowLabel(rowTitle, size),
    label(titles.columns, "title", { left: px(left + size.plotWidth / 2) }),
  ];
}

// Of the part of a large map that is seen, {x, y, width, height} in cells: as many labels as there is room for.
function partLabels(map, size, titles, { x, y, width, height }) {
  const { left, top, plotWidth, plotHeight } = size,
    px = (value) => `${value}px`;
  const ticks = (items, first, count, room) => {
    const space = Math.max(1, Math.min(TICKS, Math.floor(room / TICK_SPACE))),
      step = Math.max(1, Math.ceil(count / space));
    return items
      .slice(0, Math.ceil(first + count))
      .flatMap(({ label }, i) =>
        i % step || i + 0.5 < first || i + 0.5 > first + count
          ? []
          : [[shorten(label, 14), ((i + 0.5 - first) / count) * room]],
      );
  };
  return [
    ...ticks(map.rows, y, height, plotHeight).map(([text, at]) =>
      label(text, "row", { right: px(size.width - left + 6), top: px(top + at) }),
    ),
    ...ticks(map.columns, x, width, plotWidth).map(([text, at]) =>
      label(text, "column turned", {
        left: px(left + at),
        bottom: px(size.height - top + 5),
        rotate: "-50deg",
      }),
    ),
    label(titles.rows, "title row-title", { top: px(top + plotHeight / 2) }),
    label(titles.columns, "title", { left: px(left + plotWidth / 2) }),
  ];
}

function grid(map, size) {
  const node = el("div", { class: "cells" });
  Object.assign(node.style, {
    left: `${size.left}px`,
    top: `${size.top}px`,
    width: `${size.plotWidth}px`,
    height: `${size.plotHeight}px`,
  });
  if (map.columns.length <= GRID && map.rows.length <= GRID) {
    node.classList.add("ruled");
    node.style.backgroundSize = `${size.cellWidth}px ${size.cellHeight}px`;
  }
  if (map.joint) {
    const divider = el("i", { class: "divider" });
    divider.style.left = `${map.sourceColumns * size.cellWidth - 1}px`;
    node.append(divider);
  }
  const bound = (side, at) => {
    const line = el("i", { class: `bound ${side}` });
    line.style[side] = `${at}px`;
    node.append(line);
  };
  map.columns.forEach(({ ends }, i) => ends && bound("left", (i + 1) * size.cellWidth));
  map.rows.forEach(({ ends }, i) => ends && bound("top", (i + 1) * size.cellHeight));
  return node;
}

function colourBar({ colours, ticks, unit }, size) {
  const bar = el(
    "div",
    { class: "colour-bar", style: `background: linear-gradient(to top, ${colours.join(", ")})` },
    ticks.texts.map((text, i) => {
      const tick = el("span", {}, text);
      tick.style.bottom = `${100 * ticks.places[i]}%`;
      return tick;
    }),
    unit ? el("b", { class: "unit", style: `left: ${size.unit}px` }, unit) : null,
  );
  Object.assign(bar.style, {
    left: `${size.left + size.plotWidth + 12}px`,
    top: `${size.top}px`,
    height: `${size.plotHeight}px`,
  });
  return bar;
}

// Of every figure of a map: Plotly draws cells alone, and answers to nothing.
export const CONFIG = {
  staticPlot: true,
  displayModeBar: false,
  showSendToCloud: false,
  responsive: false,
};

// What a map is drawn in: its figure, the frame around its cells and the marks above them. name: a class of its own
export function createStage(name = "") {
  const plot = el("div", { class: "plot" }),
    frame = createFrame(),
    marks = el("div", { class: "marks" });
  const root = el(
    "div",
    {
      class: `detail ${name}`.trim(),
      tabindex: "0",
      role: "application",
      "aria-roledescription": t("heatmap"),
    },
    plot,
    frame.root,
    marks,
  );
  return { root, plot, frame, marks };
}

function createFrame() {
  const root = el("div", { class: "frame", "aria-hidden": "true" });
  let drawn = "",
    size = null;
  return {
    root,
    part(map, colouring, titles, size, seen) {
      drawn = "";
      root.replaceChildren(
        ...partLabels(map, size, titles, seen),
        ...(size.right > 30 ? [colourBar(colouring, size)] : []),
      );
    },
    // The sizes for this map; what stands around it is redrawn if need be.
    draw(map, colouring, titles, given) {
      const { ticks, colours, unit } = colouring,
        { compact } = given;
      const names = (items) => items.map((item) => item.label).join("\u0000");
      const key = [
        names(map.rows),
        names(map.columns),
        given.width,
        compact,
        given.height,
        given.highest,
        titles.pairs?.flat().join("\u0000"),
        map.joint && map.sourceColumns,
        titles.rows,
        titles.columns,
        ticks.texts,
        colours,
        unit && said(unit),
      ].join("\u0001");
      if (key === drawn) return size;
      drawn = key;
      size = measure(map, given, { ticks, titles });
      root.replaceChildren(
        grid(map, size),
        ...labels(size, titles),
        ...(compact ? [] : [colourBar(colouring, size)]),
      );
      return size;
    },
  };
}
