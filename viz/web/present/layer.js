// What lies in the browser's top layer, above the page, and alone can be reached or read meanwhile.
export function liftToTopLayer(node) {
  if (node.popover !== "manual") node.popover = "manual";
  if (!node.matches(":popover-open")) node.showPopover();
}

export function dropFromTopLayer(node) {
  if (node?.matches("[popover]")) node.popover = null;
}

// Returns reach(these): nothing of the page but these; all of it again where there are none. Whether that is news.
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

// The focus goes back to what had it before something was opened, else to what a selector names.
export function restoreFocus(opener, instead) {
  const hadNone = !opener?.isConnected || opener === document.body;
  (hadNone ? document.querySelector(instead) : opener)?.focus({ preventScroll: true });
}
