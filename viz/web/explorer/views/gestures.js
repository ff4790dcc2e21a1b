// Zooming and moving in a picture: wheel, drag, keys.
import { arrow, modified } from "../../core/keys.js";

const STEP = 1.3; // by which a key, or a notch of a wheel, zooms
const STILL = 4; // pixels up to which a drag is a click

// of: ready(), seen() -> {x, y, zoom, width, height}: the part that is seen; place(event) -> shares of the picture, across and
// down; look({x, y, zoom}); zoomed(by, across, down); point(event), of null on leaving; pin(event)
export function listenGestures(root, of) {
  let grip = null; // where a drag began

  root.addEventListener(
    "wheel",
    (event) => {
      if (!of.ready() || (event.deltaY > 0 && of.seen().zoom === 1)) return; // all is seen: the page scrolls
      event.preventDefault();
      const notches = -event.deltaY / (event.deltaMode ? 3 : 100),
        share = (at) => Math.max(0, Math.min(1, at));
      of.zoomed(STEP ** notches, ...of.place(event).map(share));
    },
    { passive: false },
  );
  root.addEventListener("pointerdown", (event) => {
    if (of.ready() && !event.button)
      grip = { at: [event.clientX, event.clientY], place: of.place(event), seen: of.seen() };
  });
  root.addEventListener("pointermove", (event) => {
    if (!of.ready()) return;
    if (!grip) {
      if (event.pointerType !== "touch") of.point(event);
      return;
    }
    const [right, down] = [event.clientX - grip.at[0], event.clientY - grip.at[1]];
    if (!grip.moved && Math.hypot(right, down) < STILL) return;
    if (!grip.moved) root.setPointerCapture(event.pointerId);
    grip.moved = true;
    root.classList.add("dragged");
    const [across, along] = of.place(event).map((share, i) => share - grip.place[i]),
      { x, y, width, height } = grip.seen;
    of.look({ x: x - across * width, y: y - along * height });
  });
  const release = () => {
    root.classList.remove("dragged");
    setTimeout(() => (grip = null)); // after the click that ends it
  };
  root.addEventListener("pointerup", release);
  root.addEventListener("pointercancel", release);
  root.addEventListener("pointerleave", () => of.ready() && !grip && of.point(null));
  root.addEventListener("click", (event) => of.ready() && !grip?.moved && of.pin(event));
  root.addEventListener("keydown", (event) => {
    if (!of.ready() || modified(event)) return;
    const { x, y, zoom, width, height } = of.seen(),
      step = zoom > 1 && arrow(event);
    if (step) of.look({ x: x + (step[1] * width) / 8, y: y + (step[0] * height) / 8 });
    else if (event.key === "+" || event.key === "=") of.zoomed(STEP);
    else if (event.key === "-") of.zoomed(1 / STEP);
    else if (event.key === "0") of.look({ zoom: 1 });
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
}
