// Numbers as coloured cells: a strip of them in a table, or a matrix drawn small, which the pointer and the arrow keys read.
import { el, shorten } from "../core/dom.js";
import { said, t } from "../core/language.js";

const POSITIVE = [206, 92, 0];
const NEGATIVE = [29, 95, 191];
const missing = (value) => value === null || Number.isNaN(value);

// Rows of numbers as a canvas, a pixel each; null or NaN: there is none.
export function shaded(values, width, limit, signed) {
  const canvas = el("canvas", { width, height: values.length / width });
  const context = canvas.getContext("2d"),
    pixels = context.createImageData(width, values.length / width);
  values.forEach((value, i) => {
    const colour = missing(value) ? [128, 128, 128] : signed && value >= 0 ? POSITIVE : NEGATIVE;
    const share = missing(value) ? 0.35 : Math.min(1, Math.abs(value) / limit);
    pixels.data.set([...colour, Math.round(255 * share)], 4 * i);
  });
  context.putImageData(pixels, 0, 0);
  return canvas;
}

const LABELLED = 12; // pixels a cell must have for names beside it
// Pixels of a cell where there are this many side by side.
const room = (count, most) =>
  count <= 16 ? 18 : count <= 24 ? LABELLED : count <= 48 ? 7 : most / count;
const text = (value) => String(Number(value.toPrecision(4))).replace("-", "−");

// One heatmap() of viz/wire/blocks.py.
function heatmap(map) {
  const [height, width] = map.shape;
  const values = new Float32Array(Uint8Array.from(atob(map.data), (c) => c.charCodeAt(0)).buffer);
  const rows = map.rows.map(said),
    columns = map.columns.map(said),
    square = rows.length && columns.length;
  const across = square ? room(Math.max(width, height), 340) : room(width, 256);
  const down = square ? across : Math.min(14, room(height, 180));
  const title = said(map.title);
  const canvas = shaded(values, width, map.limit, map.signed);
  for (const [name, value] of Object.entries({
    tabindex: 0,
    role: "img",
    "aria-label": `${title}, ${height} × ${width}`,
  }))
    canvas.setAttribute(name, value);
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
      value: missing(value) ? t("masked") : map.said.length ? said(map.said[value]) : text(value),
    });
  }
  function leave() {
    cursor.hidden = true;
    reading.replaceChildren(said(map.note) || "");
  }
  canvas.addEventListener("pointermove", (event) => {
    const box = canvas.getBoundingClientRect();
    const cell = (share, count) => Math.min(count - 1, Math.max(0, Math.floor(share * count)));
    read(
      cell((event.clientY - box.top) / box.height, height),
      cell((event.clientX - box.left) / box.width, width),
    );
  });
  canvas.addEventListener("pointerleave", leave);
  canvas.addEventListener("blur", leave);
  canvas.addEventListener("keydown", (event) => {
    const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[
      event.key
    ];
    if (!step) return;
    event.preventDefault();
    const [row, column] = at && !cursor.hidden ? [at[0] + step[0], at[1] + step[1]] : [0, 0];
    read(Math.min(height - 1, Math.max(0, row)), Math.min(width - 1, Math.max(0, column)));
  });
  const names = (list, side, size) =>
    list.length && size >= LABELLED
      ? el(
          "div",
          { class: side, "aria-hidden": "true", style: `--cell: ${size}px` },
          list.map((name) => el("span", {}, shorten(name, 9))),
        )
      : null;
  return el(
    "figure",
    { class: "heatmap" },
    el("figcaption", {}, title, " ", el("small", {}, `${height} × ${width}`)),
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
    block.maps.map((map) => wrap(heatmap(map), said(map.title))),
  );
