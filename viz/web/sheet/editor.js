// The editor of a teacher's own worksheet: each row has a sentence, a question, and the word that it is about.
import { button, debounce, el, menu } from "../core/dom.js";
import { t } from "../core/language.js";

const TYPING_PAUSE = 500; // milliseconds after the last key until a change is reported

/**
 * Create the editor.
 * @param {import("./sheet.js").Offer} offer @param {() => void} onChange called after each change, and some time after typing
 * @returns {{node: any, put: (sheet: any) => void, read: () => any}} put and read the worksheet: {title, direction, checkpoint,
 *   items: [{text, ask, word}]}
 */
export function createEditor(offer, onChange) {
  let rows = [];
  const reportTyping = debounce(onChange, TYPING_PAUSE);
  const field = (label, node) => el("label", { class: "field" }, el("span", {}, label), node);
  const title = el("input", { type: "text", maxlength: 120, oninput: reportTyping });
  const titles = offer.directions.map((direction, i) => [i, direction.title]),
    directions = menu(titles, 0, { onchange: onChange });
  const questions = offer.asks.map((question) => [question.name, question.title]);
  const list = el("ol", { class: "rows" });
  const announcement = el("p", { class: "sr-only", role: "status" });

  function createRow({ text = "", ask = offer.asks[0].name, word = "" } = {}) {
    const typed = (name, limit) => ({
        maxlength: limit,
        "aria-label": name,
        oninput: reportTyping,
      }),
      hint = t("Word of the translation (optional)");
    const fields = {
      text: el("textarea", { rows: 2, ...typed(t("Sentence"), 1000) }, text),
      ask: menu(questions, ask, { "aria-label": t("Question"), onchange: onChange }),
      word: el("input", { type: "text", value: word, placeholder: hint, ...typed(hint, 80) }),
    };
    const tools = el("span", { class: "tools" }, [
      button("↑", () => moveRow(fields, -1), { "aria-label": t("Move up") }),
      button("↓", () => moveRow(fields, 1), { "aria-label": t("Move down") }),
      button("✕", () => removeRow(fields), { "aria-label": t("Remove this question") }),
    ]);
    fields.node = el("li", {}, fields.text, el("div", {}, fields.ask, fields.word, tools));
    return fields;
  }

  const drawRows = () => list.replaceChildren(...rows.map((item) => item.node));

  function moveRow(item, by) {
    const at = rows.indexOf(item),
      to = at + by;
    if (!rows[to]) return;
    rows.splice(to, 0, ...rows.splice(at, 1));
    drawRows();
    item.node.querySelectorAll("button")[by < 0 ? 0 : 1].focus();
    announcement.textContent = t("Question {n} of {all}", { n: to + 1, all: rows.length });
    onChange();
  }

  function removeRow(item) {
    const at = rows.indexOf(item);
    rows.splice(at, 1);
    drawRows();
    (rows[Math.min(at, rows.length - 1)]?.text ?? add).focus();
    onChange();
  }

  // Adds a row with the last sentence and a question that this sentence does not have yet.
  const add = button(t("Add a question"), () => {
    const last = rows.at(-1),
      used = rows
        .filter((item) => item.text.value === last?.text.value)
        .map((item) => item.ask.value);
    const next = offer.asks.find((question) => !used.includes(question.name)) ?? offer.asks[0];
    rows.push(createRow({ text: last?.text.value, ask: next.name }));
    drawRows();
    rows.at(-1).text.focus();
    onChange();
  });

  const node = el("form", { class: "editor", onsubmit: (event) => event.preventDefault() }, [
    field(t("Title"), title),
    field(t("Direction"), directions),
    list,
    add,
    announcement,
  ]);

  function put(sheet) {
    title.value = sheet.title;
    const isSheetDirection = ({ direction, checkpoint }) =>
      direction === sheet.direction && (!sheet.checkpoint || checkpoint === sheet.checkpoint);
    directions.value = Math.max(0, offer.directions.findIndex(isSheetDirection));
    rows = sheet.items.map(createRow);
    drawRows();
  }

  function read() {
    const { direction, checkpoint } = offer.directions[directions.value] ?? {};
    const items = rows.map(({ text, ask, word }) => ({
      text: text.value.trim(),
      ask: ask.value,
      word: word.value.trim(),
    }));
    return { title: title.value.trim(), direction, checkpoint, items };
  }

  return { node, put, read };
}
