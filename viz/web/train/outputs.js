// What each sentence becomes: a row for each pair, a column for each run.
import { el, table } from "../core/dom.js";
import { fixed } from "../core/format.js";
import { t } from "../core/language.js";
import { frameOf } from "./runs.js";

// at: the update that is looked at.
export function outputsOf(runs, at) {
  const isRight = (run, row) => frameOf(run, at).outputs[row].text === run.pairs[row].wanted;
  const cell = (run, row) => {
    const { text, finished } = frameOf(run, at).outputs[row],
      right = isRight(run, row);
    return el(
      "td",
      { class: right ? "right" : null },
      right ? el("b", {}, "✓ ") : null,
      text || t("(nothing)"),
      finished ? "" : " …",
    );
  };
  const headings = runs.map((run) =>
    t("{run}, greedy: {right} of {n} right, loss {loss}", {
      run: run.name,
      right: frameOf(run, at).outputs.filter((_, row) => isRight(run, row)).length,
      n: run.pairs.length,
      loss: fixed(frameOf(run, at).loss ?? null, 3),
    }),
  );
  return table(
    [t("Source"), t("Wanted"), ...headings],
    runs[0].pairs.map((one, row) =>
      el(
        "tr",
        {},
        el("th", { scope: "row" }, one.text),
        el("td", {}, one.wanted),
        runs.map((run) => cell(run, row)),
      ),
    ),
  );
}
