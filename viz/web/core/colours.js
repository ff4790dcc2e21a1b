// Colour scales, and drawing numbers as a picture with one pixel per cell.
import { cssVariable } from "./dom.js";

/** @param {string} colour "#rrggbb" @returns {number[]} red, green, blue */
const parseHex = (colour) => [1, 3, 5].map((i) => parseInt(colour.slice(i, i + 2), 16));

/**
 * Return a function from a share, 0 to 1, to [red, green, blue]. It has 256 steps, interpolated between the colours.
 * @param {string[]} colours "#rrggbb" each
 */
export function sequentialScale(colours) {
  const stops = colours.map(parseHex);
  const steps = Array.from({ length: 256 }, (_, step) => {
    const at = (step / 255) * (stops.length - 1),
      low = Math.min(Math.floor(at), stops.length - 2);
    return stops[low].map((value, i) =>
      Math.round(value + (at - low) * (stops[low + 1][i] - value)),
    );
  });
  return (/** @type {number} */ share) => steps[Math.round(Math.max(0, Math.min(1, share)) * 255)];
}

/** Return a function from a share, -1 to 1, to [red, green, blue, alpha]: one colour per sign, transparent at 0. */
export function divergingScale() {
  const below = parseHex(cssVariable("--atlas-accent")),
    above = parseHex(cssVariable("--atlas-above"));
  return (/** @type {number} */ share) => [
    ...(share < 0 ? below : above),
    Math.round(255 * Math.min(1, Math.abs(share))),
  ];
}

/**
 * Paint a map onto a canvas, one pixel per cell; CSS enlarges it. Cells that are null (not sent yet) or NaN stay
 * transparent.
 * @param {HTMLCanvasElement} canvas
 * @param {{values: ArrayLike<any>, rows: number, columns: number} | null} map values row by row
 * @param {(value: any) => number[]} colour of a value: [red, green, blue] or with alpha, each 0 to 255
 */
export function paintMap(canvas, map, colour) {
  if (!map?.rows || !map.columns) return; // without words, a map of words is empty
  const { values, rows, columns } = map;
  if (canvas.width !== columns) canvas.width = columns;
  if (canvas.height !== rows) canvas.height = rows;
  const image = new ImageData(columns, rows);
  for (let i = 0; i < values.length; i++) {
    const value = values[i];
    if (value === null || Number.isNaN(value)) continue;
    const [red, green, blue, alpha = 255] = colour(value);
    image.data.set([red, green, blue, alpha], 4 * i);
  }
  canvas.getContext("2d")?.putImageData(image, 0, 0);
}

/** @type {Record<string, string | undefined>} */
const DASHES = { dash: "12 10", dot: "0.5 9" }; // for lines with round ends

/**
 * Return the dashes of a head's line as an attribute of SVG, undefined for a solid one (viz/theme.py, HEAD_DASHES).
 * @param {{heads: string[], dashes: string[]}} colours of a trace @param {string} colour
 */
export const lineDash = ({ heads, dashes }, colour) => DASHES[dashes[heads.indexOf(colour)]];
