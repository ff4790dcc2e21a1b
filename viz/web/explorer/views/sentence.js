// The two sentences of a map with lines between their words: what each word read, at a glance. Always in whole words,
// without special tokens, of the selected head alone.
import { el, svg } from "../../core/dom.js";
import { percent } from "../../core/format.js";
import { walk } from "../../core/keys.js";
import { t } from "../../core/language.js";
import { scrolling } from "../../lab/scroll.js";

const HEIGHT = 92, // pixels between the two lines of words
  FAINT = 0.06, // weights that would only be fog
  SMALLEST = 0.75, // of the words' size, where a sentence is longer than its room; beyond that it is scrolled to
  TIGHT = { gap: 1, padding: 2 }; // pixels between words, and on either side of one, where a line does not fit otherwise
const loose = () => ({ gap: Math.min(12, Math.max(2, 0.006 * innerWidth)), padding: 5, size: 1 });

// hooks: pin(map, row, column)
export function createSentence(hooks) {
  const lines = svg("svg", { "aria-hidden": "true" });
  const keys = el("div", { class: "words" }),
    queries = el("div", { class: "words" });
  const sheet = el("div", { class: "sheet" }, keys, lines, queries);
  const scroller = scrolling(sheet, { tabindex: null, role: null }); // its words are reached by keys
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
    pinned = { row: null, column: null },
    spelled = "", // the words that stand there
    room = "", // that they were laid out in, and what they took of it
    spacing = null, // as it is drawn: {gap, padding, size}
    dimmed = false, // whether some lines stand back
    middles = { keys: [], queries: [] };

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
        const share = values ? values[i].toFixed(3) : "0";
        if (node.style.getPropertyValue("--p") !== share) node.style.setProperty("--p", share);
        node.classList.toggle("chosen", i === chosen);
      });
    shade(keys, at.row !== null ? ofRow(at.row) : null, at.column);
    shade(queries, at.column !== null && at.row === null ? ofColumn(at.column) : null, at.row);
    if (!one && !dimmed) return;
    dimmed = one;
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

  function space(wanted) {
    spacing = wanted;
    sheet.style.setProperty("--gap", `${wanted.gap}px`);
    sheet.style.setProperty("--padding", `${wanted.padding}px`);
    sheet.style.setProperty("--fit", wanted.size.toFixed(3));
  }

  const sizes = () => `${scroller.clientWidth} ${sheet.offsetWidth}`;
  const around = ({ gap, padding }, count) => (count - 1) * gap + 2 * count * padding;

  // As large as lets the longer line of words stand whole. How wide the words are at another size is told from how wide
  // they stand there: to lay them out for it would hold up the first picture of a sentence.
  function fitted() {
    const width = scroller.clientWidth;
    const boxes = [keys, queries].filter((box) => box.firstChild);
    const texts = boxes.map(({ firstChild, lastChild, children }) => {
      const taken = lastChild.offsetLeft + lastChild.offsetWidth - firstChild.offsetLeft;
      return [(taken - around(spacing, children.length)) / spacing.size, children.length];
    });
    const wide = loose();
    if (texts.every(([text, count]) => text + around(wide, count) <= width)) return wide;
    const most = texts.map(([text, count]) => (width - around(TIGHT, count)) / text - 0.01);
    return { ...TIGHT, size: Math.min(1, Math.max(SMALLEST, Math.min(...most))) };
  }

  // Another head has the same words: they are laid out where they or their room change, since that holds up a frame.
  function arrange() {
    if (!spacing) space(loose());
    sheet.classList.remove("wide");
    const width = scroller.clientWidth; // 0: nobody sees it
    if (width) {
      const wanted = fitted();
      if (JSON.stringify(wanted) !== JSON.stringify(spacing)) space(wanted);
      const size = spacing.size * (width / sheet.offsetWidth) - 0.01; // letters do not shrink evenly
      if (sheet.offsetWidth > width && spacing.size > SMALLEST)
        space({ ...TIGHT, size: Math.max(SMALLEST, size) });
      sheet.classList.toggle("wide", sheet.offsetWidth > width);
    }
    const middle = (node) => node.offsetLeft + node.offsetWidth / 2;
    middles = { keys: [...keys.children].map(middle), queries: [...queries.children].map(middle) };
    room = sizes();
  }

  // In the next frame: a size that changes while sizes are told is an error.
  const watch = new ResizeObserver(() =>
    requestAnimationFrame(() => {
      if (!map || sizes() === room) return;
      arrange();
      connect();
      show(pinned);
    }),
  );
  for (const one of [scroller, sheet]) watch.observe(one);

  function connect() {
    const half = HEIGHT / 2;
    lines.setAttribute("height", HEIGHT);
    const paths = [];
    middles.queries.forEach((x, row) =>
      middles.keys.forEach((to, column) => {
        const weight = value(row, column);
        if (!(weight >= FAINT)) return;
        paths.push(
          svg("path", {
            d: `M${x} ${HEIGHT}C${x} ${half} ${to} ${half} ${to} 0`,
            "stroke-width": (0.5 + 4 * weight).toFixed(2),
            "stroke-opacity": (0.12 + 0.78 * weight).toFixed(2),
            "data-row": row,
            "data-column": column,
          }),
        );
      }),
    );
    lines.replaceChildren(...paths);
    dimmed = false;
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
    // given: a map of scoreMap (explorer/model.js) in words; words: what to look for; glosses: {rows, columns}, a function of
    // a position each, or null
    draw(given, { row, column }, words, glosses = null) {
      map = given;
      guess.hidden = !glosses;
      const gloss = (of, item) => (glosses ? of(item.positions[0]) : null);
      guide = words;
      pinned = { row, column };
      const below = {
        rows: map.rows.map((item) => gloss(glosses?.rows, item)),
        columns: map.columns.map((item) => gloss(glosses?.columns, item)),
      };
      const labels = (items) => items.map(({ label }) => label);
      const spelling = JSON.stringify([labels(map.rows), labels(map.columns), below]);
      if (spelling !== spelled) {
        spelled = spelling;
        keys.replaceChildren(
          ...map.columns.map((item, i) => word(item, { row: null, column: i }, below.columns[i])),
        );
        queries.replaceChildren(
          ...map.rows.map((item, i) => word(item, { row: i, column: null }, below.rows[i])),
        );
        if (queries.firstChild) queries.firstChild.tabIndex = 0;
        arrange();
      }
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
