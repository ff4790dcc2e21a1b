// The picture of the tab "Why": the sentence coloured by the effect of taking each word away, and what the model would write
// instead. Every number was measured by running the model again (viz/wire/question.py, picture).
import { el } from "../core/dom.js";
import { formatPercent } from "../core/format.js";
import { t } from "../core/language.js";

const MAX_BARS = 8,
  FULL_COLOUR = 2; // effect in nats that has the full colour, unless an effect is larger

/**
 * @typedef {object} Word
 * @property {string} text
 * @property {number | null} loss what taking the word away costs the token, in nats
 * @property {number} p probability of the token without the word
 * @property {[text: string, p: number][]} instead the most probable other tokens then
 * @property {boolean} source whether the word is of the source, not of what was written before
 * @property {boolean} special
 */

/**
 * Create the picture.
 * @param {{p: number, words: Word[]}} picture p: probability of the token that is asked about
 * @param {string} token
 */
export function createWhyPicture({ p, words }, token) {
  const measured = words.filter((word) => !word.special && word.loss !== null),
    largest = Math.max(FULL_COLOUR, ...measured.map((word) => Math.abs(word.loss)));
  const alternatives = (instead) =>
    instead.map(([text, value]) => el("span", {}, el("bdi", {}, text), ` ${formatPercent(value)}`));
  const bars = new Map(); // word -> its bar

  const createBar = (name, share, instead) =>
    el("div", { class: "bar-row" }, [
      el("span", { class: "name" }, name),
      el("span", { class: "meter" }, el("i", { style: `width: ${(100 * share).toFixed(1)}%` })),
      el("span", { class: "value" }, formatPercent(share)),
      el("span", { class: "instead" }, instead),
    ]);

  function createWord(word) {
    const highlight = (isOn) =>
      [node, bars.get(word)].forEach((part) => part?.classList.toggle("lit", isOn));
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
        style: `--p: ${Math.min(1, Math.abs(word.loss) / largest).toFixed(3)}`,
        onmouseenter: () => highlight(true),
        onmouseleave: () => highlight(false),
      },
      el("bdi", {}, word.text),
    );
    return node;
  }
  const side = (label, isSource) => {
    const nodes = measured.filter((word) => word.source === isSource).map(createWord);
    return nodes.length
      ? el("div", { class: "side" }, el("span", { class: "label" }, label), el("p", {}, nodes))
      : "";
  };
  const ranked = [...measured].sort((a, b) => Math.abs(b.loss) - Math.abs(a.loss));
  for (const word of ranked.slice(0, MAX_BARS)) {
    const name = t("without {word}", { word: word.text });
    bars.set(word, createBar(name, word.p, alternatives(word.instead)));
  }
  return el("div", { class: "why-picture" }, [
    el("div", { class: "coloured" }, [
      side(t("sentence"), true),
      side(t("written before"), false),
      el("p", { class: "key" }, [
        el("i", { class: "for" }),
        t("speaks for it"),
        el("i", { class: "against" }),
        t("speaks against it"),
      ]),
    ]),
    el("div", { class: "bars" }, [
      el("div", { class: "bar-row heading" }, [
        el("span", { class: "name" }),
        el("span", { class: "meter-title" }, t("how probable “{token}” is", { token })),
        el("span", { class: "instead" }, t("instead")),
      ]),
      createBar(t("as it is"), p, []),
      [...bars.values()],
    ]),
  ]);
}
