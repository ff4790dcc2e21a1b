// The attention explorer: builds its parts, draws them, remembers translations, and handles what a person does and what the
// server answers.
import { ask as askServer } from "../core/ask.js";
import { debounce, el, showInvitation, onThemeChange } from "../core/dom.js";
import { textParts, toText, say, t } from "../core/language.js";
import { explorerMaps, tabOpeners, pageLink, tabLinks } from "../core/links.js";
import { markTerms } from "../lab/glossary.js";
import { createPicture } from "../picture/copy.js";
import { store } from "../store/store.js";
import { returnToTranslation, translateLink } from "../store/translation.js";
import { createCut, createExports, viewSvg } from "./actions.js";
import { createControls } from "./controls.js";
import { createHelp, listenKeys } from "./keyboard.js";
import { createMaps } from "./maps.js";
import * as model from "./model.js";
import * as states from "./state.js";
import { Trace } from "./trace.js";
import { createThumbnails } from "./views/atlas.js";
import { createSentence } from "./views/sentence.js";
import * as colouring from "./views/scale.js";
import { createViews } from "./views/views.js";
import * as words from "./words.js";

const WAIT_MESSAGE_DELAY = 150; // milliseconds before a missing map is replaced by a message: most arrive sooner
const SUMMARY_DELAY = 400; // milliseconds before a screen reader is told of a map: the person may go on to the next
const REMEMBERED = 6; // translations that a person can return to

/**
 * Create the explorer.
 *
 * Large maps: a map of more than 256 tokens a side is a pyramid (views/pyramid.js). It arrives as tiles at several
 * resolutions, those that the view needs first; each layer's thumbnails arrive as a strip. A tile rounds a weight to one byte,
 * so the exact weight of the cell under the pointer is requested by itself. When nothing is missing in the view,
 * maps.askAhead() requests what the visitor may look at next.
 * @param {any} root
 * @param {object} api
 * @param {() => any} api.value the first payload (viz/wire/payload.py), or {invitation} while nothing is translated
 * @param {any[]} [api.later] more payloads, of an exported file with several translations
 * @param {any} [api.options] viz/explorer/explorer.py; an exported file has none. formats: [{name, about}] of files that the
 *   server writes; pairs: minimal pairs by language, for the comparison; diverging: the colours of signed values; overlays:
 *   descriptors {id, title, about, kinds, scope, asks} of maps that can replace attention
 */
export default function explorer(root, api) {
  const { formats, pairs, diverging, overlays = [] } = api.options ?? {};
  const isInApp = Boolean(formats); // the server writes the files, so an exported page offers no formats
  // The scene, which all parts read. traces: oldest first; trace: the translation that is shown;
  // map: its map, or null; refused: why there is no map.
  const scene = {
    state: states.initialState(),
    traces: [],
    trace: null,
    map: null,
    refused: null,
    overlays,
  };

  // --- its parts --------------------------------------------------------------------------------------------------
  // The parts call each other. A callback may name a part that is created further down: it runs later.
  const guide = el("p", { class: "guide" }),
    heading = el("h2", { class: "heading-line" }),
    decoded = el("span", { class: "decoded" }),
    reading = el("p", { class: "reading" }),
    status = el("p", { class: "status", role: "status" }),
    summary = el("p", { class: "sr-only", "aria-live": "polite" }),
    legend = el("div", { class: "legend" }),
    tip = el("p", { class: "tip" });
  const maps = createMaps({ scene, ask, isPointed, show: showPart, tell });
  const controls = createControls(overlays, update, (key) => {
    scene.trace = traceByKey(key);
    open(scene.state);
  });
  const thumbnails = createThumbnails({
    select: (layer, head) => update({ layer, head, heads: [], combine: "single" }),
    toggle: toggleHeads,
    hover: describeHead,
  });
  const views = createViews({
    scene,
    ...maps,
    root,
    hover: describeCell,
    pin: (row, column) => scene.map && pin(scene.map, row, column),
    update,
    pairs,
    ask,
    compareWithText,
  });
  const cut = createCut({ scene, able: isInApp, ask });
  const help = createHelp(scene, isInApp);
  // Options of all pictures: title, caption, and the keys of a presentation (picture/copy.js).
  const pictureOptions = {
    title: mapTitle,
    caption: () => `${scene.trace.text} → ${scene.trace.translation}`,
    move: step,
    page: (by) => update(states.pageHead(scene.state, shownKind(), by)),
    hint: t("← → heads · ↑ ↓ layers"),
  };
  const sentence = createSentence({ pin }), // pin() gets the sentences' map of words; scene.map may be of tokens
    lines = createPicture(sentence.root, { ...pictureOptions, name: t("What each word read") });
  const exports = createExports({
    scene,
    formats,
    ask,
    views,
    ...pictureOptions,
    tell,
  });
  const headsPicture = createPicture(el("div", {}, thumbnails.root, legend), {
    ...pictureOptions,
    name: t("All heads"),
    title: () => thumbnails.root.firstChild?.ariaLabel ?? "",
  });
  const viewPicture = createPicture(views.root, {
    ...pictureOptions,
    name: t("Selected head"),
    svg: () => viewSvg(views),
    main: true,
    fit: (room) => {
      views.fit(room);
      if (scene.trace) draw(scene.state);
    },
  });
  const section = (name, label, children) =>
    el("section", { class: name, "aria-label": label }, children);
  const parts = [
    el("div", { class: "panes" }, [
      section("reader", t("What each word read"), [
        el("div", { class: "bar" }, controls.kind),
        lines,
      ]),
      section("atlas-pane", t("All heads"), [
        headsPicture,
        tip,
        el("details", { class: "view-options" }, [
          el("summary", {}, t("View options")),
          thumbnails.several,
          controls.options,
        ]),
      ]),
      section("detail-pane", t("Selected head"), [
        el("div", { class: "detail-head" }, [
          el("div", { class: "titles" }, heading, decoded, reading),
          controls.view,
        ]),
        viewPicture,
        status,
        guide,
        cut.root,
      ]),
    ]),
    el("div", { class: "actions" }, exports, help.button),
    summary,
    help.root,
  ];
  listenKeys(root, { scene, acts: { update, step, toggleHeads }, thumbnails, views, help });

  // --- what is drawn ----------------------------------------------------------------------------------------------
  let waitTimer = null;

  // Over hundreds of tokens the mean weight is close to 0: a linear scale would show a dark square.
  const tonedState = () =>
    scene.trace.kinds[scene.state.kind].large && scene.state.transform === "linear"
      ? { ...scene.state, transform: "sqrt" }
      : scene.state;
  const overlayOf = () => states.overlayOf(scene.state, overlays);

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
    const used = model.usedHeads(trace, states.viewOf(state));
    heading.textContent = words.mapHeading(state, used, overlay);
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
      views.draw(map, colours, { ...words.axisTitles(state, map, trace), label: mapTitle() });
    } else if (scene.refused) views.clear();
    else if (overlay || trace.kinds[state.kind].large)
      waitTimer = setTimeout(views.wait, WAIT_MESSAGE_DELAY);
    else views.wait();
    const repaint =
      !before || ["kind", "transform", "colours"].some((name) => before[name] !== state[name]);
    if (repaint) drawThumbnails();
    else if (before.overlay !== state.overlay) describeHead(null);
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
    summarise();
  }

  const summarise = debounce(() => {
    const { state, trace, map } = scene,
      used = model.usedHeads(trace, states.viewOf(state));
    if (map) summary.textContent = words.mapSummary(state, trace, map, used, overlayOf());
  }, SUMMARY_DELAY);

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

  function drawThumbnails() {
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
    describeHead(null);
  }

  // Draw what arrives after a large map: its thumbnails and readings.
  function drawHeads() {
    drawThumbnails();
    thumbnails.select(scene.state);
    read(words.mapReading(scene.state, scene.trace, scene.map));
  }

  // Describe a head below the thumbnails; without one, the thumbnails.
  function describeHead(layer, head) {
    tip.textContent =
      layer === null
        ? words.thumbnailsTip(overlayOf())
        : words.headLabel(scene.trace, scene.state.kind, layer, head);
  }

  const pointing = (row, column) =>
    words.describeCell(scene.map, row, column, scene.trace, scene.state.kind);

  // Describe a cell, a row or a column of the map; without one, what is pinned.
  function describeCell(row, column) {
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

  function mapTitle() {
    return `${toText(shownKind().title)}, ${heading.textContent}`;
  }

  function tell(message) {
    status.replaceChildren(toText(message));
  }

  // --- what a person does -----------------------------------------------------------------------------------------
  function shownKind() {
    return scene.trace.kinds[scene.state.kind];
  }

  // Set the state, and the selection that the other tabs follow.
  function setState(state) {
    scene.state = state;
    store.set({ selection: states.selectionOf(state) });
  }

  // Open a state. before: the state drawn last, see draw().
  function open(state, before = null) {
    setState(states.fitState(state, scene.trace, overlays));
    draw(before);
  }

  // Change the state and redraw what depends on it.
  function update(changes) {
    if (scene.trace) open(states.changeState(scene.state, changes), scene.state);
  }

  function step(down, right) {
    update(states.stepHead(scene.state, shownKind(), down, right));
  }

  // Choose heads, [layer, head] each, in addition to the selected one, or no longer.
  function toggleHeads(layerHeads) {
    update(states.toggleHeads(scene.state, layerHeads));
  }

  function pin(map, row, column) {
    setState(states.togglePin(scene.state, map, scene.trace, { row, column }));
    showPinned();
  }

  // Whether a cell of a large map is pointed at.
  function isPointed(row, column) {
    const at = views.large.cursor();
    return at?.row === row && at.column === column;
  }

  function traceByKey(key) {
    return scene.traces.find((trace) => trace.key === key);
  }

  // Open what the page's link names, if it names a sentence.
  function followLink() {
    const link = states.parseFragment(pageLink().toString());
    if (!link) return;
    const { state: linkState, ...named } = link,
      translation = { beam: 1, ...named }, // a link names the beam only of a beam search: without it, decoding was greedy
      { trace } = scene;
    // A trace's field is null where no link can express it (interventions with too many parts): it agrees with any link.
    const isSameField = ([name, value]) => trace[name] === null || trace[name] === value;
    if (!trace || !Object.entries(translation).every(isSameField))
      return translateLink(translation, linkState);
    returnToTranslation(trace.text);
    open(linkState);
    compareWithText(linkState.beside);
  }

  // --- what the server says ---------------------------------------------------------------------------------------
  // Ask the server about a translation.
  function ask(name, { address }, fields) {
    const { selection, asked } = store.state;
    return askServer(`page_${name}`, { address, fields: { ...fields, selection, asked } });
  }

  // Draw a part of a translation that has arrived: layers, thumbnails, strips, tiles, an overlay, or an exact weight of a
  // large map (viz/questions/maps.py).
  function showPart(trace, { cell, thumbnails, strips }) {
    const { map, state } = scene;
    const isShownKind = ({ kind }) => kind === state.kind;
    if (!map || trace !== scene.trace || thumbnails?.some(isShownKind)) draw();
    else if (strips?.some(isShownKind)) drawHeads();
    if (scene.map?.pyramid) views.large.redraw(); // its tiles are requested first
    maps.askAhead();
    if (cell && trace === scene.trace && isPointed(cell.row, cell.column))
      describeCell(cell.row, cell.column);
  }

  function remember(...traces) {
    const others = scene.traces.filter((trace) => !traces.includes(trace));
    scene.traces = [...others, ...traces].slice(-REMEMBERED);
    controls.history(scene.traces, scene.trace);
  }

  function compareWith(reference) {
    views.compare.setReference(reference);
    update({ view: "compare", compare: "pair" });
  }

  // Compare with another sentence, which is here already or is translated by the same model.
  async function compareWithText(text) {
    if (!text || !pairs) return;
    const known = views.compare.findPlain(text);
    if (known) return compareWith(known);
    const { error, kept } = await ask("beside", scene.trace, { text });
    if (error) return tell(error);
    const reference = traceByKey(kept.key) ?? (await Trace.from(kept));
    remember(...new Set([reference, scene.trace]));
    compareWith(reference);
  }

  // Receive a translation and show it, or {invitation}: words to show while nothing is translated. linkState: the state to
  // open, if a link asked for the translation.
  async function receive(payload, linkState) {
    const { invitation = null } = payload;
    if (!invitation) scene.trace = traceByKey(payload.key) ?? (await Trace.from(payload));
    if (!help.root.isConnected) root.replaceChildren(...parts); // they replace the empty frame
    showInvitation(root, invitation);
    if (invitation) return;
    remember(scene.trace);
    const { selection, link } = payload;
    if (link) scene.state = states.parseFragment(link).state; // an exported file opens with the state it was made in
    open(linkState ?? { ...scene.state, ...selection });
    compareWithText(linkState?.beside);
    store.set({ drawCount: store.state.drawCount + 1 }); // read by the address, the tours, and the panel that checks maps
  }

  // Receive a translation after those before it, however long each takes to unpack: the last one stays on the page.
  let lastReceipt = Promise.resolve();
  function receiveNext(value, linkState) {
    lastReceipt = lastReceipt.then(() => receive(value, linkState)).catch(reportError);
  }

  // --- what other parts of the page say ---------------------------------------------------------------------------
  // Overlays with `asks` depend on the question of the tab "Why": draw them again when it changes.
  store.follow(["asked"], () => {
    if (scene.trace && overlayOf()?.asks) draw();
  });
  store.follow(["selection"], ({ selection }) => {
    const ownSelection = JSON.stringify(states.selectionOf(scene.state));
    if (selection && JSON.stringify(selection) !== ownSelection) update(selection);
  });
  store.follow(["translation"], ({ translation }) => {
    const { map: payload, linkState } = translation;
    if (payload) receiveNext(payload, linkState);
  });
  tabOpeners.explorer = (head) => update({ ...head, heads: [], overlay: "" });
  tabLinks.explorer = () => scene.trace && states.toFragment(scene.state, scene.trace);
  // One panel sends the drawn weights to the server, which compares them with the trace.
  explorerMaps.key = () => scene.trace?.key ?? null;
  explorerMaps.weights = () =>
    scene.trace && { key: scene.trace.key, layers: scene.trace.encoded() };

  onThemeChange(() => scene.trace && draw());
  let drawnWidth = 0; // only a new width requires drawing: the height follows the content
  new ResizeObserver(
    debounce(() => {
      if (!scene.trace || views.root.clientWidth === drawnWidth) return;
      drawnWidth = views.root.clientWidth;
      draw(scene.state);
    }, 80),
  ).observe(views.root);
  window.addEventListener("hashchange", followLink);
  const first = api.value();
  if (first.address) store.set({ address: first.address });
  for (const value of [first, ...(api.later ?? [])]) receiveNext(value); // an exported file may have several
  lastReceipt.then(followLink);
}
