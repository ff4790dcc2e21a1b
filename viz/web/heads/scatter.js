// A scatter plot of a survey's heads by two of their statistics.
import { el, svg } from "../core/dom.js";
import { formatFixed, formatSignificant } from "../core/format.js";
import { actAsButton } from "../core/keys.js";
import { KINDS } from "../core/kinds.js";
import { toText, t } from "../core/language.js";

const [LEFT, RIGHT, TOP, BOTTOM] = [52, 12, 10, 40]; // pixels around the axes
const LETTER = 6.2; // approximate pixels per letter of a label
// Places of a label beside its bubble: [right or left, pixels down].
const PLACES = [
  [1, -7],
  [1, 15],
  [-1, -7],
  [-1, 15],
];

/**
 * Draw the scatter plot.
 * @param {Set<any>} visible heads @param {any} survey all heads, the state, and functions of survey.js; room: width in pixels
 */
export function drawScatter(
  visible,
  { heads, state, statistics, title, importance, choose, named, describeHead, hue, room },
) {
  const width = Math.max(280, Math.min(860, room || 640)), // one unit is one pixel, so letters keep their size
    height = Math.max(260, Math.round(width * 0.5));
  const points = heads.filter(
    (head) => visible.has(head) && head.of(state.x) !== null && head.of(state.y) !== null,
  );
  // Return an axis from pixel `from` to pixel `to`: at(value) in pixels, and its ticks.
  function axis(name, from, to) {
    const values = points.map((head) => head.of(name)),
      top = Math.max(...values, 1e-9);
    const [low, high] = statistics[name].share
      ? [0, Math.min(1, Math.ceil(top * 5 + 0.2) / 5)]
      : [Math.min(0, ...values), top * 1.05];
    return {
      at: (value) => from + ((value - low) / (high - low || 1)) * (to - from),
      ticks: [0, 0.25, 0.5, 0.75, 1].map((share) => low + share * (high - low)),
    };
  }
  const x = axis(state.x, LEFT, width - RIGHT),
    y = axis(state.y, height - BOTTOM, TOP),
    heavy = Math.max(...points.map((head) => Math.abs(head.of(importance) ?? 0)), 1e-9);
  const text = (at, anchor, words, attributes) =>
    svg("text", { x: at[0], y: at[1], "text-anchor": anchor, ...attributes }, words);

  const labels = []; // {x, y, width, node}
  const isFree = (box) =>
    box.x - box.width / 2 >= LEFT &&
    box.x + box.width / 2 <= width &&
    !labels.some(
      (label) =>
        Math.abs(box.x - label.x) < (box.width + label.width) / 2 && Math.abs(box.y - label.y) < 12,
    );
  // Place a label beside its bubble if there is room; the tooltip says the same.
  function label(head, words) {
    const wide = LETTER * [...words].length;
    for (const [side, below] of PLACES) {
      const from = x.at(head.of(state.x)) + 11 * side,
        box = { x: from + (side * wide) / 2, y: y.at(head.of(state.y)) + below, width: wide };
      if (!isFree(box)) continue;
      const attributes = { class: "point", "aria-hidden": "true" };
      const node = text([from, box.y], side > 0 ? "start" : "end", words, attributes);
      return labels.push({ ...box, node });
    }
    return 0;
  }

  const bottom = height - BOTTOM,
    middle = height / 2;
  const root = svg(
    "svg",
    {
      viewBox: `0 0 ${width} ${height}`,
      class: "scatter",
      role: "group",
      "aria-label": t("Heads by {x} and {y}", { x: title(state.x), y: title(state.y) }),
    },
    x.ticks.flatMap((value) => [
      svg("line", { x1: x.at(value), x2: x.at(value), y1: TOP, y2: bottom }),
      text([x.at(value), bottom + 15], "middle", formatSignificant(value, 2)),
    ]),
    y.ticks.flatMap((value) => [
      svg("line", { x1: LEFT, x2: width - RIGHT, y1: y.at(value), y2: y.at(value) }),
      text([LEFT - 6, y.at(value) + 4], "end", formatSignificant(value, 2)),
    ]),
    text([(width + LEFT) / 2, height - 6], "middle", title(state.x), { class: "axis" }),
    text([12, middle], "middle", title(state.y), {
      class: "axis",
      transform: `rotate(-90 12 ${middle})`,
    }),
  );
  for (const head of points) {
    const names = named(head);
    const values = [state.x, state.y].map(
      (name) => `${title(name)}: ${formatFixed(head.of(name), 3)}`,
    );
    const point = svg(
      "circle",
      {
        cx: x.at(head.of(state.x)),
        cy: y.at(head.of(state.y)),
        r: 4 + 8 * Math.sqrt(Math.abs(head.of(importance) ?? 0) / heavy),
        ...actAsButton(() => choose(head, point)),
        class: [names.length ? "" : "unnamed", head === state.chosen ? "chosen" : ""].join(" "),
        style: names.length ? `--hue: ${hue[names[0]]}` : "",
        "aria-label": `${describeHead(head)}. ${values.join("; ")}`,
      },
      svg("title", {}, describeHead(head)),
    );
    root.append(point);
    const kind = toText(KINDS[head.kind]?.short ?? head.title);
    if (names.length) label(head, `${kind} ${head.layer + 1}.${head.head + 1}`);
  }
  root.append(...labels.map(({ node }) => node)); // above all bubbles
  const seen = new Set(points.map((head) => named(head)[0]));
  return el("div", {}, [
    root,
    el("p", { class: "names" }, [
      Object.keys(hue)
        .filter((name) => seen.has(name))
        .map((name) => el("span", {}, el("i", { style: `--hue: ${hue[name]}` }), title(name))),
      el("span", {}, el("i", { class: "unnamed" }), t("no name")),
      el("span", {}, t("size: {statistic}", { statistic: title(importance) })),
    ]),
  ]);
}
