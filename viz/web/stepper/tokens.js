// The source and the target as tokens, and the candidates for the next token.
import { button, el, form, group, menu, rangeField, textInput } from "../core/dom.js";
import { formatPercent } from "../core/format.js";
import { t } from "../core/language.js";
import { createPicture } from "../picture/copy.js";

/** @typedef {import("./path.js").Path} Path */
/** @typedef {import("./path.js").Token} Token */

/** The text of a token without the mark of a space. @param {{text: string}} token */
export const chipText = (token) => token.text.replaceAll("\u2581", "") || "␣";
/** The class of a token. @param {Token} token */
export const chipClass = ({ text, symbol, byte }) =>
  `chip${symbol ? " symbol" : byte ? " byte" : ""}${symbol || text.startsWith("\u2581") ? " starts" : ""}`;

/**
 * Create both sentences, and the menu of what shades the source.
 * @param {{jump: (step: number) => void, announce: (words: string) => void, redraw: () => void}} hooks
 */
export function createSentences(hooks) {
  const source = el("div", { class: "chips", dir: "auto" }),
    target = group("chips", t("Written tokens: choose one to go there"));
  const note = el("p", { class: "caption" }),
    respelled = el("p", { class: "caption respelled" });
  const root = el("div", { class: "sentences" }, [
    el("div", { class: "line" }, el("span", { class: "label" }, t("reads")), source),
    el("div", { class: "line" }, el("span", { class: "label" }, t("writes")), target),
    respelled,
  ]);
  const shadings = [
    ["mean", t("mean of all heads")],
    ["head", t("selected head")],
  ];
  const shading = menu(shadings, "mean", {
    "aria-label": t("Source shaded by"),
    onchange: hooks.redraw,
  });
  const shadingField = el("label", { class: "caption shading" }, `${t("Shade by")} `, shading);
  let sourceChips = [],
    targetChips = [];
  /** @type {any} */
  let path = null,
    branch = null;

  /** @param {Path} newPath @param {any} newBranch */
  function open(newPath, newBranch) {
    [path, branch] = [newPath, newBranch];
    shadingField.hidden = Boolean(path.states); // there is one head at most
    sourceChips = path.source.map((token) =>
      el("span", { class: `${chipClass(token)} shaded` }, chipText(token)),
    );
    source.replaceChildren(...sourceChips);
    targetChips = branch.tokens.map(targetChip);
    target.replaceChildren(...targetChips);
    const pieces = path.respelled?.map((piece) => piece.text).join(" ");
    respelled.hidden = !pieces;
    respelled.textContent = pieces
      ? t("The tokenizer would split this text differently: {pieces}", { pieces })
      : "";
  }

  function targetChip(token, i) {
    const { rank } = path.steps[i],
      values = { step: i + 1, token: token.text, p: formatPercent(branch.probabilities[i]) },
      words = t("Step {step}: “{token}”, probability {p}, rank {rank}", { ...values, rank });
    const isForced = i < branch.given && rank > 1;
    return button(chipText(token), () => hooks.jump(i), {
      class: `${chipClass(token)}${isForced ? " given" : ""}`,
      "aria-label": t("Step {step}: {token}, probability {p}", values),
      "onmouseenter onfocus": () => hooks.announce(words),
    });
  }

  /** Show a step. @param {number} current @param {import("./heads.js").Selection} selection */
  function step(current, { kind, layer, head }) {
    const { sourceKind } = path,
      byHead = shading.value === "head" && kind === sourceKind;
    let weights = null;
    if (sourceKind && current < path.length && path.has(current))
      weights = byHead
        ? path.row(sourceKind, layer, head, current)
        : path.meanRow(sourceKind, current);
    targetChips.forEach((chip, i) => {
      chip.classList.toggle("ahead", i > current);
      chip.classList.toggle("next", i === current);
      chip.ariaCurrent = i === current ? "step" : null;
    });
    const largest = weights ? Math.max(...weights) : 0;
    sourceChips.forEach((chip, i) => {
      chip.style.setProperty("--p", weights ? (weights[i] / largest).toFixed(4) : "0");
      chip.title = weights ? t("attention {weight}", { weight: weights[i].toFixed(3) }) : "";
    });
    const shader = path.states
      ? t("the alignment")
      : byHead
        ? t("layer {layer}, head {head}", { layer: layer + 1, head: head + 1 })
        : t("the mean of all heads");
    const sentences = [
      weights &&
        t("Source shaded by {what} at this step; full colour is {p}.", {
          what: shader,
          p: formatPercent(largest),
        }),
      current >= path.length && t("The sentence is complete."),
      t("Decoding: {how}.", { how: branch.decoding }),
    ];
    if (root.querySelector(".given"))
      sentences.push(t("You chose the underlined tokens; the model did not."));
    note.textContent = sentences.filter(Boolean).join(" ");
  }

  /** Show a forced token at once, while the server decodes the rest. @param {number} current @param {string} text */
  function expect(current, text) {
    targetChips.slice(current).forEach((chip) => chip.remove());
    target.append(el("span", { class: "chip starts next waiting" }, chipText({ text })));
  }

  /** Shade the source by the selected head, if that reads the source. @param {string} kind */
  const select = (kind) => kind === path.sourceKind && (shading.value = "head");

  return { root, note, shading: shadingField, open, step, expect, select };
}

/**
 * Create the pane of candidates for the next token, with a slider for the temperature and a field for any text.
 * @param {{
 *   force: (rank: number) => void,
 *   forceText: (text: string, joined: boolean) => void,
 *   setTemperature: (value: number) => void,
 *   about: import("./heads.js").DescribePicture,
 * }} hooks
 */
export function createCandidates(hooks) {
  const hint = el("p", { class: "caption" }, t("Click another word to make the model take it.")),
    facts = el("p", { class: "facts", "aria-live": "polite" }),
    list = el("ol", { class: "candidates" });
  const output = el("output", {}, "1.0");
  const range = { min: 0.1, max: 2, step: 0.1, value: 1 };
  const slider = rangeField(t("Temperature"), range, (temperature) => {
    output.textContent = temperature.toFixed(1);
    hooks.setTemperature(temperature);
  });
  const text = textInput(t("Word to insert"), { placeholder: t("Type a word"), maxlength: 500 });
  const joined = el("input", { type: "checkbox" });
  const submit = () => {
    hooks.forceText(text.value, joined.checked);
    text.value = "";
  };
  const root = el("section", { class: "next-token" }, [
    el("h2", {}, t("Next token")),
    facts,
    createPicture(list, hooks.about(t("Next token"))),
    hint,
    el("label", { class: "heat" }, `${t("Temperature")} `, slider, output),
    el("p", { class: "caption", "data-terms": "" }, [
      t("Temperature changes the bars, not the greedy choice."),
    ]),
    form({ class: "force" }, submit, [
      text,
      el("label", {}, joined, t("No space before it")),
      button(t("Insert"), null, { type: "submit" }),
    ]),
  ]);

  // The content of a row: `token` and `value` are set by draw().
  function rowContent(rank) {
    const token = el("span", { class: "token" }),
      value = el("span", { class: "value" }),
      meter = el("span", { class: "meter" }, el("i", {}));
    return { token, value, nodes: [el("span", { class: "rank" }, rank), token, meter, value] };
  }
  function addRow() {
    const i = rows.length,
      { token, value, nodes } = rowContent(i + 1),
      choice = button(nodes, () => hooks.force(i), { class: "candidate" });
    list.append(el("li", {}, choice));
    rows.push({ choice, token, value });
  }
  const rows = [],
    others = rowContent(null),
    othersRow = el("li", { class: "others" }, others.nodes);

  /** @param {Path} path @param {number} step @param {number} temperature */
  function draw(path, step, temperature) {
    list.hidden = hint.hidden = step >= path.length;
    if (list.hidden) {
      facts.textContent = t(
        "Nothing follows: this is the end of the branch. Go back to make another choice.",
      );
      return;
    }
    const { id, rank, candidates: plain } = path.steps[step],
      candidates = path.candidates(step, temperature) || plain;
    while (rows.length < candidates.length) addRow();
    rows.forEach(({ choice, token, value }, i) => {
      const candidate = candidates[i];
      choice.parentElement.hidden = !candidate;
      if (!candidate) return;
      const isWritten = candidate.id === id,
        values = { token: candidate.text, p: formatPercent(candidate.probability) };
      token.textContent = values.token;
      value.textContent = values.p;
      choice.style.setProperty("--p", candidate.probability.toFixed(4));
      choice.classList.toggle("taken", isWritten);
      choice.ariaCurrent = isWritten ? "true" : null;
      choice.ariaLabel = isWritten
        ? t("{token}, {p}, chosen", values)
        : t("{token}, {p}, choose instead", values);
    });
    const count = path.vocabulary - candidates.length,
      listed = candidates.reduce((sum, { probability }) => sum + probability, 0),
      share = Math.max(0, 1 - listed);
    list.append(othersRow);
    othersRow.hidden = count <= 0;
    othersRow.style.setProperty("--p", share.toFixed(4));
    others.token.textContent = t("all {n} other tokens", { n: count });
    others.value.textContent = formatPercent(share);
    const p = path.probability(step, temperature);
    facts.textContent =
      p === null
        ? t("Computing …")
        : t("Chosen: rank {rank}, {p}. The other {rest} is spread over {n} tokens.", {
            rank,
            p: formatPercent(p),
            rest: formatPercent(Math.max(0, 1 - p)),
            n: path.vocabulary - 1,
          });
  }

  return { root, draw };
}
