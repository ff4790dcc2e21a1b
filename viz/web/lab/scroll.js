// What may be wider than the page scrolls by itself, by keyboard as well, and shows at which end it goes on.
import { el } from "../core/dom.js";

// about: the name that is read out, and other attributes.
export function scrolling(node, about) {
  const box = el("div", { class: "scroll", tabindex: "0", role: "region", ...about }, node);
  const look = () => {
    const rest = box.scrollWidth - box.clientWidth,
      at = Math.abs(box.scrollLeft);
    box.classList.toggle("before", at > 1);
    box.classList.toggle("after", rest - at > 1);
  };
  box.addEventListener("scroll", look, { passive: true });
  const watch = new ResizeObserver(look);
  for (const one of [box, node]) watch.observe(one);
  return box;
}

// Brings a part of it into the middle of what the columns that stay at its two ends leave free, unless it is there to
// be seen. names, sums: a cell of each; sums: if there are any, and on a narrow page they do not stay.
export function reveal(box, part, names, sums) {
  const at = part.getBoundingClientRect(),
    from = names.getBoundingClientRect().right;
  const to = Math.min(
    box.getBoundingClientRect().right,
    sums?.getBoundingClientRect().left ?? Infinity,
  );
  if (at.left < from || at.right > to) box.scrollLeft += at.left + at.width / 2 - (from + to) / 2;
}
