// The picture as a list and a table, for screen readers and for selecting and copying its numbers.
import { button, el, table } from "../core/dom.js";
import { formatFixed, formatPercent } from "../core/format.js";
import { t } from "../core/language.js";
import { headFields } from "./head.js";
import { isLayer, keySide, kindOf, sideOf, stagesOf, subsOf } from "./place.js";
import { formatPower, nextWord } from "./stages.js";
import { describePart } from "./words.js";

const row = (cells) =>
  el(
    "tr",
    {},
    cells.map((cell, i) => (i ? el("td", {}, cell) : el("th", { scope: "row" }, cell))),
  );

/** @param {any} scene @param {(open: any) => void} open opens a place @returns {Element} */
export function createList(scene, open) {
  const { view, model } = scene,
    { open: place } = view;
  const item = (target, ...text) =>
    el("li", {}, target ? button(text, () => open(target), { class: "part" }) : text);
  if (!place) {
    const stages = stagesOf(model).filter((stage) => stage !== "words");
    return el(
      "ol",
      {},
      stages.map((stage) => item({ stage, sub: null, head: null }, describePart(scene, stage))),
    );
  }
  const { stage, sub, head } = place;
  if (stage === "out") {
    const data = model.stage({ stage: "output", step: view.step });
    if (!data) return el("p", {}, t("Loading …"));
    const rows = data.tokens.map((token, i) =>
      row([
        nextWord(token),
        formatFixed(data.logits[i], 4),
        formatPower(data.logits[i]),
        formatFixed(data.probabilities[i], 5),
      ]),
    );
    rows.push(row([t("all other tokens"), "", "", formatFixed(data.rest, 5)]));
    return table([t("Next word"), t("logit x"), "eˣ", t("probability")], rows);
  }
  if (!isLayer(stage)) return el("p", {}, describePart(scene, stage));
  if (head === null)
    return el(
      "ol",
      {},
      subsOf(model, stage).flatMap((part) =>
        part === sub && part !== "ff"
          ? Array.from({ length: model.sides[sideOf(stage)].heads }, (_, i) =>
              item({ stage, sub: part, head: i }, describePart(scene, stage, part, i)),
            )
          : [
              item(
                part === sub ? null : { stage, sub: part, head: null },
                describePart(scene, stage, part),
              ),
            ],
      ),
    );
  const data = model.stage(headFields(view));
  if (!data) return el("p", {}, t("Loading …"));
  const { tokens } = model.sides[keySide(kindOf(stage, sub))];
  const rows = data.weights.map((weight, i) =>
    row([
      tokens[data.first + i].text,
      formatFixed(data.dots[i], 4),
      ...(data.bias ? [formatFixed(data.bias[i], 4)] : []),
      data.allowed[i] ? formatFixed(data.scaled[i], 4) : "−∞",
      formatFixed(weight, 5),
    ]),
  );
  if (data.others.count)
    rows.push(
      row([
        t("the other {n}", { n: data.others.count }),
        "",
        ...(data.bias ? [""] : []),
        "",
        formatFixed(data.others.weight, 5),
      ]),
    );
  const score = data.divided ? `÷ √${data.query.length}` : t("score");
  return table(
    [t("key"), "q · k", ...(data.bias ? [t("+ bias")] : []), score, t("softmax")],
    rows,
    {
      "aria-label": `${describePart(scene, stage, sub)} ${formatPercent(data.part)}`,
    },
  );
}
