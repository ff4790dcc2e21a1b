// Draws the explorer's scene: the map, the sentences, the thumbnails of all heads, and the words
// about them.
import { el } from "../core/dom.js";
import { textParts, toText, say, t } from "../core/language.js";
import { markTerms } from "../lab/glossary.js";
import * as model from "./model.js";
import * as states from "./state.js";
import * as colouring from "./views/scale.js";
import * as words from "./words.js";

const WAIT_MESSAGE_DELAY = 150; // milliseconds before a missing map is replaced by a message: most arrive sooner
const SUMMARY_DELAY = 400; // milliseconds before a screen reader is told of a map: the person may go on to the next

/**
 * Create the drawing of an explorer.
 * @param {any} explorer {scene, lines, diverging} and the other parts by name; lines: the sentences' picture; diverging: the
 *   colours of signed values
 */
export function createDrawing(explorer) {
  const { scene, maps, controls, thumbnails, views, sentence, lines, cut, diverging } = explorer;
  const guide = el("p", { class: "guide" }),
    heading = el("h2", { class: "heading-line" }),
    decoded = el("span", { class: "decoded" }),
    reading = el("p", { class: "reading" }),
    status = el("p", { class: "status", role: "status" }),
    summary = el("p", { class: "sr-only", "aria-live": "polite" }),
    legend = el("div", { class: "legend" }),
    tip = el("p", { class: "tip" });
  let waitTimer = null, // timers
    summaryTimer = null;

  // Over hundreds of tokens the mean weight is close to 0: a linear scale would show a dark square.
  const tonedState = () =>
    scene.trace.kinds[scene.state.kind].large && scene.state.transform === "linear"
      ? { ...scene.state, transform: "sqrt" }
      : scene.state;
  const overlayOf = () => states.overlayOf(scene.state, scene.overlays);

  // Draw the scene. before: the state drawn last, or null to draw everything. Thumbnails and legend are
  // drawn only if their kind, scale or colours differ from those of `before`. The same state draws the
  // map for a new width.
  function draw(before = null) {
    const { state, trace } = scene,
      overlay = overlayOf(),
      answer = maps.mapOf(trace, state);
    const map = (scene.map = answer?.refused ? null : answer);
    scene.refused = map ? null : (answer?.refused ?? trace.left_out ?? null);
    controls.show(tonedState(), map);
    const used = model.usedHeads(trace, states.viewOf(state)),
      name = words.mapHeading(state, used, overlay);
    heading.textContent = name;
    decoded.textContent = [
      t("Decoding: {how}.", { how: trace.decoding }),
      trace.beyond && toText(trace.beyond),
      trace.attention_only && t("Attention only: this model runs elsewhere."),
    ]
      .filter(Boolean)
      .join(" ");
    const waits = overlay ? t("Computing …") : t("Loading this layer…");
    read(map ? words.mapReading(state, trace, map, overlay) : scene.refused ? "" : waits);
    clearTimeout(waitTimer);
    maps.lackingThumbnails.clear();
    if (map) {
      const colours = colouring.mapPalette(tonedState(), map, trace.colours, diverging);
      views.draw(map, colours, { ...words.axisTitles(state, map, trace), label: title() });
    } else if (scene.refused) views.clear();
    else if (overlay || trace.kinds[state.kind].large)
      waitTimer = setTimeout(views.wait, WAIT_MESSAGE_DELAY);
    else views.wait();
    const repaint =
      !before || ["kind", "transform", "colours"].some((name) => before[name] !== state[name]);
    if (repaint) drawAtlas();
    else if (before.overlay !== state.overlay) hover(null);
    thumbnails.select(state);
    drawSentence();
    guide.textContent = words.viewGuide(state, overlay);
    showPinned();
    if (map)
      scene.state = {
        ...state,
        beside: state.view === "compare" ? views.compare.referenceText() : "",
      };
    maps.askAhead();
    clearTimeout(summaryTimer);
    summaryTimer = setTimeout(() => {
      if (scene.map)
        summary.textContent = words.mapSummary(scene.state, scene.trace, scene.map, used, overlay);
    }, SUMMARY_DELAY);
  }

  const read = (text) => reading.replaceChildren(...markTerms(text));

  function drawSentence() {
    const { state, trace } = scene;
    lines.hidden = trace.kinds[state.kind].large;
    if (lines.hidden) return; // a large map's words would fill a hundred lines
    const view = {
      ...states.viewOf({ ...state, overlay: "", heads: [], combine: "single" }),
      words: true,
      special: "hide",
      predicted: true,
    };
    if (model.missingLayers(trace, view).length) return; // drawn when the layers arrive
    const wordMap = model.scoreMap(trace, view);
    const glosses = state.glosses ? states.glossesOf(state, trace) : null;
    sentence.draw(
      wordMap,
      states.pinnedCells(state, wordMap, trace),
      words.sentenceHint(state),
      glosses,
    );
  }

  function drawAtlas() {
    const { state, trace } = scene,
      colours = colouring.chosenColours(state, trace.colours),
      palette = colouring.createPalette(colours, tonedState().transform, 1),
      { texts, places } = palette.ticks;
    thumbnails.draw(trace, state.kind, palette);
    const ramp = `background: linear-gradient(to right, ${colours.join(", ")})`;
    legend.replaceChildren(
      el("span", { class: "ramp", style: ramp }),
      el("span", { class: "ramp-ticks" }, [
        texts.map((text, i) => el("span", { style: `left: ${100 * places[i]}%` }, text)),
      ]),
    );
    hover(null);
  }

  // Describe a head below the thumbnails.
  function hover(layer, head) {
    tip.textContent =
      layer === null
        ? words.thumbnailsTip(overlayOf())
        : words.headLabel(scene.trace, scene.state.kind, layer, head);
  }

  const pointing = (row, column) =>
    words.describeCell(scene.map, row, column, scene.trace, scene.state.kind);

  // Describe a cell, a row or a column of the map; without one, what is pinned.
  function point(row, column) {
    if (row === null && column === null) showPinned();
    else if (scene.map) status.replaceChildren(...pointing(row, column));
  }

  function showPinned() {
    const { state, trace, map, refused } = scene;
    cut.follow();
    if (sentence.map() && !lines.hidden)
      sentence.pin(states.pinnedCells(state, sentence.map(), trace));
    if (!map) return status.replaceChildren(refused ? toText(refused) : "");
    const { row, column } = states.pinnedCells(state, map, trace);
    views.pin({ row, column });
    if (row !== null || column !== null)
      status.replaceChildren(...textParts(say("Pinned: {what}", { what: pointing(row, column) })));
    else status.replaceChildren(views.hint());
  }

  const title = () =>
    `${toText(scene.trace.kinds[scene.state.kind].title)}, ${heading.textContent}`;

  return {
    nodes: { guide, heading, decoded, reading, status, summary, legend, tip },
    draw,
    hover,
    point,
    showPinned,
    // Draw what arrives after a large map: its thumbnails and readings.
    drawHeads() {
      drawAtlas();
      thumbnails.select(scene.state);
      read(words.mapReading(scene.state, scene.trace, scene.map));
    },
    tell: (message) => status.replaceChildren(toText(message)),
    title,
    caption: () => `${scene.trace.text} → ${scene.trace.translation}`,
  };
}
