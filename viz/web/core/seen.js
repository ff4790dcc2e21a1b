// Calls back whenever an element comes to be seen: laid out anywhere on the page counts, a closed tab does not. Each opening
// counts, because the sentence or the selection may have changed meanwhile. Returns whether it is seen now.
export function whenSeen(root, opened) {
  let seen = false;
  function look() {
    const now = root.offsetParent !== null;
    if (now === seen) return;
    seen = now;
    if (seen) opened();
  }
  // A tab that opens changes its style: told at once, the question is on its way while the tab is still being painted.
  // The other observer sees what this one does not, such as a first opening.
  for (
    let tab = root.closest("[role=tabpanel]");
    tab;
    tab = tab.parentElement.closest("[role=tabpanel]")
  )
    new MutationObserver(look).observe(tab, { attributes: true, attributeFilter: ["style"] });
  new IntersectionObserver(look, { rootMargin: "100000px" }).observe(root);
  look();
  return () => seen;
}
