// The block of a recurrent network's map (viz/panels/network.py): its parts as boxes, the shapes of what passes between them,
// with and without attention. A box opens the panel that shows its part.
import { el, svg } from "../core/dom.js";
import { toText, t } from "../core/language.js";
import { createPicture } from "../picture/copy.js";
import { elementSvg } from "../picture/drawing.js";

const WIDTH = 372,
  HEIGHT = 552;
const LEFT = 4, // of the encoder's column
  RIGHT = 212, // of the decoder's
  COLUMN = 156,
  BOX = 30; // the height of a box
// The top of each row of boxes.
const ROW = {
  tokens: 26,
  rows: 88,
  units: 150,
  memory: 222,
  bridge: 326,
  readout: 396,
  output: 458,
  next: 520,
};

/**
 * @param {{source: number, maps: any[], opens: Record<string, any>}} block
 * @param {import("./blocks.js").Panel} api
 * @param {(to: any) => void} follow opens the target of a click
 */
export function network(block, api, follow) {
  const maps = block.maps.map((widths) => drawMap(widths, block.source, block.opens, follow));
  const figures = el(
    "div",
    { class: "networks" },
    block.maps.map(({ attention }, i) =>
      el("figure", {}, [
        el("figcaption", {}, attention ? t("With attention") : t("Without attention")),
        maps[i],
      ]),
    ),
  );
  return createPicture(figures, {
    ...api.describePicture(""),
    main: true,
    svg: () => elementSvg(figures),
  });
}

function drawMap(w, source, opens, follow) {
  const shape = (...numbers) => `[${numbers.join(", ")}]`;
  const parts = [];

  // A box with a text, perhaps of two lines; it opens a panel if `part` names one.
  function box(x, y, width, text, part = "", look = "") {
    const to = opens[part],
      words = toText(text);
    const act = to && {
      tabindex: "0",
      role: "button",
      "aria-label": words,
      onclick: () => follow(to),
      onkeydown: (event) => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        follow(to);
      },
    };
    parts.push(
      svg("g", { class: `part ${to ? "opens" : ""} ${look}`, ...act }, [
        svg("rect", { x, y, width, height: BOX, rx: 6 }),
        svg("text", { x: x + width / 2, y: y + BOX / 2 + 4 }, words),
      ]),
    );
  }

  // An arrow along points [x, y], with the shape of what it carries beside `at`.
  function arrow(points, label = "", at = null, look = "", anchor = "start") {
    const [[x0, y0], [x1, y1]] = points.slice(-2),
      length = Math.hypot(x1 - x0, y1 - y0),
      [dx, dy] = [(x1 - x0) / length, (y1 - y0) / length];
    const head = [
      [x1, y1],
      [x1 - 7 * dx - 4 * dy, y1 - 7 * dy + 4 * dx],
      [x1 - 7 * dx + 4 * dy, y1 - 7 * dy - 4 * dx],
    ];
    parts.push(
      svg("g", { class: `arrow ${look}` }, [
        svg("path", { class: "line", d: `M${points.map((point) => point.join()).join("L")}` }),
        svg("path", { class: "head", d: `M${head.map((point) => point.join()).join("L")}Z` }),
        at && svg("text", { x: at[0], y: at[1], "text-anchor": anchor }, toText(label)),
      ]),
    );
  }

  // An arrow down from one row to the next, with its shape at the right.
  const down = (x, from, to, label, look = "") =>
    arrow(
      [
        [x, from + BOX],
        [x, to],
      ],
      label,
      [x + 7, (from + BOX + to) / 2 + 4],
      look,
    );
  const title = (x, text) => parts.push(svg("text", { x, y: 14, class: "title" }, toText(text)));

  const middle = LEFT + COLUMN / 2,
    half = COLUMN / 2 - 4,
    [ahead, back] = [LEFT + half / 2, LEFT + COLUMN - half / 2],
    center = RIGHT + COLUMN / 2;

  // The encoder: tokens, embeddings, a unit in each direction, their states side by side.
  title(LEFT, t("Encoder"));
  box(LEFT, ROW.tokens, COLUMN, t("source tokens"));
  down(middle, ROW.tokens, ROW.rows, shape(source));
  box(LEFT, ROW.rows, COLUMN, t("embedding · √d"), "embedding");
  const units = [
    { x: ahead, part: "forwards", text: "GRU →" },
    { x: back, part: "backwards", text: "← GRU" },
  ];
  for (const { x, part, text } of units) {
    down(x, ROW.rows, ROW.units, x === ahead ? shape(source, w.embedding) : "");
    box(x - half / 2, ROW.units, half, text, part);
    down(x, ROW.units, ROW.memory, shape(source, w.direction));
  }
  box(LEFT, ROW.memory, COLUMN, t("states h, side by side"));
  down(
    middle,
    ROW.memory,
    ROW.bridge,
    t("last states {shape}", { shape: shape(w.memory) }),
    w.attention ? "" : "only",
  );
  box(LEFT, ROW.bridge, COLUMN, "tanh(W h + b)");

  // The decoder: the token read, attention, the unit, the readout, the scores.
  title(RIGHT, t("Decoder, one step"));
  box(RIGHT, ROW.tokens, COLUMN, t("token read"));
  const token = w.attention ? RIGHT + COLUMN - 14 : center;
  down(center, ROW.tokens, ROW.rows, shape(1));
  box(RIGHT, ROW.rows, COLUMN, t("embedding · √d"), "embedding");
  down(token, ROW.rows, ROW.bridge, "");
  const input = t("input x {shape}", { shape: shape(w.embedding) });
  parts.push(
    svg(
      "text",
      { x: token - 7, y: ROW.units + 8, class: "shape", "text-anchor": "end" },
      toText(input),
    ),
  );
  if (w.attention) {
    const wide = COLUMN - 36;
    box(RIGHT, ROW.memory, wide, t("attention"), "attention", "strong");
    arrow(
      [
        [LEFT + COLUMN, ROW.memory + BOX / 2],
        [RIGHT, ROW.memory + BOX / 2],
      ],
      shape(source, w.memory),
      [(LEFT + COLUMN + RIGHT) / 2, ROW.memory + BOX / 2 + 14],
      "",
      "middle",
    );
    const query = RIGHT + 14,
      context = RIGHT + 44;
    arrow(
      [
        [query, ROW.bridge],
        [query, ROW.memory + BOX],
      ],
      t("query s {shape}", { shape: shape(w.state) }),
      [query - 6, ROW.memory + BOX + 24],
      "query",
      "end",
    );
    down(context, ROW.memory, ROW.bridge, t("context c {shape}", { shape: shape(w.memory) }));
  }
  box(RIGHT, ROW.bridge, COLUMN, "GRU", "writer");
  arrow(
    [
      [LEFT + COLUMN, ROW.bridge + BOX / 2],
      [RIGHT, ROW.bridge + BOX / 2],
    ],
    `s₀ ${shape(w.state)}`,
    [(LEFT + COLUMN + RIGHT) / 2, ROW.bridge + 9],
    w.attention ? "" : "only",
    "middle",
  );
  // The state returns to the unit at the next step.
  const end = RIGHT - 16;
  arrow(
    [
      [RIGHT + 24, ROW.bridge + BOX],
      [RIGHT + 24, ROW.bridge + BOX + 16],
      [end, ROW.bridge + BOX + 16],
      [end, ROW.bridge + BOX - 6],
      [RIGHT, ROW.bridge + BOX - 6],
    ],
    t("next s {shape}", { shape: shape(w.state) }),
    [end - 4, ROW.bridge + BOX + 20],
    "",
    "end",
  );
  const joined = w.attention ? "s, x, c" : "s, x";
  down(center, ROW.bridge, ROW.readout, `${joined}: ${shape(w.readout)}`);
  box(RIGHT, ROW.readout, COLUMN, `tanh(W [${joined}])`);
  down(center, ROW.readout, ROW.output, shape(w.embedding));
  box(RIGHT, ROW.output, COLUMN, t("output Eᵀ, softmax"), "output");
  down(center, ROW.output, ROW.next, shape(w.vocabulary));
  box(RIGHT, ROW.next, COLUMN, t("token written"));

  return svg(
    "svg",
    {
      viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
      width: WIDTH,
      height: HEIGHT,
      role: "group",
      "aria-label": w.attention
        ? t("A map of the network with attention")
        : t("A map of the network without attention"),
    },
    parts,
  );
}
