// The sentences as text: point at a token, and the others are shaded by the weight between them.
import { formatFixed } from "../../core/format.js";
import { button, el } from "../../core/dom.js";
import { t } from "../../core/language.js";

const bare = (label) => label.replace(/^\u2581(?=.)/, "");

// Return the row with the largest weight, which is shown until a token is pointed at.
function strongestRow({ values, rows, columns }) {
  const strengths = rows.map((_, row) => {
    const rowValues = values.subarray(row * columns.length, (row + 1) * columns.length);
    return Math.max(0, ...rowValues.map(Math.abs).filter((value) => !Number.isNaN(value)));
  });
  return { row: strengths.indexOf(Math.max(...strengths)), column: null };
}

/** Create the text. @param {any} hooks scene, hover(row, column) and pin(row, column) */
export function createText(hooks) {
  const root = el("div", { class: "sentences" });
  let current = null; // {map, chips: {row, column}, colouring, pinned, first}

  // at: {row, column}, one of them null: the token that is pointed at
  function shade(at) {
    const { map, chips, colouring } = current,
      width = map.columns.length,
      isRow = at.row !== null;
    const paint = (chip, value, isFocused) => {
      const isBlank = Number.isNaN(value),
        text = Math.abs(value) >= 0.005 ? formatFixed(value, 2) : "·";
      chip.style.setProperty("--p", isBlank ? 0 : colouring.strength(value).toFixed(4));
      chip.lastChild.textContent = isBlank ? "\u00a0" : text;
      chip.classList.toggle("positive", Boolean(map.signed) && value > 0);
      chip.classList.toggle("focused", isFocused);
    };
    chips.column.forEach((chip, i) =>
      paint(chip, isRow ? map.values[at.row * width + i] : NaN, !isRow && i === at.column),
    );
    chips.row.forEach((chip, i) =>
      paint(chip, isRow ? NaN : map.values[i * width + at.column], i === at.row),
    );
  }

  // at: {row, column}, one of them null; read: the token that a row reads, if it is named by both
  function chip({ label, isSpaced }, at, read = null) {
    const enter = () => {
      shade(at);
      hooks.hover(at.row, at.column);
    };
    const leave = () => {
      shade(current.pinned ?? current.first);
      hooks.hover(null, null);
    };
    const name =
      at.row !== null
        ? t("query {token}", { token: read === null ? label : `${read} → ${label}` })
        : t("key {token}", { token: label });
    const content = [
      read === null ? null : el("small", { class: "read" }, el("bdi", {}, bare(read)), " →"),
      el("bdi", {}, bare(label)),
      el("small", { "aria-hidden": "true" }, "\u00a0"),
    ];
    return button(content, () => hooks.pin(at.row, at.column), {
      class: isSpaced || label.startsWith("\u2581") ? "piece spaced" : "piece",
      "onmouseenter onfocus": enter,
      "onmouseleave onblur": leave,
      "aria-label": name,
    });
  }

  return {
    root,
    draw(map, colouring, { rows, columns, pairs }) {
      const { words } = hooks.scene.state;
      const spaced = (items) =>
        items.map(({ label, special }, i) => ({ label, isSpaced: words || i === 0 || special }));
      const written = pairs?.map(([, label], i) => ({ ...map.rows[i], label })) ?? map.rows;
      const chips = {
        row: spaced(written).map((item, i) => chip(item, { row: i, column: null }, pairs?.[i][0])),
        column: spaced(map.columns).map((item, i) => chip(item, { row: null, column: i })),
      };
      current = { map, chips, colouring, pinned: null, first: strongestRow(map) };
      const line = (title, nodes) =>
        el("div", { class: "sentence-row", role: "group", "aria-label": title }, [
          el("span", { class: "caption" }, title),
          el("div", { class: "flow" }, nodes),
        ]);
      root.replaceChildren(line(rows, chips.row), line(columns, chips.column));
      shade(current.first);
    },
    pin({ row, column }) {
      if (!current) return; // a focus that leaves the view before this one
      current.pinned = row === null && column === null ? null : { row, column };
      shade(current.pinned ?? current.first);
    },
    /** @param {any} lit {rows, columns} of the lit word, or null */
    light(lit) {
      if (!current) return;
      const [row = null] = lit?.rows ?? [],
        [column = null] = lit?.columns ?? [];
      shade(row === null && column === null ? (current.pinned ?? current.first) : { row, column });
    },
  };
}
