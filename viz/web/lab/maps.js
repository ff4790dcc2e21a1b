// Numbers as coloured cells: a strip of them in a table, or a matrix drawn small, which the pointer and the arrow keys read; and as bars.
import { divergingScale, paintMap } from "../core/colours.js";
import { el, shorten } from "../core/dom.js";
import { formatSignificant } from "../core/format.js";
import { arrowStep, clamp, cellAt } from "../core/keys.js";
import { toText, t } from "../core/language.js";
import { base64ToBytes } from "../explorer/trace.js";
import { createPicture } from "../picture/copy.js";

const NONE = [128, 128, 128, 89];
const missing = (value) => value === null || Number.isNaN(value);

// Rows of numbers as a canvas, a pixel each; null or NaN: there is none.
export function shaded(values, width, limit, signed) {
  const canvas = el("canvas"),
    colour = divergingScale();
  const one = (value) => (missing(value) ? NONE : colour((signed ? value : -value) / limit));
  const cells = { values: Array.from(values, one), rows: values.length / width, columns: width };
  paintMap(canvas, cells, (c) => c);
  return canvas;
}

const LABELLED = 12; // pixels a cell must have for names beside it
// Pixels of a cell where there are this many side by side.
function room(count, most) {
  if (count <= 16) return 18;
  if (count <= 24) return innerWidth > 860 ? 17 : LABELLED;
  return count <= 48 ? 7 : most / count;
}

const numbers = (map) => new Float32Array(base64ToBytes(map.data).buffer);

// A heatmap() as a picture in something else.
export const thumbnail = (map) => shaded(numbers(map), map.shape[1], map.limit, map.signed);

// A token, or the two of a decoder's row.
const short = (name) => {
  const tokens = name.split(" → ");
  return tokens.map((token) => shorten(token, tokens.length > 1 ? 8 : 9)).join(" → ");
};

// One heatmap() of viz/wire/blocks.py.
function heatmap(map) {
  const [height, width] = map.shape,
    values = numbers(map);
  const rows = map.rows.map(toText),
    columns = map.columns.map(toText),
    square = rows.length && columns.length;
  const across = square ? room(Math.max(width, height), 340) : room(width, 256);
  const down = square ? across : Math.min(14, room(height, 180));
  const title = toText(map.title),
    size = `${height} × ${width}`;
  const canvas = shaded(values, width, map.limit, map.signed);
  Object.assign(canvas, { tabIndex: 0, role: "img", ariaLabel: `${title}, ${size}` });
  const place = (node, row, column, tall, wide) => {
    const share = (n, all) => `${(100 * n) / all}%`;
    node.style.cssText = `top: ${share(row, height)}; left: ${share(column, width)}; height: ${share(tall, height)}; width: ${share(wide, width)}`;
    return node;
  };
  const cursor = el("span", { class: "cursor", hidden: true });
  const reading = el("output", { class: "reading" }, map.note || "");
  let at = null;
  function read(row, column) {
    at = [row, column];
    place(cursor, row, column, 1, 1).hidden = false;
    const value = values[row * width + column];
    reading.textContent = t("{row}, {column}: {value}", {
      row: rows[row] ?? t("row {i}", { i: row }),
      column: columns[column] ?? t("column {i}", { i: column }),
      value: missing(value)
        ? t("masked")
        : map.said.length
          ? toText(map.said[value])
          : formatSignificant(value, 4),
    });
  }
  function leave() {
    cursor.hidden = true;
    reading.replaceChildren(toText(map.note) || "");
  }
  canvas.addEventListener("pointermove", (event) => {
    read(...cellAt(event, canvas, height, width));
  });
  canvas.addEventListener("pointerleave", leave);
  canvas.addEventListener("blur", leave);
  canvas.addEventListener("keydown", (event) => {
    const step = arrowStep(event);
    if (!step) return;
    event.preventDefault();
    const [row, column] = at && !cursor.hidden ? [at[0] + step[0], at[1] + step[1]] : [0, 0];
    read(clamp(row, height), clamp(column, width));
  });
  const names = (list, side, cell) =>
    list.length && cell >= LABELLED
      ? el(
          "div",
          { class: side, "aria-hidden": "true", style: `--cell: ${cell}px` },
          list.map((name) => el("span", {}, short(name))),
        )
      : null;
  return el(
    "figure",
    { class: "heatmap" },
    el("figcaption", {}, title, " ", el("small", {}, size)),
    el(
      "div",
      { class: "framed" },
      names(columns, "above", across),
      names(rows, "beside", down),
      el(
        "div",
        { class: "cells", style: `width: ${width * across}px; height: ${height * down}px` },
        canvas,
        map.frame ? place(el("span", { class: "frame" }), ...map.frame) : null,
        cursor,
      ),
    ),
    reading,
  );
}

// wrap(figure, title): what stands for a heatmap on the page
export const maps = (block, wrap = (figure) => figure) =>
  el(
    "div",
    { class: "maps" },
    block.maps.map((map) => wrap(heatmap(map), toText(map.title))),
  );

// A chart is rows of bars, each of one number or of several beside one another: {title, note, rows: [label, shares, texts]}.
export function bars(block, keep, api) {
  const row = ([label, shares, texts]) =>
    el(
      "div",
      { class: "bar-row", role: "listitem" },
      el("span", { class: "token", dir: "auto" }, label),
      el(
        "span",
        { class: "meters" },
        shares.map((share) => el("i", { style: `--share: ${share}` })),
      ),
      el("span", { class: "number" }, texts.join(" → ")),
    );
  const names = () => block.legend.map((name) => el("span", {}, el("i", {}), name));
  const charts = block.charts.map(({ marked, title, note, rows }) =>
    el(
      "figure",
      { class: marked ? "marked" : null },
      el("figcaption", {}, title, note ? el("small", {}, note) : null),
      block.legend.length ? el("p", { class: "legend" }, names()) : null,
      el("div", { class: "bar-rows", role: "list" }, rows.map(row)),
    ),
  );
  return createPicture(el("div", { class: "bar-charts" }, charts), api.about(""));
}
