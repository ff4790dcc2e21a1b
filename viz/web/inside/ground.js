// What stands behind and beside the stages: their grounds and titles, the words of the rows, and the way back of the written
// word.
import { t } from "../core/language.js";
import { isDecoder, isLayer, layerOf, stagesOf } from "./place.js";

const COLOURS = { encoder: "source", decoder: "target" };

export function drawGround(scene) {
  const { pen, layout, view, model } = scene,
    { spans, encoder, bottom, depth, tall } = layout,
    foot = encoder.at(-1).c + encoder.at(-1).pitch / 2 + 5,
    head = tall ? 0 : 22;
  const titles = {
    words: t("Words"),
    embed: t("Embedding"),
    memory: t("Memory"),
    out: t("Next word"),
  };
  for (const stage of stagesOf(model)) {
    const { a, b } = spans[stage],
      isOpen = view.open?.stage === stage,
      gap = b - a > 30 ? 3 : 1;
    const low = isDecoder(stage) || stage === "out" ? bottom + 5 : foot,
      end = isOpen && depth === 2 && low === foot ? layout.gap.b - 10 : low; // with the asking word's lane
    if (isLayer(stage))
      pen.box(`ground.${stage}`, a + gap, b - gap, head, end, {
        fill: "panel",
        r: 8,
        z: 0,
        stroke: view.hoverStage === stage && !isOpen ? "accent" : isOpen ? "line" : undefined,
      });
    const isWide = b - a > (tall ? 40 : 52);
    const title = isLayer(stage)
      ? isWide
        ? t("Layer {n}", { n: layerOf(stage) + 1 })
        : String(layerOf(stage) + 1)
      : titles[stage];
    if (!tall && (b - a > 56 || isLayer(stage))) {
      const starts = stage === "words" || stage === "out";
      pen.text(`title.${stage}`, starts ? a + (stage === "out" ? 14 : 0) : (a + b) / 2, 32, title, {
        s: isOpen ? 13 : 12,
        weight: isOpen ? 600 : 500,
        c: isOpen ? "ink" : "muted",
        halo: isLayer(stage) ? "panel" : undefined,
        align: starts ? "start" : "center",
        a: isOpen && isLayer(stage) ? 0 : 1,
      });
    }
    if (stage !== "words" && !isOpen)
      pen.hit(a, b, head, end, { open: { stage, sub: null, head: null } });
  }
  if (tall) return drawTallTitles(scene);
  const drawGroup = (id, from, to, str, colour) => {
    const [a, b] = [spans[from].a, spans[to].b];
    if (b - a < 190) return;
    pen.text(`group.${id}`, a + 4, 8, str, { align: "start", s: 12.5, weight: 600, c: colour });
    pen.line(`group.${id}.line`, a + 3, 18, b - 3, 18, { c: colour, w0: 1.5, a: 0.35, z: 1 });
  };
  const { layers: deep } = model.sides.encoder,
    { layers } = model.sides.decoder;
  drawGroup("encoder", "enc0", `enc${deep - 1}`, t("Encoder: reads the sentence"), "source");
  drawGroup("decoder", "dec0", `dec${layers - 1}`, t("Decoder: writes, word by word"), "target");
}

// On a narrow screen a layer's name stands in its corner.
function drawTallTitles(scene) {
  const { pen, layout, view, model } = scene;
  for (const stage of stagesOf(model).filter(isLayer)) {
    const { a, b } = layout.spans[stage];
    if (b - a < 30) continue;
    const isEncoder = !isDecoder(stage),
      edge = layout.encoder.at(-1).c + layout.encoder.at(-1).pitch / 2 + 10,
      isShort = isEncoder && view.open?.stage !== stage;
    pen.text(
      `title.${stage}`,
      a + 11,
      isEncoder ? edge : layout.across - 6,
      isShort ? String(layerOf(stage) + 1) : t("Layer {n}", { n: layerOf(stage) + 1 }),
      { s: 11, c: "muted", tallAlign: isEncoder ? "start" : "end", weight: 500, halo: "panel" },
    );
  }
}

export function drawWords(scene) {
  const { pen, layout, view } = scene,
    { spans, tall } = layout;
  for (const side of ["encoder", "decoder"]) {
    const span = side === "encoder" ? spans.words : spans.inputs,
      active = scene.active(side);
    for (const row of scene.rows(side)) {
      const text = scene.label(row),
        isOn = active === row,
        fits = (span.b - span.a - 12) / (text.length * 0.58),
        size = Math.min(14, row.pitch * 0.62 + (tall ? 2 : 1), fits),
        isLegible = row.pitch > 8 && span.b - span.a > 30;
      const light = scene.lights
        ? scene.lit(scene.lights.word(row))
        : scene.isAhead(row)
          ? 0.45
          : 1;
      pen.text(`word.${row.id}`, span.b - 8, row.c, text, {
        along: true,
        align: "end",
        s: Math.max(8.5, row.symbol ? size - 1 : size),
        weight: isOn ? 650 : 450,
        c: row.symbol ? "muted" : isOn ? COLOURS[side] : "ink",
        a: isLegible || isOn ? light : 0,
      });
      if (!row.isOthers)
        pen.hit(span.a, span.b, row.c - row.pitch / 2, row.c + row.pitch / 2, { row });
    }
    pen.box(
      `mark.${side}`,
      span.a,
      span.b - 2,
      (active?.c ?? 0) - (active?.pitch ?? 0) / 2 + 1,
      (active?.c ?? 0) + (active?.pitch ?? 0) / 2 - 1,
      { fill: COLOURS[side], r: 5, a: active ? 0.1 : 0, z: 1 },
    );
  }
  const { inputs } = spans;
  if (!tall && inputs.b - inputs.a > 60)
    pen.text(
      "title.inputs",
      inputs.b - 8,
      scene.rows("decoder")[0].c - scene.rows("decoder")[0].pitch / 2 - 9,
      view.step ? t("Written so far") : t("Nothing yet"),
      { align: "end", s: 11.5, c: "muted", weight: 500, a: layout.depth === 2 ? 0 : 1 },
    );
}

// The word that was written is the decoder's next input.
export function drawLoop(scene) {
  const { pen, layout, view, model } = scene,
    next = scene.rows("decoder").find((row) => scene.contains(row, view.step + 1));
  if (layout.depth || layout.tall || scene.lights || view.step >= model.steps - 1 || !next) return;
  const [a, b, floor] = [layout.spans.inputs.a - 2, layout.spans.out.b - 10, layout.bottom + 11];
  const dashed = { c: "target", w0: 1.3, a: 0.45, dash: [2, 4] };
  pen.line("loop.1", b, layout.bottom + 2, b, floor, dashed);
  pen.line("loop.2", b, floor, a, floor, dashed);
  pen.line("loop.3", a, floor, a, next.c, dashed);
  pen.text("loop.arrow", a + 6, next.c, "›", { s: 16, c: "target", a: 0.8 });
  pen.text("loop.words", b - 8, floor, t("the word becomes the next input"), {
    s: 11,
    c: "muted",
    align: "end",
    halo: "paper",
  });
}
