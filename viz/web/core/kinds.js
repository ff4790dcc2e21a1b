// The kinds of attention, by the names that payloads use.
import { say } from "./language.js";

/**
 * @param {any} short label @param {any} title @param {string} rows sentence of the queries: "source" or "target"
 * @param {string} columns sentence of the keys @param {string} [key] on the keyboard that shows this kind
 */
const kind = (short, title, rows, columns, key) => ({ short, title, rows, columns, key });

/** @type {Record<string, ReturnType<typeof kind>>} */
export const KINDS = {
  cross: kind(say("Cross"), say("Cross-attention"), "target", "source", "1"),
  encoder_self: kind(say("Encoder self"), say("Encoder self-attention"), "source", "source", "2"),
  decoder_self: kind(say("Decoder self"), say("Decoder self-attention"), "target", "target", "3"),
  alignment: kind(say("Alignment"), say("Alignment"), "target", "source"),
};
