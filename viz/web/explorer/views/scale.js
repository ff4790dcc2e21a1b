// Where a number lies on its scale, and how a map's numbers are written.
import { significant } from "../../core/format.js";
import { t } from "../../core/language.js";

const DECADES = 4;

// The largest absolute value.
export function largest(values) {
  let found = 0;
  for (let i = 0; i < values.length; i++)
    if (Math.abs(values[i]) > found) found = Math.abs(values[i]);
  return found;
}

// Weight -> place on the colour scale, 0 to 1, and the legend's ticks; see viz/figures/colour.py.
// signed: 0 in the middle, and what lies below it mirrored.
export function placer(transform, maximum, signed = false) {
  if (signed) {
    const above = placer(transform, maximum);
    return (value) => 0.5 + (Math.sign(value) * above(Math.abs(value))) / 2;
  }
  if (transform === "sqrt") return (value) => Math.sqrt(Math.min(1, Math.max(0, value / maximum)));
  if (transform === "log") {
    return (value) =>
      1 + Math.log10(Math.max(Math.min(1, value / maximum), Math.pow(10, -DECADES))) / DECADES;
  }
  return (value) => Math.min(1, Math.max(0, value / maximum));
}

const TICKS = {
  linear: [0, 0.25, 0.5, 0.75, 1],
  sqrt: [0, 0.05, 0.2, 0.5, 1],
  log: [1e-4, 1e-3, 1e-2, 0.1, 1],
};

const SIGNED_TICKS = {
  linear: [-1, -0.5, 0, 0.5, 1],
  sqrt: [-1, -0.2, 0, 0.2, 1],
  log: [-1, -0.01, 0, 0.01, 1],
};

export function ticks(transform, maximum, signed = false) {
  const values = (signed ? SIGNED_TICKS : TICKS)[transform].map((share) => share * maximum);
  const texts = values.map((value) => significant(value, 3));
  if (transform === "log") texts[signed ? 2 : 0] = signed ? "≈ 0" : `≤ ${texts[0]}`;
  return { places: values.map(placer(transform, maximum, signed)), texts };
}

// A weight for people: three decimals, two significant digits below that.
export function weightText(value) {
  if (Number.isNaN(value)) return t("blank");
  if (value === 0) return "0";
  if (value >= 0.0095) return value.toFixed(3);
  return value < 1e-6 ? value.toExponential(1) : String(Number(value.toPrecision(2)));
}

// A number of any map: with its sign where that means something.
export function valueText(map, value) {
  const size = weightText(Math.abs(value));
  return value < 0 ? `−${size}` : map.signed && value > 0 ? `+${size}` : size;
}
