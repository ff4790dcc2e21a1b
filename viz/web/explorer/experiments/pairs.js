// What stands around two sentences: a menu of such that differ in little, and how alike their common words' vectors are.
import { el, shorten, table } from "../../core/dom.js";
import { fixed } from "../../core/format.js";
import { parts, said, say, t } from "../../core/language.js";
import { scrolling } from "../../lab/scroll.js";
import { select } from "../controls.js";

// hooks: pairs (viz/ui/experiments/beside.py; none where no model can be asked), ask(event, question), trace(), tell(what)
export function createPairs(hooks) {
  const answers = new Map(); // of two sentences, by their keys: {words, cosine, others} or {error}; null: it was asked
  let chosen = null; // the pair that a person chose, until both its sentences are here
  const list = () => hooks.pairs?.[hooks.trace()?.payload.language] ?? [];
  const picker = select(t("Minimal pair"), [], choose);
  picker.root.classList.add("minimal");
  const look = el("p", { class: "look", role: "status" });
  const alike = el("div", { class: "alike" });
  const name = (one, other) => `${other.key} ${one.key}`;

  function choose(value) {
    chosen = list()[value] ?? null;
    if (chosen) hooks.ask("beside", { key: hooks.trace().key, text: chosen.first });
  }

  // A row is a word; the darker, the more alike.
  const cells = (values) =>
    values.map((value) => el("td", { style: `--share: ${Math.max(0, value)}` }, fixed(value, 2)));

  function drawn({ words, cosine, others, error }, word) {
    if (error) return [el("p", { class: "guide" }, error)];
    const layers = others.slice(1).map((_, i) => t("layer {n}", { n: i + 1 }));
    const rows = words.map((text, i) => {
      const followed = word && text.toLowerCase() === word.toLowerCase();
      return el(
        "tr",
        {},
        el("th", { scope: "row", dir: "auto" }, followed ? el("mark", {}, text) : text),
        cells(cosine[i]),
      );
    });
    rows.push(
      el(
        "tr",
        { class: "others" },
        el("th", { scope: "row" }, t("with other words")),
        cells(others),
      ),
    );
    return [
      el("h3", {}, t("The words of both, layer by layer")),
      scrolling(
        table(
          [t("Word"), t("input"), ...layers].map((one) => el("th", { scope: "col" }, one)),
          rows,
        ),
        { "aria-label": t("The words of both, layer by layer") },
      ),
      el(
        "p",
        { class: "guide" },
        t(
          "Cosine of a word's vector here and there: as it enters the encoder, with its position, and after each layer; measured. 1: it points the same way. Last row: the mean over all other words of the first sentence, which any two words have.",
        ),
      ),
    ];
  }

  return {
    picker: picker.root,
    look,
    alike,
    // Both sentences, or one and none beside it.
    draw(trace, other) {
      const offered = list(),
        at = offered.findIndex((one) => one.first === other?.text && one.second === trace.text),
        pair = offered[at];
      picker.root.hidden = !offered.length;
      picker.field.replaceChildren(
        el("option", { value: "" }, t("choose one …")),
        ...offered.map((one, i) =>
          el("option", { value: i }, `${said(one.title)}: ${shorten(one.first, 44)}`),
        ),
      );
      picker.show(pair ? String(at) : "");
      look.hidden = !pair;
      look.replaceChildren(
        ...(pair ? parts(say("What to look for: {what}", { what: pair.look })) : []),
      );
      alike.replaceChildren();
      if (!hooks.pairs || !other || trace.payload.attention_only) return;
      const key = name(trace, other);
      if (!answers.has(key)) {
        answers.set(key, null);
        hooks.ask("alike", { key: trace.key, other: other.address });
      }
      const answer = answers.get(key);
      alike.replaceChildren(
        ...(answer ? drawn(answer, pair?.word) : [el("p", { class: "guide" }, t("Computing …"))]),
      );
    },
    receive({ key, other, ...answer }) {
      answers.set(name({ key }, { key: other }), answer);
      while (answers.size > 12) answers.delete(answers.keys().next().value);
    },
    // The first sentence is here: the second becomes the page's own.
    kept({ direction, checkpoint }) {
      if (chosen) hooks.tell({ text: chosen.second, direction, checkpoint, beam: 1 });
      chosen = null;
    },
  };
}
