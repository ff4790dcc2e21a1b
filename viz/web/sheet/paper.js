// A worksheet on paper: questions with blanks, and the teacher's key on pages of its own. It
// consists of text and SVG only, so it can be saved as one HTML file.
import { el, shorten, svg } from "../core/dom.js";
import { formatPercent } from "../core/format.js";
import { toText, t } from "../core/language.js";

const ROW = 22,
  NAMES = 130,
  LENGTH = 300,
  NUMBERS = 60; // pixels of a bar's line
const CELL = 22,
  LARGEST = 360; // pixels of a grid
const MANY = 12; // characters of a choice, beyond which each choice has its own line

/**
 * Create a worksheet.
 * @param {{title: string, questions: any[]}} content questions {title, text, read, wrote, ask}, ask as viz/tours/asks.py makes
 *   it; without ask it is a note; with ask.missing or error it says why it cannot be asked; null while it is loading
 * @param {{withKey: boolean, viewUrl: (fields: any) => string}} options whether to add the teacher's key; the address of a view
 *   of the page by its fields
 */
export function createPaper({ title, questions }, { withKey, viewUrl }) {
  const numbered = questions.filter((item) => item === null || item.ask || item.error);
  const number = (item) => numbered.indexOf(item) + 1;
  const answers = () =>
    el("section", { class: "key" }, [
      el("h2", {}, t("Teacher’s key: {title}", { title })),
      numbered.map((item) => item?.ask?.choices && answer(item, number(item), viewUrl)),
      el("p", { class: "how" }, [
        t(
          "Every answer was computed by the program that made this sheet, from the model’s own pass over the sentence.",
        ),
      ]),
    ]);
  return el("article", { class: "paper", lang: document.documentElement.lang }, [
    el("header", {}, [
      el("h1", {}, title),
      el("p", { class: "who" }, blank(t("Name")), blank(t("Date"))),
    ]),
    el("div", { class: "questions" }, [questions.map((item) => question(item, number(item)))]),
    withKey ? answers() : null,
  ]);
}

const blank = (words) => el("span", {}, `${words} `, el("span", { class: "blank" }));

const source = (text) => el("bdi", { class: "source" }, text);

function question(item, number) {
  if (item === null) return el("div", { class: "question waits" }, "…");
  const { title, text, read, wrote, error, ask } = item,
    missing = error || ask?.missing;
  const heading = [
    title ? el("h2", {}, ask ? `${number}. ` : "", title) : "",
    text ? el("p", {}, text) : "",
  ];
  if (!missing && !ask) return el("div", { class: "note" }, heading, lines("", "", ""));
  const itsNumber = title ? "" : `${number}. `;
  if (missing)
    return el("div", { class: "question" }, [
      heading,
      read ? el("p", { class: "sentence" }, source(read)) : "",
      el("p", { class: "missing" }, itsNumber, missing),
    ]);
  const choices = ask.choices.map(toText),
    isTall = choices.some((choice) => [...choice].length > MANY);
  return el("div", { class: "question" }, [
    heading,
    el("p", { class: "sentence" }, source(read), ask.hides ? "" : [" → ", source(wrote)]),
    el("p", { class: "prompt" }, itsNumber, ask.prompt),
    el("ul", { class: isTall ? "choices tall" : "choices" }, [
      choices.map((choice) => el("li", {}, "☐ ", choice)),
    ]),
    figureOf(ask, false),
    lines(t("Because")),
  ]);
}

const lines = (...words) => words.map((text) => el("p", { class: "line" }, text));

function figureOf({ picture: content }, filled) {
  if (!content) return null;
  const about =
    content.unit === "nats"
      ? t("Draw how much you expect each word to cost.")
      : t("Shade what you expect, then compare with the page.");
  return el("figure", {}, [
    drawPicture(content, filled),
    filled ? null : el("figcaption", {}, about),
  ]);
}

const answer = ({ ask }, number, viewUrl) =>
  el("div", { class: "answer" }, [
    el("p", {}, [
      el("b", {}, `${number}. ${ask.right.map((i) => toText(ask.choices[i])).join(t(" or "))}`),
      " · ",
      ask.answer,
      " ",
      el("a", { href: viewUrl(ask.view) }, t("See it on the page")),
    ]),
    figureOf(ask, true),
  ]);

// --- pictures: empty, to be filled in with a pencil, or filled, in the key ----------------------------------------------
const drawing = (width, height, ...parts) =>
  svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height }, ...parts);
const rect = (kind, x, y, width, height, more = {}) =>
  svg("rect", { class: kind, x, y, width, height, ...more });
const text = (x, y, words, attributes = {}) => svg("text", { x, y, ...attributes }, words);

function bars({ labels, values, unit }, filled) {
  const shares = unit === "share",
    most = shares ? 1 : Math.max(...values, 1e-9),
    tall = ROW - 6;
  const parts = labels.flatMap((label, i) => {
    const y = i * ROW + 3,
      value = shares ? formatPercent(values[i]) : values[i].toFixed(1);
    const marks = shares ? [0.25, 0.5, 0.75].map((part) => NAMES + LENGTH * part) : [];
    return [
      text(NAMES - 8, y + 13, shorten(toText(label)), { "text-anchor": "end" }),
      rect("frame", NAMES, y, LENGTH, tall),
      ...marks.map((x) => svg("line", { x1: x, x2: x, y1: y, y2: y + tall })),
      filled ? rect("bar", NAMES, y, (LENGTH * Math.max(0, values[i])) / most, tall) : null,
      filled ? text(NAMES + LENGTH + 6, y + 13, value) : null,
    ];
  });
  return drawing(NAMES + LENGTH + NUMBERS, labels.length * ROW + 6, parts);
}

function grid({ rows, columns, values }, filled) {
  const size = Math.min(CELL, LARGEST / rows.length),
    top = 74,
    left = 96;
  const names = columns.map((label, j) => {
    const x = left + (j + 0.65) * size,
      y = top - 6;
    return text(x, y, shorten(label, 10), { transform: `rotate(-55 ${x} ${y})` });
  });
  const lines = rows.flatMap((label, i) => [
    text(left - 6, top + (i + 0.7) * size, shorten(label, 12), { "text-anchor": "end" }),
    ...columns.flatMap((_, j) => {
      const at = [left + j * size, top + i * size, size, size],
        value = values[i][j];
      return [
        filled && value > 0 ? rect("bar", ...at, { "fill-opacity": value }) : null,
        rect("frame", ...at),
      ];
    }),
  ]);
  return drawing(left + size * columns.length + 50, top + size * rows.length + 4, names, lines);
}

const DRAWN = { bars, grid };

/** Draw a picture of viz/tours/asks.py. @param {any} content @param {boolean} filled with the answer, or empty */
export const drawPicture = (content, filled) => DRAWN[content.type](content, filled);

/** Return a worksheet as an HTML page. @param {Element} article @param {string} title @param {string} style CSS */
export function pageHtml(article, title, style) {
  const htmlPage = document.implementation.createHTMLDocument(title);
  htmlPage.documentElement.lang = document.documentElement.lang;
  htmlPage.head.prepend(
    el("meta", { charset: "utf-8" }),
    el("meta", { name: "viewport", content: "width=device-width" }),
  );
  htmlPage.head.append(el("style", {}, style));
  htmlPage.body.append(htmlPage.importNode(article, true));
  // oxlint-disable-next-line no-restricted-properties -- read, not set: the browser writes out the nodes made above
  return `<!doctype html>\n${htmlPage.documentElement.outerHTML}\n`;
}
