// The whole model as figure 1 of "Attention Is All You Need" draws it (viz/wire/blocks.py, flow): two stacks of boxes, each with
// thumbnails of this sentence's maps. The style sheet lays out the boxes; the arrows between them are then drawn in an SVG.
import { button, el, svg } from "../core/dom.js";
import { localizeNumber, toText, t } from "../core/language.js";
import { createPicture } from "../picture/copy.js";
import { frameOf } from "../picture/drawing.js";
import { drawThumbnail } from "./maps.js";

const BEND = 9; // radius of an arrow's corners, in pixels
const TIP = 5; // length of an arrow's tip

/**
 * An arrow through points, with rounded corners: its line and its tip.
 * @param {string} kind class names @param {...any} points [x, y] each
 */
function drawArrow(kind, ...points) {
  const [last, before] = [points.at(-1), points.at(-2)];
  // The point at a distance from one point towards another, at most half-way.
  const towards = ([x0, y0], [x1, y1], distance) => {
    const length = Math.hypot(x1 - x0, y1 - y0) || 1,
      share = Math.min(distance, length / 2) / length;
    return [x0 + (x1 - x0) * share, y0 + (y1 - y0) * share];
  };
  const bends = points.slice(1, -1).map((corner, i) => {
    const [from, to] = [towards(corner, points[i], BEND), towards(corner, points[i + 2], BEND)];
    return `L${from} Q${corner} ${to}`;
  });
  const [x, y] = towards(last, before, TIP),
    [dx, dy] = [(last[1] - y) * 0.7, (last[0] - x) * 0.7];
  const tip = `M${last} L${x + dx},${y - dy} L${x - dx},${y + dy} Z`;
  return [
    svg("path", { d: `M${points[0]} ${bends.join(" ")} L${last}`, class: `way ${kind}` }),
    svg("path", { d: tip, class: `tip ${kind}` }),
  ];
}

/**
 * The block of the whole model.
 * @param {{stacks: any[]}} block
 * @param {(() => unknown)[]} afterInsert
 * @param {import("./blocks.js").Panel} api
 */
export function flow(block, afterInsert, api) {
  const createBox = ({ name, shape, axes, maps, link }, kind = "") => {
    const content = [
      el("span", { class: "name" }, name),
      el("span", { class: "shape" }, localizeNumber(shape)),
      maps.length > 0 &&
        el("span", { class: "thumbnails", "aria-hidden": "true" }, maps.map(drawThumbnail)),
    ];
    return button(content, () => api.openLink(link), {
      class: `station ${kind}`,
      title: `${localizeNumber(shape)}: ${axes.map(toText).join(" × ")}`,
    });
  };
  const residuals = [], // {plus, node}: a residual connection runs past the sublayer `node` to its `plus`
    readers = []; // boxes that read the encoder's output
  let memory = null; // the box of the encoder's output

  const createSublayer = ({ boxes, residual, norm, first: isNormFirst, memory: readsMemory }) => {
    const row = el("div", { class: "function" }, [
      boxes.map((box, i) => createBox(box, boxes.length > 1 && i !== 1 ? "aside" : "")),
    ]);
    const plus = residual ? el("span", { class: "plus", "aria-hidden": "true" }, "+") : null,
      normBox = createBox(norm, "norm"),
      parts = isNormFirst ? [normBox, row, plus] : [row, plus, normBox],
      node = el("div", { class: "sublayer" }, parts);
    if (plus) residuals.push({ plus, node });
    if (readsMemory) readers.push(row.firstChild);
    return node;
  };
  const createStack = ({ title, words, entry, sublayers, exit, layers, shown: layer, link }) => {
    const createEnd = (box) => createBox(box, box.maps.length ? "" : "norm"),
      exitBoxes = exit.map(createEnd);
    memory ??= exitBoxes.at(-1);
    const repetition = [
      t("× {n} layers", { n: layers }),
      el("small", {}, t("pictured: layer {n}", { n: layer })),
    ];
    return el("div", { class: "column" }, [
      el("h2", {}, title),
      el("div", { class: "stack" }, [
        el("p", { class: "words", dir: "auto" }, words.join(" ")),
        el("div", { class: "entry" }, entry.map(createEnd)),
        el("div", { class: "layers" }, [
          sublayers.map(createSublayer),
          button(repetition, () => api.openLink(link), { class: "times" }),
        ]),
        exitBoxes,
      ]),
    ]);
  };
  const lines = svg("svg", { class: "joins", "aria-hidden": "true" });
  const root = el("div", { class: "flow" }, lines, block.stacks.map(createStack));

  function drawArrows() {
    if (!root.isConnected || !root.offsetWidth) return;
    const { place } = frameOf(root);
    // The place of a node within the picture.
    const placeOf = (node) => {
      const { x, y, width, height } = place(node.getBoundingClientRect()),
        [left, right, top, bottom] = [x, x + width, y, y + height].map(Math.round);
      return { left, top, right, bottom, x: (left + right) / 2, y: (top + bottom) / 2 };
    };
    const arrows = [];
    for (const stack of root.querySelectorAll(".stack")) {
      const middle = placeOf(stack).x;
      const nodes = [
        ...stack.querySelectorAll(".words, .entry, .function, .plus, .norm"),
        ...[...stack.children].filter((node) => node.matches(".station:not(.norm)")),
      ];
      // An arrow enters a row of boxes at the first box and leaves it at the last.
      const stations = nodes.map((node) => ({
        ...placeOf(node),
        ...(node.matches(".function, .entry")
          ? { enter: placeOf(node.firstChild).x, leave: placeOf(node.lastChild).x }
          : { enter: middle, leave: middle }),
      }));
      stations.sort((a, b) => b.top - a.top);
      for (let i = 1; i < stations.length; i++) {
        const [below, above] = [stations[i - 1], stations[i]];
        if (below.top - above.bottom <= 2) continue;
        const start = [below.leave, below.top],
          end = [above.enter, above.bottom],
          turn = below.top - 3; // leaves space for the tip
        const corners = [start[0], end[0]].map((x) => [x, turn]);
        arrows.push(...drawArrow("", start, ...(start[0] === end[0] ? [] : corners), end));
      }
    }
    for (const { plus, node } of residuals) {
      const { x, y, left } = placeOf(plus),
        edge = placeOf(node.closest(".layers")).left + 7,
        below = placeOf(node).bottom + 3;
      arrows.push(...drawArrow("", [x, below], [edge, below], [edge, y], [left, y]));
    }
    for (const reader of readers) {
      const start = placeOf(memory),
        end = placeOf(reader),
        columns = [memory, reader].map((node) => placeOf(node.closest(".column"))),
        between = (columns[0].right + columns[1].left) / 2,
        [from, to] = [start, end].map(({ y }) => [between, y]);
      arrows.push(...drawArrow("memory", [start.right, start.y], from, to, [end.left, end.y]));
    }
    lines.replaceChildren(...arrows);
    lines.setAttribute("viewBox", `0 0 ${root.offsetWidth} ${root.offsetHeight}`);
  }
  afterInsert.push(() => {
    drawArrows();
    new ResizeObserver(drawArrows).observe(root);
  });
  return createPicture(root, api.describePicture(""));
}
