// The translation: the sentence large, its tokens shaded by probability, the model's facts and scores.
import { el } from "../core/dom.js";
import { said, t } from "../core/language.js";
import { pageLink } from "../core/links.js";

export default function translation(root, api) {
  const percent = (p) =>
    p >= 0.9995 ? "100%" : p >= 0.1 ? `${(100 * p).toFixed(0)}%` : `${(100 * p).toFixed(1)}%`;
  const shown = (token) => token.text.replaceAll("\u2581", " ").trimStart() || "␣";
  const starts = (token) => token.text.startsWith("\u2581") || token.symbol;

  function chip(token, extra, tag = "span") {
    const kind = token.symbol ? " symbol" : token.byte ? " byte" : "";
    return el(
      tag,
      { class: `chip${kind}${starts(token) ? " starts" : ""}`, ...extra },
      shown(token),
    );
  }

  function sourceRow(value) {
    return el(
      "div",
      { class: "row" },
      el("span", { class: "label" }, t("reads")),
      el(
        "div",
        { class: "chips" },
        value.source.map((token) => chip(token, {})),
      ),
    );
  }

  // What was last pointed at, and the way on from the token that is pinned.
  const words = el("span", {});
  const why = el("button", {
    type: "button",
    class: "why",
    hidden: true,
    onclick: () => api.trigger("open", { tab: "why", panel: null }),
  });

  function targetRow(value) {
    const chips = value.target.map((token, step) => {
      const others = token.others
        .map(([text, p]) => `${text.replaceAll("\u2581", "") || "␣"} ${percent(p)}`)
        .join(" · ");
      const about =
        t(
          "{token}: probability {p}, rank {rank}, entropy {bits} bits. Most probable here: {others}",
          {
            token: shown(token),
            p: percent(token.probability),
            rank: token.rank,
            bits: token.entropy.toFixed(2),
            others,
          },
        ) + (token.given ? ` (${t("given, not decoded")})` : "");
      const show = () => (words.textContent = about);
      const node = chip(
        token,
        {
          type: "button",
          "aria-label": about,
          onmouseenter: show,
          onfocus: show,
          onclick: () => {
            api.trigger("pin", { step });
            mark(step);
          },
        },
        "button",
      );
      node.style.setProperty("--p", token.probability.toFixed(4));
      node.classList.add("shaded");
      node.classList.toggle("given", token.given);
      return node;
    });
    return el(
      "div",
      { class: "row" },
      el("span", { class: "label" }, t("writes")),
      el("div", { class: "chips" }, chips),
    );
  }

  function scoreTable(about) {
    if (!about.scores.length) return null;
    const cell = (tag, text) => el(tag, {}, text);
    const rows = about.scores.map((s) =>
      el(
        "tr",
        {},
        cell("td", s.data),
        cell("td", s.direction),
        cell("td", s.beam === 1 ? t("greedy") : t("beam {width}", { width: s.beam })),
        cell("td", s.bleu.toFixed(1) + (s.protocol ? ` (${s.protocol})` : "")),
        cell("td", s.chrf?.toFixed(1) ?? ""),
      ),
    );
    return el(
      "table",
      {},
      el(
        "thead",
        {},
        el(
          "tr",
          {},
          [t("Test set"), t("Direction"), t("Decoding"), "BLEU", "chrF"].map((h) => cell("th", h)),
        ),
      ),
      el("tbody", {}, rows),
    );
  }

  function aboutModel(about) {
    const size = about.parameters
      ? ` ${t("{n} million parameters.", { n: (about.parameters / 1e6).toFixed(1) })}`
      : "";
    return el(
      "details",
      {},
      el("summary", {}, t("About this model")),
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

  function draw(value) {
    if (!value) return;
    if (value.error) {
      const banner = el("p", { class: "notice error", role: "alert" }, value.error);
      root.querySelector(".notice.error")?.remove();
      root.prepend(banner);
      return; // what was there stays readable
    }
    const about = () =>
      el(
        "div",
        { class: "facts" },
        el("span", {}, value.facts.map(said).join("  ·  ")),
        aboutModel(value.about),
      );
    if (value.invitation)
      return root.replaceChildren(el("p", { class: "invitation" }, value.invitation), about());
    words.textContent = t(
      "The stronger the colour, the more probable. Point at a token the model wrote for its probability and the runners-up; click it to ask why it was written.",
    );
    why.hidden = true;
    root.replaceChildren(
      ...value.warnings.map((text) => el("p", { class: "notice warn" }, text)),
      el(
        "p",
        { class: "sentence", id: "translation-text", dir: "auto" },
        value.text || t("(nothing)"),
      ),
      about(),
      el(
        "details",
        { class: "tokens", open: true },
        el("summary", {}, t("Tokens and probabilities")),
        sourceRow(value),
        targetRow(value),
        el("div", { class: "status", "aria-live": "polite" }, words, " ", why),
      ),
    );
  }
  // Which written token is asked about, on every tab.
  function mark(step) {
    root.querySelectorAll("button.chip").forEach((node, i) => {
      node.classList.toggle("pinned", i === step);
      if (i !== step) return;
      why.textContent = t("Why “{token}”? →", { token: node.textContent });
      why.hidden = false;
    });
  }
  document.addEventListener("atlas-pinned", (event) => mark(event.detail.step));

  // A link may name the tab that it opens, and a panel of it.
  function follow() {
    const link = pageLink(),
      tab = link.get("tab");
    if (tab) api.trigger("open", { tab, panel: link.get("panel") });
  }
  window.addEventListener("hashchange", follow);
  // Told by the header (viz/ui/header.py), which knows what is asked and what has been answered.
  document.addEventListener("atlas-translating", ({ detail }) =>
    root.setAttribute("aria-busy", String(detail)),
  );
  draw(api.value());
  api.onValue(draw);
  follow();
}
