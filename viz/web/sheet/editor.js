// The editor of a teacher's own worksheet: rows of a sentence, a question, and the word that it is
// about.
import { button, debounce, el, menu } from "../core/dom.js";
import { t } from "../core/language.js";

const WAIT = 500; // milliseconds after the last key

/**
 * Create the editor.
 * @param {any} offer directions and questions (viz/tours/guide.py) @param {() => void} changed called after changes
 * @returns {{node: any, put: (sheet: any) => void, read: () => any}}
 */
export function createEditor(offer, changed) {
  let rows = [];
  const soon = debounce(changed, WAIT);
  const field = (label, node) => el("label", { class: "field" }, el("span", {}, label), node);
  const title = el("input", { type: "text", maxlength: 120, oninput: soon });
  const titles = offer.directions.map((direction, i) => [i, direction.title]),
    directions = menu(titles, 0, { onchange: changed });
  const list = el("ol", { class: "rows" });
  const say = el("p", { class: "sr-only", role: "status" });

  function row({ text = "", ask = offer.asks[0].name, word = "" } = {}) {
    const fields = {
      text: el("textarea", {
        rows: 2,
        maxlength: 1000,
        "aria-label": t("Sentence"),
        oninput: soon,
      }),
      ask: menu(
        offer.asks.map((question) => [question.name, question.title]),
        ask,
        { "aria-label": t("Question"), onchange: changed },
      ),
      word: el("input", {
        type: "text",
        maxlength: 80,
        placeholder: t("Word of the translation (optional)"),
        "aria-label": t("Word of the translation (optional)"),
        oninput: soon,
      }),
    };
    fields.text.value = text;
    fields.word.value = word;
    const tools = el("span", { class: "tools" }, [
      button("↑", () => move(fields, -1), { "aria-label": t("Move up") }),
      button("↓", () => move(fields, 1), { "aria-label": t("Move down") }),
      button("✕", () => drop(fields), { "aria-label": t("Remove this question") }),
    ]);
    fields.node = el("li", {}, fields.text, el("div", {}, fields.ask, fields.word, tools));
    return fields;
  }

  const draw = () => list.replaceChildren(...rows.map((item) => item.node));

  function move(item, by) {
    const at = rows.indexOf(item),
      to = at + by;
    if (!rows[to]) return;
    rows.splice(to, 0, ...rows.splice(at, 1));
    draw();
    item.node.querySelectorAll("button")[by < 0 ? 0 : 1].focus();
    say.textContent = t("Question {n} of {all}", { n: to + 1, all: rows.length });
    changed();
  }

  function drop(item) {
    const at = rows.indexOf(item);
    rows.splice(at, 1);
    draw();
    (rows[Math.min(at, rows.length - 1)]?.text ?? add).focus();
    changed();
  }

  // Add a question about the last sentence, one that it does not have yet.
  const add = button(t("Add a question"), () => {
    const last = rows.at(-1),
      used = rows
        .filter((item) => item.text.value === last?.text.value)
        .map((item) => item.ask.value);
    const next = offer.asks.find((question) => !used.includes(question.name)) ?? offer.asks[0];
    rows.push(row({ text: last?.text.value, ask: next.name }));
    draw();
    rows.at(-1).text.focus();
    changed();
  });

  const node = el("form", { class: "editor", onsubmit: (event) => event.preventDefault() }, [
    field(t("Title"), title),
    field(t("Direction"), directions),
    list,
    add,
    say,
  ]);

  function put(sheet) {
    title.value = sheet.title;
    const isOf = ({ direction, checkpoint }) =>
      direction === sheet.direction && (!sheet.checkpoint || checkpoint === sheet.checkpoint);
    directions.value = Math.max(0, offer.directions.findIndex(isOf));
    rows = sheet.items.map(row);
    draw();
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
