// Every head of the model as a cell: what it is worth, and a basket of those that are switched off together.
import { button, debounce, el } from "../core/dom.js";
import { toText, t } from "../core/language.js";
import { createGrid, shareStyle } from "../core/grid.js";
import { scrolling } from "./scroll.js";
import { createPicture } from "../picture/copy.js";
import * as drawing from "../picture/drawing.js";
import { keptOf, same } from "../why/kept.js";

const SHOWN = 24; // heads of the basket that are named
let drawn = null; // the block that stands on the page now: {about, changed(), focused()}

// A link has brought heads that are switched off, of this translation.
export const headsRestored = (about) => drawn?.about === about && drawn.changed();

// A grid as it is sent, {columns, rows: [{label, title, cells: [{value, text, name, marks}]}], corner}; a cell's value is its
// share of the largest, -1 to 1, or null; marks: class names. tell(name) hears what is pointed at, in words, null on leaving.
export function drawGrid({ name, columns, rows, corner }, tell, { actRow, ...hooks } = {}) {
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
      cells: rows.map(({ cells }) =>
        cells.map((cell) => {
          const look = shareStyle(cell.value);
          return {
            ...look,
            class: [look.class, ...(cell.marks ?? [])].join(" "),
            name: cell.name,
            content: cell.text,
          };
        }),
      ),
    },
    { ...hooks, point: (r, c) => tell(r === undefined ? null : rows[r].cells[c].name) },
  );
}

// Grids of all kinds under one status line, which says the cell that is pointed at.
function kinds(block, about, hooksFor) {
  const status = el("p", { class: "status", role: "status" }, block.hint);
  const grids = block.kinds.map((kind) =>
    drawGrid(
      {
        name: kind.title,
        corner: t("head"),
        columns: kind.rows[0].map((_, i) => String(i + 1)),
        rows: kind.rows.map((cells, i) => ({
          label: t("layer {n}", { n: i + 1 }),
          title: block.joint ? t("Switch the whole layer off, or on") : null,
          cells,
        })),
      },
      (name) => (status.textContent = toText(name ?? block.hint)),
      hooksFor(kind),
    ),
  );
  const root = el(
    "div",
    { class: "heads" },
    createPicture(
      el(
        "div",
        { class: "kinds" },
        block.kinds.map((kind, i) => el("section", {}, el("h2", {}, kind.title), grids[i].root)),
      ),
      about(""),
    ),
    block.legend.length
      ? el(
          "p",
          { class: "legend" },
          block.legend.map(({ marks, text }) =>
            el("span", {}, el("i", { class: `cell ${marks}`, style: "--share: 1" }), text),
          ),
        )
      : null,
    status,
  );
  return { root, grids };
}

// {about, kinds: [{kind, title, rows: [[{value, text, name, marks}]]}], legend, hint, joint, done} of viz/wire/heads.py.
// joint: the slot that says what is switched off together; none: to be read alone.
export function heads(block, keep, api) {
  if (!block.joint) return kinds(block, api.about, () => ({})).root;
  const basket = keptOf(block.about).off,
    held = drawn?.focused() ?? null;
  const known = (kind, layer, head) =>
    block.kinds.find((one) => one.kind === kind)?.rows[layer]?.[head] !== undefined;
  const { root, grids } = kinds(block, api.about, (kind) => ({
    act: (layer, head) => toggle([[kind.kind, layer, head]]),
    actRow: (layer) => toggle(kind.rows[layer].map((_, head) => [kind.kind, layer, head])),
    pressed: (layer, head) => basket.has(same([kind.kind, layer, head])),
  }));
  const chips = el("div", {
    class: "basket",
    role: "group",
    "aria-label": t("Heads that are switched off"),
  });
  root.append(chips);

  const name = ([kind, layer, head]) =>
    t("{kind} {layer}.{head}", {
      kind: toText(block.kinds.find((one) => one.kind === kind).title),
      layer: layer + 1,
      head: head + 1,
    });
  const list = () => [...basket.values()];
  const measure = () => block.done && api.act("joint", block.joint, { heads: list() });
  const measureSoon = debounce(measure, 120);

  function toggle(places) {
    const off = places.every((one) => basket.has(same(one)));
    for (const one of places) {
      if (off) basket.delete(same(one));
      else basket.set(same(one), one);
    }
    changed();
  }

  function changed() {
    for (const grid of grids) grid.press();
    show();
    measureSoon();
  }

  function show() {
    for (const [place, head] of basket) if (!known(...head)) basket.delete(place); // a link's
    const chip = (one) => {
      const switchOn = () => {
        toggle([one]);
        (chips.querySelector("button") || grids[0].root.querySelector("[tabindex='0']")).focus();
      };
      const label = t("Switch on again: {head}", { head: name(one) });
      return button(`${name(one)} ×`, switchOn, { class: "chip", "aria-label": label });
    };
    chips.replaceChildren();
    if (!basket.size) return;
    const more = basket.size - SHOWN;
    chips.append(
      el("span", { class: "caption" }, t("Off:")),
      ...list().slice(0, SHOWN).map(chip),
      more > 0 ? el("span", {}, t("and {n} more", { n: more })) : "",
      button(t("Translate without these"), () => api.ask("translate", { heads: list() })),
      button(t("Switch all on"), () => (basket.clear(), changed(), grids[0].focus([0, 0]))),
    );
  }

  show();
  keep.push(() => {
    drawn = {
      about: block.about,
      changed,
      focused: () => grids.map((grid, i) => [i, grid.focused()]).find(([, at]) => at) ?? null,
    };
    if (held) grids[held[0]]?.focus(held[1]);
    if (basket.size) measure();
  });
  return root;
}

// One grid {name, columns, rows: [{label, cells}], corner}, to be read (viz/panels/why/patch.py).
export function grid(block, keep, api) {
  const status = el("p", { class: "status", role: "status" });
  const { root } = drawGrid(block, (name) => (status.textContent = toText(name ?? "")));
  return el(
    "div",
    { class: "heads wide" },
    createPicture(scrolling(root, { tabindex: null, role: null }), {
      ...api.about(toText(block.name)),
      svg: () => drawing.elementSvg(root),
    }),
    status,
  );
}
