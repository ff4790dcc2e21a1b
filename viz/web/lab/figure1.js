// The whole model as the paper's figure 1 draws it (viz/wire/blocks.py, flow): two stacks of boxes, each with what this
// sentence leaves there. The boxes are laid out by the style sheet; what joins them is drawn where they came to stand.
import { button, el, svg } from "../core/dom.js";
import { localizeNumber, toText, t } from "../core/language.js";
import { createPicture } from "../picture/copy.js";
import { thumbnail } from "./maps.js";

const BEND = 9; // pixels that an arrow's corner is rounded by
const HEADROOM = 5; // of an arrow's tip

// A way through these points, with round corners; its tip at the last.
function way(points) {
  const [last, before] = [points.at(-1), points.at(-2)];
  const towards = ([x, y], [to, down], length) => {
    const whole = Math.hypot(to - x, down - y) || 1,
      share = Math.min(length, whole / 2) / whole;
    return [x + (to - x) * share, y + (down - y) * share];
  };
  const bends = points.slice(1, -1).map((corner, i) => {
    const [from, to] = [towards(corner, points[i], BEND), towards(corner, points[i + 2], BEND)];
    return `L${from} Q${corner} ${to}`;
  });
  const [x, y] = towards(last, before, HEADROOM),
    [aside, off] = [(last[1] - y) * 0.7, (last[0] - x) * 0.7];
  const tip = `M${last} L${x + aside},${y - off} L${x - aside},${y + off} Z`;
  return [
    svg("path", { d: `M${points[0]} ${bends.join(" ")} L${last}`, class: "way" }),
    svg("path", { d: tip, class: "tip" }),
  ];
}

export function flow(block, keep, api) {
  const box = (one, kind = "") => {
    const words = [
      el("span", { class: "name" }, one.name),
      el("span", { class: "shape" }, localizeNumber(one.shape)),
      one.maps.length
        ? el("span", { class: "thumbnails", "aria-hidden": "true" }, one.maps.map(thumbnail))
        : null,
    ];
    return button(words, () => api.open(one.link), {
      class: `station ${kind}`,
      title: `${localizeNumber(one.shape)}: ${one.axes.map(toText).join(" × ")}`,
    });
  };
  const joins = [], // {plus, node}: what is added, past which sublayer
    readers = []; // boxes that read the memory
  let memory = null;

  const sublayer = (one) => {
    const row = el(
      "div",
      { class: "function" },
      one.boxes.map((each, i) => box(each, one.boxes.length > 1 && i !== 1 ? "aside" : "")),
    );
    const plus = one.residual ? el("span", { class: "plus", "aria-hidden": "true" }, "+") : null;
    const norm = box(one.norm, "norm");
    const parts = one.first ? [norm, row, plus] : [row, plus, norm];
    const node = el("div", { class: "sublayer" }, parts);
    if (plus) joins.push({ plus, node });
    if (one.memory) readers.push(row.firstChild);
    return node;
  };
  const stack = (one) => {
    const end = (each) => box(each, each.maps.length ? "" : "norm"),
      ends = one.exit.map(end);
    memory ??= ends.at(-1);
    const times = [
      t("× {n} layers", { n: one.layers }),
      el("small", {}, t("pictured: layer {n}", { n: one.shown })),
    ];
    return el(
      "div",
      { class: "column" },
      el("h2", {}, one.title),
      el(
        "div",
        { class: "stack" },
        el("p", { class: "words", dir: "auto" }, one.words.join(" ")),
        el("div", { class: "entry" }, one.entry.map(end)),
        el(
          "div",
          { class: "layers" },
          one.sublayers.map(sublayer),
          button(times, () => api.open(one.link), { class: "times" }),
        ),
        ...ends,
      ),
    );
  };
  const lines = svg("svg", { class: "joins", "aria-hidden": "true" });
  const root = el("div", { class: "flow" }, lines, block.stacks.map(stack));

  function join() {
    if (!root.isConnected || !root.offsetWidth) return;
    const frame = root.getBoundingClientRect(),
      scale = frame.width / root.offsetWidth;
    const at = (node) => {
      const found = node.getBoundingClientRect();
      const across = (value) => Math.round((value - frame.left) / scale),
        down = (value) => Math.round((value - frame.top) / scale);
      const [left, right] = [across(found.left), across(found.right)],
        [top, bottom] = [down(found.top), down(found.bottom)];
      return { left, top, right, bottom, x: (left + right) / 2, y: (top + bottom) / 2 };
    };
    // Of a row of boxes the first is entered and the last is left; all else, in the middle of its column.
    const passing = (node) => ({
      ...at(node),
      ...(node.matches(".function, .entry")
        ? { enter: at(node.firstChild).x, leave: at(node.lastChild).x }
        : {}),
    });
    const found = [];
    for (const one of root.querySelectorAll(".stack")) {
      const middle = at(one).x;
      const passed = [
        ...one.querySelectorAll(".words, .entry, .function, .plus, .norm"),
        ...[...one.children].filter((node) => node.matches(".station:not(.norm)")),
      ].map(passing);
      passed.sort((a, b) => b.top - a.top);
      for (let i = 1; i < passed.length; i++) {
        const [below, above] = [passed[i - 1], passed[i]];
        if (below.top - above.bottom <= 2) continue;
        const from = [below.leave ?? middle, below.top],
          to = [above.enter ?? middle, above.bottom],
          turn = from[1] - 3; // which leaves room for the tip
        const corners = [from[0], to[0]].map((x) => [x, turn]);
        found.push(...way([from, ...(from[0] === to[0] ? [] : corners), to]));
      }
    }
    for (const { plus, node } of joins) {
      const { x, y, left } = at(plus),
        edge = at(node.closest(".layers")).left + 7,
        below = at(node).bottom + 3;
      const points = [
        [x, below],
        [edge, below],
        [edge, y],
        [left, y],
      ];
      found.push(...way(points));
    }
    for (const reader of readers) {
      const from = at(memory),
        to = at(reader),
        between = (at(memory.closest(".column")).right + at(reader.closest(".column")).left) / 2;
      const arrow = way([
        [from.right, from.y],
        [between, from.y],
        [between, to.y],
        [to.left, to.y],
      ]);
      for (const part of arrow) part.classList.add("memory");
      found.push(...arrow);
    }
    lines.replaceChildren(...found);
    lines.setAttribute("viewBox", `0 0 ${root.offsetWidth} ${root.offsetHeight}`);
  }
  keep.push(() => {
    join();
    new ResizeObserver(join).observe(root);
  });
  return createPicture(root, api.about(""));
}
