// The page's one grid: cells in rows and columns, a heading for each, one stop for the tabulator, arrow keys inside. Heads,
// what they are worth, what patches recover, how far two branches differ: all of them are such grids.
import { el } from "./dom.js";
import { arrowStep, clamp } from "./keys.js";

// What stands above a column or beside a row: a text, or {text, title, act}. quiet: for the eye alone, since every cell
// has its whole name.
function heading(given, kind, role, quiet) {
  const { text = given, title = text, act = null } = given?.text === undefined ? {} : given;
  const pressed = act && !quiet;
  return el(
    pressed ? "button" : "span",
    {
      class: `heading ${kind}${act ? " acts" : ""}`,
      type: pressed ? "button" : null,
      role: quiet ? null : role,
      "aria-hidden": quiet ? "true" : null,
      title: text === "" ? null : title,
      onclick: act,
    },
    text,
  );
}

// A number's share of the largest, -1 to 1, as a cell's look: of either sign a colour of its own; null: there is none.
export const shareStyle = (share) => ({
  class: share === null ? "none" : share < 0 ? "minus" : "plus",
  style: `--share: ${Math.min(1, Math.abs(share ?? 0)).toFixed(3)}`,
});

// {name, kind, columns, rows, corner, cells}: kind, class names; columns and rows: headings, or null; cells: [row][column],
// each {name: all of it in words, class, style, title, data, content}. hooks, each optional: act(row, column, event), then
// cells are buttons; pressed(row, column) -> whether one is on; point(row, column) when it is pointed at, without any on
// leaving. quiet: headings are for the eye alone; walks: false where the arrow keys are somebody else's.
export function createGrid(
  { name, kind = "", columns, rows, corner = "", cells },
  { act, pressed, point, quiet = false, walks = true } = {},
) {
  const role = (own) => (act || quiet ? null : own);
  let at = [0, 0];
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
          onclick: act && ((event) => (move(r, c), act(r, c, event))),
        },
        cell.content,
      ),
    ),
  );
  const line = (...children) => el("div", { role: role("row"), class: "line" }, ...children);
  const top = columns && [
    rows && heading(corner, "corner", role(corner === "" ? "gridcell" : "columnheader"), quiet),
    columns.map((one) => heading(one, "column", role("columnheader"), quiet)),
  ];
  const root = el(
    "div",
    {
      class: `atlas-grid ${kind}`,
      role: act || quiet ? "group" : "grid",
      "aria-label": name,
      style: `--columns: ${cells[0]?.length ?? 0}`,
    },
    top ? line(...top) : null,
    nodes.map((row, r) =>
      line(rows ? heading(rows[r], "row", role("rowheader"), quiet) : null, ...row),
    ),
  );
  root.classList.toggle("bare", !rows);

  function move(row, column) {
    if (!walks) return;
    nodes[at[0]]?.[at[1]]?.setAttribute("tabindex", "-1");
    at = [row, column];
    nodes[row][column].setAttribute("tabindex", "0");
  }
  if (nodes[0]?.length) move(0, 0);

  const placeOf = (node) => node?.closest?.("[data-at]")?.dataset.at.split(" ").map(Number);
  root.addEventListener("keydown", (event) => {
    const step = walks && arrowStep(event);
    if (!step || !placeOf(event.target)) return;
    move(clamp(at[0] + step[0], nodes.length), clamp(at[1] + step[1], nodes[0].length));
    nodes[at[0]][at[1]].focus();
    event.preventDefault();
    event.stopPropagation();
  });
  if (point) {
    for (const event of quiet ? ["pointerover"] : ["pointerover", "focusin"])
      root.addEventListener(event, ({ target }) => point(...(placeOf(target) ?? [])));
    root.addEventListener("pointerleave", () => point());
  }

  return {
    root,
    nodes,
    // What pressed() says now.
    press: () =>
      nodes.forEach((row, r) =>
        row.forEach((node, c) => node.setAttribute("aria-pressed", String(pressed(r, c)))),
      ),
    // The focus, as a place to give it back to the grid that takes this one's.
    focused: () => placeOf(root.contains(document.activeElement) ? document.activeElement : null),
    focus(place) {
      if (!nodes[place[0]]?.[place[1]]) return;
      move(...place);
      nodes[place[0]][place[1]].focus({ preventScroll: true });
    },
  };
}
