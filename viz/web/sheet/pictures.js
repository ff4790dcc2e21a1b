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

function bars({ labels, values, unit }, filled) {
  const shares = unit === "share",
    most = shares ? 1 : Math.max(...values, 1e-9);
  const height = labels.length * ROW + 6;
  const root = svg("svg", {
    viewBox: `0 0 ${NAMES + LENGTH + NUMBERS} ${height}`,
    width: NAMES + LENGTH + NUMBERS,
    height,
  });
  labels.forEach((label, i) => {
    const y = i * ROW + 3,
      share = Math.max(0, values[i]) / most;
    root.append(
      svg("text", { x: NAMES - 8, y: y + 13, "text-anchor": "end" }, shorten(said(label))),
      svg("rect", { class: "frame", x: NAMES, y, width: LENGTH, height: ROW - 6 }),
    );
    if (shares)
      for (const part of [0.25, 0.5, 0.75])
        root.append(
          svg("line", {
            x1: NAMES + LENGTH * part,
            x2: NAMES + LENGTH * part,
            y1: y,
            y2: y + ROW - 6,
          }),
        );
    if (!filled) return;
    root.append(
      svg("rect", { class: "bar", x: NAMES, y, width: LENGTH * share, height: ROW - 6 }),
      svg(
        "text",
        { x: NAMES + LENGTH + 6, y: y + 13 },
        shares ? percent(values[i]) : values[i].toFixed(1),
      ),
    );
  });
  return root;
}

function grid({ rows, columns, values }, filled) {
  const size = Math.min(CELL, LARGEST / rows.length),
    top = 74,
    left = 96;
  const root = svg("svg", {
    viewBox: `0 0 ${left + size * columns.length + 50} ${top + size * rows.length + 4}`,
    width: left + size * columns.length + 50,
    height: top + size * rows.length + 4,
  });
  columns.forEach((label, j) => {
    const x = left + (j + 0.65) * size,
      y = top - 6;
    root.append(svg("text", { x, y, transform: `rotate(-55 ${x} ${y})` }, shorten(label, 10)));
  });
  rows.forEach((label, i) => {
    root.append(
      svg(
        "text",
        { x: left - 6, y: top + (i + 0.7) * size, "text-anchor": "end" },
        shorten(label, 12),
      ),
    );
    columns.forEach((_, j) => {
      const at = { x: left + j * size, y: top + i * size, width: size, height: size };
      if (filled && values[i][j] > 0)
        root.append(svg("rect", { ...at, class: "bar", "fill-opacity": values[i][j] }));
      root.append(svg("rect", { ...at, class: "frame" }));
    });
  });
  return root;
}

const DRAWN = { bars, grid };

// given: what viz/ui/tours/asks.py makes; null where there is none.
export const picture = (given, filled) => (given ? DRAWN[given.type](given, filled) : null);
