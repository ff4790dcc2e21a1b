// Small pictures for the glossary's entries: of this sentence, whose data are an answer of page_glossary (viz/wire/glossary.py),
// or fixed drawings.
import { el, svg } from "../core/dom.js";
import { formatPercent } from "../core/format.js";

/**
 * @typedef {{text: string, symbol?: boolean, lit?: boolean}} Token
 * @typedef {[any, number, string?]} Item a label, a share of the whole, and how to write the share
 */

const WIDTH = 240;

/** @param {number} share */
const percent = (share) => formatPercent(share);

/** Tokens in a row; lit ones stand out, special ones are pale. @param {Token[]} list */
export const tokens = (list) =>
  el(
    "p",
    { class: "tokens", dir: "auto" },
    list.map(({ text, symbol, lit }) =>
      el("span", { class: [symbol && "special", lit && "lit"].filter(Boolean).join(" ") }, text),
    ),
  );

/** Bars with their labels and shares. @param {Item[]} items */
export const bars = (items) =>
  el(
    "ul",
    { class: "bars" },
    items.map(([label, share, text]) =>
      el("li", {}, [
        el("span", { dir: "auto" }, label),
        el("span", { class: "bar" }, el("i", { style: `width: ${100 * Math.min(1, share)}%` })),
        el("span", { class: "share" }, text ?? percent(share)),
      ]),
    ),
  );

const drawing = (height, ...children) =>
  svg(
    "svg",
    { viewBox: `0 0 ${WIDTH} ${height}`, width: WIDTH, height, "aria-hidden": "true" },
    children,
  );
const label = (x, y, text, attributes = {}) =>
  svg("text", { x, y, "text-anchor": "middle", ...attributes }, text);
const path = (d, attributes = {}) => svg("path", { d, ...attributes });
/** A cell that is darker the larger its share. */
const cell = (x, y, size, share, height = size) =>
  svg("rect", {
    x,
    y,
    width: size - 1,
    height: height - 1,
    class: share === null ? "cell closed" : "cell",
    style: `--share: ${share ?? 0}`,
  });

/** Cells in a row with labels below. @param {Item[]} items */
export function strip(items) {
  const size = WIDTH / Math.max(items.length, 4),
    letters = Math.max(2, Math.floor(size / 6));
  return drawing(
    34,
    items.map(([name, share], i) => [
      cell(i * size, 0, size, share, 19),
      share > 0.06 || items.length < 7
        ? label(i * size + size / 2, 31, [...name].slice(0, letters).join(""))
        : null,
    ]),
  );
}

/** Strips below each other, each with a label. @param {[any, Item[]][]} rows */
export const strips = (rows) =>
  el(
    "div",
    { class: "strips" },
    rows.map(([name, items]) => [el("span", {}, name), strip(items)]),
  );

/**
 * A map with its labels: {rows, columns, weights}; a weight of null is masked.
 * @param {{rows: string[], columns: string[], weights: (number | null)[][]}} map @param {number} [lit] a row
 */
export function grid({ rows, columns, weights }, lit = -1) {
  const size = Math.min(18, 176 / columns.length),
    left = 62,
    head = 40;
  return drawing(
    head + size * rows.length + 2,
    columns.map((name, i) =>
      label(0, 0, [...name].slice(0, 7).join(""), {
        "text-anchor": "start",
        transform: `translate(${left + size * (i + 0.7)} ${head - 4}) rotate(-52)`,
      }),
    ),
    rows.map((name, r) => [
      label(left - 5, head + size * (r + 0.75), [...name].slice(0, 9).join(""), {
        "text-anchor": "end",
        class: r === lit ? "lit" : null,
      }),
      weights[r].map((weight, i) => cell(left + size * i, head + size * r, size, weight)),
    ]),
    lit >= 0
      ? svg("rect", {
          class: "frame",
          x: left - 1,
          y: head + size * lit - 1,
          width: size * columns.length + 1,
          height: size + 1,
        })
      : null,
  );
}

/** Boxes in a row, joined by arrows; some are lit. @param {any[]} names @param {any[]} [lit] */
export function flow(names, lit = []) {
  const gap = 16,
    width = (WIDTH - gap * (names.length + 1)) / names.length;
  const at = (i) => gap + i * (width + gap);
  return drawing(
    40,
    names.map((name, i) => [
      svg("rect", {
        x: at(i),
        y: 5,
        width,
        height: 28,
        rx: 4,
        class: lit.includes(i) ? "box lit" : "box",
      }),
      label(at(i) + width / 2, 23, name, { class: lit.includes(i) ? "on" : null }),
      path(`M${at(i) - gap + 2} 19h${gap - 4}m-4 -4l4 4l-4 4`),
    ]),
    path(`M${at(names.length) - gap + 2} 19h${gap - 4}m-4 -4l4 4l-4 4`),
  );
}

/**
 * Curves over 0 to 1, each a function to 0 to 1.
 * @param {((x: number) => number)[]} functions @param {[string?, string?]} [ends] labels below both ends
 */
export const curves = (functions, ends = []) =>
  drawing(
    72,
    path("M20 4v52h204", { class: "axis" }),
    functions.map((f, k) => {
      const points = Array.from({ length: 81 }, (_, i) => [
        20 + (200 * i) / 80,
        54 - 48 * Math.max(-0.02, Math.min(1, f(i / 80))),
      ]);
      return path(`M${points.map(([x, y]) => `${x.toFixed(1)} ${y.toFixed(1)}`).join("L")}`, {
        class: `curve curve-${k}`,
      });
    }),
    ends.map((text, i) => label(i ? 206 : 30, 69, text)),
  );

/**
 * Nodes and the lines between them. @param {[any, number, number, boolean?][]} nodes label, column 0 to 1, row 0 to 1, lit
 * @param {[number, number, number?][]} edges from, to, strength @param {number} [height]
 */
export function graph(nodes, edges, height = 84) {
  const x = (i) => 30 + 180 * nodes[i][1],
    y = (i) => 14 + (height - 28) * nodes[i][2];
  return drawing(
    height,
    edges.map(([from, to, strength = 0.3]) =>
      path(`M${x(from)} ${y(from)}L${x(to)} ${y(to)}`, {
        class: strength > 0.5 ? "edge lit" : "edge",
        "stroke-width": 1 + 3 * strength,
      }),
    ),
    nodes.map(([name, , , lit], i) => [
      svg("rect", {
        x: x(i) - 26,
        y: y(i) - 11,
        width: 52,
        height: 22,
        rx: 4,
        class: lit ? "box lit" : "box",
      }),
      label(x(i), y(i) + 4, name, { class: lit ? "on" : null }),
    ]),
  );
}

/** Arrows from one point: [x, y, label, lit], each coordinate from -1 to 1. @param {[number, number, any, boolean?][]} list */
export const arrows = (list) =>
  drawing(
    92,
    list.map(([x, y, name, lit]) => {
      const [left, top] = [120 + 76 * x, 58 - 46 * y];
      const angle = (Math.atan2(top - 58, left - 120) * 180) / Math.PI;
      return [
        path(`M120 58L${left} ${top}`, { class: lit ? "edge lit" : "edge", "stroke-width": 2 }),
        path("M-7 -4L0 0L-7 4", {
          class: lit ? "edge lit" : "edge",
          "stroke-width": 2,
          transform: `translate(${left} ${top}) rotate(${angle})`,
        }),
        label(left + 12 * Math.sign(x || 1), top + (y < 0 ? 14 : -3), name),
      ];
    }),
  );

/** Numbers in a row as cells, blue below zero and orange above. @param {any} name @param {number[]} numbers */
const numbersRow = (name, numbers) => [
  el("span", {}, name),
  drawing(
    20,
    numbers.map((number, i) =>
      svg("rect", {
        x: (i * WIDTH) / numbers.length,
        y: 1,
        width: WIDTH / numbers.length - 1,
        height: 17,
        class: number < 0 ? "number minus" : "number plus",
        style: `--share: ${Math.min(1, Math.abs(number))}`,
      }),
    ),
  ),
];

/** Rows of numbers as cells, each with a label. @param {[any, number[]][]} rows */
export const numbers = (rows) =>
  el(
    "div",
    { class: "strips" },
    rows.map(([name, row]) => numbersRow(name, row)),
  );

/** Parts that add up: [label, size from -1 to 1]. @param {[any, number][]} parts */
export const addends = (parts) =>
  drawing(
    parts.length * 20 + 4,
    path(`M110 0V${parts.length * 20}`, { class: "axis" }),
    parts.map(([name, size], i) => [
      svg("rect", {
        x: 110 + Math.min(0, size * 100),
        y: 20 * i + 3,
        width: Math.max(1, Math.abs(size * 100)),
        height: 14,
        class: size < 0 ? "number minus" : "number plus",
        style: "--share: 0.9",
      }),
      label(size < 0 ? 116 : 104, 20 * i + 14, name, {
        "text-anchor": size < 0 ? "start" : "end",
      }),
    ]),
  );
