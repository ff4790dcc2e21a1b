// A pinned cell can be cut out of the model: the sentence is translated again, and what changed stands below the map.
import { button as plainButton, el } from "../core/dom.js";
import { t } from "../core/language.js";
import { openAddress } from "../store/translation.js";
import * as model from "./model.js";
import * as states from "./state.js";

// scene: what is looked at; able: whether a server can be asked; ask(name, fields)
export function createCut({ scene, able, ask }) {
  const how = el("select", { "aria-label": t("What happens to the edge's weight") }, [
    el("option", { value: "renormalise" }, t("the rest of its row takes its weight")),
    el("option", { value: "zero" }, t("its weight is lost")),
  ]);
  const button = plainButton(t("Cut this edge and translate again"), run);
  const open = plainButton(t("Show it on every tab"), () => openAddress(opens));
  const result = el("div", { class: "cut-result", "aria-live": "polite" });
  const about = { class: "cut", role: "group", "aria-label": t("Cut the pinned edge") };
  const root = el("div", { ...about, hidden: true }, [
    el("div", { class: "cut-bar" }, button, how),
    result,
  ]);
  let shown = "", // the cell that the region is about
    opens = null; // the address of the last translation without an edge

  // What is pinned, as edges: all pieces of a word, and every head of a combined map.
  function edges() {
    const { state, map, trace } = scene;
    if (!able || !map) return null;
    const { row, column } = states.pinnedCells(state, map, trace);
    if (row === null || column === null || state.combine === "rollout") return null;
    const shift = states.shift(state, map, trace),
      keys = map.columns[column].positions.map((key) => key - shift),
      size = trace.kinds[state.kind].keys;
    if (keys.some((key) => key < 0 || key >= size)) return null; // of a joint map the half that this kind does not read
    const { kind } = state,
      heads = model.usedHeads(trace, states.viewOf(state));
    return { key: trace.key, kind, queries: map.rows[row].positions, keys, heads };
  }

  function run() {
    root.setAttribute("aria-busy", "true");
    result.replaceChildren(el("p", {}, t("Computing …")));
    ask("cut", { ...edges(), how: how.value });
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
    // {same, before, after, words, opens} or {error}, from viz/explorer/cut.py
    receive({ error, same, before, after, words, ...answer }) {
      root.setAttribute("aria-busy", "false");
      if (error) return result.replaceChildren(el("p", { role: "alert" }, error));
      ({ opens } = answer);
      const line = (name, text) => [
        el("dt", {}, name),
        el("dd", { dir: "auto" }, text || t("(nothing)")),
      ];
      result.replaceChildren(...words.map((text) => el("p", {}, text)));
      if (same) return;
      const lines = [line(t("As it is"), before), line(t("Without the edge"), after)];
      result.append(el("dl", {}, lines), open);
    },
  };
}
