// What the model is, what it was trained on and how it scores.
import { el, table } from "../core/dom.js";
import { fixed } from "../core/format.js";
import { t } from "../core/language.js";

function scoreTable(about) {
  if (!about.scores.length) return null;
  const row = (s) => [
    s.data,
    s.split === "dev" ? t("development") : t("test"),
    s.direction,
    s.beam === 1 ? t("greedy") : t("beam {width}", { width: s.beam }),
    fixed(s.bleu, 1) + (s.protocol ? ` (${s.protocol})` : ""),
    s.chrf ? fixed(s.chrf, 1) : "",
  ];
  const rows = about.scores.map((one) =>
    el(
      "tr",
      {},
      row(one).map((text) => el("td", {}, text)),
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
