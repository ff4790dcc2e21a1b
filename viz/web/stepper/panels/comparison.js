// Two branches beside each other: their tokens, and how far each head's attention differs.
import { el } from "../../core/dom.js";
import { formatFixed, formatPercent, formatSignificant } from "../../core/format.js";
import { createGrid, shareStyle } from "../../core/grid.js";
import { t } from "../../core/language.js";
import { createPicture } from "../../picture/copy.js";
import { title } from "./branches.js";

// hooks: compare(first, second), select(kind, layer, head), about(title): of a picture
export function comparison(hooks) {
  const picks = [t("First branch"), t("Second branch")].map((name) =>
    el("select", { "aria-label": name, onchange: ask }),
  );
  const content = el("div", { class: "compared" });
  const root = el(
    "div",
    {},
    el(
      "div",
      { class: "picks" },
      picks[0],
      el("span", { class: "caption" }, t("against")),
      picks[1],
    ),
    content,
  );
  let tree = null;

  function draw(next, current) {
    const before = picks.map((pick) => Number(pick.value)),
      numbers = next.branches.map((b) => b.number);
    const stays =
      tree?.text === next.text &&
      before[0] !== before[1] &&
      before.includes(current) &&
      before.every((n) => numbers.includes(n));
    const last = current === numbers[0] ? numbers.at(-1) : current,
      chosen = stays ? before : [numbers[0], last];
    tree = next;
    picks.forEach((pick, i) => {
      pick.replaceChildren(
        ...tree.branches.map((b) => el("option", { value: b.number }, title(b))),
      );
      pick.value = String(chosen[i]);
    });
    ask();
  }

  function ask() {
    if (tree.branches.length > 1)
      return hooks.compare(Number(picks[0].value), Number(picks[1].value));
    const words = t(
      "There is one branch so far. Choose another candidate at some step, and compare what became of it.",
    );
    content.replaceChildren(el("p", { class: "caption" }, words));
  }

  function show(found) {
    const pair = found.numbers.map((n) => tree.branches.find((b) => b.number === n));
    if (pair.some((b) => !b)) return;
    const cell = (branch, i, look) =>
      i === null
        ? el("span", { class: look }, el("small"))
        : el(
            "span",
            { class: look, style: `--p: ${branch.probabilities[i].toFixed(3)}` },
            branch.tokens[i].text,
            el("small", {}, formatPercent(branch.probabilities[i])),
          );
    const columns = found.rows.map(([a, b]) => {
      const isSame = a !== null && b !== null && pair[0].ids[a] === pair[1].ids[b],
        look = isSame ? "cell same" : "cell";
      return el("span", { class: "pair" }, cell(pair[0], a, look), cell(pair[1], b, look));
    });
    const difference = pair[1].total - pair[0].total;
    const verdict =
      Math.abs(difference) < 5e-4
        ? t("equal.")
        : t("branch {number} is {n} times as probable.", {
            number: pair[difference > 0 ? 1 : 0].number,
            n: ratio(Math.abs(difference)),
          });
    const facts = t("Total log-probability {first} and {second}: {verdict}", {
      first: formatFixed(pair[0].total, 3),
      second: formatFixed(pair[1].total, 3),
      verdict,
    });
    const about =
      found.cross === null
        ? t("No words stand side by side after the fork: no step can be compared.")
        : t(
            "How much each head's attention differs after the fork, over the {n} words that stand side by side above: mean Jensen-Shannon divergence in bits, 0 (the same) to 1 (nothing in common). Decoder self-attention: over the keys that both have.",
            { n: found.steps },
          );
    const label = t("Tokens of the two branches, aligned");
    content.replaceChildren(
      el("div", { class: "aligned", tabindex: "0", role: "group", "aria-label": label }, columns),
      el("p", { class: "facts" }, facts),
      el("p", { class: "caption" }, about),
    );
    if (found.cross === null) return;
    const maps = el(
      "div",
      { class: "maps" },
      map("cross", t("Cross-attention"), found.cross),
      map("decoder_self", t("Decoder self-attention"), found.decoder_self),
    );
    content.append(createPicture(maps, hooks.about(t("Compare"))));
  }

  const ratio = (difference) =>
    difference > 13.8 ? t("more than a million") : formatSignificant(Math.exp(difference), 2);

  function map(kind, name, values) {
    const cell = (bits, layer, head) => ({
      ...shareStyle(-Math.min(1, bits * 1.6)),
      name: t("Layer {layer}, head {head}: {bits} bits", {
        layer: layer + 1,
        head: head + 1,
        bits: formatFixed(bits, 4),
      }),
      title: t("{bits} bits", { bits: formatFixed(bits, 4) }),
      content: bits === 0 ? "0" : formatFixed(bits, 2),
    });
    const { root: grid } = createGrid(
      {
        name,
        columns: values[0].map((_, head) => `H${head + 1}`),
        rows: values.map((_, layer) => `L${layer + 1}`),
        cells: values.map((row, layer) => row.map((bits, head) => cell(bits, layer, head))),
      },
      { act: (layer, head) => hooks.select(kind, layer, head), quiet: true },
    );
    return el("figure", { class: "divergence" }, el("figcaption", {}, name), grid);
  }
  return { root, draw, show };
}
