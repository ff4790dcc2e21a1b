// Where the keyboard can stand: the stages in order, with the parts of the open one in its place.
import { formatFixed } from "../core/format.js";
import { t } from "../core/language.js";
import { COLUMNS, headColumns, headFields, optionalColumns } from "./head.js";
import { isLayer, keySide, kindOf, sideOf, stagesOf, subsOf } from "./place.js";
import { describePart, formatWeight, stageName } from "./words.js";

/**
 * @typedef {object} Stop
 * @property {string} id @property {string} side @property {any} action of Enter
 * @property {(scene: any) => number[]} area [u0, u1, v0, v1] @property {(scene: any) => string} say
 * @property {boolean} [starts] whether the keyboard enters the open stage here
 */

/** @param {any} scene @returns {Stop[]} */
export function stopsOf(scene) {
  const { view, model, layout } = scene,
    { depth } = layout;
  const stops = [];
  const addStage = (stage) =>
    stops.push({
      id: stage,
      side: sideOf(stage),
      action:
        stage === "words" || stage === "inputs" ? null : { open: { stage, sub: null, head: null } },
      area: (drawn) => drawn.areaOf(stage),
      say: (drawn) => describePart(drawn, stage),
    });
  for (const stage of stagesOf(model)) {
    if (stage === "dec0") ["inputs", "written"].forEach(addStage);
    if (!depth || view.open.stage !== stage || !isLayer(stage)) {
      addStage(stage);
      continue;
    }
    for (const sub of subsOf(model, stage)) {
      const isFocus = view.open.sub === sub;
      if (depth === 2 && isFocus) stops.push(...columnStops(scene));
      else if (depth === 1 && isFocus && sub !== "ff")
        for (let head = 0; head < model.sides[sideOf(stage)].heads; head++)
          stops.push({
            id: `${stage}.${sub}.h${head}`,
            side: sideOf(stage),
            starts: head === 0,
            action: { open: { stage, sub, head } },
            area: (drawn) => drawn.areaOf(`${stage}.${sub}.h${head}`),
            say: (drawn) => describePart(drawn, stage, sub, head),
          });
      else
        stops.push({
          id: `${stage}.${sub}`,
          side: sideOf(stage),
          starts: isFocus,
          action: { open: { stage, sub, head: null } },
          area: (drawn) => drawn.areaOf(`${stage}.${sub}`),
          say: (drawn) => describePart(drawn, stage, sub),
        });
    }
  }
  return stops;
}

// The columns of the open head; the row is the cell's key.
function columnStops(scene) {
  const { view, model, layout } = scene,
    { stage, sub, head } = view.open,
    kind = kindOf(stage, sub),
    data = model.stage(headFields(view)),
    columns = headColumns(
      layout.spans[`${stage}.${sub}.h${head}`],
      layout.tall,
      optionalColumns(data, kind),
    ),
    rows = layout[keySide(kind)];
  const names = {
    key: t("key"),
    dot: "q · k",
    bias: t("+ bias"),
    scaled: t("score"),
    mask: t("mask"),
    weight: t("softmax"),
    value: t("value"),
    weighted: t("weight × value"),
  };
  const values = (name, at) =>
    ({
      dot: () => formatFixed(data.dots[at], 2),
      bias: () => formatFixed(data.bias[at], 2),
      scaled: () => formatFixed(data.scaled[at], 2),
      weight: () => formatWeight(data.weights[at]),
      mask: () => (data.allowed[at] ? "+ 0" : "−∞"),
    })[name]?.() ?? "";
  return COLUMNS.filter((name) => columns[name]).map((name) => ({
    id: `column.${name}`,
    side: keySide(kind),
    starts: name === "weight",
    action: null,
    area: () => {
      const row = rows.find(({ at }) => at[0] === view.cell?.[1]),
        [v0, v1] = row
          ? [row.c - row.pitch / 2, row.c + row.pitch / 2]
          : [rows[0].c - rows[0].pitch / 2, rows.at(-1).c + rows.at(-1).pitch / 2];
      return [columns[name].a - 2, columns[name].b + 2, v0, v1];
    },
    say: (drawn) => {
      const row = rows.find(({ at }) => at[0] === drawn.view.cell?.[1]);
      const at = data && row ? row.at[0] - data.first : -1;
      if (!(at >= 0 && at < (data?.weights.length ?? 0)))
        return `${stageName(stage)}: ${names[name]}`;
      return `${names[name]}, ${row.label}: ${values(name, at)}`;
    },
  }));
}
