// The panels about branches: their tree, a comparison of two, and a translation that the visitor types. Each has draw(tree,
// current); tree_payload() in viz/wire/steps.py makes the tree. `current` is the number of the branch on the page: numbers
// are ids, not indexes. `fork` is the number of tokens that a branch shares with its parent.
import { button, createOptions, el, form, shorten } from "../core/dom.js";
import { formatFixed, formatPercent, formatSignificant } from "../core/format.js";
import { createGrid, shareStyle } from "../core/grid.js";
import { onEnter } from "../core/keys.js";
import { KINDS } from "../core/kinds.js";
import { toText, say, t } from "../core/language.js";
import { createPicture } from "../picture/copy.js";
import { textOf } from "./path.js";

// "forced" is a branch from a candidate that the visitor chose, "target" a translation that the visitor typed.
const ORIGINS = { forced: say("chosen"), beam: say("from the beam"), target: say("your own") };
const MAX_LOG_RATIO = Math.log(1e6); // larger ratios of probabilities are not shown as a number

// How a branch came about: by the visitor, or by decoding, whose method is named.
const originOf = (branch) => toText(ORIGINS[branch.origin] ?? branch.decoding);
const textAfterFork = (branch) => textOf(branch.tokens.slice(branch.fork));
const titleOf = (branch) =>
  `${branch.number} · ${originOf(branch)}: ${branch.fork ? "… " : ""}${shorten(textAfterFork(branch), 60) || t("(end)")}`;

/**
 * Create the tree of branches as a list.
 * @param {{open: (number: number) => void}} hooks open is called with the number of the branch that is clicked
 */
export function createTree({ open }) {
  const list = el("ul", { class: "tree", "aria-label": t("Branches") }),
    note = el("p", { class: "caption" });
  const root = el("div", {}, note, list);

  function draw(tree, current) {
    const limit = t("Each choice starts a new branch; the last {n} are kept.", { n: tree.limit });
    const dropped = tree.dropped && t("{n} of the oldest were dropped.", { n: tree.dropped });
    note.textContent = dropped ? `${limit} ${dropped}` : limit;
    const numbers = new Set(tree.branches.map((branch) => branch.number));
    const itemsBelow = (parent, depth) =>
      tree.branches
        .filter((branch) => (numbers.has(branch.parent) ? branch.parent : null) === parent)
        .flatMap((branch) => [
          item(branch, depth, branch.number === current),
          ...itemsBelow(branch.number, depth + 1),
        ]);
    list.replaceChildren(...itemsBelow(null, 0));
  }

  function item(branch, depth, isCurrent) {
    const shared = textOf(branch.tokens.slice(0, branch.fork)),
      origin = `${originOf(branch)}${branch.finished ? "" : `, ${t("unfinished")}`}`,
      total = t("log-probability {value}", { value: formatFixed(branch.total, 2) });
    const content = [
      el("span", { class: "number" }, branch.number),
      el("span", { class: "sentence", dir: "auto" }, [
        el("span", { class: "shared" }, shared ? `${shared} ` : ""),
        textAfterFork(branch) || t("(end)"),
      ]),
      el("span", { class: "about" }, `${origin} · ${total}`),
    ];
    const choice = button(content, () => open(branch.number), {
      class: `branch${isCurrent ? " current" : ""}`,
      "aria-current": isCurrent ? "true" : null,
    });
    return el("li", { style: `--depth: ${depth}` }, choice);
  }
  return { root, draw };
}

/**
 * Create the comparison of two branches: their tokens, aligned, and how much each head's attention differs.
 * @param {{
 *   compare: (first: number, second: number) => void,
 *   select: (kind: string, layer: number, head: number) => void,
 *   about: import("./heads.js").DescribePicture,
 * }} hooks compare asks the server; show() draws its answer
 */
export function createComparison(hooks) {
  const menus = [t("First branch"), t("Second branch")].map((name) =>
    el("select", { "aria-label": name, onchange: ask }),
  );
  const against = el("span", { class: "caption" }, t("against")),
    content = el("div", { class: "compared" });
  const root = el("div", {}, el("div", { class: "picks" }, menus[0], against, menus[1]), content);
  /** @type {any} */
  let tree = null;
  /** @returns {[number, number]} */
  const selected = () => [Number(menus[0].value), Number(menus[1].value)];

  function draw(newTree, current) {
    const before = selected(),
      numbers = newTree.branches.map((branch) => branch.number);
    const staysSelected =
      tree?.text === newTree.text &&
      before[0] !== before[1] &&
      before.includes(current) &&
      before.every((number) => numbers.includes(number));
    const second = current === numbers[0] ? numbers.at(-1) : current,
      pair = staysSelected ? before : [numbers[0], second];
    tree = newTree;
    const options = tree.branches.map((branch) => [branch.number, titleOf(branch)]);
    menus.forEach((menu, i) => menu.replaceChildren(...createOptions(options, pair[i])));
    ask();
  }

  function ask() {
    if (tree.branches.length > 1) return hooks.compare(...selected());
    const hint = t(
      "There is one branch so far. Choose another candidate at any step, then compare the two.",
    );
    content.replaceChildren(el("p", { class: "caption" }, hint));
  }

  /**
   * @param {{
   *   numbers: [number, number], rows: number[][], steps: number, divergences: Record<string, number[][]>,
   * }} comparison rows: pairs of indexes of tokens; divergences: kind -> [layer][head] in bits, over `steps` steps
   */
  function show({ numbers, rows, divergences, steps }) {
    const pair = numbers.map((number) => tree.branches.find((branch) => branch.number === number));
    if (!pair.every(Boolean)) return; // one has been dropped since
    const label = t("Tokens of the two branches, aligned");
    const kinds = Object.keys(divergences).sort(); // cross-attention first
    const explanation = !steps
      ? t("No words align after the fork, so no step can be compared.")
      : kinds.length
        ? t(
            "How much each head's attention differs after the fork, over the {n} aligned words: mean Jensen-Shannon divergence in bits, 0 (the same) to 1 (nothing in common). Decoder self-attention: over the keys in both branches.",
            { n: steps },
          )
        : null;
    content.replaceChildren(
      el("div", { class: "aligned", tabindex: "0", role: "group", "aria-label": label }, [
        rows.map((indexes) => alignedTokens(pair, indexes)),
      ]),
      el("p", { class: "facts" }, verdict(pair)),
      el("p", { class: "caption" }, explanation),
    );
    if (!kinds.length) return;
    const maps = el("div", { class: "maps" }, [
      kinds.map((kind) => divergenceGrid(kind, toText(KINDS[kind].title), divergences[kind])),
    ]);
    content.append(createPicture(maps, hooks.about(t("Compare"))));
  }

  /** @param {any[]} pair of branches @param {any[]} indexes of a token of each branch; null: it has none */
  function alignedTokens(pair, indexes) {
    const ids = pair.map((branch, i) => branch.ids[indexes[i]]),
      isSame = !indexes.includes(null) && ids[0] === ids[1];
    const cells = pair.map((branch, i) => {
      const p = branch.probabilities[indexes[i]];
      return el(
        "span",
        {
          class: isSame ? "cell same" : "cell",
          style: p === undefined ? null : `--p: ${p.toFixed(3)}`,
        },
        branch.tokens[indexes[i]]?.text,
        el("small", {}, p === undefined ? null : formatPercent(p)),
      );
    });
    return el("span", { class: "pair" }, cells);
  }

  /** @param {any[]} pair of branches */
  function verdict([first, second]) {
    const difference = second.total - first.total,
      size = Math.abs(difference);
    const ratio =
      size > MAX_LOG_RATIO ? t("more than a million") : formatSignificant(Math.exp(size), 2);
    return t("Total log-probability {first} and {second}: {verdict}", {
      first: formatFixed(first.total, 3),
      second: formatFixed(second.total, 3),
      verdict:
        size < 5e-4
          ? t("equal.")
          : t("branch {number} is {n} times as probable.", {
              number: (difference > 0 ? second : first).number,
              n: ratio,
            }),
    });
  }

  function divergenceGrid(kind, name, values) {
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

/**
 * Create the form for a translation that the model is made to write.
 * @param {{force: (text: string) => void}} hooks
 */
export function createOwnTarget({ force }) {
  const text = el("textarea", {
    rows: "2",
    "aria-label": t("Your own translation"),
    placeholder: t("Type a translation of the sentence"),
    maxlength: "10000",
  });
  onEnter(".atlas-stepper .own > textarea", force);
  const verdict = el("p", { class: "facts", "aria-live": "polite" });
  const root = form({ class: "own" }, () => force(text.value), [
    el("p", { class: "caption", "data-terms": "" }, [
      t(
        "The model is forced to write your translation. You see its maps as usual, and how probable it found each token.",
      ),
    ]),
    text,
    button(t("Score my translation"), null, { type: "submit", class: "plain strong" }),
    verdict,
  ]);

  function draw(tree, current) {
    const [decoded] = tree.branches, // the model's own translation
      target = tree.branches.find(
        ({ number, origin }) => number === current && origin === "target",
      );
    verdict.textContent = "";
    if (!target) return;
    const perToken = ({ total, ids }) => formatFixed(total / ids.length, 2);
    verdict.textContent = t(
      "Yours: log-probability {total} over {n} tokens ({each} per token). The model's own: {total2} over {n2} ({each2} per token).",
      {
        total: formatFixed(target.total, 2),
        n: target.ids.length,
        each: perToken(target),
        total2: formatFixed(decoded.total, 2),
        n2: decoded.ids.length,
        each2: perToken(decoded),
      },
    );
  }
  return { root, draw };
}
