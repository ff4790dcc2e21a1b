// Keyboard and pointer in parts of the page that have rows and columns.

/** @type {Record<string, number[]>} */
const STEPS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

/** Whether Alt, Ctrl or Meta is pressed: such keys belong to the browser. @param {any} event */
export const hasModifier = (event) => event.altKey || event.ctrlKey || event.metaKey;

/** Return the [rows, columns] that an arrow key moves by; null for other keys. @param {any} event */
export const arrowStep = (event) => (hasModifier(event) ? null : (STEPS[event.key] ?? null));

/**
 * Move the focus between nodes in rows as an arrow key points: along a row, or to the same place of the next row.
 * @param {any} event a keydown @param {any[][]} rows of nodes
 */
export function moveFocus(event, rows) {
  const step = arrowStep(event),
    row = rows.findIndex((nodes) => nodes.includes(event.target));
  if (!step || row < 0) return;
  const at = rows[row].indexOf(event.target),
    nodes = rows[row + step[0]];
  const next = step[0] ? nodes?.[clamp(at, nodes.length)] : nodes[at + step[1]];
  if (!next) return;
  next.focus();
  event.preventDefault();
  event.stopPropagation();
}

/** Whether a key is typed into a field or belongs to a dialog. @param {any} event @param {string} [fields] a selector */
export const isTyping = ({ target }, fields = "input:not([type=range])") =>
  Boolean(target.closest?.(`${fields}, textarea, select, [contenteditable], dialog`));

/**
 * Whether a key is meant for a visible part of the page: the part, or nothing on the page, has the focus.
 * @param {HTMLElement} root @param {any} event
 */
export const isKeyFor = (root, event) =>
  Boolean(root.offsetParent) &&
  !hasModifier(event) &&
  (event.target === document.body || root.contains(event.target));

/**
 * Return the attributes with which an element that is no <button>, such as a part of an SVG, acts as one.
 * @param {() => void} act
 */
export const actAsButton = (act) => ({
  role: "button",
  tabindex: "0",
  onclick: act,
  onkeydown: (/** @type {any} */ event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    event.stopPropagation();
    act();
  },
});

/** Limit an index to 0 .. count - 1. @param {number} value @param {number} count */
export const clamp = (value, count) => Math.max(0, Math.min(count - 1, value));

/**
 * Return the [row, column] at which a pointer event points in a box of equal cells.
 * @param {any} event @param {Element} box @param {number} rows @param {number} columns
 */
export function cellAt(event, box, rows, columns) {
  const { left, top, width, height } = box.getBoundingClientRect();
  return [
    clamp(Math.floor(((event.clientY - top) / height) * rows), rows),
    clamp(Math.floor(((event.clientX - left) / width) * columns), columns),
  ];
}

/**
 * Call a function with a field's text when Enter is pressed in it, before any other listener. Shift+Enter starts a new
 * line.
 * @param {string} selector of the field @param {(text: string) => void} callback
 */
export function onEnter(selector, callback) {
  const listener = (/** @type {any} */ event) => {
    if (event.key !== "Enter" || event.shiftKey || !event.target.matches(selector)) return;
    event.preventDefault();
    event.stopPropagation();
    callback(event.target.value);
  };
  document.addEventListener("keypress", listener, { capture: true });
}
