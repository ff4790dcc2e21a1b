// What is said of a translation: what speaks up about it, and of the model, what it was trained on and how it scores.
import { el, table } from "../core/dom.js";
import { fixed } from "../core/format.js";
import { t } from "../core/language.js";
import { visit } from "../core/links.js";

function scoreTable(about) {
  if (!about.scores.length) return null;
  const row = (s) => [
    s.data,
    s.split === "dev" ? t("development") : t("test"),
    s.direction,
    s.beam === 1 ? t("greedy") : t("beam {width}", { width: s.beam }),
    fixed(s.bleu, 1),
    s.chrf ? fixed(s.chrf, 1) : "",
  ];
  const rows = about.scores.map((one) =>
    el(
      "tr",
      {},
      row(one).map((text, at) => el("td", at ? {} : { lang: "en" }, text)),
    ),
  );
  return table([t("Sentences of"), t("Part"), t("Direction"), t("Decoding"), "BLEU", "chrF"], rows);
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
