// The numbers that the picture is drawn from: the whole model's, which come with the panel, and those of a stage, which are
// requested when it is opened (viz/panels/picture.py). A stage that is not here yet is drawn without its numbers.
import { ask } from "../core/ask.js";
import { decodeStrips } from "../core/strips.js";

// Index a head's lines: those of a row, and those of a piece of a word.
/** @param {any} lines */
function indexLines({ rows, pieces }) {
  const index = (list) => {
    const byQuery = new Map();
    for (const [query, key, weight] of list) {
      if (!byQuery.has(query)) byQuery.set(query, []);
      byQuery.get(query).push({ key, weight });
    }
    return byQuery;
  };
  return { rows: index(rows), pieces: index(pieces) };
}

const STRIPS = ["read", "added", "units", "scaled", "positions", "memory", "hidden", "share"];

// Decode all strips and lines of an answer.
function decode(value) {
  if (Array.isArray(value) || value === null || typeof value !== "object") return value;
  const decoded = {};
  for (const [name, part] of Object.entries(value)) {
    if (part && typeof part === "object" && typeof part.data === "string")
      decoded[name] = decodeStrips(part);
    else if (name === "heads") decoded[name] = part.map(indexLines);
    else decoded[name] = STRIPS.includes(name) ? part : decode(part);
  }
  return decoded;
}

export class Model {
  /**
   * @param {any} overview the block of the panel
   * @param {{address: any, arrived: () => void}} options arrived: called when a stage has arrived
   */
  constructor(overview, { address, arrived }) {
    this.sides = overview.sides;
    this.overview = overview;
    this.address = address;
    this.arrived = arrived;
    this.stages = new Map(); // stage's fields, as JSON -> its numbers; null: requested
    this.attentions = Object.fromEntries(
      Object.entries(overview.attentions).map(([kind, layers]) => [
        kind,
        layers.map(({ head, ...lines }) => ({ head, lines: indexLines(lines) })),
      ]),
    );
    this.active = Object.fromEntries(
      Object.entries(overview.sides).map(([side, { active }]) => [side, active.map(decodeStrips)]),
    );
    this.errors = new Map(); // stage's fields, as JSON -> why it did not arrive, in words
  }

  /** Return a stage's numbers, or null until they arrive. @param {Record<string, any>} fields of page_inside */
  stage(fields) {
    const name = JSON.stringify(fields);
    if (!this.stages.has(name)) this.load(name, fields);
    return this.stages.get(name);
  }

  async load(name, fields) {
    this.stages.set(name, null);
    const answer = await ask("page_inside", { address: this.address, fields });
    if (answer?.stage) this.stages.set(name, decode(answer.stage));
    else this.errors.set(name, answer?.error);
    this.arrived();
  }

  layer(stage) {
    const side = stage.startsWith("enc") ? "encoder" : "decoder";
    return this.stage({ stage: "layer", side, layer: Number(stage.slice(3)) });
  }

  /** The lines of one head, or null until they arrive. */
  lines(kind, layer, head) {
    const known = this.attentions[kind][layer];
    if (known.head === head) return known.lines;
    const data = this.layer((kind === "encoder_self" ? "enc" : "dec") + layer);
    const part = kind === "cross" ? "cross_attention" : "self_attention";
    return data?.parts[part].heads[head] ?? null;
  }

  /** Whether any stage is under way. */
  get isBusy() {
    for (const [name, value] of this.stages)
      if (value === null && !this.errors.has(name)) return true;
    return false;
  }

  /** The number of decoder steps. */
  get steps() {
    return this.overview.steps.length;
  }
}
