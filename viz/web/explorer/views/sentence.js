// The two sentences of a map with lines between their words: what each word read, at a glance. Always in whole words,
// without special tokens, of the selected head alone.
import { el } from "../../core/dom.js";
import { percent } from "../../core/format.js";
import { walk } from "../../core/keys.js";
import { t } from "../../core/language.js";

const HEIGHT = 92, // pixels between the two lines of words
  FAINT = 0.06, // weights that would only be fog
  SMALLEST = 0.75; // of the words' size, where a sentence is longer than its room; beyond that it is scrolled to
const SVG = "http://www.w3.org/2000/svg";

// hooks: pin(map, row, column)
export function createSentence(hooks) {
  const lines = document.createElementNS(SVG, "svg");
  lines.setAttribute("aria-hidden", "true");
  const keys = el("div", { class: "words" }),
    queries = el("div", { class: "words" });
  const sheet = el("div", { class: "sheet" }, keys, lines, queries);
  const scroller = el("div", { class: "scroller" }, sheet);
  const caption = el("p", { class: "caption", "aria-live": "polite" });
  const guess = el(
    "p",
    { class: "caption guess", hidden: true },
    t(
      "Below each word: what it became, from the model's links. A guess of its own: words that its linking heads pair both ways; where they do not, there is none.",
    ),
  );
  const root = el("div", { class: "sentence-lines" }, scroller, caption, guess);
  let map = null,
    guide = "",
    pinned = { row: null, column: null };

  const value = (row, column) => map.values[row * map.columns.length + column];
  const ofRow = (row) => map.columns.map((_, column) => value(row, column));
  const ofColumn = (column) => map.rows.map((_, row) => value(row, column));

  // What a word read, or by which it was read, in words: the first few that matter.
  function reading({ row, column }) {
    const values = row !== null ? ofRow(row) : ofColumn(column),
      items = row !== null ? map.columns : map.rows;
    const found = values
      .map((weight, i) => ({ weight, label: items[i].label }))
      .filter(({ weight }) => weight >= 0.05)
      .sort((a, b) => b.weight - a.weight)
      .slice(0, 3)
      .map(({ weight, label }) => `${label} ${percent(weight)}`)
      .join(", ");
    if (!found) return t("This head read no word here: its weight is on special tokens.");
    return row !== null
      ? t("“{word}” read {others}", { word: map.rows[row].label, others: found })
      : t("“{word}” was read for {others}", { word: map.columns[column].label, others: found });
  }

  function show(at) {
    const one = at.row !== null || at.column !== null;
    caption.textContent = one ? reading(at) : guide;
    const shade = (box, values, chosen) =>
      [...box.children].forEach((node, i) => {
        node.style.setProperty("--p", values ? values[i].toFixed(3) : 0);
        node.classList.toggle("chosen", i === chosen);
      });
    shade(keys, at.row !== null ? ofRow(at.row) : null, at.column);
    shade(queries, at.column !== null && at.row === null ? ofColumn(at.column) : null, at.row);
    for (const path of lines.children) {
      const { row, column } = path.dataset;
      const mine =
        !one || Number(row) === at.row || (at.row === null && Number(column) === at.column);
      path.classList.toggle("away", !mine);
    }
  }

  // gloss: what its word became, "" where the model links it with none; null where nobody asked.
  function word(item, at, gloss) {
    const node = el(
      "button",
      {
        type: "button",
        class: "word",
        tabindex: "-1",
        "aria-label": gloss
          ? t("{word}, from the model's links: {gloss}", { word: item.label, gloss })
          : null,
      },
      el("bdi", {}, item.label),
      gloss === null ? null : el("bdi", { class: "gloss" }, gloss || "\u00a0"),
    );
    const free = () => show(pinned);
    node.addEventListener("mouseenter", () => show(at));
    node.addEventListener("focus", () => show(at));
    node.addEventListener("mouseleave", free);
    node.addEventListener("blur", free);
    node.addEventListener("click", () => hooks.pin(map, at.row, at.column));
    return node;
  }

  // As large as lets the longer line of words stand whole.
  function fit() {
    sheet.style.removeProperty("--fit");
    sheet.classList.remove("tight");
    const fits = () => scroller.clientWidth / sheet.offsetWidth;
    sheet.classList.toggle("tight", fits() < 1);
    if (fits() < 1) sheet.style.setProperty("--fit", Math.max(SMALLEST, fits() - 0.01).toFixed(3));
  }

  function connect() {
    const middle = (node) => node.offsetLeft + node.offsetWidth / 2;
    const tops = [...keys.children].map(middle),
      bottoms = [...queries.children].map(middle),
      half = HEIGHT / 2;
    lines.setAttribute("height", HEIGHT);
    const paths = [];
    bottoms.forEach((x, row) =>
      tops.forEach((to, column) => {
        const weight = value(row, column);
        if (!(weight >= FAINT)) return;
        const path = document.createElementNS(SVG, "path");
        path.setAttribute("d", `M${x} ${HEIGHT}C${x} ${half} ${to} ${half} ${to} 0`);
        path.setAttribute("stroke-width", (0.5 + 4 * weight).toFixed(2));
        path.setAttribute("stroke-opacity", (0.12 + 0.78 * weight).toFixed(2));
        Object.assign(path.dataset, { row, column });
        paths.push(path);
      }),
    );
    lines.replaceChildren(...paths);
  }

  // The keyboard walks along the words of a line, and from line to line.
  root.addEventListener("keydown", (event) =>
    walk(
      event,
      [keys, queries].map((box) => [...box.children]),
    ),
  );

  return {
    root,
    // given: a map of explorerModel.scoreMap in words; words: what to look for; glosses: {rows, columns}, a function of
    // a position each, or null
    draw(given, { row, column }, words, glosses = null) {
      map = given;
      guess.hidden = !glosses;
      const gloss = (of, item) => (glosses ? of(item.positions[0]) : null);
      guide = words;
      pinned = { row, column };
      keys.replaceChildren(
        ...map.columns.map((item, i) =>
          word(item, { row: null, column: i }, gloss(glosses?.columns, item)),
        ),
      );
      queries.replaceChildren(
        ...map.rows.map((item, i) =>
          word(item, { row: i, column: null }, gloss(glosses?.rows, item)),
        ),
      );
      if (queries.firstChild) queries.firstChild.tabIndex = 0;
      fit();
      connect();
      show(pinned);
    },
    pin(at) {
      pinned = at;
      if (map) show(at);
    },
    map: () => map,
  };
}
