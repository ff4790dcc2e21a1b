// The heads of a survey by two of their statistics.
import { el, svg } from "../core/dom.js";
import { fixed, significant } from "../core/format.js";
import { KINDS } from "../core/kinds.js";
import { said, t } from "../core/language.js";

// chosen: the heads that are shown; of the survey: all of them, what is looked at, and what is done with one. room: pixels.
export function drawScatter(
  chosen,
  { heads, state, statistics, title, importance, choose, named, does, hue, room },
) {
  const width = Math.max(280, Math.min(860, room || 640)); // one unit is one pixel: letters keep their size
  const size = {
    width,
    height: Math.max(260, Math.round(width * 0.5)),
    left: 52,
    bottom: 40,
    top: 10,
    right: 12,
  };
  const points = heads.filter(
    (head) => chosen.has(head) && head.of(state.x) !== null && head.of(state.y) !== null,
  );
  const range = (name) => {
    const values = points.map((head) => head.of(name)),
      top = Math.max(...values, 1e-9);
    return statistics[name].share
      ? [0, Math.min(1, Math.ceil(top * 5 + 0.2) / 5)]
      : [Math.min(0, ...values), top * 1.05];
  };
  const [x, y] = [range(state.x), range(state.y)],
    heavy = Math.max(...points.map((head) => Math.abs(head.of(importance) ?? 0)), 1e-9);
  const at = (value, [low, high], from, to) =>
    from + ((value - low) / (high - low || 1)) * (to - from);
  const across = (value) => at(value, x, size.left, size.width - size.right),
    up = (value) => at(value, y, size.height - size.bottom, size.top);
  const labels = [],
    free = (box) =>
      !labels.some(
        ({ box: other }) =>
          Math.abs(box.x - other.x) < (box.width + other.width) / 2 &&
          Math.abs(box.y - other.y) < 12,
      );
  // Beside its bubble, where there is room: above or below it, to the right or to the left. Else its title says it.
  const label = (head, text) => {
    const [left, top] = [across(head.of(state.x)), up(head.of(state.y))],
      width = 6.2 * [...text].length;
    for (const [side, below] of [
      [1, -7],
      [1, 15],
      [-1, -7],
      [-1, 15],
    ]) {
      const from = left + 11 * side,
        box = { x: from + (side * width) / 2, y: top + below, width };
      if (box.x - width / 2 < size.left || box.x + width / 2 > size.width || !free(box)) continue;
      return labels.push({
        box,
        node: svg(
          "text",
          {
            x: from,
            y: top + below,
            "text-anchor": side > 0 ? "start" : "end",
            class: "point",
            "aria-hidden": "true",
          },
          text,
        ),
      });
    }
    return 0;
  };
  const root = svg("svg", {
    viewBox: `0 0 ${size.width} ${size.height}`,
    class: "scatter",
    role: "group",
    "aria-label": t("Heads by {x} and {y}", { x: title(state.x), y: title(state.y) }),
  });
  for (const share of [0, 0.25, 0.5, 0.75, 1]) {
    const [vx, vy] = [x[0] + share * (x[1] - x[0]), y[0] + share * (y[1] - y[0])];
    root.append(
      svg("line", {
        x1: across(vx),
        x2: across(vx),
        y1: size.top,
        y2: size.height - size.bottom,
      }),
      svg("line", { x1: size.left, x2: size.width - size.right, y1: up(vy), y2: up(vy) }),
      svg(
        "text",
        { x: across(vx), y: size.height - size.bottom + 15, "text-anchor": "middle" },
        significant(vx, 2),
      ),
      svg("text", { x: size.left - 6, y: up(vy) + 4, "text-anchor": "end" }, significant(vy, 2)),
    );
  }
  root.append(
    svg(
      "text",
      {
        x: (size.width + size.left) / 2,
        y: size.height - 6,
        "text-anchor": "middle",
        class: "axis",
      },
      title(state.x),
    ),
    svg(
      "text",
      {
        x: 12,
        y: size.height / 2,
        "text-anchor": "middle",
        class: "axis",
        transform: `rotate(-90 12 ${size.height / 2})`,
      },
      title(state.y),
    ),
  );
  for (const head of points) {
    const own = named(head),
      go = () => choose(head, point);
    const point = svg(
      "circle",
      {
        cx: across(head.of(state.x)),
        cy: up(head.of(state.y)),
        r: 4 + 8 * Math.sqrt(Math.abs(head.of(importance) ?? 0) / heavy),
        tabindex: 0,
        role: "button",
        class: [own.length ? "" : "unnamed", head === state.chosen ? "chosen" : ""].join(" "),
        style: own.length ? `--hue: ${hue[own[0]]}` : "",
        "aria-label": `${does(head)}. ${title(state.x)}: ${fixed(head.of(state.x), 3)}; ${title(state.y)}: ${fixed(head.of(state.y), 3)}`,
        onclick: go,
        onkeydown: (event) => ["Enter", " "].includes(event.key) && (event.preventDefault(), go()),
      },
      svg("title", {}, does(head)),
    );
    root.append(point);
    if (own.length)
      label(
        head,
        `${said(KINDS[head.kind]?.short ?? head.title)} ${head.layer + 1}.${head.head + 1}`,
      );
  }
  root.append(...labels.map(({ node }) => node)); // above all bubbles
  const seen = new Set(points.map((head) => named(head)[0]).filter(Boolean));
  return el(
    "div",
    {},
    root,
    el(
      "p",
      { class: "names" },
      Object.keys(hue)
        .filter((name) => seen.has(name))
        .map((name) => el("span", {}, el("i", { style: `--hue: ${hue[name]}` }), title(name))),
      el("span", {}, el("i", { class: "unnamed" }), t("no name")),
      el("span", {}, t("size: {statistic}", { statistic: title(importance) })),
    ),
  );
}
