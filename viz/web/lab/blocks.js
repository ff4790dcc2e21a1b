// The blocks that a panel is made of (viz/wire/blocks.py), as elements. The function of a block takes the block, an array of
// callbacks that run once the block is on the page, and what it may do in its panel.
import { button, download, el, rangeField, table as tableOf } from "../core/dom.js";
import { cellAt } from "../core/keys.js";
import { localizeNumber, toText, t } from "../core/language.js";
import { copyLink, linkFields, showHead } from "../core/links.js";
import { links } from "../heads/links.js";
import { survey } from "../heads/survey.js";
import { pick, take } from "../heads/take.js";
import { grid, heads } from "./heads.js";
import { math } from "./math.js";
import { matrix } from "./matrix.js";
import { createFigure } from "../picture/figure.js";
import { bars, maps, drawNumbers } from "./maps.js";
import { createScrollBox } from "./scroll.js";
import { network } from "./network.js";
import { inside } from "./whole.js";
import { svgToFile } from "../picture/copy.js";
import { elementSvg } from "../picture/drawing.js";
import { words } from "../why/choices.js";
import { askQuestion } from "../why/question.js";

/**
 * @typedef {object} Panel what blocks may do in their panel (panel.js)
 * @property {(action: string, slot: string, data?: object) => void} askForSlot ask an action whose answer fills a slot
 * @property {(action: string, data: object) => Promise<any>} askForAnswer ask an action, and return its answer
 * @property {(key: string) => void} beginWork begin long work
 * @property {(event: string, data: object) => void} askForPage ask for another translation, or for a text for the panel's field
 * @property {(link: any) => void} openLink open a link's fields
 * @property {(title: string) => {title: () => string, caption: () => string}} describePicture of a picture
 * @property {(block: any, afterInsert: (() => unknown)[]) => Element} drawBlock draw a block
 */

// A row of numbers as coloured cells on a canvas. Its title shows the number under the pointer.
function strip(cell) {
  const count = cell.values.length;
  const name = t("{name}: {n} numbers, the largest {limit}", {
    name: cell.name || t("row"),
    n: count,
    limit: cell.limit,
  });
  const canvas = drawNumbers(cell.values, count, cell.limit, cell.signed);
  Object.assign(canvas, { className: "strip", role: "img", ariaLabel: name });
  canvas.style.setProperty("--cells", count);
  canvas.style.setProperty("--cell", count < 16 ? "14px" : "4px");
  canvas.addEventListener("pointermove", (event) => {
    const [, i] = cellAt(event, canvas, 1, count),
      value = cell.values[i];
    canvas.title =
      (cell.name ? `${toText(cell.name)}, ` : "") +
      t("dimension {i}: {value}", { i, value: value === null ? t("masked") : value });
  });
  return canvas;
}

// Whether the terms of a text are marked: of a sentence of the page, not of the visitor's text.
const hasTerms = (text) => text?.say !== undefined;
const actionButton = (text, onclick) => button(text, onclick, { class: "plain action" });

// The functions that draw the cells of tables, by type. A cell without a type is a text.
const CELLS = {
  number: (cell) => el("span", { class: "number" }, localizeNumber(String(toText(cell.text)))),
  symbols: (cell) => math(toText(cell.text)),
  strip,
  bar: (cell) => el("span", { class: "bar", style: `--share: ${cell.share}` }, CELLS.number(cell)),
  shade: (cell) =>
    el("span", { class: cell.framed ? "shade framed" : "shade", style: `--share: ${cell.share}` }, [
      cell.text,
    ]),
  verdict: (cell) =>
    el(
      "span",
      { class: `verdict ${cell.passed === null ? "waiting" : cell.passed ? "yes" : "no"}` },
      el("b", {}, cell.passed === null ? "…" : cell.passed ? t("yes") : t("no")),
      cell.text ? el("small", {}, cell.text) : null,
    ),
  dot: (cell) =>
    el("span", { class: `dot ${cell.passed ? "yes" : "no"}`, title: cell.text }, [
      el("span", { class: "sr-only" }, cell.passed ? t("yes") : t("no")),
    ]),
  token: (cell) => el("span", { class: "token", dir: "auto" }, cell.text),
  button: (cell, api) => actionButton(cell.text, () => follow(cell.to, api)),
};
function drawCell(cell, api) {
  if (cell === null) return "";
  return cell.cell ? CELLS[cell.cell](cell, api) : localizeNumber(String(toText(cell)));
}

/**
 * Follow the target of a click.
 * @param {{look?: any, open?: any, link?: any, ask?: any, act?: string, slot?: string, data?: object}} to a head for the explorer, a
 *   panel's fields of a link, all fields of a link, a question of the tab "Why", or a question of the panel
 * @param {Panel} api
 */
function follow(to, api) {
  if (to.look) showHead(to.look);
  else if (to.open) api.openLink(to.open);
  else if (to.link) location.hash = String(new URLSearchParams(to.link));
  else if (to.ask) askQuestion(to.ask);
  else api.askForSlot(to.act, to.slot, to.data);
}

const LONG = 26; // a cell's text may break into lines if it has more characters than this
const NUMBER = /^[^\p{L}]*[\d–][^\p{L}]*(\p{L}{1,4})?$/u; // or a dash in place of a number; perhaps with a unit
const NUMBERS = ["number", "shade", "bar"]; // types of cells

// Whether a cell holds a number, or a text that is one; null if it is empty.
function isNumber(cell) {
  if (cell === null || cell === "") return null;
  return cell.cell ? NUMBERS.includes(cell.cell) : NUMBER.test(String(toText(cell)));
}
// Whether most cells of a column hold numbers. A column of numbers is aligned at its right.
function isNumberColumn(cells) {
  const filled = cells.map(isNumber).filter((value) => value !== null);
  return 2 * filled.filter(Boolean).length > filled.length;
}

// The class of a table cell. next: the cell to its right; the last shade of several in a row looks different.
function classOf(cell, next = null) {
  if (cell?.cell === "shade") return next?.cell === "shade" ? null : "last";
  const words = cell?.cell === "verdict" ? cell.text : cell?.cell ? "" : cell;
  return String(toText(words) ?? "").length > LONG ? "words" : null;
}

function table(block, afterInsert, api) {
  const rows = [...block.rows, ...(block.foot ? [block.foot] : [])],
    isRight = block.columns.map((_, i) => isNumberColumn(rows.map((cells) => cells[i])));
  function createCell(value, i, cells) {
    const content = drawCell(value, api),
      kind = classOf(value, cells[i + 1]),
      look = isRight[i] && kind !== "words" ? `right ${kind ?? ""}`.trim() : kind;
    return i
      ? el("td", { class: look }, content)
      : el("th", { scope: "row", class: look }, content);
  }
  const createRow = (cells, isMarked) =>
    el("tr", { class: isMarked ? "marked" : null }, cells.map(createCell));
  const element = tableOf(
    block.columns.map((name, i) =>
      name
        ? el(
            "th",
            {
              scope: "col",
              class: isRight[i] ? "right" : null,
              "data-terms": hasTerms(name),
            },
            name,
          )
        : el("td"),
    ),
    block.rows.map((values, i) => createRow(values, block.marked.includes(i))),
  );
  if (block.foot) element.append(el("tfoot", {}, createRow(block.foot, false)));
  const firstTitle = toText(block.columns[0] || block.columns[1]);
  return el("div", { class: "titled" }, [
    createScrollBox(element, { "aria-label": block.caption || `${t("table")}: ${firstTitle}` }),
    block.caption
      ? el("p", { class: "caption", "data-terms": hasTerms(block.caption) }, block.caption)
      : null,
  ]);
}

const children = (block, afterInsert, api) =>
  block.blocks.map((child) => api.drawBlock(child, afterInsert));

const FRAME_TIME = 700; // milliseconds that a frame stays while it is played

// Several frames of blocks in one place, with a slider and a button that plays them.
function frames(block, afterInsert, api) {
  const box = el("div", {}),
    last = block.frames.length - 1;
  let timer = null;
  const slider = rangeField(block.name, { max: last, value: 0 }, () => (pause(), show()));
  const play = button("", toggle);
  const current = () => Number(slider.value);
  function show() {
    slider.setAttribute("aria-valuetext", t("{n} of {all}", { n: current() + 1, all: last + 1 }));
    box.replaceChildren(...block.frames[current()].map((part) => api.drawBlock(part, [])));
  }
  function pause() {
    clearInterval(timer);
    timer = null;
    play.textContent = `▶ ${t("Play")}`;
  }
  function next() {
    if (!box.isConnected || current() === last) return pause();
    slider.value = String(current() + 1);
    show();
  }
  function toggle() {
    if (timer) return pause();
    if (current() === last) slider.value = "-1";
    timer = setInterval(next, FRAME_TIME);
    play.textContent = `⏸ ${t("Pause")}`;
    next();
  }
  pause();
  show();
  return el("div", { class: "frames" }, el("div", { class: "player" }, play, slider), box);
}

// Buttons that export a panel's matrix or grids as a picture, and the files that the server writes (viz/panels/downloads.py).
function exports(block, afterInsert, api) {
  const status = el("span", { class: "caption", role: "status" });
  const exportButton = (text, title, onclick) => button(text, onclick, { class: "action", title });
  async function savePicture(event, format) {
    const drawn = event.target
      .closest(".atlas-panel")
      .querySelector(".matrix .scroll > table, .heads .kinds, .heads .cells");
    try {
      download(`why.${format}`, await svgToFile(elementSvg(drawn), format));
    } catch (error) {
      status.textContent = t("No picture could be made: {why}.", { why: error.message });
    }
  }
  async function requestFile(format) {
    status.textContent = t("Computing …");
    const { error, file } = await api.askForAnswer(block.act, { ...block.data, format });
    status.textContent = toText(error) || "";
    if (file) download(file.name, file.blob);
  }
  const pictures = [
    ["png", t("What is shown, as a picture")],
    ["svg", t("What is shown, as a vector picture")],
  ];
  return el("div", { class: "exports", role: "group", "aria-label": t("Export and share") }, [
    el("span", { class: "caption" }, t("Export")),
    block.picture &&
      pictures.map(([format, title]) =>
        exportButton(format.toUpperCase(), title, (event) => savePicture(event, format)),
      ),
    block.formats.map(({ text, about }) =>
      exportButton(text.toUpperCase(), about, () => requestFile(text)),
    ),
    status,
  ]);
}

// A short text with its title and a note. look: class names
const titledText = (look, title, words, note) =>
  el("div", { class: look }, [
    el("h3", {}, title),
    el("p", { dir: "auto" }, words),
    note ? el("small", {}, note) : null,
  ]);

// A word that may have a number: as a shade, and as a superscript, which screen readers read aloud.
const markedWord = ([word, n]) => [
  n ? el("mark", { style: `--share: ${n / 4}` }, word, el("sup", {}, String(n))) : word,
  " ",
];

// The functions that draw blocks, by type of block.
export const BLOCKS = {
  bars,
  exports,
  frames,
  grid,
  heads,
  inside,
  links,
  maps,
  matrix,
  network: (b, afterInsert, api) => network(b, api, (to) => follow(to, api)),
  pick,
  survey,
  table,
  take,
  words,
  text: (b) =>
    el("p", { class: `text ${b.tone}`, dir: "auto", "data-terms": hasTerms(b.text) }, b.text),
  formula: (b) =>
    el("p", { class: "formula" }, [
      toText(b.text)
        .split(/ {2,}/) // several formulas: on a narrow page, each has its own line
        .map((part) => el("span", {}, math(part))),
      b.source ? el("small", {}, b.source) : null,
    ]),
  facts: (b) =>
    el("dl", { class: "facts" }, [
      b.items.map(([name, value, note]) =>
        el("div", {}, [
          el("dt", { "data-terms": hasTerms(name) }, name),
          el("dd", {}, localizeNumber(String(toText(value)))),
          note ? el("dd", { class: "note", "data-terms": hasTerms(note) }, note) : null,
        ]),
      ),
    ]),
  cards: (b) =>
    el(
      "div",
      { class: "cards" },
      b.items.map((item) => titledText("card", ...item)),
    ),
  slot: (b, afterInsert, api) =>
    el("div", { class: "slot", "data-slot": b.slot, "aria-live": "polite" }, [
      children(b, afterInsert, api),
    ]),
  row: (b, afterInsert, api) => el("div", { class: "row" }, children(b, afterInsert, api)),
  stack: (b, afterInsert, api) => el("div", { class: "stack" }, children(b, afterInsert, api)),
  folded: (b, afterInsert, api) =>
    el("details", {}, el("summary", {}, b.title), children(b, afterInsert, api)),
  action: (b, afterInsert, api) =>
    actionButton(b.text, () => (b.to ? follow(b.to, api) : api.askForPage(b.event, b.data))),
  link: (b) => {
    const status = el("span", { class: "text note", role: "status" });
    const copy = () =>
      copyLink(linkFields(b.about, b.fields), (words) => status.replaceChildren(words));
    return el("p", {}, actionButton(b.text, copy), " ", status);
  },
  marked: (b) =>
    el("div", { class: "marked-texts" }, [
      b.texts.map(({ title, words, note }) =>
        titledText("marked-text", title, words.map(markedWord), note),
      ),
    ]),
  figure: (b, afterInsert, api) =>
    createFigure(b, afterInsert, {
      describePicture: api.describePicture,
      follow: (to) => follow(to, api),
    }),
};
