// Colours of numbers, and numbers as a picture with one pixel a cell.
import { cssVariable } from "./dom.js";

const parseHex = (colour) => [1, 3, 5].map((i) => parseInt(colour.slice(i, i + 2), 16));

// Colours "#rrggbb" in order -> 256 steps [red, green, blue].
export function colourSteps(colours) {
  const found = colours.map(parseHex);
  return Array.from({ length: 256 }, (_, step) => {
    const at = (step / 255) * (found.length - 1),
      low = Math.min(Math.floor(at), found.length - 2);
    return found[low].map((value, i) =>
      Math.round(value + (at - low) * (found[low + 1][i] - value)),
    );
  });
}

// Of shares 0 to 1: share -> [red, green, blue].
export function sequentialScale(colours) {
  const steps = colourSteps(colours);
  return (share) => steps[Math.round(Math.max(0, Math.min(1, share)) * 255)];
}

// Of shares -1 to 1, from the page's colour for what is below 0, by none, to that for what is above.
export function divergingScale() {
  const below = parseHex(cssVariable("--atlas-accent")),
    above = parseHex(cssVariable("--atlas-above"));
  return (share) => [
    ...(share < 0 ? below : above),
    Math.round(255 * Math.min(1, Math.abs(share))),
  ];
}

// values [rows, columns] onto a canvas, which CSS enlarges. colour: value -> [red, green, blue, and how opaque it is]. What
// is not a number stays transparent, as what is null: not sent yet.
export function paintMap(canvas, map, colour) {
  if (!map) return;
  const { values, rows, columns } = map;
  if (canvas.width !== columns) canvas.width = columns;
  if (canvas.height !== rows) canvas.height = rows;
  const image = new ImageData(columns, rows);
  for (let i = 0; i < values.length; i++) {
    if (values[i] === null || Number.isNaN(values[i])) continue;
    const [red, green, blue, opaque = 255] = colour(values[i]);
    image.data.set([red, green, blue, opaque], 4 * i);
  }
  canvas.getContext("2d").putImageData(image, 0, 0);
}
