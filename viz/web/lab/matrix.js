// A matrix of numbers (viz/wire/matrix.py): a cell is a button that asks for what is behind it.
import { el } from "../core/dom.js";
import { arrow } from "../core/keys.js";
import { said, t } from "../core/language.js";
import { reveal, scrolling } from "./scroll.js";
import { pictured } from "../picture/copy.js";
import * as drawing from "../picture/drawing.js";

const FAR = 999; // columns

// What stands in the margin: parts {text, look}, one below the other. Of those that are "noted" a mark, their text at the foot.
const MARK = "*";
const margin = (parts) =>
  el(
    "td",
    { class: "margin" },
    parts.map((part) =>
      part.look === "noted"
        ? el("span", { class: "noted", title: part.text }, MARK)
        : el("span", { class: part.look, title: part.about }, part.text),
    ),
  );

function header(block, firsts) {
  const word = (column, i) =>
    el(
      "th",
      {
        scope: "col",
        class: `word${column.special ? " special" : ""}${firsts.has(i) ? " first" : ""}`,
        title: column.text,
        dir: "auto",
        style: `min-width: min(84px, ${Math.max(4, [...column.text].length + 1)}ch)`,
      },
      column.text,
    ); // a word breaks only where it is long
  const sides = el(
    "tr",
    { class: "sides" },
    el("td"),
    block.groups.map(([title, span], i) =>
      el("th", { scope: "colgroup", colspan: span, class: i ? "first" : null }, title),
    ),
    block.margins.map(() => margin([])),
  );
  return el(
    "thead",
    {},
    sides,
    el(
      "tr",
      {},
      el("td"),
      block.columns.map(word),
      block.margins.map(([title, about]) =>
        el("th", { scope: "col", class: "margin", title: about }, title),
      ),
    ),
  );
}

function cell(block, firsts, line, i, run) {
  const found = line.cells[i],
    column = block.columns[i];
  const look = `${column.special ? " special" : ""}${firsts.has(i) ? " first" : ""}`;
  if (!found)
    return el("td", { class: `cell none${look}`, title: block.none }, el("span", {}, "·"));
  const name = t("{method}, {word}: {n}", {
    method: said(line.name),
    word: said(column.name) || column.text,
    n: found.text,
  });
  const about = {
    "aria-label": name,
    title: name,
    style: `--share: ${Math.abs(found.share)}`,
    class: `value ${found.share < 0 ? "against" : "for"}`,
  };
  if (!block.act) return el("td", { class: `cell${look}` }, el("span", about, found.text));
  const button = el(
    "button",
    {
      type: "button",
      tabindex: "-1",
      "data-column": i,
      ...about,
      onclick: () => run(line, i, button),
    },
    found.text,
  );
  return el("td", { class: `cell${look}` }, button);
}

function notes(body, columns) {
  const texts = new Set(
    [...body.querySelectorAll("tr:not([hidden]) .noted")].map((mark) => mark.title),
  );
  return [...texts].map((text) =>
    el("tr", {}, el("td", { colspan: columns }, el("span", {}, `${MARK} ${text}`))),
  );
}

// hooks: run(line, column, button), again(line, layer)
function row(block, firsts, line, hooks) {
  const layers = Array.from({ length: line.layers + 1 }, (_, i) =>
    el(
      "option",
      { value: i, selected: i === line.layer },
      i ? t("layer {n}", { n: i }) : t("all layers"),
    ),
  );
  const name = el(
    "th",
    { scope: "row" },
    el("span", { class: "method" }, line.name),
    line.evidence
      ? el("span", { class: `kind ${line.kind.replace(" ", "-")}` }, line.evidence)
      : null,
    line.layers
      ? el(
          "select",
          {
            "aria-label": t("{method}: which layer", { method: said(line.name) }),
            onchange: (event) => hooks.again(line, Number(event.target.value)),
          },
          layers,
        )
      : null,
  );
  if (line.about.length) name.title = line.about.map(said).join(" ");
  const cells = line.cells
    ? block.columns.map((_, i) => cell(block, firsts, line, i, hooks.run))
    : [el("td", { class: "waiting", colspan: block.columns.length }, t("Computing …"))];
  return el(
    "tr",
    { "data-key": line.key, hidden: line.folded },
    name,
    cells,
    (line.cells ? line.margins : block.margins.map(() => [])).map(margin),
  );
}

// One stop for the tabulator; arrow keys go from cell to cell, over those that hold nothing.
function walk(event) {
  const move = arrow(event);
  const at = event.target.closest("button[data-column]");
  if (!move || !at) return;
  event.preventDefault();
  const rows = [...event.currentTarget.querySelectorAll("tbody > tr")].filter(
    (one) => !one.hidden && one.querySelector("button"),
  );
  let r = rows.indexOf(at.closest("tr")),
    c = Number(at.dataset.column),
    next = null;
  while (!next) {
    [r, c] = [r + move[0], c + move[1]];
    if (!rows[r] || c < 0 || c > FAR) return;
    next = rows[r].querySelector(`button[data-column="${c}"]`);
  }
  at.tabIndex = -1;
  next.tabIndex = 0;
  next.focus();
}

export function matrix(block, keep, api) {
  const firsts = new Set();
  block.groups.reduce((from, [, span], i) => (i && firsts.add(from), from + span), 0);
  const body = el("tbody"),
    foot = el("tfoot"),
    at = (line) => [...body.children].find((one) => one.dataset.key === line.key);
  const hooks = {
    run(line, column, button) {
      body.querySelector(".chosen")?.classList.remove("chosen");
      body.querySelector("[tabindex='0']")?.setAttribute("tabindex", "-1");
      button.tabIndex = 0;
      button.classList.add("chosen");
      api.act(block.act, block.act, { column, row: line.key });
    },
    again(line, layer = 0, then = null) {
      api.request("row", { row: line.key, layer }, (value) => {
        const old = at(line),
          back = old?.contains(document.activeElement);
        if (!body.isConnected || !old) return;
        const now = value.error
          ? el(
              "tr",
              { "data-key": line.key },
              el("th", { scope: "row" }, line.name),
              el("td", { colspan: block.columns.length + block.margins.length }, value.error),
            )
          : row(block, firsts, value.blocks[0], hooks);
        now.hidden = old.hidden;
        old.replaceWith(now);
        note();
        then?.();
        if (back) now.querySelector("select")?.focus();
      });
    },
  };
  const note = () =>
    foot.replaceChildren(...notes(body, 1 + block.columns.length + block.margins.length));
  body.append(...block.lines.map((line) => row(block, firsts, line, hooks)));
  note();
  body.querySelector("td > button")?.setAttribute("tabindex", "0");
  for (const line of block.lines) if (!line.cells) keep.push(() => hooks.again(line, 0, see)); // it may make columns wider
  const folded = block.lines.filter((line) => line.folded).length;
  const more = folded
    ? el(
        "button",
        {
          type: "button",
          class: "action",
          onclick: () => {
            for (const one of body.children) one.hidden = false;
            more.remove();
            note();
          },
        },
        t("Show the other {n} methods all the same", { n: folded }),
      )
    : null;
  const head = header(block, firsts),
    table = el("table", {}, head, body, foot),
    scroll = scrolling(table, { "aria-label": block.label, onkeydown: walk });
  const { cells } = head.lastChild,
    see = () =>
      block.sight !== null &&
      reveal(scroll, cells[1 + block.sight], cells[0], cells[1 + block.columns.length]);
  keep.push(see);
  return el(
    "div",
    { class: "matrix" },
    pictured(scroll, {
      ...api.about(said(block.label)),
      svg: () => drawing.element(table),
    }),
    more,
  );
}
