// The kinds of attention, as a payload names them: on a label, as a title, the key that shows it, and of which sentence its
// rows and its columns are.
import { say } from "./language.js";

const kind = (short, title, rows, columns, key) => ({ short, title, rows, columns, key });

export const KINDS = {
  cross: kind(say("Cross"), say("Cross-attention"), "target", "source", "1"),
  encoder_self: kind(say("Encoder self"), say("Encoder self-attention"), "source", "source", "2"),
  decoder_self: kind(say("Decoder self"), say("Decoder self-attention"), "target", "target", "3"),
  alignment: kind(say("Alignment"), say("Alignment"), "target", "source"),
};
