// Colour scales of maps: where a number lies on its scale, its colour, and how it is written.
import { sequentialScale } from "../../core/colours.js";
import { isDark } from "../../core/dom.js";
import { formatExponent, formatSignificant } from "../../core/format.js";
import { t } from "../../core/language.js";

const DECADES = 4;

// Return the largest absolute value.
const largest = (values) =>
  values.reduce((most, value) => (Math.abs(value) > most ? Math.abs(value) : most), 0);

/**
 * Return a function from a value to its position on the colour scale, 0 to 1; viz/figures/attention.py has the same. signed: 0
 * is in the middle, and negative values mirror positive ones.
 */
export function createPlacer(transform, maximum, signed = false) {
  if (signed) {
    const above = createPlacer(transform, maximum);
    return (value) => 0.5 + (Math.sign(value) * above(Math.abs(value))) / 2;
  }
  const share = (value) => Math.min(1, Math.max(0, value / maximum));
  if (transform === "sqrt") return (value) => Math.sqrt(share(value));
  if (transform === "log")
    return (value) => 1 + Math.log10(Math.max(share(value), 10 ** -DECADES)) / DECADES;
  return share;
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

export function scaleTicks(transform, maximum, signed = false) {
  const values = (signed ? SIGNED_TICKS : TICKS)[transform].map((share) => share * maximum);
  const texts = values.map((value) => formatSignificant(value, 3));
  if (transform === "log") texts[signed ? 2 : 0] = signed ? "≈ 0" : `≤ ${texts[0]}`;
  return { places: values.map(createPlacer(transform, maximum, signed)), texts };
}

/** Return a palette: place(value) on the scale, strength(value) of the colour (both 0 to 1), colour(value), and the ticks. */
export function createPalette(colours, transform, maximum, signed = false) {
  const place = createPlacer(transform, maximum, signed),
    scale = sequentialScale(colours);
  return {
    place,
    strength: signed ? (value) => Math.abs(2 * place(value) - 1) : place,
    colour: (value) => scale(place(value)),
    ticks: scaleTicks(transform, maximum, signed),
    colours,
    maximum,
    plotly: colours.map((colour, i) => [i / (colours.length - 1), colour]),
  };
}

/** Return the colours that a person chose; greys are reversed on a dark page. */
export function chosenColours(state, colours) {
  const colourList = colours.scales[state.colours];
  return state.colours === "greys" && isDark() ? colourList.toReversed() : colourList;
}

/** Return a map's palette: 0 to 1 for attention, else the map's own range; up to its maximum if a person asks for that. */
export function mapPalette(state, map, colours, diverging) {
  const maximum =
    (state.range === "own" && (map.pyramid?.maximum ?? largest(map.values))) ||
    (map.range?.[1] ?? 1);
  const shades = map.signed
      ? diverging[isDark() ? "dark" : "light"]
      : chosenColours(state, colours),
    unit = map.overlay ? map.unit : "";
  return { ...createPalette(shades, state.transform, maximum, map.signed), unit };
}

// Write a weight: three decimals, or two significant digits below 0.01.
function weightText(value) {
  if (Number.isNaN(value)) return t("blank");
  if (value === 0) return "0";
  if (value >= 0.0095) return value.toFixed(3);
  return value < 1e-6
    ? formatExponent(value.toExponential(1))
    : String(Number(value.toPrecision(2)));
}

/** Write a map's value, with a sign if the map is signed. */
export function valueText(map, value) {
  const size = weightText(Math.abs(value));
  return value < 0 ? `−${size}` : map.signed && value > 0 ? `+${size}` : size;
}
