// The maps of one frame of a toy: a canvas for each head, a row for each layer, and the numbers under the pointer.
import { el } from "../core/dom.js";
import { say, t } from "../core/language.js";

export const TITLES = {
  encoder_self: say("Encoder self-attention"),
  decoder_self: say("Decoder self-attention"),
  cross: say("Cross-attention"),
  alignment: say("Alignment"),
  decoder_self_decoded: say("Decoder self-attention while decoding"),
};

function bytes(text) {
  const raw = atob(text);
  return Uint8Array.from(raw, (character) => character.charCodeAt(0));
}

// Which tokens stand at the rows and columns of a kind's maps.
function sides(kind, pair, output) {
  const read = kind === "decoder_self_decoded" ? output.read : pair.read;
  return {
    rows: kind === "encoder_self" ? pair.source : read,
    columns: kind.startsWith("decoder_self") ? read : pair.source,
  };
}

// frame.maps[at][kind] as canvases in `box`; colours: 256 steps; say(words): for what the pointer is on.
// What was taught and what decoding saw of the same attention stand side by side, where they are two things.
export function drawMaps(box, options) {
  const { frame, at, decoded } = options,
    maps = frame?.maps[at] ?? {};
  // What a Transformer asks of the source, a recurrent network asks by its alignment, and the other way round.
  const twin = { cross: "alignment", alignment: "cross" }[options.kind];
  const kind = !maps[options.kind] && maps[twin] ? twin : options.kind;
  box.replaceChildren(
    ...(kind === twin ? [el("h3", {}, TITLES[kind])] : []),
    grid({ ...options, kind }),
  );
  if (kind === "decoder_self" && frame?.maps[at]?.[decoded])
    box.replaceChildren(
      el("h3", {}, t("taught, the whole target before it")),
      ...box.childNodes,
      el("h3", {}, t("while decoding, its own words so far")),
      grid({ ...options, kind: decoded }),
    );
}

function grid({ frame, at, kind, pair, colours, tell }) {
  const found = frame?.maps[at]?.[kind];
  if (!found) return el("p", { class: "note" }, t("This network has no maps of this kind."));
  const [layers, heads, queries, keys] = found.shape,
    values = bytes(found.data),
    { rows, columns } = sides(kind, pair, frame.outputs[at]);
  const named = layers * heads > 1,
    heading = (text) =>
      named ? [el("span", { class: "heading", "aria-hidden": "true" }, text)] : [];
  const cells = [
    ...heading(""),
    ...Array.from({ length: heads }, (_, head) => heading(`H${head + 1}`)).flat(),
  ];
  for (let layer = 0; layer < layers; layer++) {
    cells.push(...heading(`L${layer + 1}`));
    for (let head = 0; head < heads; head++) {
      const start = (layer * heads + head) * queries * keys;
      const name = t("Layer {layer}, head {head}", { layer: layer + 1, head: head + 1 });
      const canvas = el("canvas", {
        width: keys,
        height: queries,
        role: "img",
        "aria-label": `${t("{kind}, update {n}", { kind: TITLES[kind], n: frame.update })}: ${name}`,
      });
      const context = canvas.getContext("2d"),
        pixels = context.createImageData(keys, queries);
      for (let i = 0; i < queries * keys; i++)
        pixels.data.set([...colours[values[start + i]], 255], 4 * i);
      context.putImageData(pixels, 0, 0);
      canvas.style.setProperty("--keys", keys);
      canvas.addEventListener("pointermove", (event) => {
        const place = canvas.getBoundingClientRect();
        const column = Math.min(
          keys - 1,
          Math.max(0, Math.floor(((event.clientX - place.left) / place.width) * keys)),
        );
        const row = Math.min(
          queries - 1,
          Math.max(0, Math.floor(((event.clientY - place.top) / place.height) * queries)),
        );
        tell(
          t("{head}: {query} reads {key} with weight {weight}", {
            head: name,
            query: rows[row],
            key: columns[column],
            weight: (values[start + row * keys + column] / 255).toFixed(2),
          }),
        );
      });
      cells.push(canvas);
    }
  }
  const pictures = el(
    "div",
    {
      class: named ? "heads named" : "heads",
      style: `--heads: ${heads}; --shape: ${keys} / ${queries}`,
    },
    cells,
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
