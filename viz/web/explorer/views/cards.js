// "Start here": three ways on from the lit word, each with a small picture of this sentence.
import { sequentialScale } from "../../core/colours.js";
import { button, el, svg } from "../../core/dom.js";
import { formatPercent } from "../../core/format.js";
import { t } from "../../core/language.js";

const BARS = 3, // candidates for the next word
  BEFORE = 3, // written words before the gap
  MOST = 9, // words in the picture of the model
  LEAST = 0.12; // smaller weights have no line in it
const PICTURE = { width: 340, height: 64, layer: 34, last: 168 };

/** Create the cards. @param {(tab: string) => void} open opens a tab on the lit word */
export function createCards(open) {
  const cards = el("div", { class: "start-cards" }),
    root = el(
      "section",
      { class: "start", "aria-label": t("Start here") },
      el("h2", {}, t("Start here")),
      cards,
    );
  let shown = "";

  const card = (tab, title, line, picture) =>
    button(
      [el("strong", {}, title), el("span", { class: "line" }, line), picture],
      () => open(tab),
      {
        class: "start-card",
        "data-tab": tab,
      },
    );

  function choosing({ written, candidates }) {
    const bar = ([word, p]) =>
      el("li", {}, [
        el("span", { class: "name" }, word),
        el("span", { class: "bar" }, el("i", { style: `width: ${(100 * p).toFixed(1)}%` })),
        el("span", { class: "value" }, formatPercent(p)),
      ]);
    return el("span", { class: "choose" }, [
      el(
        "span",
        { dir: "auto" },
        `${written.slice(-BEFORE).join(" ")} `,
        el("span", { class: "gap" }, "?"),
      ),
      el("ul", { class: "bars" }, candidates.slice(0, BARS).map(bar)),
    ]);
  }

  const asking = ({ source, effects }) =>
    el("span", { class: "tinted", dir: "auto" }, [
      source.map(({ label }, i) => {
        const effect = effects?.all[i],
          share = effect ? Math.max(0, 1 - effect.p / effects.p) : 0;
        return [el("span", { style: `--p: ${share.toFixed(2)}` }, label), " "];
      }),
    ]);

  // The model in small: words in, encoder layers, a word out. maps: of an encoder head of each layer; lit: weights of the words
  function opening({ word, maps, weights, colours }) {
    const { width, height, layer: step, last } = PICTURE,
      count = Math.min(MOST, weights.length),
      y = (i) => 6 + (i * (height - 12)) / Math.max(1, count - 1),
      shade = sequentialScale(colours);
    const stroke = (d, weight, kind) =>
      svg("path", {
        d,
        class: kind,
        "stroke-opacity": (0.2 + 0.7 * weight).toFixed(2),
        "stroke-width": (0.6 + 3 * weight).toFixed(2),
      });
    const inside = maps.slice(0, 4).flatMap((map, layer) => {
      const [from, to] = [30 + layer * step, 60 + layer * step],
        middle = (from + to) / 2;
      return Array.from({ length: count * count }, (_, i) => [Math.floor(i / count), i % count])
        .map(([row, column]) => [row, column, map.values[row * map.columns.length + column]])
        .filter(([, , weight]) => weight > LEAST)
        .map(([row, column, weight]) =>
          stroke(
            `M${from} ${y(column)}C${middle} ${y(column)} ${middle} ${y(row)} ${to} ${y(row)}`,
            weight,
            "read",
          ),
        );
    });
    const out = weights
      .slice(0, count)
      .map((weight, i) => [weight, i])
      .filter(([weight]) => weight > 0.05)
      .map(([weight, i]) =>
        stroke(
          `M${last} ${y(i)}C210 ${y(i)} 220 ${height / 2} 262 ${height / 2}`,
          weight,
          "written",
        ),
      );
    const words = Array.from({ length: count }, (_, i) =>
      svg("rect", {
        x: 8,
        y: y(i) - 2,
        width: 20,
        height: 4,
        fill: `rgb(${shade(0.25 + (i % 4) / 5).join(" ")})`,
      }),
    );
    return svg("svg", { viewBox: `0 0 ${width} ${height}`, class: "mini", "aria-hidden": "true" }, [
      words,
      inside,
      out,
      svg("text", { x: 268, y: height / 2 + 4 }, word),
    ]);
  }

  return {
    root,
    /** @param {any} about {key, word, source, written, candidates, effects, maps, weights, colours}; see explorer.js */
    draw(about) {
      const { key, word, effects, maps, candidates, weights } = about,
        name = JSON.stringify([key, word, effects?.p, maps.length, candidates, weights]);
      if (name === shown) return;
      shown = name;
      const focused = cards.querySelector(":focus")?.dataset.tab;
      cards.replaceChildren(
        card(
          "stepper",
          t("Watch it choose"),
          t("One word at a time, with what it might have written instead."),
          choosing(about),
        ),
        card(
          "why",
          t("Ask why it wrote “{word}”", { word }),
          effects
            ? t("Hide words and see what changes. Darker: matters more.")
            : t("Hide words and see what changes."),
          asking(about),
        ),
        card(
          "inside",
          t("Open it up"),
          t("Follow the words through every layer, down to one multiplication."),
          opening(about),
        ),
      );
      if (focused) cards.querySelector(`[data-tab=${focused}]`)?.focus({ preventScroll: true });
    },
  };
}
