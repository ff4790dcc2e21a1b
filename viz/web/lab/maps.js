// Numbers as pictures: coloured cells on a canvas, heatmaps whose values the pointer and the arrow keys read out, bar charts.
import { divergingScale, paintMap } from "../core/colours.js";
import { el, shorten } from "../core/dom.js";
import { formatSignificant } from "../core/format.js";
import { arrowStep, clamp, cellAt } from "../core/keys.js";
import { toText, t } from "../core/language.js";
import { base64ToBytes } from "../explorer/trace.js";
import { createPicture } from "../picture/copy.js";
import { elementSvg } from "../picture/drawing.js";

const MISSING = [128, 128, 128, 89]; // red, green, blue, opacity
const isMissing = (value) => value === null || Number.isNaN(value);

/**
 * Draw rows of numbers on a canvas, a pixel each.
 * @param {ArrayLike<number | null>} values null and NaN are missing numbers
 * @param {number} width numbers in a row
 * @param {number} limit the number that has the full colour
 * @param {boolean} signed whether negative numbers have a colour of their own
 */
export function drawNumbers(values, width, limit, signed) {
  const canvas = el("canvas"),
    colour = divergingScale();
  const pixel = (value) => (isMissing(value) ? MISSING : colour((signed ? value : -value) / limit));
  const cells = { values: Array.from(values, pixel), rows: values.length / width, columns: width };
  paintMap(canvas, cells, (pixelColour) => pixelColour);
  return canvas;
}

const MIN_LABELLED = 12; // pixels of a cell, below which rows and columns have no names
// The size of a cell in pixels, if there are `count` side by side. available: pixels for many.
function cellSize(count, available) {
  if (count <= 16) return 18;
  if (count <= 24) return innerWidth > 860 ? 17 : MIN_LABELLED;
  return count <= 48 ? 7 : available / count;
}

const decodeNumbers = (map) => new Float32Array(base64ToBytes(map.data).buffer);

// Shorten a name: a token, or the token that a decoder's row reads and the one that it predicts.
const shortName = (name) => {
  const tokens = name.split(" → ");
  return tokens.map((token) => shorten(token, tokens.length > 1 ? 8 : 9)).join(" → ");
};

// A heatmap of viz/wire/blocks.py as a figure.
function createHeatmap(map) {
  const [height, width] = map.shape,
    values = decodeNumbers(map);
  const rows = map.rows.map(toText),
    columns = map.columns.map(toText),
    isSquare = rows.length && columns.length;
  const cellWidth = isSquare ? cellSize(Math.max(width, height), 340) : cellSize(width, 256),
    cellHeight = isSquare ? cellWidth : Math.min(14, cellSize(height, 180));
  const title = toText(map.title),
    size = `${height} × ${width}`;
  const canvas = drawNumbers(values, width, map.limit, map.signed);
  Object.assign(canvas, { tabIndex: 0, role: "img", ariaLabel: `${title}, ${size}` });
  // Put a node over a rectangle of cells.
  const cover = (node, row, column, rowSpan, columnSpan) => {
    const share = (n, total) => `${(100 * n) / total}%`;
    node.style.cssText = `top: ${share(row, height)}; left: ${share(column, width)}; height: ${share(rowSpan, height)}; width: ${share(columnSpan, width)}`;
    return node;
  };
  const cursor = el("span", { class: "cursor", hidden: true });
  const reading = el("output", { class: "reading" }, map.note || "");
  let current = null; // the cell that was read last: [row, column]
  function readCell(row, column) {
    current = [row, column];
    cover(cursor, row, column, 1, 1).hidden = false;
    const value = values[row * width + column];
    reading.textContent = t("{row}, {column}: {value}", {
      row: rows[row] ?? t("row {i}", { i: row }),
      column: columns[column] ?? t("column {i}", { i: column }),
      value: isMissing(value)
        ? t("masked")
        : map.said.length
          ? toText(map.said[value])
          : formatSignificant(value, 4),
    });
  }
  function clear() {
    cursor.hidden = true;
    reading.replaceChildren(toText(map.note) || "");
  }
  canvas.addEventListener("pointermove", (event) => {
    readCell(...cellAt(event, canvas, height, width));
  });
  canvas.addEventListener("pointerleave", clear);
  canvas.addEventListener("blur", clear);
  canvas.addEventListener("keydown", (event) => {
    const step = arrowStep(event);
    if (!step) return;
    event.preventDefault();
    const [row, column] =
      current && !cursor.hidden ? [current[0] + step[0], current[1] + step[1]] : [0, 0];
    readCell(clamp(row, height), clamp(column, width));
  });
  const labels = (names, side, size) =>
    names.length && size >= MIN_LABELLED
      ? el("div", { class: side, "aria-hidden": "true", style: `--cell: ${size}px` }, [
          names.map((name) => el("span", {}, shortName(name))),
        ])
      : null;
  const style = `width: ${width * cellWidth}px; height: ${height * cellHeight}px`,
    frame = map.frame && cover(el("span", { class: "frame" }), ...map.frame);
  return el("figure", { class: "heatmap" }, [
    el("figcaption", {}, title, " ", el("small", {}, size)),
    el("div", { class: "framed" }, [
      labels(columns, "above", cellWidth),
      labels(rows, "beside", cellHeight),
      el("div", { class: "cells", style }, canvas, frame, cursor),
    ]),
    reading,
  ]);
}

/**
 * The block of several heatmaps.
 * @param {{maps: any[]}} block
 * @param {unknown} afterInsert
 * @param {import("./blocks.js").Panel} api
 */
export function maps(block, afterInsert, api) {
  const figures = block.maps.map((map) => {
    const figure = createHeatmap(map);
    return createPicture(figure, {
      ...api.describePicture(toText(map.title)),
      svg: () => elementSvg(figure.querySelector(".framed")),
    });
  });
  return el("div", { class: "maps" }, figures);
}

/**
 * The block of bar charts. A row [label, shares, texts] has a bar for each of its shares.
 * @param {{legend: any[], charts: {title: any, note: any, marked: boolean, rows: any[]}[]}} block
 * @param {unknown} afterInsert
 * @param {import("./blocks.js").Panel} api
 */
export function bars(block, afterInsert, api) {
  const row = ([label, shares, texts]) =>
    el("div", { class: "bar-row", role: "listitem" }, [
      el("span", { class: "token", dir: "auto" }, label),
      el("span", { class: "meters" }, [
        shares.map((share) => el("i", { style: `--share: ${share}` })),
      ]),
      el("span", { class: "number" }, texts.join(" → ")),
    ]);
  const legend = () => block.legend.map((name) => el("span", {}, el("i", {}), name));
  const charts = block.charts.map(({ marked, title, note, rows }) =>
    el("figure", { class: marked ? "marked" : null }, [
      el("figcaption", {}, title, note ? el("small", {}, note) : null),
      block.legend.length ? el("p", { class: "legend" }, legend()) : null,
      el("div", { class: "bar-rows", role: "list" }, rows.map(row)),
    ]),
  );
  return createPicture(el("div", { class: "bar-charts" }, charts), api.describePicture(""));
}
