// The two sentences of a map with curves between their words: what each word attends to ("reads"), at a glance. The words of
// the keys (columns) stand above those of the queries (rows). The caller passes the selected head's map of whole words,
// without special tokens.
import { button, el, svg } from "../../core/dom.js";
import { formatPercent } from "../../core/format.js";
import { moveFocus } from "../../core/keys.js";
import { t } from "../../core/language.js";
import { createScrollBox } from "../../lab/scroll.js";
import { strongestIndices } from "../words.js";
import { NONE } from "./frame.js";

const HEIGHT = 92, // pixels between the two lines of words
  FAINT = 0.06, // smaller weights have no curve
  NAMED = 0.05, // smaller weights are not named in the caption
  SMALLEST = 0.75; // scale of the words below which a long sentence scrolls instead

/** Create the sentences. @param {{pin: (map: any, row: number | null, column: number | null) => void}} hooks */
export function createSentence(hooks) {
  const lines = svg("svg", { "aria-hidden": "true", height: HEIGHT });
  const keys = el("div", { class: "words" }),
    queries = el("div", { class: "words" });
  const sheet = el("div", { class: "sheet" }, keys, lines, queries);
  const scroller = createScrollBox(sheet, { tabindex: null, role: null }); // its words take the focus
  const caption = el("p", { class: "caption", "aria-live": "polite" });
  const glossNote = el("p", { class: "caption guess", hidden: true }, [
    t(
      "Below each word: what it became, from the model's links. A guess of its own: words that its linking heads pair both ways; where they do not, there is none.",
    ),
  ]);
  const root = el("div", { class: "sentence-lines" }, scroller, caption, glossNote);
  let map = null,
    guide = "",
    pinned = NONE,
    shownWords = "", // the words on the page, as JSON
    room = "", // sizes that the words were laid out for
    middles = { keys: [], queries: [] };

  const value = (row, column) => map.values[row * map.columns.length + column];
  const ofRow = (row) => map.columns.map((_, column) => value(row, column));
  const ofColumn = (column) => map.rows.map((_, row) => value(row, column));

  // Describe in words what a word read, or what read it.
  function reading({ row, column }) {
    const values = row !== null ? ofRow(row) : ofColumn(column),
      items = row !== null ? map.columns : map.rows;
    const others = strongestIndices(values, 3)
      .filter((i) => values[i] >= NAMED)
      .map((i) => `${items[i].label} ${formatPercent(values[i])}`)
      .join(", ");
    if (!others) return t("This head read no word here: its weight is on special tokens.");
    return row !== null
      ? t("“{word}” read {others}", { word: map.rows[row].label, others })
      : t("“{word}” was read for {others}", { word: map.columns[column].label, others });
  }

  function show(at) {
    const isRow = at.row !== null,
      isPointed = isRow || at.column !== null;
    caption.textContent = isPointed ? reading(at) : guide;
    const shade = (box, values, index) =>
      [...box.children].forEach((node, i) => {
        const share = values ? values[i].toFixed(3) : "0";
        if (node.style.getPropertyValue("--p") !== share) node.style.setProperty("--p", share);
        node.classList.toggle("chosen", i === index);
      });
    shade(keys, isRow ? ofRow(at.row) : null, at.column);
    shade(queries, isPointed && !isRow ? ofColumn(at.column) : null, at.row);
    for (const { dataset, classList } of lines.children) {
      const isOwn = isRow ? Number(dataset.row) === at.row : Number(dataset.column) === at.column;
      classList.toggle("away", isPointed && !isOwn);
    }
  }

  // gloss: what the word became; "" if the model links it with none; null: without glosses
  function word(label, at, gloss) {
    const name = t("{word}, from the model's links: {gloss}", { word: label, gloss }),
      below = gloss === null ? null : el("bdi", { class: "gloss" }, gloss || "\u00a0");
    return button([el("bdi", {}, label), below], () => hooks.pin(map, at.row, at.column), {
      class: "word",
      tabindex: "-1",
      "aria-label": gloss ? name : null,
      "onmouseenter onfocus": () => show(at),
      "onmouseleave onblur": () => show(pinned),
    });
  }

  const sizes = () => `${scroller.clientWidth} ${sheet.offsetWidth}`;

  // Lay out the words: closer together where a line would not fit, then smaller, then scrolling. Called only when they
  // or their room change, because it delays a frame.
  function layOutWords() {
    const isWide = () => sheet.offsetWidth > scroller.clientWidth;
    const space = (gap, padding, size) =>
      (sheet.style.cssText = `--gap: ${gap}px; --padding: ${padding}px; --fit: ${size}`);
    sheet.classList.remove("wide");
    space(Math.min(12, Math.max(2, 0.006 * innerWidth)), 5, 1);
    for (let size = 1; isWide() && size >= SMALLEST; size -= 0.05) space(1, 2, size);
    sheet.classList.toggle("wide", isWide());
    const middle = (node) => node.offsetLeft + node.offsetWidth / 2;
    middles = { keys: [...keys.children].map(middle), queries: [...queries.children].map(middle) };
    room = sizes();
  }

  // In the next frame: resizing inside a ResizeObserver is an error.
  const watch = new ResizeObserver(() =>
    requestAnimationFrame(() => {
      if (!map || sizes() === room) return;
      layOutWords();
      drawLines();
      show(pinned);
    }),
  );
  for (const node of [scroller, sheet]) watch.observe(node);

  function drawLines() {
    const half = HEIGHT / 2;
    const line = (x, row, to, column) => {
      const weight = value(row, column),
        look = {
          "stroke-width": (0.5 + 4 * weight).toFixed(2),
          "stroke-opacity": (0.12 + 0.78 * weight).toFixed(2),
        };
      const d = `M${x} ${HEIGHT}C${x} ${half} ${to} ${half} ${to} 0`;
      return svg("path", { d, ...look, "data-row": row, "data-column": column });
    };
    const paths = middles.queries.flatMap((x, row) =>
      middles.keys.flatMap((to, column) =>
        value(row, column) >= FAINT ? [line(x, row, to, column)] : [],
      ),
    );
    lines.replaceChildren(...paths);
  }

  // Arrow keys move along the words and between the lines.
  root.addEventListener("keydown", (event) =>
    moveFocus(
      event,
      [keys, queries].map((box) => [...box.children]),
    ),
  );

  return {
    root,
    /**
     * @param {any} wordMap a map of scoreMap() in model.js, in words @param {any} at the pinned {row, column}
     * @param {string} words what to look for @param {any} glosses {rows, columns}: functions of a position, or null
     */
    draw(wordMap, at, words, glosses) {
      map = wordMap;
      guide = words;
      pinned = at;
      glossNote.hidden = !glosses;
      const glossed = (items, gloss) =>
        items.map(({ label, positions }) => [label, gloss ? gloss(positions[0]) : null]);
      const above = glossed(map.columns, glosses?.columns),
        below = glossed(map.rows, glosses?.rows);
      const spelling = JSON.stringify([above, below]);
      if (spelling !== shownWords) {
        shownWords = spelling;
        const column = ([label, gloss], i) => word(label, { ...NONE, column: i }, gloss),
          row = ([label, gloss], i) => word(label, { ...NONE, row: i }, gloss);
        keys.replaceChildren(...above.map(column));
        queries.replaceChildren(...below.map(row));
        if (queries.firstChild) queries.firstChild.tabIndex = 0;
        layOutWords();
      }
      drawLines();
      show(pinned);
    },
    pin(at) {
      pinned = at;
      if (map) show(at);
    },
    map: () => map,
  };
}
