// One head open at one query: every stage of softmax(q·kᵀ ÷ √d_k) v, each key in its own row. The asking word has a lane between
// the two sides: its query enters on the left, and what the head says leaves on the right.
import { formatFixed } from "../core/format.js";
import { t } from "../core/language.js";
import { keySide, kindOf, layerOf, querySide } from "./place.js";
import { formatWeight } from "./words.js";

const COLOURS = { encoder: "source", decoder: "target" };
// Shares of the head's length. On a narrow screen each column has room above it for its name.
const WIDE = {
  lead: 0.03,
  key: 0.16,
  gap1: 0.014,
  dot: 0.066,
  bias: 0.066,
  scaled: 0.066,
  mask: 0.052,
  weight: 0.135,
  gap2: 0.014,
  value: 0.16,
  gap3: 0.014,
  weighted: 0.16,
  gap4: 0.02,
  output: 0.115,
};
const TALL = {
  lead: 34,
  key: 120,
  t1: 18,
  dot: 24,
  tb: 18,
  bias: 24,
  t2: 18,
  scaled: 24,
  t0: 18,
  mask: 22,
  t3: 18,
  weight: 90,
  t4: 18,
  value: 120,
  t5: 18,
  weighted: 120,
  gap4: 8,
  output: 84,
};
const OPTIONAL = { bias: "bias", tb: "bias", mask: "mask", t0: "mask" };
export const COLUMNS = ["key", "dot", "bias", "scaled", "mask", "weight", "value", "weighted"];

/** The columns of an open head along the flow. has: which of the optional ones it has. */
export function headColumns({ a, b }, tall, has) {
  const shares = Object.entries(tall ? TALL : WIDE).filter(
    ([name]) => !OPTIONAL[name] || has[OPTIONAL[name]],
  );
  const total = shares.reduce((sum, [, share]) => sum + share, 0);
  const columns = {};
  let start = a;
  for (const [name, share] of shares) {
    const end = start + (share / total) * (b - a);
    columns[name] = { a: start, b: end, middle: (start + end) / 2 };
    start = end;
  }
  return columns;
}

/** The request for the open head's numbers. @param {any} view */
export const headFields = ({ open, query, window }) => ({
  stage: "head",
  head: [kindOf(open.stage, open.sub), layerOf(open.stage), open.head],
  query,
  ...(window?.chosen ? { first: window.first } : {}),
});

/** Which optional columns a head has. @param {any} data @param {string} kind */
export const optionalColumns = (data, kind) => ({
  bias: Boolean(data?.bias),
  mask: kind === "decoder_self" || Boolean(data && !data.allowed.every(Boolean)),
});

// Short enough for a column of 24 pixels.
const brief = (x) =>
  (Math.abs(x) >= 3 ? formatFixed(x, 0) : formatFixed(x, 1)).replace(/^(−?)0\./, "$1.");
const two = (x) => formatFixed(x, Math.abs(x) >= 100 ? 0 : Math.abs(x) >= 10 ? 1 : 2);

const largestOf = (vectors) => Math.max(1e-6, ...vectors.flat().map(Math.abs));

export function drawHead(scene, stage, sub, column) {
  const { pen, layout, model, view, lights } = scene,
    { tall } = layout,
    kind = kindOf(stage, sub),
    side = keySide(kind),
    data = model.stage(headFields(view)),
    columns = headColumns(column, tall, optionalColumns(data, kind)),
    rows = scene.rows(side),
    asking = scene.active(querySide(kind)) ?? scene.rows(querySide(kind))[0],
    lane = (layout.gap.a + layout.gap.b) / 2 - (tall ? 0 : 10),
    thick = Math.min(15, rows[0].pitch * 0.56),
    size = Math.min(12.5, tall ? rows[0].pitch * 0.28 + 4.4 : rows[0].pitch * 0.52 + 1),
    print = tall ? brief : two;
  const { d_head: width } = model.sides[querySide(kind)];
  const lit = (name, key = null) => (lights ? scene.lit(lights.head(name, key)) : 1);

  const drawTitle = (name, str) => {
    const place = columns[name];
    if (!place) return;
    const middle = (rows[0].c + rows.at(-1).c) / 2;
    const [u, v] = tall ? [place.a - 9, middle] : [place.middle, layout.lead - 8];
    pen.text(`title.head.${name}`, u, v, str, {
      s: 11.5,
      c: "muted",
      weight: 500,
      halo: tall ? "panel" : undefined,
      a: lights ? 0.35 + 0.65 * lights.head(name, null) : 1,
    });
  };
  const divides = data ? data.divided : model.overview.divided;
  drawTitle("key", t("key"));
  drawTitle("dot", "q · k");
  drawTitle("bias", t("+ bias"));
  drawTitle("scaled", divides ? `÷ √${width}` : t("score"));
  drawTitle("mask", t("mask"));
  drawTitle("weight", t("softmax"));
  drawTitle("value", t("value"));
  drawTitle("weighted", t("weight × value"));
  if (!data) return;

  const scale = { key: largestOf(data.keys), value: largestOf(data.values) };
  for (const row of rows) {
    const id = `head.${row.id}`,
      across = tall ? row.pitch * 0.6 : thick,
      [top, bottom] = [row.c - row.pitch / 2, row.c + row.pitch / 2];
    if (row.isOthers) {
      pen.text(
        `others.${id}`,
        columns.weight.a + 4,
        row.c,
        t("{n} more: {share}", { n: data.others.count, share: formatWeight(data.others.weight) }),
        {
          s: size,
          c: "muted",
          align: "start",
          along: true,
        },
      );
      continue;
    }
    const at = row.at[0] - data.first;
    if (at < 0 || at >= data.weights.length) continue;
    const key = row.at[0],
      weight = data.weights[at],
      isOpen = data.allowed[at],
      faint = isOpen ? 1 : 0.25,
      weighted = data.values[at].map((x) => x * weight);
    const drawStrip = (name, values, most, tip) =>
      pen.strip(
        `${name}.${id}`,
        columns[name].a,
        columns[name].b,
        row.c,
        across,
        `${name}.${kind}.${layerOf(stage)}.${view.open.head}.${key}.${view.query}`,
        values,
        most,
        {
          a: faint * lit(name, key),
          tip,
        },
      );
    // On a narrow screen neighbours stand higher and lower in turn.
    const shift = tall ? (row.index % 2 ? 6 : -6) : 0;
    const drawNumber = (name, str, more = {}) =>
      columns[name] &&
      pen.text(`${name}.${id}`, columns[name].middle + shift, row.c, str, {
        s: size,
        a: faint * lit(name, key),
        ...more,
      });
    drawStrip("key", data.keys[at], scale.key, (i, n) =>
      t("number {i} of {n}: query {q} × key {k} = {product}", {
        i: i + 1,
        n,
        q: two(data.query[i]),
        k: two(data.keys[at][i]),
        product: two(data.query[i] * data.keys[at][i]),
      }),
    );
    drawNumber("dot", print(data.dots[at]));
    if (data.bias) drawNumber("bias", print(data.bias[at]));
    drawNumber("scaled", print(data.scaled[at]));
    drawNumber("mask", isOpen ? "+ 0" : "−∞", { c: isOpen ? "muted" : "ink", a: lit("mask", key) });
    const { a, b } = columns.weight,
      length = b - a - (tall ? 16 : 38) - 8;
    const bar = (name, share, more) =>
      pen.box(`${name}.${id}`, a + 4, a + 4 + share, row.c - across / 2, row.c + across / 2, {
        r: 3,
        ...more,
      });
    bar("weightground", length, { fill: "line", a: 0.45 * faint * lit("weight", key), z: 5 });
    bar("weight", Math.max(1, length * weight), {
      fill: COLOURS[side],
      a: lit("weight", key),
      z: 6,
    });
    pen.text(
      `weightnumber.${id}`,
      b - (tall ? 7 : 2),
      row.c,
      isOpen ? (tall ? formatWeight(weight).replace(/^0\./, ".") : formatWeight(weight)) : "0",
      {
        s: size,
        align: "end",
        weight: weight > 0.3 ? 650 : 400,
        a: faint * lit("weight", key),
      },
    );
    drawStrip("value", data.values[at], scale.value, (i, n) =>
      t("value {v} (number {i} of {n})", { v: two(data.values[at][i]), i: i + 1, n }),
    );
    drawStrip(
      "weighted",
      weighted,
      scale.value,
      (i) => `${formatWeight(weight)} × ${two(data.values[at][i])} = ${two(weighted[i])}`,
    );
    pen.hit(columns.key.a, columns.weighted.b, top, bottom, { cell: [view.query, key] });
    if (view.cell?.[1] === key)
      pen.box("ring", columns.dot.a - 1, columns.weight.b + 4, top + 1, bottom - 1, {
        stroke: "accent",
        w0: 2,
        r: 6,
        z: 9,
      });
  }

  // The lane: the query enters, the output leaves.
  const laneThick = 16,
    sum = layout.spans[`${stage}.${sub}`].b,
    colour = COLOURS[asking.side],
    half = laneThick / 2 + 2;
  const drawLane = (name, column_, values, most, lightOf, tip) => {
    pen.strip(
      `lane.${name}`,
      column_.a,
      column_.b,
      lane,
      laneThick,
      `lane.${name}.${kind}.${layerOf(stage)}.${view.open.head}.${view.query}`,
      values,
      most,
      {
        a: lit(lightOf),
        z: 7,
        tip,
      },
    );
    pen.box(`laneframe.${name}`, column_.a - 2, column_.b + 2, lane - half, lane + half, {
      stroke: colour,
      r: 4,
      w0: 1.5,
      a: 0.8 * lit(lightOf),
      z: 7,
    });
  };
  drawLane("query", columns.key, data.query, largestOf([data.query]), "query", (i, n) =>
    t("query {q} (number {i} of {n})", { q: two(data.query[i]), i: i + 1, n }),
  );
  drawLane("output", columns.weighted, data.output, scale.value, "output", (i, n) =>
    t("sum over the keys: {z} (number {i} of {n})", { z: two(data.output[i]), i: i + 1, n }),
  );
  drawLane("share", columns.output, data.share.row(0), data.share.limit / 2, "share");
  const path = { c: colour, w0: 2.5, z: 4 };
  pen.curve("toquery", column.a - 2, asking.c, columns.key.a - 3, lane, {
    ...path,
    a: 0.7 * lit("query"),
  });
  pen.line("tooutput", columns.weighted.b + 3, lane, columns.output.a - 2, lane, {
    ...path,
    a: 0.7 * lit("share"),
  });
  pen.curve("tosum", columns.output.b + 2, lane, sum - 6, asking.c, {
    ...path,
    a: 0.7 * lit("share"),
  });
  // Keys meet the query; weighted values fall into their sum.
  const from =
      side === "encoder" ? rows.at(-1).c + rows.at(-1).pitch / 2 : rows[0].c - rows[0].pitch / 2,
    to = side === "encoder" ? lane - half - 2 : lane + half + 2;
  for (const [name, place, category] of [
    ["meets", columns.key, "dot"],
    ["falls", columns.weighted, "output"],
  ])
    pen.line(name, place.middle, from, place.middle, to, {
      c: "muted",
      w0: 1.5,
      a: 0.7 * lit(category),
      z: 4,
      dash: [2, 3],
    });
  const drawNote = (place, str, category) =>
    pen.text(
      `note.${category}`,
      place.middle,
      lane + (tall ? 17 : side === "encoder" ? 25 : -19),
      str,
      {
        along: true,
        s: tall ? 10.5 : 11.5,
        c: "muted",
        halo: "panel",
        a: lights ? 0.2 + 0.8 * lights.head(category, null) : 1,
      },
    );
  drawNote(columns.key, t("query of “{word}”", { word: asking.label }), "query");
  drawNote(columns.weighted, t("sum: what the head says"), "output");
  drawNote(columns.output, "× W_O", "share");
  if (tall) return;
  const divided = divides ? ` ÷ √${width}` : "",
    bias = data.bias ? " + b" : "";
  pen.text(
    "formula",
    (columns.dot.a + columns.value.b) / 2,
    lane,
    `softmax( q · k${divided}${bias} ) × v`,
    {
      s: 13,
      c: "muted",
      a: lights ? 0.25 : 0.9,
      mono: true,
    },
  );
}
