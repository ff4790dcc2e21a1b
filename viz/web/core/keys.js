// Arrow keys in what has rows and columns.
const STEPS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

// With a modifier a key is the browser's.
export const hasModifier = (event) => event.altKey || event.ctrlKey || event.metaKey;

// [rows, columns] that an event's key goes, or null.
export const arrowStep = (event) => (hasModifier(event) ? null : (STEPS[event.key] ?? null));

// Of nodes in rows, the focus goes where an arrow points: along a row, or as far into the next.
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

// Whether a key is written somewhere, or a dialog's own.
export const isTyping = ({ target }, fields = "input:not([type=range])") =>
  Boolean(target.closest?.(`${fields}, textarea, select, [contenteditable], dialog`));

// Whether it is a part's own: where that has the focus, or nothing on the page has.
export const isKeyFor = (root, event) =>
  Boolean(root.offsetParent) &&
  !hasModifier(event) &&
  (event.target === document.body || root.contains(event.target));

export const clamp = (value, count) => Math.max(0, Math.min(count - 1, value));

// The cell of a box with these many rows and columns that an event points at.
export function cellAt(event, box, rows, columns) {
  const { left, top, width, height } = box.getBoundingClientRect();
  return [
    clamp(Math.floor(((event.clientY - top) / height) * rows), rows),
    clamp(Math.floor(((event.clientX - left) / width) * columns), columns),
  ];
}

// Calls back with a field's text when Enter is pressed in it, and nobody else hears of that. Shift and Enter begin a line.
export function onEnter(selector, entered) {
  const heard = (event) => {
    if (event.key !== "Enter" || event.shiftKey || !event.target.matches(selector)) return;
    event.preventDefault();
    event.stopPropagation();
    entered(event.target.value);
  };
  document.addEventListener("keypress", heard, { capture: true });
}
