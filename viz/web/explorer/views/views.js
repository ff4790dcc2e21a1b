// The pane beside the atlas: the map, lines, text or a comparison; one at a time.
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
    "Point at a cell for its weight. Click pins it; click a label to pin its row or column.",
  ),
  lines: say(
    "Point at a token to see its lines alone. Shift-click thumbnails to see several heads, one colour each.",
  ),
  text: say("Point at a token: the others are shaded by the weight between them."),
  compare: say(
    "The same head on two sentences. Translate another sentence to compare it with the one kept.",
  ),
};

const TOUCH_HINTS = {
  map: say("Tap a cell for its weight; tap a label to pin its row or column."),
  lines: say(
    "Tap a token to see its lines alone. With “Choose several” in the view options, several heads are shown, one colour each.",
  ),
  text: say("Tap a token: the others are shaded by the weight between them."),
};

const LARGE = say(
  "The wheel, + and − zoom, dragging and arrow keys move, 0 shows all. Point at a cell for its weight; click pins it.",
);

const LOWEST = 320, // pixels
  AROUND = 86;

// hooks: scene: what is looked at; root (the explorer's), hover, pin, update, and those of createLarge() and createCompare()
export function createViews(hooks) {
  const { scene } = hooks;
  const detail = createDetail(hooks),
    large = createLarge(hooks),
    lines = createLines(hooks),
    text = createText(hooks),
    compare = createCompare(hooks);
  const parts = { map: detail, lines, text, compare };
  const waiting = el("p", { class: "waiting" }, t("Loading this layer…"));
  const root = el("div", { class: "stage" });
  let shown = "map",
    pane = detail, // what draws the map
    room = null, // what there is to fill, in a presentation
    focused = null; // what the keys were in when a word of waiting took its place

  // What the first screen has for the map, between its heading and a line of words; on a narrow page the map is as high
  // as it likes. The heading counts as one size, so that no head's map is higher than another's.
  const below = () => (innerWidth > 860 ? Math.max(LOWEST, innerHeight - top - AROUND) : Infinity);
  let top = 0, // of the page's pixels
    width = 0;

  // The heads drawn as lines, each with its colour: the chosen ones, or the one map that they were combined to.
  function strands(map, { maximum }) {
    const { state, trace } = scene,
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
      .map(([layer, head], i) => ({
        ...plain,
        name: `L${layer + 1} H${head + 1}`,
        colour: colours[i],
        map: model.scoreMap(trace, { ...view, layer, head }),
      }));
  }

  const focusables = () => [...root.querySelectorAll("button, [tabindex='0']")];
  const first = () => (shown === "map" ? pane.root : focusables()[0]);

  return {
    root,
    // Where the views begin, and how wide they are. Before anything is drawn: afterwards the browser would lay out the
    // page once for each question.
    measure() {
      top = hooks.root.getBoundingClientRect().top + window.scrollY;
      width = root.clientWidth;
    },
    draw(map, colouring, titles) {
      const at = focusables().indexOf(document.activeElement),
        { state } = scene;
      shown = state.view;
      parts.map = pane = map.pyramid ? large : detail;
      if (root.firstChild !== parts[shown].root) root.replaceChildren(parts[shown].root);
      if (focused?.isConnected && document.activeElement === document.body)
        focused.focus({ preventScroll: true });
      focused = null;
      const highest = below(),
        none = { row: null, column: null };
      if (shown === "map")
        pane.draw(map, colouring, none, titles, { width, height: room?.height, highest });
      else if (shown === "lines")
        lines.draw(strands(map, colouring), titles, room ? Infinity : highest);
      else parts[shown].draw(map, colouring, titles);
      // What had the focus may have been drawn anew, or another view may have taken its place.
      if (at >= 0 && !root.contains(document.activeElement))
        (focusables()[at] ?? first())?.focus({ preventScroll: true });
    },
    fit: (given) => (room = given),
    wait() {
      if (root.contains(document.activeElement)) focused = document.activeElement;
      root.replaceChildren(waiting);
    },
    clear: () => root.replaceChildren(),
    pin: (pinned) => parts[shown].pin?.(pinned),
    focus: () => first()?.focus(),
    hint: () => toText(pane === large ? LARGE : (isTouch && TOUCH_HINTS[shown]) || HINTS[shown]),
    shown: () => shown,
    pane: () => pane,
    large,
    compare,
  };
}
