// What the explorer is made of, and where each part stands.
import { el } from "../core/dom.js";
import { t } from "../core/language.js";
import { pictured } from "../picture/copy.js";
import { translateLink } from "../store/translation.js";
import { createActions } from "./actions.js";
import { createControls } from "./controls.js";
import { createDrawing } from "./drawing.js";
import { createCut } from "./experiments/cut.js";
import { createHelp } from "./help.js";
import { listenKeys } from "./keys.js";
import { createAtlas } from "./views/atlas.js";
import { viewPicture } from "./views/picture.js";
import { createSentence } from "./views/sentence.js";
import { createViews } from "./views/views.js";

// scene: what is looked at; options: what the server tells once; ask(name, fields): of the server; acts: what comes
// of what a person does, update(changes), step(down, right), page(by), toggleHeads(heads), pin(map, row, column), openTrace(key).
export function createParts(root, { scene, overlays, maps, options, ask, openCut, acts }) {
  const { formats, pairs, diverging } = options,
    { update, step, page, toggleHeads, pin } = acts;
  const looked = {
    state: () => scene.state,
    trace: () => scene.trace,
    traces: () => scene.traces,
    map: () => scene.map,
  };
  const controls = createControls(update, acts.openTrace, overlays);
  const thumbnails = createAtlas({
    select: (layer, head) => update({ layer, head, heads: [], combine: "single" }),
    toggle: toggleHeads,
    hover: (...head) => drawing.hover(...head),
  });
  const views = createViews({
    ...looked,
    ...maps,
    root,
    hover: (...cell) => drawing.point(...cell),
    pin: (row, column) => scene.map && pin(scene.map, row, column),
    update,
    pairs,
    ask,
    tell: translateLink,
  });
  const cut = createCut({ ...looked, able: Boolean(formats), ask, open: openCut });
  const help = createHelp(overlays.available.length > 0, Boolean(formats), looked.trace);
  // The words of a picture, and what arrow keys do where one is presented.
  const about = {
    title: () => drawing.title(),
    caption: () => drawing.caption(),
    move: step,
    page,
    hint: t("← → heads · ↑ ↓ layers"),
  };
  const sentence = createSentence({ pin }), // whose words may be hidden or cut into pieces in the large map
    lines = pictured(sentence.root, { ...about, name: t("What each word read") });
  const drawn = { overlays, maps, controls, thumbnails, views, sentence, lines, cut, diverging };
  const drawing = createDrawing(scene, drawn);
  const { heading, decoded, reading, status, guide, legend, tip, summary } = drawing.nodes;
  const { say } = drawing;
  const actions = createActions({ ...looked, ...about, ask, formats, views, overlays, say });
  const heads = pictured(el("div", {}, thumbnails.root, legend), {
    ...about,
    name: t("All heads"),
    title: () => thumbnails.root.firstChild?.ariaLabel ?? "",
  });
  const shown = pictured(views.root, {
    ...about,
    name: t("Selected head"),
    svg: () => viewPicture({ views, state: looked.state }),
    main: true,
    fit: (room) => {
      views.fit(room);
      if (scene.trace) drawing.draw(scene.state);
    },
  });
  const all = [
    el(
      "div",
      { class: "panes" },
      el(
        "section",
        { class: "reader", "aria-label": t("What each word read") },
        el("div", { class: "bar" }, controls.kind),
        lines,
      ),
      el(
        "section",
        { class: "atlas-pane", "aria-label": t("All heads") },
        heads,
        tip,
        el(
          "details",
          { class: "view-options" },
          el("summary", {}, t("View options")),
          thumbnails.several,
          controls.options,
        ),
      ),
      el(
        "section",
        { class: "detail-pane", "aria-label": t("Selected head") },
        el(
          "div",
          { class: "detail-head" },
          el("div", { class: "titles" }, heading, decoded, reading),
          controls.view,
        ),
        shown,
        status,
        guide,
        cut.root,
      ),
    ),
    el("div", { class: "actions" }, actions.root, help.button),
    summary,
    help.root,
  ];

  // In place of the empty frame, as late as there is something to show in it: nothing jumps.
  function lay() {
    if (!help.root.isConnected) root.replaceChildren(...all);
  }
  listenKeys(root, { ...looked, update, step, toggleHeads, thumbnails, views, help, overlays });

  return { controls, views, cut, actions, drawing, lay };
}
