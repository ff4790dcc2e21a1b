// The page's grid of cells: headings, one tab stop, arrow keys inside. Maps of heads, effects and differences are drawn with it.
import { el } from "./dom.js";
import { arrowStep, clamp } from "./keys.js";

/**
 * @typedef {string | {text: any, title?: any, act?: () => void}} Heading its text; or with a tooltip and what a click does
 * @typedef {{name?: any, class?: string, style?: string, title?: any, data?: Record<string, any>, content?: any}} Cell
 *   name: the whole content in words, for screen readers
 */

/**
 * @param {any} heading a Heading @param {string} kind "corner", "column" or "row" @param {string | null} role
 * @param {boolean} quiet hidden from screen readers
 */
function createHeading(heading, kind, role, quiet) {
  const {
    text,
    title = text,
    act = null,
  } = heading.text === undefined ? { text: heading } : heading;
  const isButton = act && !quiet;
  return el(
    isButton ? "button" : "span",
    {
      class: `heading ${kind}${act ? " acts" : ""}`,
      type: isButton ? "button" : null,
      role: quiet ? null : role,
      "aria-hidden": quiet ? "true" : null,
      title: text === "" ? null : title,
      onclick: act,
    },
    text,
  );
}

/**
 * Return the class and style of a cell that is shaded by its share of the largest value, -1 to 1; null: no value.
 * @param {number | null} share
 */
export const shareStyle = (share) => ({
  class: share === null ? "none" : share < 0 ? "minus" : "plus",
  style: `--share: ${Math.min(1, Math.abs(share ?? 0)).toFixed(3)}`,
});

/**
 * Create a grid.
 * @param {object} content
 * @param {any} [content.name] of the grid
 * @param {string} [content.kind] class names
 * @param {Heading[] | null} [content.columns]
 * @param {Heading[] | null} [content.rows]
 * @param {Heading} [content.corner]
 * @param {Cell[][]} content.cells [row][column]
 * @param {object} [hooks]
 * @param {(row: number, column: number, event: any) => void} [hooks.act] makes the cells buttons
 * @param {(row: number, column: number) => boolean} [hooks.pressed] whether a cell's button is pressed
 * @param {(row?: number, column?: number) => void} [hooks.point] called when a cell is pointed at or focused; without
 *   arguments on leaving
 * @param {boolean} [hooks.quiet] hide headings from screen readers, because each cell's name says it all
 * @param {boolean} [hooks.walks] false: arrow keys do not move between cells
 */
export function createGrid(
  { name, kind = "", columns, rows, corner = "", cells },
  { act, pressed, point, quiet = false, walks = true } = {},
) {
  const role = (/** @type {string} */ ownRole) => (act || quiet ? null : ownRole);
  let at = [0, 0]; // the cell that Tab reaches
  const nodes = cells.map((row, r) =>
    row.map((cell, c) =>
      el(
        act ? "button" : "span",
        {
          type: act ? "button" : null,
          role: role("gridcell"),
          class: `cell ${cell.class ?? ""}`,
          style: cell.style,
          title: cell.title,
          tabindex: walks || act ? "-1" : null,
          "aria-label": cell.name,
          "aria-pressed": pressed ? String(pressed(r, c)) : null,
          "data-at": `${r} ${c}`,
          ...cell.data,
          onclick:
            act &&
            ((/** @type {any} */ event) =>
              (move(r, c), act(r, c, event))),
        },
        cell.content,
      ),
    ),
  );
  const line = (/** @type {any[]} */ ...children) =>
    el("div", { role: role("row"), class: "line" }, ...children);
  const top = columns && [
    rows &&
      createHeading(corner, "corner", role(corner === "" ? "gridcell" : "columnheader"), quiet),
    columns.map((heading) => createHeading(heading, "column", role("columnheader"), quiet)),
  ];
  const root = el(
    "div",
    {
      class: `atlas-grid ${kind}${rows ? "" : " bare"}`,
      role: act || quiet ? "group" : "grid",
      "aria-label": name,
      style: `--columns: ${cells[0]?.length ?? 0}`,
    },
    top ? line(...top) : null,
    nodes.map((row, r) =>
      line(rows ? createHeading(rows[r], "row", role("rowheader"), quiet) : null, ...row),
    ),
  );

  function move(/** @type {number} */ row, /** @type {number} */ column) {
    if (!walks) return;
    nodes[at[0]]?.[at[1]]?.setAttribute("tabindex", "-1");
    at = [row, column];
    nodes[row][column].setAttribute("tabindex", "0");
  }
  if (nodes[0]?.length) move(0, 0);

  const cellOf = (/** @type {any} */ node) =>
    node?.closest?.("[data-at]")?.dataset.at.split(" ").map(Number);
  root.addEventListener("keydown", (/** @type {any} */ event) => {
    const step = walks && arrowStep(event);
    if (!step || !cellOf(event.target)) return;
    move(clamp(at[0] + step[0], nodes.length), clamp(at[1] + step[1], nodes[0].length));
    nodes[at[0]][at[1]].focus();
    event.preventDefault();
    event.stopPropagation();
  });
  if (point) {
    for (const event of quiet ? ["pointerover"] : ["pointerover", "focusin"])
      root.addEventListener(event, (/** @type {any} */ { target }) =>
        point(...(cellOf(target) ?? [])),
      );
    root.addEventListener("pointerleave", () => point());
  }

  return {
    root,
    nodes,
    /** Update which buttons are pressed. */
    press: () =>
      nodes.forEach((row, r) =>
        row.forEach((node, c) => node.setAttribute("aria-pressed", String(pressed?.(r, c)))),
      ),
    /** Return the focused cell, [row, column], to pass to focus() of a grid that replaces this one. */
    focused: () => cellOf(root.contains(document.activeElement) ? document.activeElement : null),
    focus(/** @type {number[]} */ [row, column]) {
      if (!nodes[row]?.[column]) return;
      move(row, column);
      nodes[row][column].focus({ preventScroll: true });
    },
  };
}
