// From a map's numbers to its colours and its legend.
import { sequential } from "../core/colours.js";
import { isDark } from "../core/dom.js";
import { largest, placer, ticks } from "./views/scale.js";

// place(value): on the scale, 0 to 1; strength(value): how far from no colour, 0 to 1.
export function palette(colours, transform, maximum, signed = false) {
  const place = placer(transform, maximum, signed),
    shown = sequential(colours);
  return {
    place,
    strength: signed ? (value) => Math.abs(2 * place(value) - 1) : place,
    colour: (value) => shown(place(value)),
    ticks: ticks(transform, maximum, signed),
    colours,
    maximum,
    plotly: colours.map((colour, i) => [i / (colours.length - 1), colour]),
    unit: "",
  };
}

// The scale that a person chose, as it is on this page.
export function scale(state, colours) {
  const found = colours.scales[state.colours];
  return state.colours === "greys" && isDark() ? [...found].reverse() : found;
}

// Of a map: attention from 0 to 1, anything else over its own range; over its own maximum where a person asks for that.
export function ofMap(state, map, colours, diverging) {
  const whole = map?.range?.[1] ?? 1;
  const maximum =
    (state.range === "own" && map && (map.pyramid?.maximum ?? largest(map.values))) || whole;
  if (!map?.signed)
    return {
      ...palette(scale(state, colours), state.transform, maximum),
      unit: map?.overlay ? map.unit : "",
    };
  return {
    ...palette(diverging[isDark() ? "dark" : "light"], state.transform, maximum, true),
    unit: map.unit,
  };
}
