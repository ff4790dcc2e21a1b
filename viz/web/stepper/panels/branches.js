// The tree of branches.
import { button, el, shorten } from "../../core/dom.js";
import { formatFixed } from "../../core/format.js";
import { toText, say, t } from "../../core/language.js";
import { written } from "../path.js";

const ORIGINS = { forced: say("chosen"), beam: say("from the beam"), target: say("your own") };
const origin = (branch) => toText(ORIGINS[branch.origin] ?? branch.decoding);
// Named by what is its own: the rest it shares with its parent.
export const title = (branch) =>
  `${branch.number} · ${origin(branch)}: ${branch.fork ? "… " : ""}${shorten(written(branch.tokens.slice(branch.fork)), 60) || t("(end)")}`;

// hooks: open(number)
export function branches(hooks) {
  const list = el("ul", { class: "tree", "aria-label": t("Branches") }),
    note = el("p", { class: "caption" });
  const root = el("div", {}, note, list);

  function draw(tree, current) {
    note.textContent =
      t(
        "Every choice makes a branch; nothing is lost by going back. Kept: the last {n} branches.",
        { n: tree.limit },
      ) + (tree.dropped ? ` ${t("{n} of the oldest were dropped.", { n: tree.dropped })}` : "");
    const known = new Set(tree.branches.map((b) => b.number));
    const below = (number, depth) =>
      tree.branches
        .filter((b) => (known.has(b.parent) ? b.parent : null) === number)
        .flatMap((b) => [item(b, depth, b.number === current), ...below(b.number, depth + 1)]);
    list.replaceChildren(...below(null, 0));
  }

  function item(branch, depth, current) {
    const shared = written(branch.tokens.slice(0, branch.fork)),
      own = written(branch.tokens.slice(branch.fork));
    const parts = [
      el("span", { class: "number" }, branch.number),
      el(
        "span",
        { class: "sentence", dir: "auto" },
        el("span", { class: "shared" }, shared ? `${shared} ` : ""),
        own || t("(end)"),
      ),
      el(
        "span",
        { class: "about" },
        `${origin(branch)}${branch.finished ? "" : `, ${t("unfinished")}`} · ${t("log-probability {value}", { value: formatFixed(branch.total, 2) })}`,
      ),
    ];
    const open = button(parts, () => hooks.open(branch.number), {
      class: `branch${current ? " current" : ""}`,
      "aria-current": current ? "true" : null,
    });
    return el("li", { style: `--depth: ${depth}` }, open);
  }
  return { root, draw };
}
