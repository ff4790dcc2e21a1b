// The strip above the tabs, always in sight: the sentence and its translation, each token shaded by
// its probability. Details – the model, its tokens and scores – can be unfolded below.
import { ask as askServer } from "../core/ask.js";
import { button, debounce, el, menu, table, afterPaint, scrollWithin } from "../core/dom.js";
import { formatFixed, formatPercent } from "../core/format.js";
import { toText, t } from "../core/language.js";
import { onEnter } from "../core/keys.js";
import { pageLink, openLink, tabToOpen } from "../core/links.js";
import { chipClass, chipText } from "../stepper/tokens.js";
import { pin } from "../store/question.js";
import { connectControls, submit, textField } from "../store/controls.js";
import { store } from "../store/store.js";
import { translateLink } from "../store/translation.js";

const CLOSES = /^[\p{Po}\p{Pe}\p{Pf}]/u; // punctuation that must not begin a line

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

// Return [reason, titles of panels] of the panels that the model cannot show.
const lackingByReason = (lacking) =>
  [...Map.groupBy(lacking, ({ why }) => toText(why))].map(([why, entries]) => [
    why,
    [...new Set(entries.map(({ panel }) => toText(panel)))].join(", "),
  ]);

function createModelSection({ about, model }) {
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
    lackingByReason(about.lacking).map(([why, panels]) =>
      el("p", {}, t("Not available for {model}: {panels}.", { model, panels }), " ", why),
    ),
    scoreTable(about),
  ]);
}

/**
 * Return the reasons to doubt a translation. Each is a link to where one sees it, with how often such a warning was right.
 * @param {any[]} doubts {text, right, about, step, link} of viz/questions/header.py
 */
function createDoubts(doubts) {
  const lead = ({ text, about, step, link }) => {
    const go = () => {
      if (step !== null) pin(step);
      openLink(link);
    };
    return button(text, go, { class: null, title: about, "aria-description": about });
  };
  const close = button("×", () => root.remove(), { class: "close", "aria-label": t("Close") });
  const root = el("p", { class: "doubts" }, [
    t("Check this:"),
    " ",
    doubts.flatMap((doubt, i) => [i ? " · " : "", lead(doubt), " (", doubt.right, ")"]),
    " ",
    close,
  ]);
  return root;
}

export default function translation(root, api) {
  const tokenText = (token) => token.text.replaceAll("\u2581", " ").trimStart() || "␣";
  const starts = (token) => token.text.startsWith("\u2581") || token.symbol;

  // A row of a side's tokens.
  const row = (label, tokens) =>
    el("div", { class: "row" }, [
      el("span", { class: "label" }, label),
      el("div", { class: "chips" }, [
        tokens.map((token) => el("span", { class: chipClass(token) }, tokenText(token))),
      ]),
    ]);

  // The words about the token that was pointed at, and a link from the pinned token to the tab
  // "Why".
  const words = el("span", {});
  const why = button("", () => openLink({ tab: "why" }), { class: "why", hidden: true });

  // Return the words of a side as the text spells them; the tokens themselves where they do not
  // spell it.
  const inText = (words, tokens) =>
    words.length
      ? words
      : tokens.flatMap((token, i) => {
          const gap = starts(token) && i ? " " : "";
          return token.symbol ? [] : { gap, text: tokenText(token), tokens: [i], pieces: [] };
        });

  const plain = (words) =>
    words.flatMap(({ gap, text }) => [gap, el("span", { class: "word" }, text)]);

  function writtenNodes(value) {
    const chip = (step, text) => {
      const token = value.target[step];
      const others = token.others
        .map(([other, p]) => `${chipText({ text: other })} ${formatPercent(p)}`)
        .join(" · ");
      const about =
        t("{token}: probability {p}, rank {rank}. Most probable here: {others}", {
          token: text,
          p: formatPercent(token.probability),
          rank: token.rank,
          bits: token.entropy.toFixed(2),
          others,
        }) + (token.given ? ` (${t("chosen by you, not by the model")})` : "");
      const show = () => (words.textContent = about);
      return button(text, () => pin(step), {
        class: `${chipClass(token)} shaded${token.given ? " given" : ""}`,
        style: `--p: ${token.probability.toFixed(4)}`,
        "aria-label": about,
        "data-step": step,
        onmouseenter: show,
        onfocus: show,
      });
    };
    const text = [];
    for (const { gap, text: word, pieces, tokens } of inText(value.written, value.target)) {
      const parts = pieces.length ? pieces : [word];
      const chips = parts.map((piece, i) => chip(tokens[i], piece));
      if (!gap && CLOSES.test(word) && text.length) text.at(-1).append(...chips);
      else text.push(gap, el("span", { class: "word" }, chips));
    }
    // Marks such as </s> are written but are not part of the text.
    const marks = value.target.flatMap((token, step) =>
      token.symbol ? [chip(step, tokenText(token))] : [],
    );
    return [
      el("strong", { class: "sentence", id: "translation-text", dir: "auto" }, [
        text.length ? text : t("(nothing)"),
      ]),
      " ",
      ...marks,
    ];
  }

  // Details: the decoding, the model, the tokens.
  const details = el("div", { class: "details" });
  const decoding = menu(Object.entries(api.options.searches), null, {
    id: "decoding",
    onchange: () => store.set({ beam: decoding.value }),
  });
  const searching = el("label", { class: "decoding" }, el("span", {}, t("Decoding")), decoding);
  const more = button(t("Details"), () => open(details.hidden), { class: "more" });
  function open(isOpen) {
    more.setAttribute("aria-expanded", String(isOpen));
    details.hidden = !isOpen;
  }
  open(false);

  let current = null; // key of the translation on the page

  // Tell a screen reader the new translation: later, because it ignores what a region has when it is inserted.
  const news = el("p", { class: "sr-only", role: "status" });
  let isOpened = false; // whether the page has shown its first translation, of which nothing is told
  const announce = debounce(() => {
    const { textContent: text } = root.querySelector("#translation-text") ?? {};
    news.textContent = text ? `${t("Translation")}: ${text}` : "";
  }, 200);

  function draw(value) {
    if (value.error) {
      root.querySelector(".notice.error")?.remove();
      root.prepend(el("p", { class: "notice error", role: "alert" }, value.error));
      return; // the translation before stays readable
    }
    details.replaceChildren(
      searching,
      el("p", { class: "facts" }, value.facts.map(toText).join("  ·  ")),
      ...(value.invitation ? [] : [row(t("reads"), value.source), row(t("writes"), value.target)]),
      createModelSection(value),
    );
    if (value.invitation)
      return root.replaceChildren(
        el("div", { class: "strip" }, el("p", { class: "invitation" }, value.invitation), more),
        details,
      );
    words.textContent = t(
      "The stronger the colour, the more probable the word. Choose a word to follow it in every view.",
    );
    why.hidden = true;
    document.body.classList.remove("atlas-outdated");
    root.replaceChildren(
      ...value.warnings.map((text) => el("p", { class: "notice warn" }, text)),
      ...(value.mismatch ? [mismatchNotice(value.mismatch)] : []),
      el("div", { class: "strip" }, [
        el("p", { class: "sentences" }, [
          el("span", { class: "source", dir: "auto" }, plain(inText(value.read, value.source))),
          el("span", { class: "arrow", "aria-hidden": "true" }, " → "),
          ...writtenNodes(value),
        ]),
        more,
      ]),
      el("div", { class: "status" }, words, " ", why),
      details,
      news,
    );
    if (isOpened) announce();
    isOpened = true;
    // Scroll a long text to its translation when it comes into sight: the text field shows the source.
    const [arrow, box] = [".arrow", ".sentences"].map((part) => root.querySelector(part));
    let isShown = false;
    new ResizeObserver(([{ contentRect }]) => {
      const wasShown = isShown;
      isShown = contentRect.height > 0;
      if (isShown && !wasShown)
        scrollWithin(root.querySelector(".chip.pinned") ?? arrow, box, true);
    }).observe(box);
    current = value.map?.key ?? null;
    if (value.doubts) drawDoubts(value.doubts);
    else if (value.doubtful)
      afterPaint().then(() => value.map.key === current && askDoubts(value.map));
  }

  // The text is in another language than the direction reads: offer a direction that fits.
  const mismatchNotice = ({ text, switch: suggestion }) =>
    el("p", { class: "notice warn" }, [
      text,
      suggestion ? [" ", button(suggestion.label, () => translateLink(suggestion.link))] : null,
    ]);

  // The field holds another text than the one that is translated: the maps are paler until it is.
  const plainText = (text) => text.normalize("NFC").split(/\s+/).join(" ").trim();
  function markTyping() {
    const text = store.state.address?.text,
      typed = textField()?.value ?? "";
    document.body.classList.toggle(
      "atlas-typing",
      Boolean(text) && plainText(typed) !== plainText(text),
    );
  }

  // Another direction was chosen: hide the translation, which does not belong to it.
  function showOutdated() {
    current = null;
    document.body.classList.add("atlas-outdated"); // hides the tabs
    root.replaceChildren(
      el("div", { class: "strip" }, [
        el("p", { class: "invitation" }, [
          t("Press “{translate}” to translate in the selected direction.", {
            translate: t("Translate"),
          }),
        ]),
      ]),
    );
  }

  function drawDoubts(doubts) {
    root.querySelector(".doubts")?.remove();
    if (doubts.length) details.before(createDoubts(doubts));
  }

  // Doubts need another pass of the model and arrive after the map.
  async function askDoubts({ key, address }) {
    const { doubts } = await askServer("page_doubts", { address });
    if (doubts && key === current) drawDoubts(doubts);
  }

  store.follow(["translating"], ({ translating }) =>
    root.setAttribute("aria-busy", String(translating !== null)),
  );
  store.follow(["translation"], ({ translation: value }) => draw(value));
  store.follow(["isOutdated"], ({ isOutdated }) => isOutdated && showOutdated());
  store.follow(["beam"], ({ beam }) => (decoding.value = beam));
  document.addEventListener("input", ({ target }) => target === textField() && markTyping());
  onEnter("#source-text :is(textarea, input)", submit); // Gradio would report it a frame later

  // Mark the pinned token.
  function mark(step) {
    root.querySelectorAll("button.chip").forEach((node) => {
      const pinned = Number(node.dataset.step) === step;
      node.classList.toggle("pinned", pinned);
      if (!pinned) return;
      scrollWithin(node, node.closest(".sentences"));
      why.textContent = t("Why “{token}”? →", { token: node.textContent });
      why.hidden = false;
    });
  }
  store.follow(["pinned"], ({ pinned }) => pinned !== null && mark(pinned));

  // Open the tab, the panel and the model that a link names.
  function follow() {
    const fields = pageLink(),
      named = Object.fromEntries(fields);
    for (const typed of ["text", "second"]) fields.delete(typed);
    const tab = tabToOpen();
    if (fields.has("tab")) openLink(Object.fromEntries(fields));
    else if (tab) openLink({ tab });
    if (["text", "tour", "sheet"].some((name) => named[name])) return;
    // A workshop link names a model: its first example is translated.
    const { direction, checkpoint, digest } = named;
    if (direction || checkpoint || digest)
      translateLink({ direction, checkpoint, digest, beam: 1 });
  }
  window.addEventListener("hashchange", follow);
  store.set({ translation: api.value() });
  connectControls(() => api.trigger("fill", {}));
  follow();
}
