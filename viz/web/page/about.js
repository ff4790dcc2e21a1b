// Parts of the strip above the tabs: reasons to doubt a translation, and the model's training and
// scores.
import { button, el, table } from "../core/dom.js";
import { formatFixed } from "../core/format.js";
import { t } from "../core/language.js";
import { openLink } from "../core/links.js";

// Return a table of scores: a row per test set and direction, two columns (BLEU, chrF) per part of
// it and decoding.
function scoreTable({ scores }) {
  if (!scores.length) return null;
  const run = ({ split, beam }) =>
    `${split === "dev" ? t("development") : t("test")} · ${
      beam === 1 ? t("greedy") : t("beam {width}", { width: beam })
    }`;
  const runs = [...new Set(scores.map(run))];
  const rows = Map.groupBy(scores, ({ data, direction }) => `${data}\n${direction}`);
  const heading = (text, attributes) => el("th", { scope: "col", ...attributes }, text);
  const number = (value) => el("td", {}, Number.isFinite(value) ? formatFixed(value, 1) : "");
  const scoresTable = table(
    runs.flatMap(() => ["BLEU", "chrF"]),
    [...rows.values()].map((row) =>
      el("tr", {}, [
        el("th", { scope: "row", lang: "en" }, row[0].data),
        el("td", {}, row[0].direction),
        runs.flatMap((name) => {
          const score = row.find((score) => run(score) === name);
          return [number(score?.bleu), number(score?.chrf)];
        }),
      ]),
    ),
  );
  scoresTable.tHead.prepend(
    el("tr", {}, [
      heading(t("Sentences of"), { rowspan: 2 }),
      heading(t("Direction"), { rowspan: 2 }),
      runs.map((name) => heading(name, { colspan: 2, scope: "colgroup" })),
    ]),
  );
  return el("div", { class: "scroll" }, scoresTable);
}

export function createModelSection(about) {
  const size = about.parameters
    ? ` ${t("{n} million parameters.", { n: (about.parameters / 1e6).toFixed(1) })}`
    : "";
  return el("section", { class: "about" }, [
    el("h2", {}, t("About this model")),
    el("p", {}, [
      `${t("Checkpoint {name} ({digest}).", about)}${size} `,
      el("span", { lang: "en" }, about.training),
    ]),
    about.origin ? el("p", {}, about.origin) : null,
    about.notes.map((note) => el("p", { lang: "en" }, note)),
    about.lacking.map(({ panel, why }) =>
      el("p", {}, t("Does not apply here: {panel}.", { panel }), " ", why),
    ),
    scoreTable(about),
  ]);
}

/**
 * Return the reasons to doubt a translation. Each is a link to where one sees it, with how often such a warning was right.
 * @param {any[]} doubts {text, right, about, step, link} of viz/questions/header.py
 * @param {(step: number) => void} pin called with the token that a doubt is about
 */
export function createDoubts(doubts, pin) {
  const lead = ({ text, about, step, link }) => {
    const go = () => {
      if (step !== null) pin(step);
      openLink(link);
    };
    return button(text, go, { class: null, title: about, "aria-description": about });
  };
  const close = button("×", () => root.remove(), { class: "close", "aria-label": t("Close") });
  const root = el("p", { class: "doubts" }, [
    t("Do not trust this blindly:"),
    " ",
    doubts.flatMap((doubt, i) => [i ? " · " : "", lead(doubt), " (", doubt.right, ")"]),
    " ",
    close,
  ]);
  return root;
}
