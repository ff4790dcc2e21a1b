// All maps as a tree for the keyboard and for screen readers: kind, layer, head, row, cell, with a sentence for each row. It
// follows the pattern "Tree View" of the ARIA Authoring Practices Guide. The nodes of closed branches do not exist: a large model
// has hundreds of heads.
import { el } from "../../core/dom.js";
import { formatPercent } from "../../core/format.js";
import { hasModifier } from "../../core/keys.js";
import { KINDS } from "../../core/kinds.js";
import { t, toText } from "../../core/language.js";
import { litWeights } from "../lit.js";
import { litReading, strongestIndices } from "../words.js";

const [HEAD, ROW, CELL] = [3, 4, 5], // lengths of the paths of heads, rows and cells
  LISTED = 30; // cells of a row of a large map

/**
 * Create the tree.
 * @param {object} hooks
 * @param {any} hooks.scene what the explorer shows
 * @param {(trace: any, state: any) => any} hooks.mapOf of maps.js
 * @param {(map: any, wanted: number[][]) => void} hooks.tiles of maps.js
 * @param {(head: any, pinned: any) => void} hooks.show selects {kind, layer, head}, and pins {map, row, column}; null: only the head
 * @param {(weights: number[]) => void} hooks.play plays weights as sound
 */
export function createTree({ scene, mapOf, tiles, show, play }) {
  const list = el("div", {
    class: "tree",
    role: "tree",
    "aria-label": t("Attention maps: kind, layer, head, row, cell"),
    "aria-describedby": "explorer-tree-keys",
    onkeydown: handleKey,
    onclick: ({ target }) => act(itemOf(target)),
    onfocusin: ({ target }) => visit(itemOf(target)),
  });
  const root = el("details", { class: "walk", ontoggle: begin }, [
    el("summary", {}, t("All heads as a tree")),
    el("p", { class: "caption", id: "explorer-tree-keys" }, [
      t(
        "Up and down move, right opens, left closes. Opening a head selects it; opening a row pins it. N plays a row as sound: the larger a weight, the higher it sounds.",
      ),
    ]),
    list,
  ]);
  let items = [], // the visible ones, in order: {id, path, at, size, node}; at, size: its place on its level, and the level's size
    current = "", // id of the item that Tab reaches
    view = ""; // what the rows depend on
  const open = new Set(), // ids of open items
    nodes = new Map(), // id -> element of a visible item
    maps = new Map(), // id of a head -> map
    labels = new Map(); // id -> text that does not change any more

  // --- what a path leads to -----------------------------------------------------------------------------------------
  // Return the map of a path's head, or null while it is missing; it is requested then.
  function mapAt(path) {
    const place = path.slice(0, HEAD),
      id = place.join("."),
      [kind, layer, head] = place;
    const alone = { kind, layer, head, heads: [], combine: "single", overlay: "" },
      map = maps.get(id) ?? mapOf(scene.trace, { ...scene.state, ...alone });
    if (!map || map.refused) return null;
    maps.set(id, map);
    if (map.pyramid) map.pyramid = scene.trace.pyramid(...place); // the trace keeps only a few
    return map;
  }

  // Return a row as a map of one row, or null while weights of a large map are missing.
  function rowAt(path) {
    const map = mapAt(path);
    if (!map) return null;
    const { rows, columns, pyramid } = map,
      row = path[ROW - 1],
      width = columns.length,
      ofRow = { rows: [rows[row]], columns };
    if (!pyramid) return { ...ofRow, values: map.values.subarray(row * width, (row + 1) * width) };
    if (missingTiles(map, row).length) return null;
    const values = columns.map((_, column) => {
      const { exact, largest } = pyramid.at(row, column);
      return exact ?? largest;
    });
    return { ...ofRow, values };
  }

  const missingTiles = ({ pyramid, columns }, row) =>
    pyramid.within(0, 0, row, columns.length, 1).filter((tile) => !pyramid.tile(...tile));

  // Return the last steps of the paths below a path; one step, to a note, while they are missing.
  function stepsBelow(path) {
    const { kinds } = scene.trace,
      count = (length) => Array.from({ length }, (_, i) => i);
    if (!path.length) return Object.keys(KINDS).filter((kind) => kinds[kind]);
    if (path.length < HEAD) return count(kinds[path[0]][path.length === 1 ? "layers" : "heads"]);
    if (path.length === HEAD) return count(mapAt(path)?.rows.length ?? 1);
    const row = rowAt(path);
    if (!row) return [0];
    return kinds[path[0]].large ? strongestIndices(row.values, LISTED) : count(row.values.length);
  }

  // Return the text of an item. full: whether to say what a row of a large map attends to, which takes a while.
  function textOf(path, full) {
    const [kind, layer, head, at, column] = path,
      { title, readings, large } = scene.trace.kinds[kind];
    if (path.length === 1) return `${toText(title)}: ${toText(KINDS[kind].line)}`;
    if (path.length === 2) return t("Layer {layer}", { layer: layer + 1 });
    if (path.length === HEAD) {
      const name = t("Head {n}", { n: head + 1 }),
        reading = readings[layer]?.[head];
      return reading ? `${name}: ${toText(reading)}` : name;
    }
    const map = mapAt(path);
    if (!map) return toText(scene.trace.left_out ?? t("Loading this layer…"));
    const row = large && !full && path.length === ROW ? null : rowAt(path),
      word = `“${map.rows[at].label}”`;
    if (path.length === CELL) return row ? cellText(row, column) : t("Loading …");
    if (!row) return word;
    const lit = litWeights(row, { row: 0, column: null }),
      sentence = litReading({ kind }, lit);
    return lit.strongest.length ? sentence : `${word}: ${sentence}`;
  }

  // Whether an item stands for rows that are being loaded.
  const isNote = (path) => path.length >= ROW && !mapAt(path);

  const cellText = ({ columns, values }, column) => {
    const weight = values[column];
    return `“${columns[column].label}” ${Number.isNaN(weight) ? t("blank") : formatPercent(weight)}`;
  };

  function labelOf({ id, path }) {
    const known = labels.get(id);
    if (known !== undefined) return known;
    const text = textOf(path, id === current || open.has(id));
    const isWord = /^“[^”]*”$/.test(text); // the weights of its row are not here yet
    if (path.length > HEAD && !isWord && text.includes("%")) labels.set(id, text);
    return text;
  }

  // --- drawing ------------------------------------------------------------------------------------------------------
  // Return the visible items below a path.
  function itemsBelow(path) {
    const steps = stepsBelow(path);
    return steps.flatMap((step, at) => {
      const own = [...path, step],
        id = own.join("."),
        item = { id, path: own, at, size: steps.length };
      return open.has(id) ? [item, ...itemsBelow(own)] : [item];
    });
  }

  const isSelected = ([kind, layer, head, ...rest]) =>
    !rest.length &&
    kind === scene.state.kind &&
    layer === scene.state.layer &&
    head === scene.state.head;

  function drawItem(item) {
    const { id, path, at, size } = item;
    if (!nodes.has(id)) {
      const about = { role: "treeitem", "data-id": id, style: `--level: ${path.length}` };
      nodes.set(id, el("div", about));
    }
    const node = (item.node = nodes.get(id)),
      text = labelOf(item);
    if (node.textContent !== text) node.textContent = text;
    const attributes = {
      "aria-level": path.length,
      "aria-setsize": size,
      "aria-posinset": at + 1,
      "aria-expanded": path.length < CELL && !isNote(path) ? open.has(id) : null,
      "aria-current": isSelected(path) || null,
      tabindex: id === current ? 0 : -1,
    };
    for (const [name, value] of Object.entries(attributes))
      if (value === null) node.removeAttribute(name);
      else if (node.getAttribute(name) !== String(value)) node.setAttribute(name, value);
    return node;
  }

  function draw() {
    if (!root.open || !scene.trace) return;
    const { words, special, predicted } = scene.state,
      now = JSON.stringify([scene.trace.key, words, special, predicted]);
    if (now !== view) forget(now);
    items = itemsBelow([]);
    const ids = new Set(items.map(({ id }) => id));
    while (!ids.has(current)) current = current.split(".").slice(0, -1).join(".") || items[0].id;
    const hadFocus = list.contains(document.activeElement);
    for (const id of nodes.keys()) if (!ids.has(id)) nodes.delete(id);
    items.map(drawItem).forEach((node, i) => {
      if (list.children[i] !== node) list.insertBefore(node, list.children[i] ?? null);
    });
    while (list.children.length > items.length) list.lastChild.remove();
    if (!hadFocus) return;
    if (!list.contains(document.activeElement)) focus(current);
    request(items.find(({ id }) => id === current)); // again: only one request is under way at a time
  }

  // The rows are other ones: close the heads. Of another translation, only the selected head's branch is open.
  function forget(now) {
    const isOther = !view || JSON.parse(view)[0] !== JSON.parse(now)[0];
    view = now;
    for (const id of open) if (isOther || id.split(".").length >= HEAD) open.delete(id);
    maps.clear();
    labels.clear();
    if (isOther) reveal();
  }

  function reveal() {
    const { kind, layer, head } = scene.state;
    open.add(kind);
    open.add(`${kind}.${layer}`);
    current = `${kind}.${layer}.${head}`;
  }

  // Open the branch of the selected head, and stand there.
  function begin() {
    if (!root.open || !scene.trace) return;
    reveal();
    draw();
  }

  // --- what a person does -------------------------------------------------------------------------------------------
  const itemOf = (target) =>
    items.find(({ id }) => id === target.closest?.("[role=treeitem]")?.dataset.id);

  function focus(id) {
    current = id;
    drawItem(items.find((item) => item.id === id)).focus();
  }

  // An item has the focus: Tab reaches it from now on.
  function visit(item) {
    if (!item) return;
    current = item.id;
    for (const { id, node } of items) node.tabIndex = id === current ? 0 : -1;
    request(item);
  }

  // Request the weights of a row of a large map.
  function request({ path }) {
    const map = path.length >= ROW ? mapAt(path) : null,
      missing = map?.pyramid ? missingTiles(map, path[ROW - 1]) : [];
    if (missing.length) tiles(map, missing);
  }

  function openItem({ id, path }) {
    follow(path); // may draw other rows, and close the heads
    open.add(id);
    draw();
  }

  // Select a path's head on the page, and pin its row and its cell.
  function follow(path) {
    if (path.length < HEAD) return;
    const [kind, layer, head, row = null, column = null] = path,
      map = row === null ? null : mapAt(path);
    show({ kind, layer, head }, map && { map, row, column });
  }

  function close({ id }) {
    open.delete(id);
    draw();
    focus(id);
  }

  function act(item) {
    if (!item) return;
    focus(item.id);
    if (isNote(item.path)) return;
    if (item.path.length === CELL) follow(item.path);
    else if (open.has(item.id)) close(item);
    else openItem(item);
  }

  function handleKey(event) {
    const item = itemOf(event.target),
      at = items.indexOf(item);
    if (!item || hasModifier(event)) return;
    const { path } = item,
      isOpen = open.has(item.id);
    const go = (next) => next && focus(next.id);
    const acts = {
      ArrowDown: () => go(items[at + 1]),
      ArrowUp: () => go(items[at - 1]),
      Home: () => go(items[0]),
      End: () => go(items.at(-1)),
      ArrowRight: () =>
        isOpen ? go(items[at + 1]) : path.length < CELL && !isNote(path) && openItem(item),
      ArrowLeft: () =>
        isOpen ? close(item) : go(items.find(({ id }) => id === path.slice(0, -1).join("."))),
      Enter: () => act(item),
      " ": () => act(item),
      n: () => {
        const row = path.length >= ROW ? rowAt(path) : null;
        if (row) play([...row.values]);
      },
    };
    const perform = acts[event.key];
    if (!perform) return;
    perform();
    event.preventDefault();
    event.stopPropagation();
  }

  return { root, draw };
}
