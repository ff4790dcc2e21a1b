// The stages that are no attention: embedding and position, feed-forward, memory, and the way to the next word.
import { formatFixed, formatPercent, formatSignificant } from "../core/format.js";
import { t } from "../core/language.js";
import { isDecoder, layerOf, SUBLAYERS } from "./place.js";

const COLOURS = { encoder: "source", decoder: "target" };

export function drawEmbedding(scene, side) {
  const { pen, layout, model, view } = scene,
    stage = side === "encoder" ? "embed" : "written",
    { a, b } = layout.spans[stage],
    isOpen = view.open?.stage === stage,
    data = isOpen ? model.stage({ stage: "embedding", side }) : null,
    [start, end] = [a + 10, b - 12],
    part = (end - start) / 20;
  for (const row of scene.rows(side)) {
    if (row.isOthers) continue;
    const light = scene.streamLight(row, 0) * (b - a < 9 ? 0.5 : 1),
      thick = Math.min(isOpen ? 14 : 9, row.pitch * 0.5);
    if (!isOpen) {
      const margin = b - a > 24 ? 6 : 1;
      pen.box(`sum0.${row.id}`, a + margin, b - margin, row.c - thick / 2, row.c + thick / 2, {
        fill: COLOURS[side],
        r: 3,
        a: 0.45 * light,
        z: 6,
      });
      continue;
    }
    if (!data) continue;
    const index = scene.shownIndex(row);
    const drawStrip = (name, from, to) =>
      pen.strip(
        name === "added" ? `sum0strip.${row.id}` : `${name}.${row.id}`,
        start + part * from,
        start + part * to,
        row.c,
        thick,
        `${name}.${side}.${index}`,
        data[name].row(index),
        data[name].limit / 2,
        { a: light },
      );
    pen.text(`id.${row.id}`, start + part * 1.1, row.c, `#${data.ids[index]}`, {
      s: Math.min(11.5, row.pitch * 0.8),
      c: "muted",
      along: true,
      a: light,
    });
    drawStrip("scaled", 2.5, 7.5);
    if (model.overview.positions) {
      pen.text(`plus.${row.id}`, start + part * 8, row.c, "+", { s: 14, c: "muted", a: light });
      drawStrip("positions", 8.5, 13.5);
    }
    pen.text(`equals.${row.id}`, start + part * 14, row.c, "=", { s: 14, c: "muted", a: light });
    drawStrip("added", 14.5, 19.5);
  }
  if (isOpen) {
    const v =
      side === "encoder" ? layout.lead - 8 : layout.decoder[0].c - layout.decoder[0].pitch / 2 - 9;
    const titles = [
      [5, t("embedding")],
      ...(model.overview.positions ? [[11, t("position")]] : []),
      [17, t("the stream begins")],
    ];
    for (const [i, title] of titles)
      scene.drawTitle(`embed.${side}.${i}`, start + part * Number(i), title, v);
  }
  if (side === "decoder") {
    const [first] = layout.decoder;
    pen.hit(a, b, first.c - first.pitch / 2, layout.bottom, {
      open: { stage: "written", sub: null, head: null },
    });
  }
}

// The active units: one strip for each row.
export function drawFeedForward(scene, stage) {
  const { pen, layout, model, view, lights } = scene,
    side = isDecoder(stage) ? "decoder" : "encoder",
    layer = layerOf(stage),
    { a, b } = layout.spans[`${stage}.ff`],
    isOpen = view.open?.stage === stage && layout.depth === 1,
    isFocus = isOpen && view.open.sub === "ff",
    data = isFocus ? model.layer(stage)?.parts[SUBLAYERS.ff] : null;
  if (b - a < 6) return;
  const start = a + layout.set.inside.stream + 6,
    wide = b - 20 - start;
  for (const row of scene.rows(side)) {
    if (scene.isAhead(row) || row.isOthers) continue;
    const light = lights ? scene.lit(lights.stream(row, scene.sumOf(stage, "ff"))) : 1,
      index = scene.shownIndex(row),
      units = data?.units ?? model.active[side][layer],
      thick = Math.min(isFocus ? 14 : isOpen ? 10 : 8, row.pitch * 0.5),
      margin = isOpen ? 10 : 3,
      id = `units.${row.id}.${stage}`;
    const [from, to] = isFocus ? [start, start + wide * 0.56] : [a + margin, b - margin];
    const more = { a: (isOpen ? 1 : 0.75) * light, one: "good" };
    pen.strip(
      id,
      from,
      to,
      row.c,
      thick,
      `${id}.${index}`,
      units.row(index),
      units.limit / 1.5,
      more,
    );
    if (!isFocus) {
      pen.box(
        `ff.${row.id}.${stage}`,
        from - 2,
        to + 2,
        row.c - thick / 2 - 2,
        row.c + thick / 2 + 2,
        {
          fill: "good",
          r: 4,
          a: 0.16 * light,
          z: 5,
        },
      );
      continue;
    }
    if (!data) continue;
    pen.text(
      `active.${row.id}.${stage}`,
      start + wide * 0.64,
      row.c,
      data.active[scene.position(row)],
      {
        s: Math.min(12, row.pitch * 0.6),
        c: "muted",
        along: true,
        a: light,
      },
    );
    pen.strip(
      `ffadded.${row.id}.${stage}`,
      start + wide * 0.72,
      b - 20,
      row.c,
      thick,
      `ffadded.${stage}.${index}`,
      data.added.row(index),
      data.added.limit / 2,
      { a: light },
    );
  }
  if (!isOpen) return;
  if (!isFocus) {
    scene.hitPart(stage, "ff", { a, b });
    return scene.drawTitle(`${stage}.ff`, (a + b) / 2, t("feed-forward"));
  }
  const titles = [
    [0.28, t("{n} units", { n: model.sides[side].units })],
    [0.64, t("active")],
    [0.86, t("adds")],
  ];
  for (const [place, title] of titles)
    scene.drawTitle(`ff.${stage}.${place}`, start + wide * Number(place), title);
}

export function drawMemory(scene) {
  const { pen, layout, model, view, lights } = scene,
    { a, b } = layout.spans.memory,
    isOpen = view.open?.stage === "memory",
    length = b - a,
    isWide = length > 50,
    data = layout.depth < 2 ? model.stage({ stage: "memory", step: view.step }) : null,
    foot = layout.encoder.at(-1).c + layout.encoder.at(-1).pitch / 2 + 5;
  pen.box("memoryground", a + 2, b - 2, layout.tall ? 0 : 22, foot, {
    fill: "source",
    r: 8,
    a: 0.09,
    z: 0.5,
  });
  for (const row of layout.encoder) {
    if (row.isOthers) continue;
    const light = lights ? scene.lit(lights.memory(row)) : 1,
      text = scene.label(row),
      letters = (length - 10) / (text.length * 0.58),
      size = Math.min(13, row.pitch * 0.58 + (layout.tall ? 2 : 1), letters),
      isOn = scene.active("encoder") === row,
      read = data?.read[row.index] ?? 0,
      isRead = !lights && length > 40 && Boolean(data);
    if (!isOpen)
      pen.box(
        `memoryread.${row.id}`,
        a + 5,
        b - 5,
        row.c - row.pitch * 0.42,
        row.c + row.pitch * 0.42,
        {
          fill: "target",
          r: 5,
          a: isRead ? Math.max(0, Math.min(0.32, read * 0.7 - 0.05)) : 0,
          z: 1,
        },
      );
    pen.text(`memoryword.${row.id}`, isOpen ? a + 12 : a + length / 2, row.c, text, {
      along: true,
      align: isOpen ? "start" : "center",
      s: Math.max(8.5, row.symbol ? size - 1 : size),
      weight: isOn ? 650 : 450,
      c: row.symbol ? "muted" : isRead && read > 0.2 ? "ink" : "source",
      a: (isWide && row.pitch > 8 ? 1 : 0) * light,
    });
    if (!isOpen || !data) continue;
    const index = scene.shownIndex(row);
    pen.strip(
      `memorystrip.${row.id}`,
      a + 100,
      b - (layout.tall ? 60 : 190),
      row.c,
      Math.min(16, row.pitch * 0.6),
      `memory.${index}`,
      data.memory.row(index),
      data.memory.limit / 2,
      { a: light },
    );
    if (layout.tall) continue;
    pen.text(`memoryshare.${row.id}`, b - 130, row.c, formatPercent(read), {
      s: 12,
      align: "end",
      a: light,
    });
    pen.box(`memorybar.${row.id}`, b - 122, b - 122 + 100 * read, row.c - 4, row.c + 4, {
      fill: "target",
      r: 3,
      a: 0.7 * light,
    });
  }
  if (!isOpen) return;
  scene.drawTitle(
    "memory",
    (a + 100 + b - 190) / 2,
    t("memory: {n} numbers a word", { n: model.overview.d_model }),
  );
  scene.drawTitle("memoryread", b - 95, t("mean of all cross-attention"));
}

/** A next token's text on the page. @param {string} token */
export const nextWord = (token) =>
  token === "</s>" ? t("end") : token.replaceAll("▁", "").trim() || "␣";

/** e to the power of a logit, in figures. @param {number} logit */
export const formatPower = (logit) => formatSignificant(Math.exp(Math.min(logit, 700)), 5);

// The decoder's last vector becomes logits, and these, by softmax, probabilities.
export function drawOutput(scene) {
  const { pen, layout, model, view, lights } = scene,
    { a, b } = layout.spans.out,
    { tall } = layout,
    isOpen = view.open?.stage === "out",
    data = isOpen ? model.stage({ stage: "output", step: view.step }) : null,
    best = model.overview.steps[view.step],
    own = layout.decoder.find((row) => scene.contains(row, view.step)) ?? layout.decoder[0],
    last = layout.spans[`dec${model.sides.decoder.layers - 1}`].b,
    length = b - a;
  const list = data
    ? data.tokens.map((token, i) => [token, data.probabilities[i], data.logits[i]])
    : best;
  const count = data ? list.length : layout.depth ? (tall ? 1 : 3) : list.length,
    range = tall ? [6, layout.across - 6] : [a + 16, b - 6],
    room = tall ? length - 24 : layout.bottom - layout.lead,
    lines = data ? count + 1 : count,
    pitch = Math.min(isOpen ? 36 : 24, room / (lines + 0.5));
  const start = tall
    ? a + 22
    : isOpen
      ? layout.lead + 4
      : Math.max(layout.lead, Math.min(own.c - (count * pitch) / 2, layout.bottom - count * pitch));
  const isNarrow = !tall && length < 120,
    isTiny = !tall && length < 60;
  // A list reads from top to bottom however the flow runs, so its places are in screen coordinates.
  const placeOf = (x0, x1, i) =>
    tall
      ? [start + i * pitch, start + (i + 1) * pitch, x0, x1]
      : [x0, x1, start + i * pitch, start + (i + 1) * pitch];
  const drawBox = (name, x0, x1, i, more) => {
    const [u0, u1, v0, v1] = placeOf(x0, x1, i);
    const inset = tall ? [u0 + 2, u1 - 2, v0, v1] : [u0, u1, v0 + 2, v1 - 2];
    pen.box(`${name}.${i}`, ...inset, more);
  };
  const drawText = (name, x, i, str, more) => {
    const y = start + (i + 0.5) * pitch;
    pen.text(`${name}.${i}`, tall ? y : x, tall ? x : y, str, { tallAlign: more.align, ...more });
  };
  const [from, to] = range,
    wide = to - from;
  if (!data)
    for (const [i, [token, p]] of list.slice(0, count).entries()) {
      const light = lights ? scene.lit(lights.out(i)) : 1,
        shows = isTiny && i ? 0 : light;
      drawBox("outground", from, to, i, { fill: "panel", r: 5, a: shows, z: 1 });
      drawBox("outbar", from, from + Math.max(3, wide * p), i, {
        fill: "target",
        r: 5,
        a: 0.22 * shows,
        z: 2,
      });
      const look = {
        align: "start",
        s: i ? 12.5 : 14,
        weight: i ? 450 : 650,
        a: isTiny ? 0 : light,
      };
      drawText("outword", from + 7, i, nextWord(token), look);
      drawText("outshare", to - 6, i, formatPercent(p), {
        align: "end",
        s: 12,
        c: "muted",
        a: isNarrow || isTiny ? 0 : light,
      });
      if (!tall)
        pen.curve(`fan.${i}`, last, own.c, from - 1, start + (i + 0.5) * pitch, {
          c: "target",
          w0: 0.6 + 7 * p,
          a: shows * (0.2 + 0.5 * p),
          z: 3,
        });
    }
  if (tall)
    pen.text("title.out", a + 8, layout.across / 2, t("Next word"), {
      s: 11.5,
      c: "muted",
      halo: "paper",
    });
  if (!data) {
    if (tall)
      pen.curve("fan.0", last, own.c, start - 1, layout.across / 2, {
        c: "target",
        w0: 3,
        a: 0.35,
        z: 3,
      });
    return;
  }
  // Columns: word, logit, e^x, probability.
  const shares = tall ? [0, 0.42, 0.66, 0.68, 1] : [0.27, 0.52, 0.68, 0.7, 1];
  const [word, logit, power, bar, end] = shares.map((share) => from + share * wide);
  for (const [i, [token, p, x]] of list.entries()) {
    const light = lights ? scene.lit(lights.out(i)) : 1,
      isTaken = data.ids[i] === data.taken;
    drawText("outword", word + 7, i, nextWord(token), {
      align: "start",
      s: 14,
      weight: isTaken ? 650 : 450,
      a: light,
    });
    drawText("logitnumber", logit, i, formatFixed(x, 2), { align: "end", s: 12.5, a: light });
    drawText("power", power, i, formatPower(x), { align: "end", s: 12.5, c: "muted", a: light });
    drawBox("outground", bar, end - 56, i, { fill: "line", r: 4, a: 0.35 * light, z: 1 });
    drawBox("outbar", bar, bar + Math.max(2, (end - 56 - bar) * p), i, {
      fill: "target",
      r: 4,
      a: 0.85 * light,
      z: 2,
    });
    drawText("outshare", end - 4, i, formatPercent(p), {
      align: "end",
      s: 13,
      weight: isTaken ? 650 : 400,
      a: light,
    });
    pen.hit(...placeOf(word, end, i), { probability: i });
  }
  const i = list.length;
  drawText("outword", word + 7, i, t("all other tokens"), { align: "start", s: 12.5, c: "muted" });
  drawText("outshare", end - 4, i, formatPercent(data.rest), { align: "end", s: 13, c: "muted" });
  drawBox("outbar", bar, bar + Math.max(2, (end - 56 - bar) * data.rest), i, {
    fill: "muted",
    r: 4,
    a: 0.6,
    z: 2,
  });
  if (tall) return;
  const strip = [from + 14, from + wide * 0.23];
  pen.strip(
    "hidden",
    strip[0],
    strip[1],
    own.c,
    16,
    `hidden.${view.step}`,
    data.hidden.row(0),
    data.hidden.limit / 2,
    { z: 7 },
  );
  pen.box("hiddenframe", strip[0] - 2, strip[1] + 2, own.c - 10, own.c + 10, {
    stroke: "target",
    r: 4,
    w0: 1.5,
    z: 7,
    a: 0.8,
  });
  pen.curve("tohidden", last, own.c, strip[0] - 2, own.c, { c: "target", w0: 2.5, a: 0.6, z: 4 });
  for (const [n, [, p]] of list.entries())
    pen.curve(`fan.${n}`, strip[1] + 3, own.c, word + 2, start + (n + 0.5) * pitch, {
      c: "target",
      w0: 0.6 + 4 * p,
      a: 0.35 * (lights ? scene.lit(lights.out(n)) : 1),
      z: 3,
    });
  scene.drawTitle(
    "out.h",
    (strip[0] + strip[1]) / 2,
    t("{n} numbers", { n: model.overview.d_model }),
    own.c - 18,
  );
  scene.drawTitle("out.x", logit, t("logit x"), undefined, { align: "end" });
  scene.drawTitle("out.e", power, "eˣ", undefined, { align: "end" });
  scene.drawTitle("out.p", (bar + end) / 2, t("softmax: eˣ ÷ sum"));
}
