// Following one number: what it is made of and what it feeds, as light in the picture, as figures below it, and as captions that
// play one after another.
import { el } from "../core/dom.js";
import { formatFixed, formatPercent, formatSignificant } from "../core/format.js";
import { t } from "../core/language.js";
import { keySide, layerOf, querySide, kindOf } from "./place.js";
import { formatPower, nextWord } from "./stages.js";
import { formatWeight } from "./words.js";

const signed = (x) => {
  const text = Math.abs(x) < 0.01 ? formatSignificant(x, 2) : formatFixed(x, 2);
  return x < 0 ? text : `+${text}`;
};

/** The request for what a followed number is made of. @param {any} view @param {any} model */
export function followFields({ open, cell, follow, step }, model) {
  if (!follow) return null;
  if (follow.probability !== undefined) {
    const output = model.stage({ stage: "output", step });
    return output && { stage: "probability", step, token: output.ids[follow.probability] };
  }
  if (!cell) return null;
  return {
    stage: "weight",
    head: [kindOf(open.stage, open.sub), layerOf(open.stage), open.head],
    query: cell[0],
    key: cell[1],
  };
}

/**
 * How bright each part is while a number is followed: 1 for the number, its operands and what it feeds. beat: the caption that
 * is read, which names the parts that it is about; null: all at once.
 */
export class Lights {
  constructor(view, beats, beat) {
    this.view = view;
    this.beats = beats;
    this.beat = beat;
    this.follow = view.follow;
    this.place = this.follow.place; // of the followed weight
    if (this.place) this.kind = kindOf(this.place.stage, this.place.sub);
  }

  level(category) {
    if (this.beat === null || !this.beats.length) return 1;
    if (this.beats[this.beat].on.includes(category)) return 1;
    return this.beats.slice(0, this.beat).some(({ on }) => on.includes(category)) ? 0.4 : 0;
  }

  isQuery(row) {
    const { cell } = this.follow;
    return cell && row.side === querySide(this.kind) && cell[0] >= row.at[0] && cell[0] < row.at[1];
  }

  isKey(row) {
    const { cell } = this.follow;
    return cell && row.side === keySide(this.kind) && cell[1] >= row.at[0] && cell[1] < row.at[1];
  }

  isStep(row) {
    const { step } = this.view;
    return row.side === "decoder" && step >= row.at[0] && step < row.at[1];
  }

  stream(row, sum) {
    const { subs, layer, index } = this.follow.sums ?? {};
    if (!this.place) return this.isStep(row) ? this.level("back") : 0;
    const limit = layer * subs + index; // the sum that the head reads
    const isOwn = row.side === querySide(this.kind);
    if (this.isQuery(row) && sum > limit) return this.level("ahead");
    if (this.isQuery(row)) return this.level("back");
    if (this.isKey(row) && (!isOwn || sum <= limit)) return this.level("back");
    return 0;
  }

  memory(row) {
    if (!this.place) return 0;
    return this.kind === "cross" && this.isKey(row) ? this.level("back") : 0;
  }

  word(row) {
    if (!this.place) return this.isStep(row) ? 1 : 0.2;
    return this.isQuery(row) || this.isKey(row) ? 1 : 0.2;
  }

  line(kind, layer, head, query, key, weight) {
    if (!this.place) return 0.1;
    const isHead =
      kind === this.kind && layer === layerOf(this.place.stage) && head === this.place.head;
    if (isHead && this.isQuery(query)) return this.isKey(key) ? 1 : 0.25 * weight;
    return 0;
  }

  head(category, key) {
    if (!this.place) return 0.2;
    const isOwn = key === null || key === this.follow.cell[1];
    // Σ of the softmax runs over all keys, and so does the sum of weighted values.
    const isShared = ["scaled", "weight", "weighted"].includes(category);
    return this.level(category) * (isOwn ? 1 : isShared ? 0.45 : 0.12);
  }

  out(i) {
    if (this.place) return this.level("out") * (i ? 0.3 : 1);
    return i === this.follow.probability ? 1 : 0.35;
  }
}

const numberName = (i) => t("number {n}", { n: `${i + 1}` });

// "+1.25 (number 17); +0.80 (number 3); +0.41 (number 29); the other 29: +0.12"
function sumOf({ largest, rest, others, bias }, name = numberName) {
  const terms = largest.map(([i, value]) => `${signed(value)} (${name(i)})`);
  return [
    ...terms,
    ...(others ? [t("the other {n}: {sum}", { n: others, sum: signed(rest) })] : []),
    ...(bias ? [t("bias: {sum}", { sum: signed(bias) })] : []),
  ].join("; ");
}

const line = (label, text, note = "") =>
  el("p", {}, el("b", {}, label), " ", text, " ", el("span", { class: "note" }, note));

/**
 * The figures of a cell: the products of query and key, their sum, and the softmax.
 * @param {any} scene @param {any} data of the open head
 */
export function cellFigures(scene, data) {
  const { cell } = scene.view,
    at = cell[1] - data.first;
  if (!(at >= 0 && at < data.weights.length)) return null;
  const key = data.keys[at],
    products = data.query.map((q, i) => q * key[i]),
    x = data.scaled[at];
  const bias = data.bias ? ` ${signed(data.bias[at])}` : "";
  const words = {
    query: scene.active(querySide(kindOf(scene.view.open.stage, scene.view.open.sub)))?.label ?? "",
    key:
      scene
        .rows(keySide(kindOf(scene.view.open.stage, scene.view.open.sub)))
        .find((row) => row.at[0] === cell[1])?.label ?? "",
  };
  const root = data.divided ? ` ÷ √${key.length}` : "";
  const isSmall = Math.abs(data.largest) < 30;
  const power = isSmall ? Math.exp(x) : Math.exp(x - data.largest),
    total = isSmall ? data.sum * Math.exp(data.largest) : data.sum,
    exponent = isSmall ? "eˣ" : t("e to the x less the largest");
  return el("div", { class: "figures" }, [
    line(t("“{query}” to “{key}”", words), t("{n} products, query × key:", { n: key.length })),
    el(
      "ol",
      { class: "products" },
      products.map((product, i) =>
        el(
          "li",
          { title: `${formatFixed(data.query[i], 3)} × ${formatFixed(key[i], 3)}` },
          formatFixed(product, 2),
        ),
      ),
    ),
    line("q · k", `= ${formatFixed(data.dots[at], 3)}`),
    line("x", `= ${formatFixed(data.dots[at], 3)}${root}${bias} = ${formatFixed(x, 3)}`),
    data.divided
      ? el(
          "p",
          { class: "note" },
          t(
            "The more products are added, the larger the sum. Dividing by √{n} makes up for that.",
            {
              n: `${key.length}`,
            },
          ),
        )
      : "",
    data.allowed[at]
      ? line(
          `${exponent} ÷ Σ`,
          `= ${formatSignificant(power, 4)} ÷ ${formatSignificant(total, 4)} = ${formatFixed(data.weights[at], 4)}`,
          t("Σ adds this up over all keys, so the weights of “{query}” sum to 1.", words),
        )
      : line(t("mask"), t("−∞: this key comes later, so its weight is 0.")),
  ]);
}

/**
 * Create the figures of a followed number: its addends, and what it is an addend of.
 * @param {any} follow @param {any} data of page_inside @param {(i: number) => string} keyName the word of a key
 */
export function followFigures(follow, data, keyName) {
  if (!data) return null;
  if (follow.probability !== undefined)
    return el("div", { class: "figures" }, [
      line(
        t("Probability"),
        `= eˣ ÷ Σ = ${formatPower(data.logit.total)} ÷ ${formatPower(data.log_sum)} = ${formatFixed(data.probability, 4)}`,
      ),
      line(t("x, the logit"), `= ${formatFixed(data.logit.total, 2)} = ${sumOf(data.logit)}`),
      el(
        "ul",
        {},
        data.hidden.map(({ dimension, value }) =>
          el(
            "li",
            {},
            t("number {i} of the decoder’s output: {value}", {
              i: `${dimension + 1}`,
              value: formatFixed(value, 3),
            }),
          ),
        ),
      ),
    ]);
  return el("div", { class: "figures" }, [
    line(t("Made of"), `q · k = ${formatFixed(data.dot, 2)} = ${sumOf(data.score)}`),
    el(
      "p",
      {},
      t(
        "Each number of query and key adds up the numbers of a stream, which the norm has brought to one scale, each times a learned weight. The largest parts:",
      ),
    ),
    el(
      "ul",
      {},
      data.back.map(({ dimension, query, key }) =>
        el("li", {}, [
          `${numberName(dimension)}: q = ${formatFixed(query.total, 2)} = ${sumOf(query)}`,
          el("br"),
          `k = ${formatFixed(key.total, 2)} = ${sumOf(key)}`,
        ]),
      ),
    ),
    line(t("Feeds"), `${t("weight × value")}: ${sumOf(data.values)}`),
    el(
      "ul",
      {},
      data.forward.map(({ dimension, output }) =>
        el(
          "li",
          {},
          t("output {i} = {total} = {sum}", {
            i: `${dimension + 1}`,
            total: formatFixed(output.total, 2),
            sum: sumOf(output, keyName),
          }),
        ),
      ),
    ),
    line(
      t("Through W_O"),
      t("the head adds a vector of length {length}, {share} of what all heads add.", {
        length: formatFixed(data.length, 2),
        share: formatPercent(Math.max(0, data.part)),
      }),
    ),
  ]);
}

/**
 * The captions of a followed number: {open, on, text}, at most 20 words each.
 * @param {any} view @param {any} model @param {any} follow the number @param {any} data of page_inside
 */
export function beatsOf(view, model, follow, data) {
  const { d_model: d } = model.overview;
  const [[token, p]] = model.overview.steps[view.step];
  const next = nextWord(token);
  if (follow.probability !== undefined) {
    const output = model.stage({ stage: "output", step: view.step });
    const word = nextWord(output.tokens[follow.probability]),
      logit = formatFixed(data.logit.total, 2);
    const out = { stage: "out", sub: null, head: null };
    return [
      {
        open: null,
        on: [],
        text: t("It begins with words: an embedding and a position for each token."),
      },
      {
        open: null,
        on: ["back"],
        text: t("{n} decoder layers add to the stream of the last word written.", {
          n: model.sides.decoder.layers,
        }),
      },
      {
        open: out,
        on: ["back", "out"],
        text: t("Its last {d} numbers times the row of “{word}” add up to the logit {logit}.", {
          d,
          word,
          logit,
        }),
      },
      {
        open: out,
        on: ["out"],
        text: t("Softmax: e to the {logit}, divided by the sum over all tokens, is {share}.", {
          logit,
          share: formatPercent(data.probability),
        }),
      },
    ];
  }
  const { place, cell } = follow,
    kind = kindOf(place.stage, place.sub),
    text = (side, position) => model.sides[side].tokens[position].text.replace("▁", "");
  const query = text(querySide(kind), cell[0]),
    key = text(keySide(kind), cell[1]),
    layer = { ...place, head: null };
  const { d_head: width, heads } = model.sides[querySide(kind)];
  const weight = formatWeight(data.weight);
  return [
    {
      open: null,
      on: [],
      text: t("“{key}” and “{query}” become {d} numbers each: their embeddings.", {
        key,
        query,
        d,
      }),
    },
    {
      open: null,
      on: ["back"],
      text: t("Each layer before this one adds what it has read to their streams."),
    },
    {
      open: layer,
      on: ["back"],
      text: t("{n} heads read these streams side by side. This is head {head}.", {
        n: heads,
        head: `${place.head + 1}`,
      }),
    },
    {
      open: place,
      on: ["query", "key"],
      text: t("The head makes a query of “{query}” and a key of “{key}”: {n} numbers each.", {
        query,
        key,
        n: width,
      }),
    },
    {
      open: place,
      on: ["query", "key", "dot"],
      text: t("Query times key, number by number, added up: {sum}. Larger means a better match.", {
        sum: formatFixed(data.dot, 2),
      }),
    },
    {
      open: place,
      on: ["dot", "bias", "scaled", "mask"],
      text:
        data.bias === null
          ? t("Divided by √{n}, the score is {score}.", {
              n: width,
              score: formatFixed(data.scaled, 2),
            })
          : t("With the bias for their distance, the score is {score}.", {
              score: formatFixed(data.scaled, 2),
            }),
    },
    {
      open: place,
      on: ["scaled", "weight"],
      text: t("Softmax compares all keys: “{key}” gets {weight} of the attention of “{query}”.", {
        key,
        weight,
        query,
      }),
    },
    {
      open: place,
      on: ["weight", "value", "weighted", "output"],
      text: t(
        "The value of “{key}” times {weight}, plus the other keys’ parts, is the head’s output.",
        { key, weight },
      ),
    },
    {
      open: place,
      on: ["output", "share"],
      text: t("W_O makes {d} numbers of it, which are added to the stream of “{query}”.", {
        d,
        query,
      }),
    },
    {
      open: null,
      on: ["ahead", "out"],
      text: t("All later layers read that sum. The next word is “{next}”, {share}.", {
        next,
        share: formatPercent(p),
      }),
    },
  ];
}

/** The strongest weight on a word that a step's cross-attention has in the drawn heads: what Play follows by itself. */
export function strongestCross({ model, view }) {
  const row = model.sides.decoder.rows.findIndex(
    ({ at }) => view.step >= at[0] && view.step < at[1],
  );
  const weights = model.attentions.cross.flatMap(({ head, lines }, layer) =>
    (lines.pieces.get(view.step) ?? lines.rows.get(row) ?? []).flatMap(({ key, weight }) => {
      const { at, symbol } = model.sides.encoder.rows[key];
      const place = { stage: `dec${layer}`, sub: "cross", head };
      return symbol ? [] : [{ weight, place, cell: [view.step, at[0]] }];
    }),
  );
  weights.sort((a, b) => b.weight - a.weight);
  // A weight of 1 leaves nothing of the other words to see.
  return weights.find(({ weight }) => weight < 0.97) ?? weights[0] ?? null;
}
