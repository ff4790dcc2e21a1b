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
import { THUMBNAIL_SIZE } from "./atlas.js";
import { createDetail } from "./detail.js";
import { fitsBothTokens } from "./frame.js";
import { createPalette, chosenColours } from "./scale.js";

const ANSWERS = 12; // remembered answers about similarity

// Return a table of similarities: a row per word, a column per layer. answer: {words, cosine,
// others} or {error} of viz/explorer/compare.py; word: the word that a minimal pair is about.
function alikeTable({ words, cosine, others, error }, word) {
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
        "Cosine of a word's vector here and there: as it enters the encoder, with its position, and after each layer; measured. 1: it points the same way. Last row: the mean over all other words of the first sentence, which any two words have.",
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
 * @param {Set<any>} setup.beside translations whose thumbnails are to be requested
 * @param {any} setup.pairs minimal pairs per language (viz/explorer/compare.py); none without a server
 * @param {(name: string, fields: any) => void} setup.ask
 */
export function createCompare({ scene, update, mapOf, beside: lacking, pairs, ask }) {
  const quiet = { hover: () => {}, pin: () => {} };
  const left = createDetail(quiet),
    right = createDetail(quiet);
  const mode = createSegmented(
    t("Layout of the comparison"),
    { pair: t("Side by side"), grid: t("Sentences × heads") },
    (value) => update({ compare: value }),
  );
  const picker = createSelect(t("Compare with"), {}, (value) => {
    picked = value;
    update({});
  });
  const minimal = createSelect(t("Minimal pair"), {}, (value) => {
    chosen = offered()[value] ?? null;
    if (chosen) ask("beside", { key: scene.trace.key, text: chosen.first });
  });
  minimal.root.classList.add("minimal");
  const look = el("p", { class: "look", role: "status" }),
    body = el("div", { class: "compare-body" }),
    alike = el("div", { class: "alike" });
  const bar = el("div", { class: "compare-bar" }, mode.root, picker.root, minimal.root);
  const root = el("div", { class: "compare" }, bar, look, body, alike);
  let drawn = []; // the pair on the page: {title, detail} each
  let picked = null, // key of the translation chosen to compare with
    other = null; // the translation on the other side: the chosen one, else the last before this
  let chosen = null; // the chosen minimal pair, until both its sentences are here
  const answers = new Map(); // "key key" -> answer for alikeTable(), or null while it is requested

  const offered = () => pairs?.[scene.trace?.language] ?? [];
  const others = () => scene.traces.filter((one) => one !== scene.trace);
  // Whether the same model translated it, unchanged and greedily.
  const isPlain = (one) =>
    ["direction", "checkpoint"].every((name) => one[name] === scene.trace[name]) &&
    one.interventions === "" &&
    one.beam === 1;
  const name = (trace, limit) => naming.traceName(trace, scene.traces, limit);
  const title = (trace) => el("p", { class: "compare-title", dir: "auto" }, name(trace, 200));
  const waiting = (text) => body.replaceChildren(el("p", { class: "waiting" }, text));

  function drawPair(map, colouring, titles) {
    const { state, trace } = scene;
    const beside = mapOf(other, states.fitState(state, other, scene.overlays));
    if (!beside && !state.overlay)
      return waiting(
        t(
          "This layer of the kept sentence was never loaded: open it while that sentence is shown.",
        ),
      );
    if (!beside || beside.refused) return waiting(beside?.refused ?? t("Computing …"));
    const sides = [
      { trace: other, map: beside, detail: left },
      { trace, map, detail: right },
    ].map((side) => ({ ...side, pairs: states.rowPairs(state, side.map, side.trace) }));
    const plots = sides.map(({ detail }) => el("div", { class: "compare-plot" }, detail.root));
    const nodes = sides.map(({ trace }, i) => [
      title(trace),
      el("p", { class: "compare-written", dir: "auto" }, [
        `→ ${trace.translation || t("(nothing)")}`,
      ]),
      plots[i],
    ]);
    body.replaceChildren(el("div", { class: "compare-pair" }, nodes));
    // Both maps name their rows by two tokens, or both by one.
    const isBoth = sides.every(
      ({ map, pairs }, i) => pairs && fitsBothTokens(map.rows, pairs, plots[i].clientWidth),
    );
    const rows = isBoth ? titles.rows : titles.row,
      none = { row: null, column: null };
    for (const { map, detail, pairs } of sides) {
      const named = { ...titles, rows, pairs: isBoth ? pairs : null };
      detail.draw(map, colouring, none, named, { compact: true });
    }
    drawn = sides.map(({ trace, detail }) => ({ title: name(trace, 200), detail }));
  }

  // Thumbnails always show attention.
  function drawGrid(shown) {
    const { state, traces, trace } = scene,
      colouring = state.overlay
        ? createPalette(chosenColours(state, trace.colours), state.transform, 1)
        : shown;
    const rows = traces.flatMap((one) => {
      const { heads, layers } = one.kinds[state.kind],
        layer = Math.min(state.layer, layers - 1),
        all = [...Array(heads).keys()];
      if (one.lacks(state.kind)) lacking.add(one);
      const cells = all.map((head) => ({
        class: `thumbnail${head === state.head ? " selected" : ""}`,
        name: t("Head {head}: {text}", { head: head + 1, text: one.text }),
        content: el("canvas", { "aria-hidden": "true" }),
      }));
      const columns = all.map((head) => `H${head + 1}`);
      const grid = createGrid(
        { kind: "thumbnails compare-row", name: one.text, columns, cells: [cells] },
        { quiet: true, act: (_, head) => update({ head }) },
      );
      grid.nodes[0].forEach((cell, head) =>
        paintMap(
          cell.firstChild,
          one.thumbnail(state.kind, layer, head, THUMBNAIL_SIZE),
          colouring.colour,
        ),
      );
      return [title(one), grid.root];
    });
    const count = { layer: state.layer + 1, n: traces.length },
      caption = t("Layer {layer}, all heads; the last {n} sentences", count);
    body.replaceChildren(el("p", { class: "caption" }, caption), ...rows);
  }

  // beside: the translation on the other side, or null
  function drawMinimal(beside) {
    const { trace } = scene,
      list = offered(),
      at = list.findIndex(({ first, second }) => first === beside?.text && second === trace.text),
      pair = list[at];
    minimal.root.hidden = !list.length;
    const entries = list.map((one, i) => [i, `${toText(one.title)}: ${shorten(one.first, 44)}`]);
    minimal.offer([["", t("choose one …")], ...entries]);
    minimal.show(pair ? String(at) : "");
    look.hidden = !pair;
    look.replaceChildren(
      ...(pair ? textParts(say("What to look for: {what}", { what: pair.look })) : []),
    );
    alike.replaceChildren();
    if (!pairs || !beside || trace.attention_only) return;
    const key = `${beside.key} ${trace.key}`;
    if (!answers.has(key)) {
      answers.set(key, null);
      ask("alike", { key: trace.key, other: beside.address });
    }
    const answer = answers.get(key);
    alike.replaceChildren(
      ...(answer
        ? alikeTable(answer, pair?.word)
        : [el("p", { class: "guide" }, t("Computing …"))]),
    );
  }

  return {
    root,
    draw(map, colouring, titles) {
      const { compare } = scene.state,
        found = others();
      mode.show(compare);
      drawn = [];
      other = found.find((one) => one.key === picked) ?? found.at(-1) ?? null;
      picker.offer(found.map((one) => [one.key, name(one, 48)]));
      picker.show(other?.key ?? null);
      picker.root.hidden = compare !== "pair" || !other;
      drawMinimal(compare === "pair" ? other : null);
      if (compare === "grid") drawGrid(colouring);
      else if (other) drawPair(map, colouring, titles);
      else
        waiting(
          t(
            "Translate a second sentence: this one is kept, and both appear here under the same head.",
          ),
        );
    },
    pair: () => drawn,
    // The other sentence, if a link can restore it.
    beside: () => (drawn.length && isPlain(other) ? other.text : ""),
    // Return a translation of this text that isPlain(), if it is here.
    plain: (text) => others().find((one) => one.text === text && isPlain(one)),
    // Compare with a translation; after the first sentence of a minimal pair, translate the second.
    keep({ key, direction, checkpoint }) {
      picked = key;
      if (chosen) translateLink({ text: chosen.second, direction, checkpoint, beam: 1 });
      chosen = null;
    },
    receiveAlike({ key, other, ...answer }) {
      answers.set(`${other} ${key}`, answer);
      if (answers.size > ANSWERS) answers.delete(answers.keys().next().value);
    },
  };
}
