// The comparison: two sentences under the same head, or the last sentences and all heads of a
// layer. Of two sentences it also shows a menu of minimal pairs, and how similar the vectors of
// their common words are.
import { paintMap } from "../../core/colours.js";
import { el, shorten, table } from "../../core/dom.js";
import { formatFixed } from "../../core/format.js";
import { createGrid } from "../../core/grid.js";
import { textParts, toText, say, t } from "../../core/language.js";
import { createScrollBox } from "../../lab/scroll.js";
import { translateLink } from "../../store/translation.js";
import { createSegmented, createSelect } from "../controls.js";
import * as states from "../state.js";
import * as naming from "../words.js";
import { createDetail } from "./detail.js";
import { fitsBothTokens } from "./frame.js";
import { createPalette, chosenColours } from "./scale.js";

// Return a table of similarities: a row per word, a column per layer. answer: {words, cosine,
// others} or {error} of viz/explorer/compare.py; word: the word that a minimal pair is about.
function similarityTable({ words, cosine, others, error }, word) {
  if (error) return [el("p", { class: "guide" }, error)];
  const cells = (values) =>
    values.map((value) =>
      el("td", { style: `--share: ${Math.max(0, value)}` }, formatFixed(value, 2)),
    );
  const layers = others.slice(1).map((_, i) => t("layer {n}", { n: i + 1 }));
  const rows = words.map((text, i) => {
    const isFollowed = word && text.toLowerCase() === word.toLowerCase(),
      name = isFollowed ? el("mark", {}, text) : text;
    return el("tr", {}, el("th", { scope: "row", dir: "auto" }, name), cells(cosine[i]));
  });
  const last = [el("th", { scope: "row" }, t("with other words")), cells(others)],
    heading = t("The words of both, layer by layer");
  rows.push(el("tr", { class: "others" }, last));
  return [
    el("h3", {}, heading),
    createScrollBox(table([t("Word"), t("input"), ...layers], rows), { "aria-label": heading }),
    el("p", { class: "guide" }, [
      t(
        "Cosine similarity of the word's vectors in the two sentences: as it enters the encoder, with its position, and after each layer; measured. 1: they point the same way. Last row: the average over all other words, as a baseline.",
      ),
    ]),
  ];
}

/**
 * Create the comparison.
 * @param {object} setup
 * @param {any} setup.scene what the explorer shows
 * @param {(changes: any) => void} setup.update
 * @param {(trace: any, state: any) => any} setup.mapOf null while a map is missing
 * @param {Set<any>} setup.lackingThumbnails translations whose thumbnails are to be requested
 * @param {any} setup.pairs minimal pairs per language (viz/explorer/compare.py); none without a server
 * @param {(name: string, trace: any, fields: any) => Promise<any>} setup.ask
 * @param {(text: string) => void} setup.compareWithText translates a second sentence
 */
export function createCompare(setup) {
  const { scene, update, mapOf, lackingThumbnails, pairs, ask, compareWithText } = setup;
  const quiet = { hover: () => {}, pin: () => {}, play: () => {} };
  const left = createDetail(quiet),
    right = createDetail(quiet);
  const mode = createSegmented(
    t("Layout of the comparison"),
    { pair: t("Side by side"), grid: t("Sentences × heads") },
    (value) => update({ compare: value }),
  );
  const picker = createSelect(t("Compare with"), {}, (value) => {
    pickedKey = value;
    update({});
  });
  const pairMenu = createSelect(t("Minimal pair"), {}, (value) => {
    chosenPair = minimalPairs()[value] ?? null;
    if (chosenPair) compareWithText(chosenPair.first);
  });
  pairMenu.root.classList.add("minimal");
  const lookFor = el("p", { class: "look", role: "status" }),
    body = el("div", { class: "compare-body" }),
    similarity = el("div", { class: "alike" });
  const bar = el("div", { class: "compare-bar" }, mode.root, picker.root, pairMenu.root);
  const root = el("div", { class: "compare" }, bar, lookFor, body, similarity);
  let isPairDrawn = false,
    pickedKey = null, // key of the translation chosen to compare with
    reference = null; // the translation on the other side: the chosen one, else the last before this
  let chosenPair = null; // the chosen minimal pair, until both its sentences are here
  const answers = new Map(); // "key key" -> answer for similarityTable(), or null while it is requested

  const minimalPairs = () => pairs?.[scene.trace?.language] ?? [];
  const others = () => scene.traces.filter((trace) => trace !== scene.trace);
  // Whether the same model translated it, unchanged and greedily.
  const isPlain = (trace) =>
    ["direction", "checkpoint"].every((name) => trace[name] === scene.trace[name]) &&
    trace.interventions === "" &&
    trace.beam === 1;
  const name = (trace, limit) => naming.traceName(trace, scene.traces, limit);
  const title = (trace) => el("p", { class: "compare-title", dir: "auto" }, name(trace, 200));
  const showWaiting = (text) => body.replaceChildren(el("p", { class: "waiting" }, text));

  function drawPair(map, colouring, titles) {
    const { state, trace } = scene;
    const referenceMap = mapOf(reference, states.fitState(state, reference, scene.overlays));
    if (!referenceMap && !state.overlay)
      return showWaiting(
        t(
          "This layer of the kept sentence was never loaded: open it while that sentence is shown.",
        ),
      );
    if (!referenceMap || referenceMap.refused)
      return showWaiting(referenceMap?.refused ?? t("Computing …"));
    const sides = [
      { trace: reference, map: referenceMap, detail: left },
      { trace, map, detail: right },
    ].map((side) => ({ ...side, pairs: states.rowPairs(state, side.map, side.trace) }));
    const plots = sides.map(({ detail }) => el("div", { class: "compare-plot" }, detail.root));
    const nodes = sides.map(({ trace }, i) => [
      title(trace),
      el(
        "p",
        { class: "compare-written", dir: "auto" },
        `→ ${trace.translation || t("(nothing)")}`,
      ),
      plots[i],
    ]);
    body.replaceChildren(el("div", { class: "compare-pair" }, nodes));
    // Both maps name their rows by two tokens, or both by one.
    const isBoth = sides.every(
      ({ map, pairs }, i) => pairs && fitsBothTokens(map.rows, pairs, plots[i].clientWidth),
    );
    const rows = isBoth ? titles.rows : titles.row;
    for (const { map, detail, pairs } of sides) {
      const named = { ...titles, rows, pairs: isBoth ? pairs : null };
      detail.draw(map, colouring, named, { compact: true });
    }
    isPairDrawn = true;
  }

  // Thumbnails always show attention.
  function drawGrid(mapColouring) {
    const { state, traces, trace } = scene,
      colouring = state.overlay
        ? createPalette(chosenColours(state, trace.colours), state.transform, 1)
        : mapColouring;
    const rows = traces.flatMap((sentence) => {
      const { heads, layers } = sentence.kinds[state.kind],
        layer = Math.min(state.layer, layers - 1),
        all = [...Array(heads).keys()];
      if (sentence.lacks(state.kind)) lackingThumbnails.add(sentence);
      const cells = all.map((head) => ({
        class: `thumbnail${head === state.head ? " selected" : ""}`,
        name: t("Head {head}: {text}", { head: head + 1, text: sentence.text }),
        content: el("canvas", { "aria-hidden": "true" }),
      }));
      const columns = all.map((head) => `H${head + 1}`);
      const grid = createGrid(
        { kind: "thumbnails compare-row", name: sentence.text, columns, cells: [cells] },
        { quiet: true, act: (_, head) => update({ head }) },
      );
      grid.nodes[0].forEach((cell, head) =>
        paintMap(cell.firstChild, sentence.thumbnail(state.kind, layer, head), colouring.colour),
      );
      return [title(sentence), grid.root];
    });
    const count = { layer: state.layer + 1, n: traces.length },
      caption = t("Layer {layer}, all heads; the last {n} sentences", count);
    body.replaceChildren(el("p", { class: "caption" }, caption), ...rows);
  }

  // reference: the translation on the other side, or null
  function drawMinimal(reference) {
    const { trace } = scene,
      list = minimalPairs(),
      at = list.findIndex(
        ({ first, second }) => first === reference?.text && second === trace.text,
      ),
      pair = list[at];
    pairMenu.root.hidden = !list.length;
    const words = list.map(({ title, first }) => `${toText(title)}: ${shorten(first, 44)}`);
    pairMenu.offer([["", t("choose one …")], ...words.entries()]);
    pairMenu.show(pair ? String(at) : "");
    lookFor.hidden = !pair;
    if (pair)
      lookFor.replaceChildren(...textParts(say("What to look for: {what}", { what: pair.look })));
    similarity.replaceChildren();
    if (!pairs || !reference || trace.attention_only) return;
    const key = `${reference.key} ${trace.key}`;
    if (!answers.has(key)) {
      answers.set(key, null);
      ask("alike", trace, { other: reference.address }).then((answer) => {
        answers.set(key, answer.alike ?? answer);
        update({});
      });
    }
    const answer = answers.get(key);
    if (answer) similarity.append(...similarityTable(answer, pair?.word));
    else similarity.append(el("p", { class: "guide" }, t("Computing …")));
  }

  return {
    root,
    draw(map, colouring, titles) {
      const { compare } = scene.state,
        candidates = others();
      mode.show(compare);
      isPairDrawn = false;
      reference =
        candidates.find((candidate) => candidate.key === pickedKey) ?? candidates.at(-1) ?? null;
      picker.offer(candidates.map((candidate) => [candidate.key, name(candidate, 48)]));
      picker.show(reference?.key ?? null);
      picker.root.hidden = compare !== "pair" || !reference;
      drawMinimal(compare === "pair" ? reference : null);
      if (compare === "grid") drawGrid(colouring);
      else if (reference) drawPair(map, colouring, titles);
      else
        showWaiting(
          t("Translate a second sentence to see both here, side by side, under the same head."),
        );
    },
    // The other sentence, if a link can restore it.
    referenceText: () => (isPairDrawn && isPlain(reference) ? reference.text : ""),
    // Return a translation of this text that isPlain(), if the page has it.
    findPlain: (text) => others().find((trace) => trace.text === text && isPlain(trace)),
    // Compare with a translation from the next drawing on. If it is the first sentence of the chosen
    // minimal pair, the second one is translated.
    setReference({ key, direction, checkpoint }) {
      pickedKey = key;
      if (chosenPair) translateLink({ text: chosenPair.second, direction, checkpoint, beam: 1 });
      chosenPair = null;
    },
  };
}
