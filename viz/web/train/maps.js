// The maps of one frame of a toy: a canvas for each head, a row for each layer, and the numbers under the pointer.
import { paintMap } from "../core/colours.js";
import { el } from "../core/dom.js";
import { formatFixed } from "../core/format.js";
import { createGrid } from "../core/grid.js";
import { cellAt } from "../core/keys.js";
import { KINDS } from "../core/kinds.js";
import { say, t } from "../core/language.js";
import { base64ToBytes } from "../explorer/trace.js";

export const TITLES = {
  ...Object.fromEntries(Object.entries(KINDS).map(([name, { title }]) => [name, title])),
  decoder_self_decoded: say("Decoder self-attention while decoding"),
};

// Which tokens stand at the rows and columns of a kind's maps.
function sides(kind, pair, output) {
  const { read, written } = kind === "decoder_self_decoded" ? output : pair;
  return {
    rows:
      kind === "encoder_self" ? pair.source : read.map((token, i) => `${token} → ${written[i]}`),
    columns: kind.startsWith("decoder_self") ? read : pair.source,
  };
}

// frame.maps[at][kind] as canvases in `box`; colour: share -> its colour; say(words): for what the pointer is on.
// What was taught and what decoding saw of the same attention stand side by side, where they are two things.
export function drawMaps(box, options) {
  const { frame, at, decoded } = options,
    maps = frame?.maps[at] ?? {};
  // What a Transformer asks of the source, a recurrent network asks by its alignment, and the other way round.
  const twin = { cross: "alignment", alignment: "cross" }[options.kind];
  const kind = !maps[options.kind] && maps[twin] ? twin : options.kind;
  const heading = (words) => el("h3", {}, words);
  box.replaceChildren(grid({ ...options, kind }));
  if (kind === twin) box.prepend(heading(TITLES[kind]));
  if (kind !== "decoder_self" || !maps[decoded]) return;
  box.prepend(heading(t("teacher-forced, with the whole target given")));
  box.append(
    heading(t("while decoding, its own words so far")),
    grid({ ...options, kind: decoded }),
  );
}

function grid({ frame, at, kind, pair, colour, tell }) {
  const found = frame?.maps[at]?.[kind];
  if (!found) return el("p", { class: "note" }, t("This network has no maps of this kind."));
  const [layers, heads, queries, keys] = found.shape,
    values = base64ToBytes(found.data),
    { rows, columns } = sides(kind, pair, frame.outputs[at]);
  const named = layers * heads > 1,
    of = (count, name) =>
      named ? Array.from({ length: count }, (_, i) => `${name}${i + 1}`) : null;
  const cell = (layer, head) => {
    const start = (layer * heads + head) * queries * keys,
      own = values.subarray(start, start + queries * keys);
    const name = t("Layer {layer}, head {head}", { layer: layer + 1, head: head + 1 });
    const canvas = el("canvas", {
      role: "img",
      "aria-label": `${t("{kind}, update {n}", { kind: TITLES[kind], n: frame.update })}: ${name}`,
      style: `--shape: ${keys} / ${queries}`,
      onpointermove: (event) => {
        const [row, column] = cellAt(event, canvas, queries, keys);
        tell(
          t("{head}: {query} · {key}: {weight}", {
            head: name,
            query: rows[row],
            key: columns[column],
            weight: formatFixed(own[row * keys + column] / 255, 2),
          }),
        );
      },
    });
    paintMap(canvas, { values: own, rows: queries, columns: keys }, (byte) => colour(byte / 255));
    return { content: canvas };
  };
  const { root: pictures } = createGrid(
    {
      kind: "heads",
      columns: of(heads, "H"),
      rows: of(layers, "L"),
      cells: Array.from({ length: layers }, (_, layer) =>
        Array.from({ length: heads }, (_, head) => cell(layer, head)),
      ),
    },
    { quiet: true, walks: false },
  );
  const tokens = (label, words) =>
    el("p", { class: "tokens" }, el("span", { class: "label" }, label), " ", words.join(" · "));
  return el(
    "div",
    { class: "grid" },
    pictures,
    tokens(t("rows:"), rows),
    tokens(t("columns:"), columns),
  );
}
