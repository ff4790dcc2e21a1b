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
  const inertNodes = [];
  let reached = [];

  function makeInert(node, but) {
    for (const child of node.children) {
      if (but.includes(child) || child.inert || child.matches("dialog, script, style, link"))
        continue;
      if (but.some((node) => child.contains(node))) makeInert(child, but);
      else inertNodes.push(Object.assign(child, { inert: true }));
    }
  }

  return (nodes) => {
    if (nodes.length === reached.length && nodes.every((node, i) => node === reached[i]))
      return false;
    reached = nodes;
    for (const child of inertNodes.splice(0)) child.inert = false;
    if (nodes.length) makeInert(document.body, nodes);
    return true;
  };
}

/** Return the focus to the element that had it, or, if that is gone, to what a selector names. */
export function restoreFocus(opener, instead) {
  const hadNone = !opener?.isConnected || opener === document.body;
  (hadNone ? document.querySelector(instead) : opener)?.focus({ preventScroll: true });
}
