// The two sentences of a map with lines between their words: what each word read, at a glance.
// Always whole words of the selected head, without special tokens.
import { el, svg } from "../../core/dom.js";
import { formatPercent } from "../../core/format.js";
import { moveFocus } from "../../core/keys.js";
import { t } from "../../core/language.js";
import { createScrollBox } from "../../lab/scroll.js";
import { strongestIndices } from "../words.js";

const HEIGHT = 92, // pixels between the two lines of words
  FAINT = 0.06, // smaller weights have no line
  SMALLEST = 0.75, // smallest scale of the words; longer sentences scroll
  TIGHT = { gap: 1, padding: 2 }; // pixels between and beside words where a line would not fit otherwise
const loose = () => ({ gap: Math.min(12, Math.max(2, 0.006 * innerWidth)), padding: 5, size: 1 });
const NONE = { row: null, column: null };

/** Create the sentences. @param {{pin: (map: any, row: number | null, column: number | null) => void}} hooks */
export function createSentence(hooks) {
  const lines = svg("svg", { "aria-hidden": "true", height: HEIGHT });
  const keys = el("div", { class: "words" }),
    queries = el("div", { class: "words" });
  const sheet = el("div", { class: "sheet" }, keys, lines, queries);
  const scroller = createScrollBox(sheet, { tabindex: null, role: null }); // its words have the focus instead
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
    spacing = null, // {gap, padding, size} of the words
    isDimmed = false, // whether some lines are hidden
    middles = { keys: [], queries: [] };

  const value = (row, column) => map.values[row * map.columns.length + column];
  const ofRow = (row) => map.columns.map((_, column) => value(row, column));
  const ofColumn = (column) => map.rows.map((_, row) => value(row, column));

  // Describe in words what a word read, or what read it.
  function reading({ row, column }) {
    const values = row !== null ? ofRow(row) : ofColumn(column),
      items = row !== null ? map.columns : map.rows;
    const others = strongestIndices(values, 3)
      .filter((i) => values[i] >= 0.05)
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
    if (!isPointed && !isDimmed) return;
    isDimmed = isPointed;
    for (const { dataset, classList } of lines.children) {
      const isOwn = isRow ? Number(dataset.row) === at.row : Number(dataset.column) === at.column;
      classList.toggle("away", isPointed && !isOwn);
    }
  }

  // gloss: what the word became; "" if the model links it with none; null: without glosses
  function word(label, at, gloss) {
    const name = t("{word}, from the model's links: {gloss}", { word: label, gloss }),
      point = () => show(at),
      leave = () => show(pinned);
    return el(
      "button",
      {
        type: "button",
        class: "word",
        tabindex: "-1",
        "aria-label": gloss ? name : null,
        onmouseenter: point,
        onfocus: point,
        onmouseleave: leave,
        onblur: leave,
        onclick: () => hooks.pin(map, at.row, at.column),
      },
      el("bdi", {}, label),
      gloss === null ? null : el("bdi", { class: "gloss" }, gloss || "\u00a0"),
    );
  }

  function setSpacing(next) {
    spacing = next;
    sheet.style.setProperty("--gap", `${next.gap}px`);
    sheet.style.setProperty("--padding", `${next.padding}px`);
    sheet.style.setProperty("--fit", next.size.toFixed(3));
  }

  const sizes = () => `${scroller.clientWidth} ${sheet.offsetWidth}`;
  const around = ({ gap, padding }, count) => (count - 1) * gap + 2 * count * padding;

  // Return the largest spacing at which both lines fit. Widths at another size are estimated from
  // the present ones, because laying out would delay a sentence's first picture.
  function fitSpacing(width) {
    const boxes = [keys, queries].filter((box) => box.firstChild);
    const texts = boxes.map(({ firstChild, lastChild, children: { length } }) => {
      const lineWidth = lastChild.offsetLeft + lastChild.offsetWidth - firstChild.offsetLeft;
      return [(lineWidth - around(spacing, length)) / spacing.size, length];
    });
    const wide = loose();
    if (texts.every(([text, count]) => text + around(wide, count) <= width)) return wide;
    const sizes = texts.map(([text, count]) => (width - around(TIGHT, count)) / text - 0.01);
    return { ...TIGHT, size: Math.min(1, Math.max(SMALLEST, Math.min(...sizes))) };
  }

  // Lay out the words. Called only when they or their room change, because it delays a frame.
  function layOutWords() {
    const width = scroller.clientWidth; // 0 in a hidden tab
    sheet.classList.remove("wide");
    if (!spacing) setSpacing(loose());
    if (width) {
      setSpacing(fitSpacing(width));
      const size = spacing.size * (width / sheet.offsetWidth) - 0.01; // letters do not shrink evenly
      if (sheet.offsetWidth > width && spacing.size > SMALLEST)
        setSpacing({ ...TIGHT, size: Math.max(SMALLEST, size) });
      sheet.classList.toggle("wide", sheet.offsetWidth > width);
    }
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
    isDimmed = false;
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
        keys.replaceChildren(
          ...above.map(([label, gloss], column) => word(label, { ...NONE, column }, gloss)),
        );
        queries.replaceChildren(
          ...below.map(([label, gloss], row) => word(label, { ...NONE, row }, gloss)),
        );
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
