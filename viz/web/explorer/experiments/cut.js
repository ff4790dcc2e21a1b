// A pinned cell can be cut out of the model: the sentence is translated again, and what changed stands below the map.
import { button as plainButton, el } from "../../core/dom.js";
import { t } from "../../core/language.js";
import * as model from "../model.js";
import * as states from "../state.js";

// context: able (whether a server can be asked), ask(name, fields), open(address), state(), trace(), map()
export function createCut(context) {
  const how = el(
    "select",
    { "aria-label": t("What happens to the edge's weight") },
    el("option", { value: "renormalise" }, t("the rest of its row takes its weight")),
    el("option", { value: "zero" }, t("its weight is lost")),
  );
  const button = plainButton(t("Cut this edge and translate again"), run);
  const open = plainButton(t("Show it on every tab"), () => context.open(opens));
  const result = el("div", { class: "cut-result", "aria-live": "polite" });
  const root = el(
    "div",
    { class: "cut", role: "group", "aria-label": t("Cut the pinned edge"), hidden: true },
    el("div", { class: "cut-bar" }, button, how),
    result,
  );
  let shown = "", // the cell that the region is about
    opens = null; // the address of the last translation without an edge

  // What is pinned, as edges: all pieces of a word, and every head of a combined map.
  function edges() {
    const state = context.state(),
      map = context.map();
    if (!context.able || !map) return null;
    const { row, column } = states.pinnedCells(state, map, context.trace());
    if (row === null || column === null || state.combine === "rollout") return null;
    const offset =
      map.joint && state.kind === "decoder_self" ? context.trace().tokens.source.labels.length : 0;
    const keys = map.columns[column].positions.map((key) => key - offset),
      size = context.trace().kinds[state.kind].keys;
    if (keys.some((key) => key < 0 || key >= size)) return null; // of a joint map the half that this kind does not read
    return {
      key: context.trace().key,
      kind: state.kind,
      queries: map.rows[row].positions,
      keys,
      heads: state.overlay
        ? [[state.layer, state.head]]
        : model.usedHeads(context.trace(), states.viewOf(state)),
    };
  }

  function run() {
    const found = edges();
    if (!found) return;
    root.setAttribute("aria-busy", "true");
    result.replaceChildren(el("p", {}, t("Computing …")));
    context.ask("cut", { ...found, how: how.value });
  }

  return {
    root,
    // After every change of what is pinned or shown.
    follow() {
      const found = edges(),
        name = JSON.stringify(found);
      root.hidden = !found;
      if (name !== shown) result.replaceChildren();
      shown = name;
    },
    // {same, before, after, words, opens} or {error}, from viz/ui/experiments/cutting.py
    receive(answer) {
      root.setAttribute("aria-busy", "false");
      if (answer.error) return result.replaceChildren(el("p", { role: "alert" }, answer.error));
      opens = answer.opens;
      const line = (name, text) => [
        el("dt", {}, name),
        el("dd", { dir: "auto" }, text || t("(nothing)")),
      ];
      result.replaceChildren(
        ...answer.words.map((words) => el("p", {}, words)),
        ...(answer.same
          ? []
          : [
              el(
                "dl",
                {},
                line(t("As it is"), answer.before),
                line(t("Without the edge"), answer.after),
              ),
              open,
            ]),
      );
    },
  };
}
