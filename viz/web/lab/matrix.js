// A matrix of words and methods (viz/wire/matrix.py). Clicking a cell asks the server how its number came about.
import { button, el, menu } from "../core/dom.js";
import { arrowStep, moveFocus } from "../core/keys.js";
import { toText, t } from "../core/language.js";
import { createScrollBox, scrollToCell } from "./scroll.js";
import { createPicture } from "../picture/copy.js";
import * as drawing from "../picture/drawing.js";

// Move the focus along a row or a column with the arrow keys, over empty cells.
function moveBetweenCells(event) {
  const cell = event.target.closest("td"),
    [isVertical] = arrowStep(event) ?? [];
  if (!cell) return;
  const column = `tr:not([hidden]) > :nth-child(${cell.cellIndex + 1}) > button`,
    nodes = isVertical
      ? [...event.currentTarget.querySelectorAll(column)].map((node) => [node])
      : [[...cell.parentNode.querySelectorAll("td > button")]];
  moveFocus(event, nodes);
}

/**
 * The block of a matrix.
 * @param {any} block viz/wire/matrix.py
 * @param {(() => unknown)[]} afterInsert
 * @param {import("./blocks.js").Panel} api
 */
export function matrix(block, afterInsert, api) {
  const { columns, groups, margins } = block;
  const firsts = new Set(); // columns with which a further group begins
  let start = 0;
  for (const [, span] of groups) {
    if (start) firsts.add(start);
    start += span;
  }
  const columnClass = (i) =>
    `${columns[i].special ? " special" : ""}${firsts.has(i) ? " first" : ""}`;
  const width = 1 + columns.length + margins.length;

  // A cell of the margin: parts {text, look, about}, one below the other.
  const marginCell = (parts) =>
    el("td", { class: "margin" }, [
      parts.map(({ text, look, about }) => el("span", { class: look, title: about }, text)),
    ]);

  const sides = el("tr", { class: "sides" }, [
    el("td"),
    groups.map(([title, span], i) =>
      el("th", { scope: "colgroup", colspan: span, class: i ? "first" : null }, title),
    ),
    margins.map(() => marginCell([])),
  ]);
  const words = columns.map(({ text }, i) => {
    const style = `min-width: min(84px, ${Math.max(4, [...text].length + 1)}ch)`; // only a long word may break
    const look = { class: `word${columnClass(i)}`, style };
    return el("th", { scope: "col", title: text, dir: "auto", ...look }, text);
  });
  const names = el("tr", {}, [
    el("td"),
    words,
    margins.map(([title, about]) =>
      el("th", { scope: "col", class: "margin", title: about }, title),
    ),
  ]);

  function createCell(line, i) {
    const cell = line.cells[i];
    if (!cell)
      return el("td", { class: `cell none${columnClass(i)}`, title: block.none }, [
        el("span", {}, "·"),
      ]);
    const name = t("{method}, {word}: {n}", {
      method: toText(line.name),
      word: toText(columns[i].name) || columns[i].text,
      n: cell.text,
    });
    const attributes = {
      "aria-label": name,
      title: name,
      style: `--share: ${Math.abs(cell.share)}`,
      class: `value ${cell.share < 0 ? "against" : "for"}`,
    };
    const explain = ({ currentTarget }) => {
      body.querySelector(".chosen")?.classList.remove("chosen");
      currentTarget.classList.add("chosen");
      api.askForSlot(block.act, block.act, { column: i, row: line.key });
    };
    return el("td", { class: `cell${columnClass(i)}` }, [
      block.act
        ? button(cell.text, explain, { tabindex: "-1", onfocus: stopHere, ...attributes })
        : el("span", attributes, cell.text),
    ]);
  }

  // The Tab key stops at the cell that had the focus last.
  function stopHere({ currentTarget }) {
    body.querySelector("[tabindex='0']")?.setAttribute("tabindex", "-1");
    currentTarget.tabIndex = 0;
  }

  function createRow(line) {
    const layers = Array.from({ length: line.layers + 1 }, (_, i) => [
      i,
      i ? t("layer {n}", { n: i }) : t("all layers"),
    ]);
    return el("tr", { "data-key": line.key, hidden: line.folded }, [
      el("th", { scope: "row", title: line.about.map(toText).join(" ") || null }, [
        el("span", { class: "method" }, line.name),
        line.evidence &&
          el("span", { class: `kind ${line.kind.replace(" ", "-")}` }, line.evidence),
        line.layers > 0 &&
          menu(layers, line.layer, {
            "aria-label": t("{method}: which layer", { method: toText(line.name) }),
            onchange: (event) => requestRow(line, Number(event.target.value)),
          }),
      ]),
      line.cells
        ? columns.map((_, i) => createCell(line, i))
        : el("td", { class: "waiting", colspan: columns.length }, t("Computing …")),
      (line.cells ? line.margins : margins.map(() => [])).map(marginCell),
    ]);
  }

  const body = el("tbody", {}, block.lines.map(createRow)),
    foot = el("tfoot");
  // Collect the notes of the visible rows at the foot.
  function drawNotes() {
    const marks = [...body.querySelectorAll("tr:not([hidden]) .noted")],
      texts = new Set(marks.map((mark) => `${mark.textContent} ${mark.title}`));
    foot.replaceChildren(
      ...[...texts].map((text) => el("tr", {}, el("td", { colspan: width }, el("span", {}, text)))),
    );
  }

  // Ask the server for a row, of one layer or of all (0).
  async function requestRow(line, layer) {
    const { error, blocks } = await api.askForAnswer("row", { row: line.key, layer }),
      old = body.querySelector(`tr[data-key="${CSS.escape(line.key)}"]`);
    if (!body.isConnected) return;
    const hadFocus = old.contains(document.activeElement);
    const row = error
      ? el("tr", { "data-key": line.key }, [
          el("th", { scope: "row" }, line.name),
          el("td", { colspan: width - 1 }, error),
        ])
      : createRow(blocks[0]);
    row.hidden = old.hidden;
    old.replaceWith(row);
    drawNotes();
    if (hadFocus) row.querySelector("select")?.focus();
  }

  drawNotes();
  body.querySelector("td > button")?.setAttribute("tabindex", "0");
  const folded = block.lines.filter((line) => line.folded).length;
  const unfold = () => {
    for (const row of body.children) row.hidden = false;
    more.remove();
    drawNotes();
  };
  const label = t("Show the other {n} methods anyway", { n: folded });
  const more = folded ? button(label, unfold, { class: "action" }) : null;
  const table = el("table", {}, el("thead", {}, sides, names), body, foot),
    scroll = createScrollBox(table, { "aria-label": block.label, onkeydown: moveBetweenCells });
  const showSelected = () => {
    const { cells } = names;
    if (block.sight !== null)
      scrollToCell(scroll, cells[1 + block.sight], cells[0], cells[1 + columns.length]);
  };
  // A row that comes later may make columns wider, so scroll again.
  for (const line of block.lines)
    if (!line.cells) afterInsert.push(() => void requestRow(line, 0).then(showSelected));
  afterInsert.push(showSelected);
  return el("div", { class: "matrix" }, [
    createPicture(scroll, {
      ...api.describePicture(toText(block.label)),
      svg: () => drawing.elementSvg(table),
    }),
    more,
  ]);
}
