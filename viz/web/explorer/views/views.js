// The view of the selected head: a map, lines, text, or a comparison.
import { el, isTouch } from "../../core/dom.js";
import { toText, say, t } from "../../core/language.js";
import * as model from "../model.js";
import * as states from "../state.js";
import { createCompare } from "./compare.js";
import { createDetail } from "./detail.js";
import { createLarge } from "./large.js";
import { createLines } from "./lines.js";
import { createText } from "./text.js";

const HINTS = {
  map: say(
    "Point at a cell to see its weight; click to pin it. Click a label to pin its row or column.",
  ),
  lines: say(
    "Point at a token to see its lines alone. Choose several heads above to see each in its colour.",
  ),
  text: say("Point at a token: the others are shaded by the weight between them."),
  compare: say(
    "The same head on two sentences. Translate another sentence to compare it with this one.",
  ),
};

const TOUCH_HINTS = {
  map: say("Tap a cell to see its weight; tap a label to pin its row or column."),
  lines: say(
    "Tap a token to see its lines alone. Choose several heads above to see each in its colour.",
  ),
  text: say("Tap a token: the others are shaded by the weight between them."),
};

const LARGE = say(
  "The wheel, + and − zoom, dragging and arrow keys move, 0 shows all. Point at a cell to see its weight; click to pin it.",
);

const LOWEST = 270, // pixels
  BELOW = 64; // pixels for the lines below the map

/**
 * Create the views.
 * @param {any} hooks scene, root (the explorer's), hover(), pin(), update(), and those of createLarge() and createCompare()
 */
export function createViews(hooks) {
  const { scene } = hooks;
  const detail = createDetail(hooks),
    large = createLarge(hooks),
    lines = createLines(hooks),
    text = createText(hooks),
    compare = createCompare(hooks);
  /** @type {Record<string, any>} */
  const parts = { map: detail, lines, text, compare };
  const waitingNote = el("p", { class: "waiting" }, t("Loading this layer…"));
  const root = el("div", { class: "stage" });
  let shownView = "map",
    drawnWidth = 0; // pixels of the root when a map was last drawn
  /** @type {any} draws the map: detail or large */
  let pane = detail;
  /** @type {{width: number, height: number} | null} to fill in a presentation */
  let room = null;
  let focused = -1; // index of the focused element, until the next drawing restores the focus

  // Return the height left for the map on the first screen; unlimited on a narrow page.
  function availableHeight() {
    const top = root.getBoundingClientRect().top + window.scrollY;
    return innerWidth > 860 ? Math.max(LOWEST, innerHeight - top - BELOW) : Infinity;
  }

  // Return the heads to draw as lines, each with its colour: the chosen ones, or their combined
  // map.
  function headLayers(map, { maximum }) {
    const { state, trace, headColours } = scene,
      colours = trace.colours.heads,
      plain = { map, limit: map.overlay ? maximum : 1, sign: 0, name: "", colour: colours[0] };
    if (map.signed)
      return [
        { ...plain, name: t("above 0"), colour: colours[5], sign: 1 },
        { ...plain, name: t("below 0"), sign: -1 },
      ];
    if (map.overlay || state.combine !== "single" || state.heads.length < 2) return [plain];
    const view = states.viewOf(state);
    return state.heads
      .slice(0, colours.length)
      .filter(([layer]) => trace.weights[state.kind][layer])
      .map(([layer, head]) => ({
        ...plain,
        name: `L${layer + 1} H${head + 1}`,
        colour: headColours.get(`${layer}.${head}`),
        map: model.scoreMap(trace, { ...view, layer, head }),
      }));
  }

  const focusables = () => [...root.querySelectorAll("button, [tabindex='0']")];
  const first = () => (shownView === "map" ? pane.root : focusables()[0]);
  function noteFocus() {
    const at = focusables().indexOf(document.activeElement);
    if (at >= 0) focused = at;
  }

  return {
    root,
    draw(map, colouring, titles) {
      noteFocus();
      const { state } = scene;
      shownView = state.view;
      parts.map = pane = map.pyramid ? large : detail;
      if (root.firstChild !== parts[shownView].root) root.replaceChildren(parts[shownView].root);
      const highest = availableHeight();
      drawnWidth = root.clientWidth;
      if (shownView === "map") pane.draw(map, colouring, titles, { height: room?.height, highest });
      else if (shownView === "lines")
        lines.draw(headLayers(map, colouring), titles, room ? Infinity : highest);
      else parts[shownView].draw(map, colouring, titles);
      if (focused >= 0 && document.activeElement === document.body)
        (focusables()[focused] ?? first())?.focus({ preventScroll: true });
      focused = -1;
    },
    drawnWidth: () => drawnWidth,
    fit: (size) => (room = size),
    wait() {
      noteFocus();
      root.replaceChildren(waitingNote);
    },
    clear: () => root.replaceChildren(),
    pin: (pinned) => parts[shownView].pin?.(pinned),
    light: (lit) => parts[shownView].light?.(lit),
    focus: () => first()?.focus(),
    hint: () =>
      toText(pane === large ? LARGE : (isTouch && TOUCH_HINTS[shownView]) || HINTS[shownView]),
    large,
    compare,
  };
}
