// A box for content that may be wider than the page. It scrolls on its own, by keyboard too, and shows at which end it goes on.
import { el } from "../core/dom.js";

/**
 * Create the box around a node.
 * @param {Element} node
 * @param {Record<string, any>} attributes the name that is read out ("aria-label"), and others
 */
export function createScrollBox(node, attributes) {
  const box = el("div", { class: "scroll", tabindex: "0", role: "region", ...attributes }, node);
  const markEnds = () => {
    const hidden = box.scrollWidth - box.clientWidth,
      left = Math.abs(box.scrollLeft); // negative in languages that are written from right to left
    box.classList.toggle("before", left > 1);
    box.classList.toggle("after", hidden - left > 1);
  };
  box.addEventListener("scroll", markEnds, { passive: true });
  const observer = new ResizeObserver(markEnds);
  for (const element of [box, node]) observer.observe(element);
  return box;
}

/**
 * Scroll a cell of a table to the middle of the space between its sticky columns, unless it is visible there.
 * @param {Element} box @param {Element} cell
 * @param {Element | null} [first] a cell of the sticky column on the left
 * @param {Element} [last] a cell of the sticky column on the right
 */
export function scrollToCell(box, cell, first, last) {
  const { left, right, width } = cell.getBoundingClientRect(),
    frame = box.getBoundingClientRect(),
    start = first?.getBoundingClientRect().right ?? frame.left,
    end = Math.min(frame.right, last?.getBoundingClientRect().left ?? Infinity);
  if (left < start || right > end) box.scrollLeft += left + width / 2 - (start + end) / 2;
}
