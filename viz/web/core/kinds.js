// The kinds of attention, by the names that payloads use.
import { say } from "./language.js";

/**
 * @param {any} short label @param {any} title @param {any} line who looks at whom
 * @param {string} rows sentence of the queries: "source" or "target" @param {string} columns sentence of the keys
 * @param {string} [key] on the keyboard that shows this kind
 */
const kind = (short, title, line, rows, columns, key) => ({
  short,
  title,
  line,
  rows,
  columns,
  key,
});

const ACROSS = say("the translation looks at the sentence"),
  SOURCE = say("the sentence looks at itself"),
  TARGET = say("the translation looks back at itself");

/** @type {Record<string, ReturnType<typeof kind>>} */
export const KINDS = {
  cross: kind(say("Cross"), say("Cross-attention"), ACROSS, "target", "source", "1"),
  encoder_self: kind(
    say("Encoder self"),
    say("Encoder self-attention"),
    SOURCE,
    "source",
    "source",
    "2",
  ),
  decoder_self: kind(
    say("Decoder self"),
    say("Decoder self-attention"),
    TARGET,
    "target",
    "target",
    "3",
  ),
  alignment: kind(say("Alignment"), say("Alignment"), ACROSS, "target", "source"),
};
