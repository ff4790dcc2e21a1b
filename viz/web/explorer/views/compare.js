// Two sentences under the same head, side by side, or the last sentences x the heads of a layer.
import { paint } from "../../core/colours.js";
import { el } from "../../core/dom.js";
import { createGrid } from "../../core/grid.js";
import { t } from "../../core/language.js";
import { segmented, select } from "../controls.js";
import * as states from "../state.js";
import { createDetail } from "./detail.js";
import { namesBoth } from "./frame.js";
import { palette, scale } from "./scale.js";
import { createPairs } from "../experiments/pairs.js";
import * as naming from "../words.js";

const SIDE = 64; // cells of a thumbnail's side at most

// hooks: update(changes), trace(), traces(), mapOf(trace, state): null where it is not there; askFor(trace): its
// thumbnails; and those of createPairs().
export function createCompare(hooks) {
  const quiet = { hover: () => {}, pin: () => {} };
  const left = createDetail(quiet),
    right = createDetail(quiet);
  const mode = segmented(
    t("Layout of the comparison"),
    [
      ["pair", t("Side by side")],
      ["grid", t("Sentences × heads")],
    ],
    (value) => hooks.update({ compare: value }),
  );
  const picker = select(t("Compare with"), [], (value) => {
    picked = value;
    hooks.update({});
  });
  const body = el("div", { class: "compare-body" }),
    pairs = createPairs(hooks);
  const root = el(
    "div",
    { class: "compare" },
    el("div", { class: "compare-bar" }, mode.root, picker.root, pairs.picker),
    pairs.look,
    body,
    pairs.alike,
  );
  let drawn = []; // of the pair: {title, detail}
  let picked = null; // key of the sentence that a person chose to compare with
  let kept = null; // key of the one that is shown: that, else the last before this

  const others = () => hooks.traces().filter((one) => one !== hooks.trace());
  // Whether the model that wrote the sentence shown wrote this one, too, unchanged and greedily.
  const isPlain = (one) =>
    ["direction", "checkpoint"].every((name) => one[name] === hooks.trace()[name]) &&
    one.interventions === "" &&
    one.beam === 1;
  const name = (trace, limit) => naming.name(trace, hooks.traces(), limit);
  const title = (trace) => el("p", { class: "compare-title", dir: "auto" }, name(trace, 200));
  const written = (trace) =>
    el("p", { class: "compare-written", dir: "auto" }, `→ ${trace.translation || t("(nothing)")}`);

  function pair(state, map, colouring, titles) {
    const other = others().find((one) => one.key === kept);
    const beside = hooks.mapOf(other, states.fitted(state, other));
    if (!beside) {
      return body.replaceChildren(
        el(
          "p",
          { class: "waiting" },
          state.overlay
            ? t("Computing …")
            : t(
                "This layer of the kept sentence was never loaded: open it while that sentence is shown.",
              ),
        ),
      );
    }
    const columns = [
      [other, beside, left],
      [hooks.trace(), map, right],
    ].map(([trace, shown, view]) => {
      const plot = el("div", { class: "compare-plot" }, view.root),
        pairs = states.rowPairs(state, shown, trace);
      return {
        nodes: [title(trace), written(trace), plot],
        fits: () => pairs && namesBoth(shown.rows, pairs, plot.clientWidth),
        draw: (named) =>
          view.draw(shown, colouring, { row: null, column: null }, named(pairs), { compact: true }),
      };
    });
    body.replaceChildren(
      el(
        "div",
        { class: "compare-pair" },
        columns.flatMap((c) => c.nodes),
      ),
    );
    // By both tokens in both, or by one.
    const both = columns.every((c) => c.fits());
    columns.forEach((c) =>
      c.draw((pairs) => ({
        ...titles,
        rows: both ? titles.rows : titles.row,
        pairs: both ? pairs : null,
      })),
    );
    drawn = [
      { title: name(other, 200), detail: left },
      { title: name(hooks.trace(), 200), detail: right },
    ];
  }

  // The thumbnails are attention's, whatever the map shows.
  function grid(state, shown) {
    const colouring = state.overlay
      ? palette(scale(state, hooks.trace().payload.colours), state.transform, 1)
      : shown;
    const rows = hooks.traces().flatMap((trace) => {
      const { heads, layers } = trace.kinds[state.kind],
        layer = Math.min(state.layer, layers - 1),
        all = Array.from({ length: heads }, (_, head) => head);
      if (trace.lacks(state.kind)) hooks.askFor(trace);
      const { root: row, nodes } = createGrid(
        {
          kind: "thumbnails compare-row",
          name: trace.text,
          columns: all.map((head) => `H${head + 1}`),
          cells: [
            all.map((head) => ({
              class: `thumbnail${head === state.head ? " selected" : ""}`,
              name: t("Head {head}: {text}", { head: head + 1, text: trace.text }),
              content: el("canvas", { "aria-hidden": "true" }),
            })),
          ],
        },
        { quiet: true, act: (_, head) => hooks.update({ head }) },
      );
      nodes[0].forEach((cell, head) =>
        paint(cell.firstChild, trace.thumbnail(state.kind, layer, head, SIDE), colouring.colour),
      );
      return [title(trace), row];
    });
    body.replaceChildren(
      el(
        "p",
        { class: "caption" },
        t("Layer {layer}, all heads; the last {n} sentences", {
          layer: state.layer + 1,
          n: hooks.traces().length,
        }),
      ),
      ...rows,
    );
  }

  return {
    root,
    draw(state, map, colouring, titles) {
      mode.show(state.compare);
      drawn = [];
      const found = others();
      kept = (found.find((one) => one.key === picked) || found[found.length - 1])?.key ?? null;
      picker.field.replaceChildren(
        ...found.map((one) => el("option", { value: one.key }, name(one, 48))),
      );
      picker.show(kept);
      picker.root.hidden = state.compare !== "pair" || !found.length;
      const beside = state.compare === "pair" ? found.find((one) => one.key === kept) : undefined;
      pairs.draw(hooks.trace(), beside);
      if (state.compare === "grid") grid(state, colouring);
      else if (kept) pair(state, map, colouring, titles);
      else
        body.replaceChildren(
          el(
            "p",
            { class: "waiting" },
            t(
              "Translate a second sentence: this one is kept, and both appear here under the same head.",
            ),
          ),
        );
    },
    pair: () => drawn,
    // Of a pair the other sentence, where a link can bring it back.
    beside() {
      const other = drawn.length ? others().find((one) => one.key === kept) : null;
      return other && isPlain(other) ? other.text : "";
    },
    // That translation of a text, where it is here already.
    plain: (text) => others().find((one) => one.text === text && isPlain(one)),
    // A sentence came that is to stand beside the next one.
    keep(trace) {
      picked = trace.key;
      pairs.kept(trace);
    },
    alike: pairs.receive,
  };
}
