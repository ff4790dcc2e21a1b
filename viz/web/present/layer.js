// A layer over the page: Escape closes it, and the focus returns to where it was.

/**
 * @param {any} root hidden at first; its heading takes the focus
 * @param {() => void} [draw] called when the layer opens
 */
export function createLayer(root, draw) {
  /** @type {any} */
  let opener = null;
  function leave() {
    root.hidden = true;
    if (opener?.isConnected) opener.focus({ preventScroll: true });
  }
  root.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
    if (event.key !== "Escape") return;
    event.stopPropagation();
    leave();
  });
  return {
    leave,
    open() {
      opener = document.activeElement;
      root.hidden = false;
      draw?.();
      root.querySelector("h2").focus({ preventScroll: true });
    },
  };
}
