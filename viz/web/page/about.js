// What is said of a translation: what speaks up about it, and of the model, what it was trained on and how it scores.
import { el } from "../core/dom.js";
import { fixed } from "../core/format.js";
import { t } from "../core/language.js";
import { visit } from "../core/links.js";

function scoreTable(about) {
  if (!about.scores.length) return null;
  // A row for each set of sentences in a direction; a pair of columns for each part of them, as it was decoded.
  const run = ({ split, beam }) =>
    `${split === "dev" ? t("development") : t("test")} · ${
      beam === 1 ? t("greedy") : t("beam {width}", { width: beam })
    }`;
  const runs = [...new Set(about.scores.map(run))],
    key = ({ data, direction }) => `${data}\n${direction}`,
    rows = [...new Set(about.scores.map(key))].map((name) =>
      about.scores.filter((one) => key(one) === name),
    );
  const score = (one) =>
    [one?.bleu, one?.chrf].map((number) =>
      el("td", {}, Number.isFinite(number) ? fixed(number, 1) : ""),
    );
  const head = (text, attributes = {}) => el("th", { scope: "col", ...attributes }, text);
  return el(
    "div",
    { class: "scroll" },
    el(
      "table",
      {},
      el(
        "thead",
        {},
        el(
          "tr",
          {},
          head(t("Sentences of"), { rowspan: 2 }),
          head(t("Direction"), { rowspan: 2 }),
          runs.map((one) => head(one, { colspan: 2, scope: "colgroup" })),
        ),
        el(
          "tr",
          {},
          runs.flatMap(() => [head("BLEU"), head("chrF")]),
        ),
      ),
      el(
        "tbody",
        {},
        rows.map((found) =>
          el(
            "tr",
            {},
            el("th", { scope: "row", lang: "en" }, found[0].data),
            el("td", {}, found[0].direction),
            runs.flatMap((name) => score(found.find((one) => run(one) === name))),
          ),
        ),
      ),
    ),
  );
}

export function aboutModel(about) {
  const size = about.parameters
    ? ` ${t("{n} million parameters.", { n: (about.parameters / 1e6).toFixed(1) })}`
    : "";
  return el(
    "section",
    { class: "about" },
    el("h2", {}, t("About this model")),
    el(
      "p",
      {},
      `${t("Checkpoint {name} ({digest}).", about)}${size} `,
      el("span", { lang: "en" }, about.training),
    ),
    about.origin ? el("p", {}, about.origin) : null,
    about.notes.map((note) => el("p", { lang: "en" }, note)),
    about.lacking.map(({ panel, why }) =>
      el("p", {}, t("Does not apply here: {panel}.", { panel }), " ", why),
    ),
    scoreTable(about),
  );
}

// What speaks up about a translation: each leads to where one sees it, and says how often it was right.
// doubts: {text, right, about, step, link}; pin(step): the token that is asked about from then on.
export const doubted = (doubts, pin) =>
  el(
    "p",
    { class: "doubts" },
    t("Do not trust this blindly:"),
    " ",
    doubts.flatMap(({ text, right, about, step, link }, i) => [
      i ? " · " : "",
      el(
        "button",
        {
          type: "button",
          title: about,
          "aria-description": about,
          onclick: () => {
            if (step !== null) pin(step);
            visit(link);
          },
        },
        text,
      ),
      " (",
      right,
      ")",
    ]),
    " ",
    el(
      "button",
      {
        type: "button",
        class: "close",
        "aria-label": t("Close"),
        onclick: (event) => event.currentTarget.parentNode.remove(),
      },
      "×",
    ),
  );
