// A grid of coloured numbers that a keyboard walks through: one tab stop, arrows inside, every cell a button or, where
// nothing happens on a click, a cell that can be read. What heads are worth and what patches recover are such grids.
import { el } from "../core/dom.js";

// {columns: [label], rows: [{label, cells: [{value, text, name, marks}]}], corner}; a cell: value for the colour, -1 to 1
// (null: none); text in it; name: all of it in words; marks: class names. hooks, each optional: act(row, column),
// pressed(row, column) -> whether it is on, actRow(row), point(name) when it is pointed at, null on leaving.
export function createCells(grid, hooks = {}) {
  const tag = hooks.act ? "button" : "span";
  let at = [0, 0];
  const nodes = grid.rows.map((row, r) =>
    row.cells.map((cell, c) => {
      const share = cell.value === null ? 0 : Math.min(1, Math.abs(cell.value));
      return el(
        tag,
        {
          class: [
            "cell",
            cell.value === null ? "none" : cell.value < 0 ? "minus" : "plus",
            ...(cell.marks || []),
          ].join(" "),
          type: hooks.act ? "button" : null,
          role: hooks.act ? null : "gridcell",
          style: `--share: ${share.toFixed(3)}`,
          tabindex: "-1",
          "aria-label": cell.name,
          "aria-pressed": hooks.pressed ? String(hooks.pressed(r, c)) : null,
          "data-at": `${r} ${c}`,
          onclick: hooks.act && (() => (move(r, c), hooks.act(r, c))),
        },
        cell.text,
      );
    }),
  );
  const label = (row, r) =>
    hooks.actRow
      ? el(
          "button",
          {
            type: "button",
            class: "row-label",
            onclick: () => hooks.actRow(r),
            title: row.title,
          },
          row.label,
        )
      : el("span", { class: "row-label" }, row.label);
  const line = (role, ...children) => el("div", { role, class: "line" }, ...children);
  const root = el(
    "div",
    {
      class: "cells",
      role: hooks.act ? "group" : "grid",
      "aria-label": grid.name,
      style: `--columns: ${grid.columns.length}`,
    },
    line(
      hooks.act ? null : "row",
      el(
        "span",
        { class: "corner", role: hooks.act ? null : grid.corner ? "columnheader" : "gridcell" },
        grid.corner || "",
      ),
      grid.columns.map((name) =>
        el(
          "span",
          { class: "column-label", role: hooks.act ? null : "columnheader", title: name },
          name,
        ),
      ),
    ),
    grid.rows.map((row, r) => {
      const head = label(row, r);
      if (!hooks.act) head.setAttribute("role", "rowheader");
      return line(hooks.act ? null : "row", head, nodes[r]);
    }),
  );

  function move(row, column) {
    nodes[at[0]]?.[at[1]]?.setAttribute("tabindex", "-1");
    at = [row, column];
    nodes[row][column].setAttribute("tabindex", "0");
  }
  if (nodes.length && nodes[0].length) move(0, 0);

  root.addEventListener("keydown", (event) => {
    const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[
      event.key
    ];
    if (!step || !event.target.dataset.at || event.altKey || event.ctrlKey || event.metaKey) return;
    const clamp = (value, count) => Math.min(count - 1, Math.max(0, value));
    move(clamp(at[0] + step[0], nodes.length), clamp(at[1] + step[1], nodes[0].length));
    nodes[at[0]][at[1]].focus();
    event.preventDefault();
    event.stopPropagation();
  });
  const tell = (event) => {
    const place = event.target.closest?.("[data-at]")?.dataset.at;
    hooks.point?.(place ? grid.rows[place.split(" ")[0]].cells[place.split(" ")[1]].name : null);
  };
  for (const name of ["pointerover", "focusin"]) root.addEventListener(name, tell);
  root.addEventListener("pointerleave", () => hooks.point?.(null));

  return {
    root,
    press() {
      // what pressed() says now
      nodes.forEach((row, r) =>
        row.forEach((node, c) => node.setAttribute("aria-pressed", String(hooks.pressed(r, c)))),
      );
    },
    // The focus, as a place to give it back to the grid that takes this one's.
    focused: () =>
      root.contains(document.activeElement) && document.activeElement.dataset.at ? at : null,
    focus(place) {
      if (!nodes[place[0]]?.[place[1]]) return;
      move(...place);
      nodes[place[0]][place[1]].focus({ preventScroll: true });
    },
  };
}
