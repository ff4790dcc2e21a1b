// The pictures of a worksheet: empty, to be filled in with a pencil, or filled, in the key.
import { shorten, svg } from "../core/dom.js";
import { percent } from "../core/format.js";
import { said } from "../core/language.js";

const ROW = 22,
  NAMES = 130,
  LENGTH = 300,
  NUMBERS = 60; // pixels of a bar's line
const CELL = 22,
  LARGEST = 360; // and of a grid

const drawing = (width, height, ...parts) =>
  svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height }, ...parts);
const rect = (kind, x, y, width, height, more = {}) =>
  svg("rect", { class: kind, x, y, width, height, ...more });
const text = (x, y, words, attributes = {}) => svg("text", { x, y, ...attributes }, words);

function bars({ labels, values, unit }, filled) {
  const shares = unit === "share",
    most = shares ? 1 : Math.max(...values, 1e-9),
    tall = ROW - 6;
  const parts = labels.flatMap((label, i) => {
    const y = i * ROW + 3,
      value = shares ? percent(values[i]) : values[i].toFixed(1);
    const marks = shares ? [0.25, 0.5, 0.75].map((part) => NAMES + LENGTH * part) : [];
    return [
      text(NAMES - 8, y + 13, shorten(said(label)), { "text-anchor": "end" }),
      rect("frame", NAMES, y, LENGTH, tall),
      ...marks.map((x) => svg("line", { x1: x, x2: x, y1: y, y2: y + tall })),
      filled ? rect("bar", NAMES, y, (LENGTH * Math.max(0, values[i])) / most, tall) : null,
      filled ? text(NAMES + LENGTH + 6, y + 13, value) : null,
    ];
  });
  return drawing(NAMES + LENGTH + NUMBERS, labels.length * ROW + 6, parts);
}

function grid({ rows, columns, values }, filled) {
  const size = Math.min(CELL, LARGEST / rows.length),
    top = 74,
    left = 96;
  const names = columns.map((label, j) => {
    const x = left + (j + 0.65) * size,
      y = top - 6;
    return text(x, y, shorten(label, 10), { transform: `rotate(-55 ${x} ${y})` });
  });
  const lines = rows.flatMap((label, i) => [
    text(left - 6, top + (i + 0.7) * size, shorten(label, 12), { "text-anchor": "end" }),
    ...columns.flatMap((_, j) => {
      const at = [left + j * size, top + i * size, size, size],
        value = values[i][j];
      return [
        filled && value > 0 ? rect("bar", ...at, { "fill-opacity": value }) : null,
        rect("frame", ...at),
      ];
    }),
  ]);
  return drawing(left + size * columns.length + 50, top + size * rows.length + 4, names, lines);
}

const DRAWN = { bars, grid };

// given: what viz/ui/tours/asks/task.py makes.
export const picture = (given, filled) => DRAWN[given.type](given, filled);
