// A place in the picture, as the page's links name it: "" the whole model, "enc2" or "dec3.cross" a layer opened at a
// sub-layer, "dec3.cross.h5" a head; "embed", "written" (the embedding of the written words), "memory" and "out".
// Layers and heads count from 1 in a link, from 0 in the code.

/** @typedef {{stage: string, sub: string | null, head: number | null}} Place stage: such as "enc0" */

export const SUBLAYERS = {
  self: "self_attention",
  cross: "cross_attention",
  ff: "feed_forward",
};
const ENDS = ["embed", "written", "memory", "out"];

export const isLayer = (stage) => /^(enc|dec)\d/.test(stage);
export const layerOf = (stage) => Number(stage.slice(3));
export const isDecoder = (stage) => stage.startsWith("dec");
/** The side whose rows a stage belongs to. @param {string} stage */
export const sideOf = (stage) =>
  isDecoder(stage) || ["out", "written", "inputs"].includes(stage) ? "decoder" : "encoder";
export const stageOf = (kind, layer) => (kind === "encoder_self" ? "enc" : "dec") + layer;
export const subOf = (kind) => (kind === "cross" ? "cross" : "self");
export const kindOf = (stage, sub) =>
  isDecoder(stage) ? (sub === "cross" ? "cross" : "decoder_self") : "encoder_self";
export const querySide = (kind) => (kind === "encoder_self" ? "encoder" : "decoder");
export const keySide = (kind) => (kind === "decoder_self" ? "decoder" : "encoder");

/** 0: the whole model, 1: a stage, 2: a head. @param {Place | null} open */
export const depthOf = (open) => (!open ? 0 : open.head === null ? 1 : 2);

/** The sub-layers of a layer, in order. @param {any} model @param {string} stage */
export const subsOf = (model, stage) =>
  model.sides[sideOf(stage)].parts.map((part) =>
    Object.keys(SUBLAYERS).find((sub) => SUBLAYERS[sub] === part),
  );

/** The stages of a model along the flow. @param {any} model */
export function stagesOf({ sides }) {
  const numbered = (name, count) => Array.from({ length: count }, (_, i) => name + i);
  return [
    "words",
    "embed",
    ...numbered("enc", sides.encoder.layers),
    "memory",
    ...numbered("dec", sides.decoder.layers),
    "out",
  ];
}

/** @param {Place | null} open */
export function formatPlace(open) {
  if (!open) return "";
  if (!isLayer(open.stage)) return open.stage;
  const layer = open.stage.slice(0, 3) + (layerOf(open.stage) + 1);
  return [layer, open.sub, ...(open.head === null ? [] : [`h${open.head + 1}`])].join(".");
}

/**
 * Parse a link's place. Null for "" and for a place that the model does not have.
 * @param {string | null | undefined} text @param {any} model
 * @returns {Place | null}
 */
export function parsePlace(text, model) {
  if (ENDS.includes(text ?? "")) return { stage: text ?? "", sub: null, head: null };
  const [, side, layer, sub, head] =
    /^(enc|dec)(\d{1,3})(?:\.(self|cross|ff)(?:\.h(\d{1,3}))?)?$/.exec(text ?? "") ?? [];
  if (!side) return null;
  const stage = `${side}${Number(layer) - 1}`;
  const { layers, heads } = model.sides[sideOf(stage)];
  const subs = subsOf(model, stage);
  const chosen = sub ?? (subs.includes("cross") ? "cross" : subs[0]);
  if (!(Number(layer) >= 1 && Number(layer) <= layers) || !subs.includes(chosen)) return null;
  const index = head === undefined ? null : Number(head) - 1;
  if (index !== null && (index < 0 || index >= heads || chosen === "ff"))
    return { stage, sub: chosen, head: null };
  return { stage, sub: chosen, head: index };
}

/** Parse a link's cell, "4,2": [query, key] in pieces, from 0; null if it is none. @param {string | null | undefined} text */
export function parseCell(text) {
  const [, query, key] = /^(\d{1,4}),(\d{1,4})$/.exec(text ?? "") ?? [];
  return query && Number(query) && Number(key) ? [Number(query) - 1, Number(key) - 1] : null;
}

/** @param {number[] | null} cell */
export const formatCell = (cell) => (cell ? cell.map((i) => i + 1).join(",") : "");
