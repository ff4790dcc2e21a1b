// The whole picture as a list of named items (pen.js), from what is looked at (view), the numbers (model), where things stand
// (layout), and what is lit while a number is followed (lights).
import { t } from "../core/language.js";
import { drawGround, drawLoop, drawWords } from "./ground.js";
import { drawHead } from "./head.js";
import { Pen } from "./pen.js";
import {
  isDecoder,
  isLayer,
  keySide,
  kindOf,
  layerOf,
  querySide,
  sideOf,
  stagesOf,
  SUBLAYERS,
  subsOf,
} from "./place.js";
import { drawEmbedding, drawFeedForward, drawMemory, drawOutput } from "./stages.js";
import { formatWeight } from "./words.js";

export const COLOURS = { encoder: "source", decoder: "target" };
const FAINTEST = 0.07; // a weaker weight has no line

export class Scene {
  /** @param {any} view @param {any} model @param {any} layout @param {any} lights of follow.js, or null */
  constructor(view, model, layout, lights) {
    this.view = view;
    this.model = model;
    this.layout = layout;
    this.lights = lights;
    this.pen = new Pen(layout.tall);
    this.median = { encoder: this.medianLength("encoder"), decoder: this.medianLength("decoder") };
    this.beats = []; // captions of the followed number
    this.build();
    this.items = this.pen.items;
    this.hits = this.pen.hits;
  }

  // The median length of the stream behind the last layer: the widths of the bands are relative to it.
  medianLength(side) {
    const lengths = [...this.model.sides[side].lengths.at(-1)].sort((a, b) => a - b);
    return lengths[lengths.length >> 1] || 1;
  }

  rows(side) {
    return this.layout[side];
  }

  isAhead(row) {
    return row.side === "decoder" && !row.isOthers && row.at[0] > this.view.step;
  }

  contains(row, position) {
    return position >= row.at[0] && position < row.at[1];
  }

  // The position that stands for a row: of the decoder's current word the step, else its last piece.
  position(row) {
    const { step } = this.view;
    return row.side === "decoder" && this.contains(row, step) ? step : row.at[1] - 1;
  }

  // The index of a row in arrays of the shown positions: all of them, or in a long text one for each row.
  shownIndex(row) {
    return this.model.sides[row.side].pooled ? row.index : this.position(row);
  }

  // The row that asks: the one under the pointer; else the decoder's step, or the chosen word of the source.
  active(side) {
    const { hover, step, word, query, open } = this.view;
    const pointed = hover?.side === side && this.layout.depth < 2 && this.rows(side)[hover.index];
    if (pointed && !this.isAhead(pointed)) return pointed;
    const isQuery = this.layout.depth === 2 && querySide(kindOf(open.stage, open.sub)) === side;
    const position = isQuery ? query : side === "decoder" ? step : word;
    return position === null
      ? null
      : (this.rows(side).find((row) => this.contains(row, position)) ?? null);
  }

  // The visible text of a row. Of a word that is being written, only the pieces written so far.
  label(row) {
    const { tokens } = this.model.sides[row.side],
      { step } = this.view;
    const [from, to] = row.at;
    if (row.symbol) {
      if (row.side === "decoder" && from === 0) return t("start");
      return from < tokens.length && tokens[from].text === "</s>" ? t("end") : row.label;
    }
    if (row.side === "decoder" && this.contains(row, step) && step + 1 < to)
      return tokens
        .slice(from, step + 1)
        .map(({ text }) => text.replace("▁", ""))
        .join("");
    return row.label;
  }

  headOf(kind, layer) {
    return this.view.heads[kind]?.[layer] ?? this.model.attentions[kind][layer].head;
  }

  // What a row reads: [{key, weight}], keys as indices of rows.
  reads(kind, layer, head, row) {
    const lines = this.model.lines(kind, layer, head) ?? this.model.attentions[kind][layer].lines;
    const position = this.position(row);
    const isPart = row.side === "decoder" && this.contains(row, this.view.step);
    return (isPart ? lines.pieces.get(position) : null) ?? lines.rows.get(row.index) ?? [];
  }

  // How much of its strength an item keeps while a number is followed.
  lit(value) {
    return this.lights ? 0.1 + 0.9 * Math.min(1, value) : 1;
  }

  streamLight(row, sum) {
    if (this.lights) return this.lit(this.lights.stream(row, sum));
    return this.isAhead(row) ? 0.25 : 1;
  }

  sumOf(stage, sub) {
    const subs = subsOf(this.model, stage);
    return layerOf(stage) * subs.length + subs.indexOf(sub) + 1;
  }

  bandWidth(side, sum, row) {
    const length =
      this.model.sides[side].lengths[sum][Math.min(this.position(row), this.count(side) - 1)];
    const share = Math.sqrt(length / this.median[side]);
    return Math.max(1, Math.min(row.pitch * 0.72, Math.min(row.pitch * 0.52, 15) * share));
  }

  count(side) {
    return this.model.sides[side].tokens.length;
  }

  build() {
    const { model, layout, view } = this;
    drawGround(this);
    drawWords(this);
    drawEmbedding(this, "encoder");
    drawEmbedding(this, "decoder");
    this.drawStreams("encoder");
    this.drawMemoryLines();
    this.drawStreams("decoder");
    for (const stage of stagesOf(model).filter(isLayer)) {
      for (const sub of subsOf(model, stage)) {
        this.drawNorm(stage, sub);
        if (sub === "ff") drawFeedForward(this, stage);
        else this.drawAttention(stage, sub);
      }
      if (view.open?.stage === stage && layout.depth === 1) this.drawVectors(stage, view.open.sub);
    }
    drawMemory(this);
    drawOutput(this);
    drawLoop(this);
    this.drawCursor();
  }

  // The residual stream: a band for each word, as wide as the root of its vector's length.
  drawStreams(side) {
    const { pen, layout, model, view } = this,
      { spans, depth } = layout;
    const prefix = side === "encoder" ? "enc" : "dec",
      stages = stagesOf(model).filter((stage) => isLayer(stage) && stage.startsWith(prefix)),
      active = this.active(side);
    for (const row of this.rows(side)) {
      if (row.isOthers) continue;
      let from = side === "encoder" ? spans.embed.b - 1 : spans.written.b - 1;
      const strength = active === row ? 0.5 : 0.24;
      const segment = (sum, to, isUnder) => {
        pen.ribbon(`stream.${row.id}.${sum}`, from, row.c, to, row.c, {
          w0: this.bandWidth(side, sum - 1, row),
          w1: this.bandWidth(side, sum, row),
          c: COLOURS[side],
          a:
            strength *
            this.streamLight(row, sum - 1) *
            (isUnder ? (active === row ? 0.4 : 0.12) : 1),
          z: 2,
        });
        from = to;
      };
      for (const stage of stages)
        for (const sub of subsOf(model, stage)) {
          const isUnder = depth === 2 && view.open.stage === stage && view.open.sub === sub;
          segment(this.sumOf(stage, sub), spans[`${stage}.${sub}`].b, isUnder);
          this.drawSum(stage, sub, row);
        }
      const last = model.sides[side].lengths.length - 1,
        end = side === "encoder" ? spans.memory.a + 4 : spans[stages.at(-1)].b,
        width = this.bandWidth(side, last, row);
      pen.ribbon(`stream.${row.id}.end`, from, row.c, end, row.c, {
        w0: width,
        w1: side === "encoder" ? width * 0.5 : width,
        c: COLOURS[side],
        a: strength * this.streamLight(row, last),
        z: 2,
      });
    }
  }

  drawSum(stage, sub, row) {
    const { pen, layout, view, model } = this,
      { a, b } = layout.spans[stage],
      isOpen = view.open?.stage === stage;
    if (!model.overview.residual) return;
    if (!isOpen && (this.isAhead(row) || b - a < 40)) return;
    const isLarge = isOpen && layout.depth === 1 && row.pitch > 13,
      isChosen =
        isOpen && layout.depth === 2 && view.open.sub === sub && row === this.active(row.side);
    pen.plus(`sum.${row.id}.${stage}.${sub}`, layout.spans[`${stage}.${sub}`].b, row.c, {
      r: isChosen ? 7 : isLarge ? 5 : 1.6,
      c: COLOURS[row.side],
      a: this.streamLight(row, this.sumOf(stage, sub)) * (isLarge || isChosen ? 1 : 0.55),
      z: 7,
    });
  }

  // A norm is a thin line across the rows: before a sub-layer with pre-norm, behind its sum with post-norm.
  drawNorm(stage, sub) {
    const { pen, layout, model, view } = this,
      span = layout.spans[`${stage}.${sub}`],
      side = sideOf(stage),
      { norm_first: isFirst } = model.sides[side];
    const rows = this.rows(side);
    const u = isFirst ? span.a + 1.5 : span.b + (view.open?.stage === stage ? 7 : 2);
    const [top, bottom] = [rows[0].c - rows[0].pitch / 2, rows.at(-1).c + rows.at(-1).pitch / 2];
    pen.line(`norm.${stage}.${sub}`, u, top, u, bottom, {
      c: "muted",
      w0: 1,
      a: span.b - span.a < 10 ? 0 : this.lights ? 0.12 : 0.4,
      z: 3,
    });
  }

  // The encoder's output beside all layers of the decoder, which read it.
  drawMemoryLines() {
    const { pen, layout, lights, model } = this,
      { spans } = layout,
      end = spans[`dec${model.sides.decoder.layers - 1}.cross`]?.b ?? spans.out.a,
      isFaint = layout.depth === 2;
    for (const row of this.rows("encoder")) {
      if (row.isOthers) continue;
      const width = Math.min(4, row.pitch * 0.3);
      pen.ribbon(
        `memory.${row.id}`,
        spans.memory.b - 6,
        row.c,
        Math.max(spans.memory.b - 6, end),
        row.c,
        {
          w0: width,
          w1: width,
          c: "source",
          a: (isFaint ? 0.07 : 0.2) * (lights ? this.lit(lights.memory(row)) : 1),
          z: 1,
        },
      );
    }
  }

  drawAttention(stage, sub) {
    const { layout, view, model } = this,
      kind = kindOf(stage, sub),
      layer = layerOf(stage),
      span = layout.spans[`${stage}.${sub}`],
      isFocus = view.open?.stage === stage && view.open.sub === sub;
    if (isFocus) {
      for (let head = 0; head < model.sides[sideOf(stage)].heads; head++) {
        const column = layout.spans[`${stage}.${sub}.h${head}`];
        if (layout.depth === 2 && head === view.open.head) drawHead(this, stage, sub, column);
        else if (layout.depth === 1)
          this.drawLines(stage, sub, kind, layer, head, column.a + 6, column.b - 6);
        this.drawHeadColumn(stage, sub, kind, layer, head, column);
      }
      if (layout.depth === 1) this.drawAdded(stage, sub);
      this.drawTitle(
        `${stage}.${sub}`,
        (span.a + span.b) / 2,
        layout.depth === 2 ? "" : sub === "cross" ? t("cross-attention") : t("self-attention"),
        layout.lead - 21,
      );
      return;
    }
    const isOpen = view.open?.stage === stage;
    if (layout.depth < 2)
      this.drawLines(stage, sub, kind, layer, this.headOf(kind, layer), span.a + 2, span.b - 2);
    if (isOpen) {
      this.hitPart(stage, sub, span);
      if (layout.depth === 1)
        this.drawTitle(
          `${stage}.${sub}`,
          (span.a + span.b) / 2,
          sub === "cross" ? t("cross-attention") : t("self-attention"),
        );
    }
  }

  hitPart(stage, sub, { a, b }) {
    const { layout, pen } = this;
    pen.hit(a, b, 0, layout.bottom, { open: { stage, sub, head: null } });
  }

  /** @param {string} id @param {number} u @param {string} str @param {number} [v] @param {any} [more] */
  drawTitle(id, u, str, v = this.layout.lead - 8, more = {}) {
    if (this.layout.tall || !str) return;
    this.pen.text(`subtitle.${id}`, u, v, str, { s: 11, c: "muted", ...more });
  }

  // The ground, name and share of a head. Its click opens the head for the row under the pointer.
  drawHeadColumn(stage, sub, kind, layer, head, column) {
    const { pen, layout, view } = this,
      { tall, depth } = layout,
      isOpen = depth === 2 && head === view.open.head,
      rows = this.rows(querySide(kind));
    if (isOpen) return;
    const isPicked = this.headOf(kind, layer) === head && depth === 1,
      isPointed = view.hoverHead === head;
    const top = kind === "decoder_self" ? rows[0].c - rows[0].pitch / 2 : layout.lead,
      foot = rows.at(-1).c + rows.at(-1).pitch / 2;
    if (depth === 1)
      pen.box(
        `headground.${stage}.${sub}.${head}`,
        column.a + 2,
        column.b - 2,
        tall ? 0 : top - 2,
        foot + 2,
        {
          fill: "paper",
          r: 5,
          z: 0.5,
          a: isPointed ? 1 : 0.75,
          stroke: isPointed || isPicked ? "accent" : "line",
          w0: isPicked ? 2 : 1,
        },
      );
    const isWide = column.b - column.a > 52 || tall;
    pen.text(
      `head.${stage}.${sub}.${head}`,
      tall ? column.a + 10 : (column.a + column.b) / 2,
      tall ? layout.across - 26 : layout.lead - 8,
      isWide ? t("head {n}", { n: head + 1 }) : String(head + 1),
      {
        s: depth === 2 ? 9.5 : 11,
        c: "muted",
        weight: isPicked ? 650 : 500,
        a: tall && depth === 2 ? 0 : 1,
      },
    );
    // The share of each head in what the sub-layer adds, at the asking row.
    const data = this.model.layer(stage)?.parts[SUBLAYERS[sub]];
    const row = this.active(querySide(kind));
    if (depth === 1 && data && row && !tall) {
      const share = data.shares[head][this.shownIndex(row)],
        all = data.shares.map((lengths) => lengths[this.shownIndex(row)]);
      const height = Math.min(8, row.pitch * 0.4),
        room = Math.max(0, column.b - column.a - 12);
      pen.box(
        `headshare.${stage}.${sub}.${head}`,
        column.a + 6,
        column.a + 6 + room * (share / (Math.max(...all) || 1)),
        foot + 5,
        foot + 5 + height,
        { fill: COLOURS[row.side], r: 2, a: 0.6, z: 4 },
      );
    }
    pen.hit(column.a, column.b, tall ? 0 : 20, layout.bottom, { open: { stage, sub, head } });
  }

  drawLines(stage, sub, kind, layer, head, a, b) {
    const { pen, layout, lights } = this,
      side = querySide(kind),
      keys = this.rows(keySide(kind)),
      active = this.active(side);
    if (b - a < 3) return;
    const { hover } = this.view;
    const pointedKey = hover?.side === keySide(kind) && side !== keySide(kind) ? hover.index : null;
    const thickest = Math.min(7, this.rows(side)[0].pitch * 0.34 + 0.6, (b - a) * 0.16 + 0.8);
    for (const query of this.rows(side)) {
      if (this.isAhead(query)) continue;
      for (const { key: index, weight } of this.reads(kind, layer, head, query)) {
        const key = keys[index];
        if (weight < FAINTEST || !key || this.isAhead(key)) continue;
        const isStrong = pointedKey !== null ? pointedKey === index : !active || active === query;
        const light = lights ? 0.05 + 0.95 * lights.line(kind, layer, head, query, key, weight) : 1;
        pen.curve(`line.${kind}.${layer}.${head}.${query.id}.${key.id}`, a, key.c, b, query.c, {
          w0: 0.6 + thickest * weight,
          a: (isStrong ? 0.22 + 0.7 * weight : 0.05 + 0.2 * weight) * light,
          c: COLOURS[key.side],
          c1: COLOURS[query.side],
          z: isStrong ? 4 : 3,
          cell: { kind, layer, head, query, key, weight },
        });
        const isNamed = layout.depth === 1 && isStrong && active && weight > 0.35 && b - a > 40;
        if (isNamed && !layout.tall && !lights)
          pen.text(
            `read.${kind}.${layer}.${head}.${query.id}.${key.id}`,
            a + 3,
            key.c + (head % 2 || index === 0 ? 1 : -1) * Math.min(12, key.pitch * 0.45),
            `${this.label(key)} ${formatWeight(weight)}`,
            { s: 10.5, weight: 600, c: COLOURS[key.side], align: "start", halo: "paper" },
          );
      }
    }
  }

  // What the open sub-layer reads: with pre-norm the normed stream, with post-norm the stream itself.
  drawVectors(stage, sub) {
    const { pen, layout, model } = this,
      side = sideOf(stage),
      { a } = layout.spans[`${stage}.${sub}`],
      b = a + layout.set.inside.stream - 8,
      data = model.layer(stage)?.parts[SUBLAYERS[sub]];
    for (const row of this.rows(side)) {
      if (this.isAhead(row) || !data) continue;
      const values = data.read.row(this.shownIndex(row));
      pen.strip(
        `reads.${row.id}.${stage}.${sub}`,
        a + 6,
        b,
        row.c,
        Math.min(11, row.pitch * 0.5),
        `reads.${stage}.${sub}.${this.shownIndex(row)}`,
        values,
        data.read.limit / 2,
        { a: this.streamLight(row, this.sumOf(stage, sub) - 1) },
      );
    }
    this.drawTitle(
      `reads.${stage}.${sub}`,
      (a + 6 + b) / 2,
      model.sides[side].norm_first ? t("norm") : t("stream"),
    );
  }

  // What the open sub-layer adds to each row.
  drawAdded(stage, sub) {
    const { pen, layout, model } = this,
      { b } = layout.spans[`${stage}.${sub}`],
      length = layout.set.inside.added - 22,
      data = model.layer(stage)?.parts[SUBLAYERS[sub]];
    for (const row of this.rows(sideOf(stage))) {
      if (this.isAhead(row) || !data) continue;
      pen.strip(
        `added.${row.id}.${stage}.${sub}`,
        b - 12 - length,
        b - 12,
        row.c,
        Math.min(10, row.pitch * 0.5),
        `added.${stage}.${sub}.${this.shownIndex(row)}`,
        data.added.row(this.shownIndex(row)),
        data.added.limit / 2,
        { a: this.streamLight(row, this.sumOf(stage, sub)) },
      );
    }
    this.drawTitle(`added.${stage}.${sub}`, b - 12 - length / 2, t("W_O: adds"));
  }

  // The frame around what the keyboard is at.
  drawCursor() {
    const area = this.view.cursor;
    if (!area) return;
    const [u0, u1, v0, v1] = area(this);
    this.pen.box("cursor", u0, u1, v0, v1, { stroke: "accent", w0: 2, r: 6, z: 9 });
  }

  /** The area of a stage or a part of it at the asking row, or of all its rows. @param {string} id */
  areaOf(id) {
    const { a, b } = this.layout.spans[id],
      side = sideOf(id),
      rows = this.rows(side);
    const row = isDecoder(id) || side === "encoder" ? this.active(side) : null;
    return row
      ? [a + 1, b - 1, row.c - row.pitch / 2, row.c + row.pitch / 2]
      : [a + 1, b - 1, rows[0].c - rows[0].pitch / 2, rows.at(-1).c + rows.at(-1).pitch / 2];
  }
}
