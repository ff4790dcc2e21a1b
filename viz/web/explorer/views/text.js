// The sentence itself: focus a token, and the others are shaded by the weight between them.
import { fixed } from "../../core/format.js";
import { el } from "../../core/dom.js";
import { t } from "../../core/language.js";

// hooks: hover(row, column), pin(row, column)
export function createText(hooks) {
  const root = el("div", { class: "sentences" });
  let current = null; // {map, chips: {row: [..], column: [..]}, colouring}

  function shade(focus) {
    const { map, chips, colouring } = current,
      width = map.columns.length;
    const paint = (side, weightOf) =>
      chips[side].forEach((chip, i) => {
        const value = weightOf ? weightOf(i) : NaN;
        const blank = Number.isNaN(value);
        chip.style.setProperty("--p", blank ? 0 : colouring.strength(value).toFixed(4));
        chip.lastChild.textContent = blank
          ? "\u00a0"
          : Math.abs(value) >= 0.005
            ? fixed(value, 2)
            : "·";
        chip.classList.toggle("positive", Boolean(map.signed) && value > 0);
        chip.classList.toggle(
          "focused",
          Boolean(focus) && focus.side === side && focus.index === i,
        );
      });
    paint("column", focus?.side === "row" ? (i) => map.values[focus.index * width + i] : null);
    paint("row", focus?.side === "column" ? (i) => map.values[i * width + focus.index] : null);
  }

  // What is shown before anybody points at a token: the row with the clearest answer.
  function strongestRow(map) {
    const width = map.columns.length;
    const best = map.rows.map((_, row) =>
      Math.max(
        ...map.values
          .subarray(row * width, (row + 1) * width)
          .filter((v) => !Number.isNaN(v))
          .map(Math.abs),
        0,
      ),
    );
    return { side: "row", index: best.indexOf(Math.max(...best)) };
  }

  const bare = (label) => label.replace(/^\u2581(?=.)/, "");

  // read: what a row that is named by both of its tokens reads
  function chip(side, item, index, read = null) {
    const left = side === "row";
    const spaced = item.label.startsWith("\u2581") || item.spaced;
    const enter = () => {
      shade({ side, index });
      hooks.hover(left ? index : null, left ? null : index);
    };
    const leave = () => {
      shade(current.pinned || current.first);
      hooks.hover(null, null);
    };
    return el(
      "button",
      {
        type: "button",
        class: `piece${spaced ? " spaced" : ""}`,
        onmouseenter: enter,
        onfocus: enter,
        onmouseleave: leave,
        onblur: leave,
        onclick: () => hooks.pin(left ? index : null, left ? null : index),
        "aria-label": left
          ? t("query {token}", { token: read === null ? item.label : `${read} → ${item.label}` })
          : t("key {token}", { token: item.label }),
      },
      read === null ? null : el("small", { class: "read" }, el("bdi", {}, bare(read)), " →"),
      el("bdi", {}, bare(item.label)),
      el("small", { "aria-hidden": "true" }, "\u00a0"),
    );
  }

  return {
    root,
    draw(map, colouring, titles, { words }) {
      const spaced = (items) =>
        items.map((item, i) => ({ ...item, spaced: words || i === 0 || item.special }));
      const chips = {
        row: spaced(
          titles.pairs
            ? map.rows.map((row, i) => ({ ...row, label: titles.pairs[i][1] }))
            : map.rows,
        ).map((item, i) => chip("row", item, i, titles.pairs?.[i][0])),
        column: spaced(map.columns).map((item, i) => chip("column", item, i)),
      };
      current = { map, chips, colouring, pinned: null, first: strongestRow(map) };
      root.replaceChildren(
        el(
          "div",
          { class: "sentence-row", role: "group", "aria-label": titles.rows },
          el("span", { class: "caption" }, titles.rows),
          el("div", { class: "flow" }, chips.row),
        ),
        el(
          "div",
          { class: "sentence-row", role: "group", "aria-label": titles.columns },
          el("span", { class: "caption" }, titles.columns),
          el("div", { class: "flow" }, chips.column),
        ),
      );
      shade(current.first);
    },
    pin({ row, column }) {
      if (!current) return;
      current.pinned =
        row !== null
          ? { side: "row", index: row }
          : column !== null
            ? { side: "column", index: column }
            : null;
      shade(current.pinned || current.first);
    },
  };
}
