// Two sentences under the same head, side by side, or the last sentences x the heads of a layer. Around two sentences: a menu of
// pairs that differ in little, and how alike their common words' vectors are.
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

const ANSWERS = 12; // pairs of which it is remembered how alike their words are

// A row is a word; the darker, the more alike. answer: {words, cosine, others} or {error}, of viz/explorer/compare.py; word:
// the one that a minimal pair is about.
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

// scene: what is looked at; update(changes); mapOf(trace, state): null where it is not there; beside: translations whose thumbnails
// are to be asked for; pairs (viz/explorer/compare.py; none where no model can be asked); ask(event, question)
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
  let drawn = []; // of the pair: {title, detail}
  let picked = null, // key of the sentence that a person chose to compare with
    other = null; // the one that is shown: that, else the last before this
  let chosen = null; // the minimal pair that a person chose, until both its sentences are here
  const answers = new Map(); // of two sentences, by their keys: see alikeTable(); null: it was asked

  const offered = () => pairs?.[scene.trace?.language] ?? [];
  const others = () => scene.traces.filter((one) => one !== scene.trace);
  // Whether the model that wrote the sentence shown wrote this one, too, unchanged and greedily.
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
    // By both tokens in both, or by one.
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

  // The thumbnails are attention's, whatever the map shows.
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

  // beside: the sentence beside the one shown, if there is one.
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
    // Of a pair the other sentence, where a link can bring it back.
    beside: () => (drawn.length && isPlain(other) ? other.text : ""),
    // That translation of a text, where it is here already.
    plain: (text) => others().find((one) => one.text === text && isPlain(one)),
    // A sentence came that is to stand beside the next one: of a minimal pair the second becomes the page's own.
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
