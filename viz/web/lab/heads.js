// Grids with a cell for every head of the model (viz/wire/heads.py): what each is worth, and which are switched off together.
import { button, debounce, el, group } from "../core/dom.js";
import { toText, t } from "../core/language.js";
import { createGrid, shareStyle } from "../core/grid.js";
import { createScrollBox } from "./scroll.js";
import { createPicture } from "../picture/copy.js";
import * as drawing from "../picture/drawing.js";
import { choicesFor, headKey } from "../why/choices.js";

const MAX_NAMED = 24; // heads that are switched off and have a button of their own
let current = null; // the block that is on the page: {about, update(), focusedCell()}

/** A link has switched heads off: draw them if the block on the page is about this translation. @param {string} about */
export const showRestoredHeads = (about) => current?.about === about && current.update();

/**
 * Create a grid. A cell's value is its share of the largest, -1 to 1, or null; marks are class names.
 * @param {{
 *   name: any, columns: any[], corner?: any,
 *   rows: {label: any, title?: any, cells: {value: number | null, text: any, name: any, marks?: string[]}[]}[],
 * }} grid
 * @param {(name: any) => void} describe is called with the name of the cell that is pointed at; null: the pointer has left
 * @param {any} [hooks] those of createGrid(), and actRow(row) for clicks on a row's heading
 */
export function drawGrid({ name, columns, rows, corner }, describe, { actRow, ...hooks } = {}) {
  const createCell = ({ value, text: content, name, marks = [] }) => {
    const { class: shade, style } = shareStyle(value);
    return { class: [shade, ...marks].join(" "), style, name, content };
  };
  return createGrid(
    {
      name,
      corner: corner ?? "",
      columns,
      rows: rows.map(({ label, title }, r) => ({
        text: label,
        title,
        act: actRow && (() => actRow(r)),
      })),
      cells: rows.map(({ cells }) => cells.map(createCell)),
    },
    { ...hooks, point: (r, c) => describe(r === undefined ? null : rows[r].cells[c].name) },
  );
}

// Create the grids of all kinds of attention, and the status line that names the cell that is pointed at.
function createKinds(block, about, hooksFor) {
  const status = el("p", { class: "status", role: "status" }, block.hint);
  const grids = block.kinds.map((kind) =>
    drawGrid(
      {
        name: kind.title,
        corner: t("head"),
        columns: kind.rows[0].map((_, i) => String(i + 1)),
        rows: kind.rows.map((cells, i) => ({
          label: t("layer {n}", { n: i + 1 }),
          title: block.joint ? t("Switch the whole layer off or on") : null,
          cells,
        })),
      },
      (name) => (status.textContent = toText(name ?? block.hint)),
      hooksFor(kind),
    ),
  );
  const sections = block.kinds.map((kind, i) =>
    el("section", {}, el("h3", {}, kind.title), grids[i].root),
  );
  const explanation = ({ marks, text }) =>
    el("span", {}, el("i", { class: `cell ${marks}`, style: "--share: 1" }), text);
  const root = el("div", { class: "heads" }, [
    createPicture(el("div", { class: "kinds" }, sections), about("")),
    block.legend.length > 0 && el("p", { class: "legend" }, block.legend.map(explanation)),
    status,
  ]);
  return { root, grids };
}

/**
 * The block of all heads. Without the slot `joint`, for the joint effect of the heads that are switched off, its grids are only
 * to be read.
 * @param {any} block {about, kinds: [{kind, title, rows: [[{value, text, name, marks}]]}], legend, hint, joint, done}
 * @param {(() => unknown)[]} afterInsert
 * @param {import("./blocks.js").Panel} api
 */
export function heads(block, afterInsert, api) {
  if (!block.joint) return createKinds(block, api.describePicture, () => ({})).root;
  const { off } = choicesFor(block.about),
    focusedBefore = current?.focusedCell() ?? null; // in the block that this one replaces
  const exists = ([kind, layer, head]) =>
    block.kinds.find((grid) => grid.kind === kind)?.rows[layer]?.[head] !== undefined;
  const { root, grids } = createKinds(block, api.describePicture, (kind) => ({
    act: (layer, head) => toggle([[kind.kind, layer, head]]),
    actRow: (layer) => toggle(kind.rows[layer].map((_, head) => [kind.kind, layer, head])),
    pressed: (layer, head) => off.has(headKey([kind.kind, layer, head])),
  }));
  const chips = group("basket", t("Heads that are switched off"));
  root.append(chips);

  const nameOf = ([kind, layer, head]) =>
    t("{kind} {layer}.{head}", {
      kind: toText(block.kinds.find((grid) => grid.kind === kind).title),
      layer: layer + 1,
      head: head + 1,
    });
  const list = () => [...off.values()];
  const measure = () => block.done && api.askForSlot("joint", block.joint, { heads: list() });
  const measureSoon = debounce(measure, 120);

  // Switch heads on if all of them are off, otherwise off.
  function toggle(places) {
    const areOff = places.every((place) => off.has(headKey(place)));
    for (const place of places) {
      if (areOff) off.delete(headKey(place));
      else off.set(headKey(place), place);
    }
    update();
  }

  function update() {
    for (const grid of grids) grid.press();
    drawChips();
    measureSoon();
  }

  function drawChips() {
    for (const [key, place] of off) if (!exists(place)) off.delete(key); // a link may name any head
    const chip = (place) => {
      const switchOn = () => {
        toggle([place]);
        (chips.querySelector("button") || grids[0].root.querySelector("[tabindex='0']")).focus();
      };
      const label = t("Switch on again: {head}", { head: nameOf(place) });
      return button(`${nameOf(place)} ×`, switchOn, { class: "chip", "aria-label": label });
    };
    chips.replaceChildren();
    if (!off.size) return;
    const more = off.size - MAX_NAMED;
    chips.append(
      el("span", { class: "caption" }, t("Off:")),
      ...list().slice(0, MAX_NAMED).map(chip),
      more > 0 ? el("span", {}, t("and {n} more", { n: more })) : "",
      button(t("Translate without these"), () => api.askForPage("translate", { heads: list() })),
      button(t("Switch all on"), () => (off.clear(), update(), grids[0].focus([0, 0]))),
    );
  }

  drawChips();
  afterInsert.push(() => {
    const focusedCell = () =>
      grids.map((grid, i) => [i, grid.focused()]).find(([, cell]) => cell) ?? null;
    current = { about: block.about, update, focusedCell };
    if (focusedBefore) grids[focusedBefore[0]]?.focus(focusedBefore[1]);
    if (off.size) measure();
  });
  return root;
}

/**
 * The block of one grid, only to be read (viz/panels/why/patch.py).
 * @param {any} block {name, columns, rows: [{label, cells}], corner}
 * @param {unknown} afterInsert
 * @param {import("./blocks.js").Panel} api
 */
export function grid(block, afterInsert, api) {
  const status = el("p", { class: "status", role: "status" });
  const { root } = drawGrid(block, (name) => (status.textContent = toText(name ?? "")));
  return el("div", { class: "heads wide" }, [
    createPicture(createScrollBox(root, { tabindex: null, role: null }), {
      ...api.describePicture(toText(block.name)),
      svg: () => drawing.elementSvg(root),
    }),
    status,
  ]);
}
