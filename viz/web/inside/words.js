// What the picture says in words: the names of its parts, the tip under the pointer, and the line below it.
import { formatFixed, formatPercent } from "../core/format.js";
import { t } from "../core/language.js";
import {
  depthOf,
  isDecoder,
  isLayer,
  keySide,
  kindOf,
  layerOf,
  querySide,
  sideOf,
} from "./place.js";

/** An attention weight with two decimals. @param {number} weight */
export const formatWeight = (weight) => formatFixed(weight, 2);

/** The name of a sub-layer. @param {string} stage @param {string} sub */
export function subName(stage, sub) {
  if (sub === "ff") return t("Feed-forward");
  if (sub === "cross") return t("Cross-attention");
  return isDecoder(stage) ? t("Masked self-attention") : t("Self-attention");
}

/** The name of a stage. @param {string} stage */
export function stageName(stage) {
  const names = {
    words: t("Words"),
    embed: t("Embedding and position"),
    memory: t("Memory"),
    out: t("Next word"),
    inputs: t("Words written so far"),
    written: t("Embedding of the written words"),
  };
  if (names[stage]) return names[stage];
  const n = layerOf(stage) + 1;
  return isDecoder(stage) ? t("Decoder layer {n}", { n }) : t("Encoder layer {n}", { n });
}

/** The panels of the tab that show a stage in detail: [name, title, controls]. @param {any} open @param {any} view */
export function panelsOf(open, view) {
  if (!open) return [];
  const { stage, sub, head } = open;
  const side = sideOf(stage);
  if (stage === "embed" || stage === "written") return [["embedding", t("Embedding"), { side }]];
  if (stage === "memory") return [["residual", t("Residual stream"), { side: "encoder" }]];
  if (stage === "out") return [["logits", t("Logits"), { step: view.step + 1 }]];
  const layer = layerOf(stage) + 1;
  if (sub === "ff") return [["feed-forward", t("Feed-forward"), { side, layer }]];
  const place = {
    kind: kindOf(stage, sub),
    layer,
    head: (head ?? view.heads[kindOf(stage, sub)]?.[layer - 1] ?? 0) + 1,
  };
  if (head === null)
    return [
      ["heads", t("Heads side by side"), { kind: place.kind, layer }],
      ["add-norm", t("Add & norm"), { side, layer }],
    ];
  return [
    ["projections", t("Q, K, V"), place],
    ["attention", t("One query"), { ...place, query: view.query + 1 }],
  ];
}

/** What a row reads most in an attention, such as "Hund 0.62, klein 0.10". */
function readingOf(scene, kind, layer, head) {
  const query = scene.active(querySide(kind));
  if (!query) return "";
  const keys = scene.rows(keySide(kind)),
    reads = [...scene.reads(kind, layer, head, query)].sort((p, q) => q.weight - p.weight);
  const list = reads
    .slice(0, 3)
    .map(
      ({ key, weight }) => `${keys[key] ? scene.label(keys[key]) : "…"} ${formatWeight(weight)}`,
    );
  return list.length
    ? t("“{word}” attends to {list}.", { word: scene.label(query), list: list.join(", ") })
    : "";
}

/** A part of the picture in words, for the status line. @param {any} scene @param {string} stage @param {string | null} sub @param {number | null} head */
export function describePart(scene, stage, sub = null, head = null) {
  const { model, view } = scene;
  if (stage === "out") {
    const [[token, p]] = model.overview.steps[view.step];
    return t("{stage}: “{word}”, {share}.", {
      stage: stageName(stage),
      word: token,
      share: formatPercent(p),
    });
  }
  if (!isLayer(stage)) return `${stageName(stage)}.`;
  const attention = sub ?? (isDecoder(stage) ? "cross" : "self");
  const name = sub ? `${stageName(stage)}, ${subName(stage, sub)}` : stageName(stage);
  if (attention === "ff" || scene.layout.depth === 2) return `${name}.`;
  const kind = kindOf(stage, attention),
    used = head ?? scene.headOf(kind, layerOf(stage)),
    which = t("head {n}", { n: used + 1 });
  return `${name}, ${which}. ${readingOf(scene, kind, layerOf(stage), used)}`;
}

/** The tip under the pointer; "" for none. @param {any} hit @param {any} curve @param {any} scene */
export function describeHit(hit, curve, scene) {
  const action = hit?.action;
  if (curve) {
    const { kind, layer, head, query, key, weight } = curve.cell;
    return t("“{query}” attends to “{key}”: {weight} (layer {layer}, head {head})", {
      query: scene.label(query),
      key: scene.label(key),
      weight: formatWeight(weight),
      layer: `${layer + 1}`,
      head: `${(head ?? scene.headOf(kind, layer)) + 1}`,
    });
  }
  if (!action) return "";
  if (action.cell) return t("Click for the products and the sum");
  if ("probability" in action) return t("Click to follow this probability");
  const { open } = action;
  if (!open) return "";
  if (open.head !== null && open.head !== undefined)
    return scene.layout.depth === 2
      ? t("Head {n}", { n: open.head + 1 })
      : t("Open head {n} for this word", { n: open.head + 1 });
  return open.sub ? subName(open.stage, open.sub) : stageName(open.stage);
}

/** The line below the picture: what one sees and what one can do. @param {any} scene */
export function explain(scene) {
  const { view, model } = scene,
    { open, step } = view,
    depth = depthOf(open);
  if (!depth) {
    const [[token, p]] = model.overview.steps[step];
    const next = { word: token.replaceAll("▁", ""), share: formatPercent(p) };
    return t(
      "The encoder reads all words at once. The decoder finds the next word: “{word}”, {share}. Click a part to open it.",
      next,
    );
  }
  const { stage, sub } = open;
  const d = model.overview.d_model;
  if (stage === "embed" || stage === "written") {
    const side = stage === "embed" ? "encoder" : "decoder",
      group = model.stage({ stage: "embedding", side })?.scaled.group ?? 1;
    return [
      model.overview.positions
        ? t(
            "Each token has a row of {d} learned numbers. A code for its position is added, and the stream begins. Orange is above 0, blue below; each column has its own scale.",
            { d },
          )
        : t("Each token has a row of {d} learned numbers, where the stream begins.", { d }),
      group > 1 ? t("One number in {n} is drawn.", { n: `${group}` }) : "",
    ].join(" ");
  }
  if (stage === "memory")
    return t(
      "The encoder’s output. Cross-attention reads these numbers in every layer of the decoder.",
    );
  if (stage === "out")
    return t(
      "The decoder’s last {d} numbers, compared with each token of the vocabulary, give the logits. Click one to follow it.",
      { d },
    );
  const side = sideOf(stage);
  if (sub === "ff")
    return t("Each word by itself: {n} units, and what the active ones add to its stream.", {
      n: model.sides[side].units,
    });
  if (depth === 1)
    return t(
      "{n} heads read the same streams side by side; W_O adds their outputs to the streams. Click a head at the word that asks.",
      {
        n: model.sides[side].heads,
      },
    );
  const word = scene.active(querySide(kindOf(stage, sub)))?.label ?? "";
  if (!isDecoder(stage))
    return t(
      "“{word}” asks every key: q · k says how well they match, softmax makes weights of it, and the weights mix the values. Click a key for its figures.",
      { word },
    );
  return t(
    "To find the next word, the last word “{word}” asks every key: q · k says how well they match, softmax makes weights of it, and the weights mix the values. Click a key for its figures.",
    { word },
  );
}
