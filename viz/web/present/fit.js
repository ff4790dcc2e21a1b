// How large a picture is shown: laid out for a small screen, then enlarged to this one, so that its letters grow with it.
import { seen } from "../core/links.js";

const HEIGHT = 360,
  WIDTH = 560; // pixels for which a picture is laid out at most, before it is enlarged
const TABLES = 1180; // and what is nothing but tables
const LARGEST = 4; // times
const PLACE = ["--w", "--h", "--s", "--x", "--y"]; // for the style sheet

// Only another value: whoever watches the page's styles hears of each.
export const style = (node, name, value) =>
  node.style.getPropertyValue(name) !== value && node.style.setProperty(name, value);

// room: whose place it takes. shown: what stands for the picture, or is nothing but tables; about: what pictured() was told.
export function createFit(room) {
  let laid = "",
    lower = { room: "", by: 1 }; // of a picture that is too high as it was laid out: wider, it has fewer lines

  function fit(shown, about) {
    const free = room.getBoundingClientRect(),
      size = `${free.width} ${free.height}`;
    if (lower.room !== size) lower = { room: size, by: 1 };
    const least = Math.min(free.height / HEIGHT, free.width / (about ? WIDTH : TABLES)),
      large = Math.max(1, Math.min(LARGEST, least) * lower.by),
      width = Math.floor(free.width / large),
      height = Math.floor(free.height / large);
    style(shown, "--w", `${width}px`);
    style(shown, "--h", `${height}px`);
    if (laid !== `${width} ${height}`) {
      laid = `${width} ${height}`;
      about?.fit?.({ width, height });
    }
    const box = about ? extent(shown, about.node) : { x: 0, y: 0, width, height };
    const scale =
      large * (about ? Math.min(LARGEST / large, width / box.width, height / box.height) : 1);
    if (about && !about.fit && lower.by === 1 && scale < 0.9 * large) {
      lower.by = scale / large;
      return fit(shown, about);
    }
    const start = (edge, size, at, extent) =>
      `${Math.round(edge + (size - extent * scale) / 2 - at * scale)}px`;
    style(shown, "--s", scale.toFixed(4));
    style(shown, "--x", start(free.left, free.width, box.x, box.width));
    style(shown, "--y", start(free.top, free.height, box.y, box.height));
  }

  return {
    fit,
    // As it is on the page.
    undo(shown, about) {
      for (const name of PLACE) shown.style.removeProperty(name);
      laid = lower.room = "";
      about?.fit?.(null);
    },
  };
}

// Where a picture's content lies in it, in its own pixels: it may leave some of its width free.
function extent(shown, node) {
  const frame = shown.getBoundingClientRect(),
    scale = frame.width / shown.offsetWidth || 1;
  const boxes = [...node.children].filter(seen).map((child) => child.getBoundingClientRect());
  if (!boxes.length)
    return { x: 0, y: 0, width: shown.offsetWidth || 1, height: shown.offsetHeight || 1 };
  const least = (side) => Math.min(...boxes.map((box) => box[side])),
    most = (side) => Math.max(...boxes.map((box) => box[side]));
  return {
    x: (least("left") - frame.left) / scale,
    y: (least("top") - frame.top) / scale,
    width: (most("right") - least("left")) / scale || 1,
    height: (most("bottom") - least("top")) / scale || 1,
  };
}
