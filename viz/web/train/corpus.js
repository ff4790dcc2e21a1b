// What is taught: sentence pairs, of which one may take some that are there or type one's own.
import { el } from "../core/dom.js";
import { said, t } from "../core/language.js";

// corpora: [{title, text, lesson}], of which the first stands there.
export function createCorpus(corpora) {
  const text = el("textarea", {
    id: "train-corpus",
    rows: 8,
    spellcheck: "false",
    "aria-describedby": "train-lesson",
  });
  const lesson = el("p", { id: "train-lesson", class: "note" });
  const buttons = corpora.map((one) =>
    el(
      "button",
      { type: "button", "aria-pressed": "false", onclick: () => choose(one) },
      one.title,
    ),
  );
  function choose(one) {
    text.value = one.text;
    lesson.replaceChildren(said(one.lesson));
    buttons.forEach((button, i) => button.setAttribute("aria-pressed", String(corpora[i] === one)));
  }
  choose(corpora[0]);
  return {
    node: el(
      "div",
      { class: "corpus" },
      el(
        "label",
        { for: "train-corpus" },
        t("Corpus: a sentence, a bar | and its translation on each line"),
      ),
      el("div", { class: "corpora", role: "group", "aria-label": t("Corpora") }, buttons),
      text,
      lesson,
    ),
    text: () => text.value,
  };
}
