// The browser's top layer: parts lifted above the page, which alone can be reached meanwhile.
export function liftToTopLayer(node) {
  if (node.popover !== "manual") node.popover = "manual";
  if (!node.matches(":popover-open")) node.showPopover();
}

export function dropFromTopLayer(node) {
  if (node?.matches("[popover]")) node.popover = null;
}

/**
 * Return a function that makes everything but these elements inert, or, without elements, nothing. It returns whether that
 * changed anything.
 */
export function createReach() {
  const stilled = [];
  let reached = [];

  function still(node, but) {
    for (const child of node.children) {
      if (but.includes(child) || child.inert || child.matches("dialog, script, style, link"))
        continue;
      if (but.some((one) => child.contains(one))) still(child, but);
      else stilled.push(Object.assign(child, { inert: true }));
    }
  }

  return (these) => {
    if (these.length === reached.length && these.every((one, i) => one === reached[i]))
      return false;
    reached = these;
    for (const child of stilled.splice(0)) child.inert = false;
    if (these.length) still(document.body, these);
    return true;
  };
}

/** Return the focus to the element that had it, or, if that is gone, to what a selector names. */
export function restoreFocus(opener, instead) {
  const hadNone = !opener?.isConnected || opener === document.body;
  (hadNone ? document.querySelector(instead) : opener)?.focus({ preventScroll: true });
}
