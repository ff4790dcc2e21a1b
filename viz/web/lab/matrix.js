// A matrix of numbers (viz/wire/matrix.py): a cell is a button that asks for what is behind it.
import { button, el, menu } from "../core/dom.js";
import { arrowStep } from "../core/keys.js";
import { toText, t } from "../core/language.js";
import { reveal, scrolling } from "./scroll.js";
import { createPicture } from "../picture/copy.js";
import * as drawing from "../picture/drawing.js";

const MARK = "*"; // in the margin, of what is noted at the foot

// One stop for the tabulator; arrow keys go from cell to cell, over those that hold nothing.
function walk(event) {
  const move = arrowStep(event),
    from = event.target.closest("button[data-column]");
  if (!move || !from) return;
  event.preventDefault();
  const rows = [...event.currentTarget.querySelectorAll("tbody > tr:not([hidden]):has(button)")];
  let r = rows.indexOf(from.closest("tr")),
    column = Number(from.dataset.column),
    next = null;
  while (!next) {
    [r, column] = [r + move[0], column + move[1]];
    if (!rows[r]?.cells[column]) return;
    next = rows[r].querySelector(`button[data-column="${column}"]`);
  }
  from.tabIndex = -1;
  next.tabIndex = 0;
  next.focus();
}

export function matrix(block, keep, api) {
  const { columns, groups, margins } = block;
  const firsts = new Set(); // columns with which another group begins
  groups.reduce((from, [, span], i) => (i && firsts.add(from), from + span), 0);
  const look = (i) => `${columns[i].special ? " special" : ""}${firsts.has(i) ? " first" : ""}`;
  const width = 1 + columns.length + margins.length;

  // What stands in the margin: parts {text, look}, one below the other.
  const margin = (parts) =>
    el(
      "td",
      { class: "margin" },
      parts.map(({ text, look, about }) =>
        look === "noted"
          ? el("span", { class: "noted", title: text }, MARK)
          : el("span", { class: look, title: about }, text),
      ),
    );

  const sides = el(
    "tr",
    { class: "sides" },
    el("td"),
    groups.map(([title, span], i) =>
      el("th", { scope: "colgroup", colspan: span, class: i ? "first" : null }, title),
    ),
    margins.map(() => margin([])),
  );
  // A word breaks only where it is long.
  const words = columns.map(({ text }, i) =>
    el(
      "th",
      {
        scope: "col",
        class: `word${look(i)}`,
        title: text,
        dir: "auto",
        style: `min-width: min(84px, ${Math.max(4, [...text].length + 1)}ch)`,
      },
      text,
    ),
  );
  const names = el(
    "tr",
    {},
    el("td"),
    words,
    margins.map(([title, about]) =>
      el("th", { scope: "col", class: "margin", title: about }, title),
    ),
  );

  function cell(line, i) {
    const found = line.cells[i];
    if (!found)
      return el("td", { class: `cell none${look(i)}`, title: block.none }, el("span", {}, "·"));
    const name = t("{method}, {word}: {n}", {
      method: toText(line.name),
      word: toText(columns[i].name) || columns[i].text,
      n: found.text,
    });
    const about = {
      "aria-label": name,
      title: name,
      style: `--share: ${Math.abs(found.share)}`,
      class: `value ${found.share < 0 ? "against" : "for"}`,
    };
    const run = ({ currentTarget }) => {
      body.querySelector(".chosen")?.classList.remove("chosen");
      body.querySelector("[tabindex='0']")?.setAttribute("tabindex", "-1");
      currentTarget.tabIndex = 0;
      currentTarget.classList.add("chosen");
      api.act(block.act, block.act, { column: i, row: line.key });
    };
    return el(
      "td",
      { class: `cell${look(i)}` },
      block.act
        ? button(found.text, run, { tabindex: "-1", "data-column": i, ...about })
        : el("span", about, found.text),
    );
  }

  function row(line) {
    const layers = Array.from({ length: line.layers + 1 }, (_, i) => [
      i,
      i ? t("layer {n}", { n: i }) : t("all layers"),
    ]);
    return el(
      "tr",
      { "data-key": line.key, hidden: line.folded },
      el(
        "th",
        { scope: "row", title: line.about.map(toText).join(" ") || null },
        el("span", { class: "method" }, line.name),
        line.evidence
          ? el("span", { class: `kind ${line.kind.replace(" ", "-")}` }, line.evidence)
          : null,
        line.layers
          ? menu(layers, line.layer, {
              "aria-label": t("{method}: which layer", { method: toText(line.name) }),
              onchange: (event) => again(line, Number(event.target.value)),
            })
          : null,
      ),
      line.cells
        ? columns.map((_, i) => cell(line, i))
        : el("td", { class: "waiting", colspan: columns.length }, t("Computing …")),
      (line.cells ? line.margins : margins.map(() => [])).map(margin),
    );
  }

  const body = el("tbody", {}, block.lines.map(row)),
    foot = el("tfoot");
  function note() {
    const marks = [...body.querySelectorAll("tr:not([hidden]) .noted")],
      texts = new Set(marks.map((mark) => mark.title));
    foot.replaceChildren(
      ...[...texts].map((text) =>
        el("tr", {}, el("td", { colspan: width }, el("span", {}, `${MARK} ${text}`))),
      ),
    );
  }

  function again(line, layer, then = () => {}) {
    api.request("row", { row: line.key, layer }, (value) => {
      const old = [...body.children].find((one) => one.dataset.key === line.key);
      if (!body.isConnected || !old) return;
      const hadFocus = old.contains(document.activeElement);
      const now = value.error
        ? el(
            "tr",
            { "data-key": line.key },
            el("th", { scope: "row" }, line.name),
            el("td", { colspan: width - 1 }, value.error),
          )
        : row(value.blocks[0]);
      now.hidden = old.hidden;
      old.replaceWith(now);
      note();
      then();
      if (hadFocus) now.querySelector("select")?.focus();
    });
  }

  note();
  body.querySelector("td > button")?.setAttribute("tabindex", "0");
  const folded = block.lines.filter((line) => line.folded).length;
  const unfold = () => {
    for (const one of body.children) one.hidden = false;
    more.remove();
    note();
  };
  const label = t("Show the other {n} methods all the same", { n: folded });
  const more = folded ? button(label, unfold, { class: "action" }) : null;
  const table = el("table", {}, el("thead", {}, sides, names), body, foot),
    scroll = scrolling(table, { "aria-label": block.label, onkeydown: walk });
  const see = () => {
    const { cells } = names;
    if (block.sight !== null)
      reveal(scroll, cells[1 + block.sight], cells[0], cells[1 + columns.length]);
  };
  // A row that comes later may make columns wider.
  for (const line of block.lines) if (!line.cells) keep.push(() => again(line, 0, see));
  keep.push(see);
  return el(
    "div",
    { class: "matrix" },
    createPicture(scroll, {
      ...api.about(toText(block.label)),
      svg: () => drawing.elementSvg(table),
    }),
    more,
  );
}
