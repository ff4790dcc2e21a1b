// The first picture of the tab "Why": the sentence coloured by what taking each word away did, and what the model would
// write instead. Everything in it was measured by running the model again (viz/wire/question.py, picture).
import { el } from "../core/dom.js";
import { formatPercent } from "../core/format.js";
import { t } from "../core/language.js";

const BARS = 8,
  FULL = 2; // nats: a smaller largest effect is not drawn in full colour

// given: {p, words}; token: what is asked about. A node.
export function whyPicture({ p, words }, token) {
  const counted = words.filter((word) => !word.special && word.loss !== null);
  const most = Math.max(FULL, ...counted.map((word) => Math.abs(word.loss)));
  const others = (instead) =>
    instead.map(([text, value]) => el("span", {}, el("bdi", {}, text), ` ${formatPercent(value)}`));
  const bars = new Map();

  const bar = (name, share, instead) =>
    el(
      "div",
      { class: "bar-row" },
      el("span", { class: "name" }, name),
      el("span", { class: "meter" }, el("i", { style: `width: ${(100 * share).toFixed(1)}%` })),
      el("span", { class: "value" }, formatPercent(share)),
      el("span", { class: "instead" }, instead),
    );

  function span(word) {
    const light = (on) =>
      [node, bars.get(word)].forEach((part) => part?.classList.toggle("lit", on));
    const node = el(
      "span",
      {
        class: `word ${word.loss < 0 ? "against" : "for"}`,
        title: t("Without “{word}”: {token} {p} ({n} nats)", {
          word: word.text,
          token,
          p: formatPercent(word.p),
          n: `${word.loss > 0 ? "−" : "+"}${Math.abs(word.loss).toFixed(2)}`,
        }),
        style: `--p: ${Math.min(1, Math.abs(word.loss) / most).toFixed(3)}`,
        onmouseenter: () => light(true),
        onmouseleave: () => light(false),
      },
      el("bdi", {}, word.text),
    );
    return node;
  }
  const side = (label, source) => {
    const shown = counted.filter((word) => word.source === source).map(span);
    return shown.length
      ? el("div", { class: "side" }, el("span", { class: "label" }, label), el("p", {}, shown))
      : "";
  };
  const ranked = [...counted].sort((a, b) => Math.abs(b.loss) - Math.abs(a.loss)).slice(0, BARS);
  for (const word of ranked)
    bars.set(word, bar(t("without {word}", { word: word.text }), word.p, others(word.instead)));
  return el(
    "div",
    { class: "why-picture" },
    el(
      "div",
      { class: "coloured" },
      side(t("sentence"), true),
      side(t("written before"), false),
      el(
        "p",
        { class: "key" },
        el("i", { class: "for" }),
        t("speaks for it"),
        el("i", { class: "against" }),
        t("speaks against it"),
      ),
    ),
    el(
      "div",
      { class: "bars" },
      el(
        "div",
        { class: "bar-row heading" },
        el("span", { class: "name" }),
        el("span", { class: "meter-title" }, t("how probable “{token}” is", { token })),
        el("span", { class: "instead" }, t("instead")),
      ),
      bar(t("as it is"), p, []),
      [...bars.values()],
    ),
  );
}
