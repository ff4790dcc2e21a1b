// The attention explorer: builds its parts, remembers translations, and handles what a person does
// and what the server answers.
import { ask as askServer } from "../core/ask.js";
import { debounce, download, el, showInvitation, onThemeChange } from "../core/dom.js";
import { toText, t } from "../core/language.js";
import { explorerMaps, tabOpeners, pageLink, tabLinks } from "../core/links.js";
import { createPicture } from "../picture/copy.js";
import { store } from "../store/store.js";
import { returnToTranslation, translateLink } from "../store/translation.js";
import { createCut, createExports, viewSvg } from "./actions.js";
import { createControls } from "./controls.js";
import { createDrawing } from "./drawing.js";
import { createHelp, listenKeys } from "./keyboard.js";
import { createMaps } from "./maps.js";
import * as states from "./state.js";
import { Trace } from "./trace.js";
import { createThumbnails } from "./views/atlas.js";
import { createSentence } from "./views/sentence.js";
import { createViews } from "./views/views.js";

const REMEMBERED = 6; // translations that a person can return to

/**
 * Create the explorer.
 *
 * Large maps: a map of more than 256 tokens a side is a pyramid (views/pyramid.js). It arrives as tiles at several
 * resolutions, those that the view needs first; each layer's thumbnails arrive as a strip. A tile rounds a weight to one byte,
 * so the exact weight of the cell under the pointer is requested by itself (receiveCell). When nothing is missing in the view,
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
  const maps = createMaps({ scene, ask, isPointed });
  const controls = createControls(overlays, update, openTrace);
  const thumbnails = createThumbnails({
    select: (layer, head) => update({ layer, head, heads: [], combine: "single" }),
    toggle: toggleHeads,
    hover: (...head) => drawing.hover(...head),
  });
  const views = createViews({
    scene,
    ...maps,
    root,
    hover: (...cell) => drawing.point(...cell),
    pin: (row, column) => scene.map && pin(scene.map, row, column),
    update,
    pairs,
    ask,
  });
  const cut = createCut({ scene, able: isInApp, ask });
  const help = createHelp(scene, isInApp);
  // Options of all pictures: title, caption, and the keys of a presentation (picture/copy.js).
  const pictureOptions = {
    title: () => drawing.title(),
    caption: () => drawing.caption(),
    move: step,
    page: (by) => update(states.pageHead(scene.state, shownKind(), by)),
    hint: t("← → heads · ↑ ↓ layers"),
  };
  const sentence = createSentence({ pin }), // pin() gets the sentences' map of words; scene.map may be of tokens
    lines = createPicture(sentence.root, { ...pictureOptions, name: t("What each word read") });
  const drawing = createDrawing({
    scene,
    maps,
    diverging,
    controls,
    thumbnails,
    views,
    sentence,
    lines,
    cut,
  });
  const { heading, decoded, reading, status, guide, legend, tip, summary } = drawing.nodes;
  const exports = createExports({
    scene,
    formats,
    ask,
    views,
    ...pictureOptions,
    tell: drawing.tell,
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
      if (scene.trace) drawing.draw(scene.state);
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

  // Replace the empty frame by the parts, once there is something to show in them.
  function showParts() {
    if (!help.root.isConnected) root.replaceChildren(...parts);
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

  // Open a state. before: the state drawn last, see drawing.draw().
  function open(state, before = null) {
    setState(states.fitState(state, scene.trace, overlays));
    drawing.draw(before);
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
    drawing.showPinned();
  }

  // Whether a cell of a large map is pointed at.
  function isPointed(row, column) {
    const at = views.large.cursor();
    return at?.row === row && at.column === column;
  }

  function traceByKey(key) {
    return scene.traces.find((trace) => trace.key === key);
  }

  function openTrace(key) {
    scene.trace = traceByKey(key);
    open(scene.state);
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
  // Ask the server about a translation: the one with this key, or the one that is shown. The translations of an exported
  // file have no address, because there is no server to ask.
  async function ask(name, { key, ...fields }) {
    const trace = key === undefined ? scene.trace : traceByKey(key),
      { selection, asked } = store.state;
    if (!trace?.address) return;
    const question = { address: trace.address, fields: { ...fields, selection, asked } },
      { error, ...answer } = await askServer(`page_${name}`, question);
    if (!error) return receive(answer);
    const { as: requestedOverlay, other: referenceAddress } = fields;
    if (name === "cut") cut.receive({ error });
    else if (name === "alike") {
      const reference = scene.traces.find(({ address }) => address === referenceAddress);
      receiveAlike({ key, other: reference?.key, error });
    } else if (maps.receiveError({ key, as: requestedOverlay, error })) drawing.draw();
    else drawing.tell(toText(error));
  }

  // Receive an answer of viz/questions/maps.py or a payload; linkState: see receiveTrace(). The fields of a value tell what it
  // is:
  //   format         a payload of a translation, which may have the fields `tiles` and `strips` too
  //   invitation     words to show while nothing is translated
  //   cut            {same, before, after, words, opens}: the sentence translated without the pinned edge
  //   kept           the payload of a second sentence, to compare with
  //   alike          {key, other, words, cosine, others}: how similar two sentences' common words are
  //   file           {name, blob}: an exported file
  //   cell           {head, row, column, value}: an exact weight of a large map, of the translation `key`
  //   layers, tiles, overlay   parts of the translation `key` (maps.receiveParts)
  async function receive(value, linkState) {
    if (value.format) await receiveTrace(value, linkState);
    else if (value.invitation) {
      showParts();
      showInvitation(root, value.invitation);
    } else if (value.cut) cut.receive(value.cut);
    else if (value.kept) await receiveReference(value.kept);
    else if (value.alike) receiveAlike(value.alike);
    else if (value.file) download(value.file.name, value.file.blob);
    else if (value.cell) receiveCell(value);
    else if (value.layers || value.overlay || value.tiles) await receiveParts(value);
  }

  function receiveCell({ key, cell }) {
    maps.receiveCell(key, cell);
    if (scene.map?.pyramid) views.large.redraw();
    maps.askAhead();
    if (key === scene.trace.key && isPointed(cell.row, cell.column))
      drawing.point(cell.row, cell.column);
  }

  async function receiveParts(part) {
    const owner = await maps.receiveParts(part),
      { trace, map, state } = scene;
    const isShownKind = ({ kind }) => kind === state.kind;
    if (!map || owner !== trace || part.thumbnails?.some(isShownKind)) drawing.draw();
    else if (part.strips?.some(isShownKind)) drawing.drawHeads();
    if (scene.map?.pyramid) views.large.redraw(); // its tiles are requested first
    maps.askAhead();
  }

  function remember(...traces) {
    const others = scene.traces.filter((trace) => !traces.includes(trace));
    scene.traces = [...others, ...traces].slice(-REMEMBERED);
    controls.history(scene.traces, scene.trace);
  }

  // Receive the second sentence of a comparison.
  async function receiveReference(payload) {
    const reference = traceByKey(payload.key) ?? (await Trace.from(payload));
    remember(...new Set([reference, scene.trace]));
    compareWith(reference);
  }

  function compareWith(reference) {
    views.compare.setReference(reference);
    update({ view: "compare", compare: "pair" });
  }

  // Compare with a link's sentence, which is here already or is translated by the same model.
  function compareWithText(text) {
    if (!text || !pairs) return;
    const reference = views.compare.findPlain(text);
    if (reference) compareWith(reference);
    else ask("beside", { key: scene.trace.key, text });
  }

  function receiveAlike(answer) {
    views.compare.receiveAlike(answer);
    if (scene.trace.key === answer.key && scene.state.view === "compare") drawing.draw(scene.state);
  }

  // Receive a translation and show it. linkState: the state to open, if a link asked for the translation.
  async function receiveTrace(payload, linkState) {
    scene.trace = traceByKey(payload.key) ?? (await Trace.from(payload));
    showParts();
    showInvitation(root, null);
    remember(scene.trace);
    const { selection, link } = payload;
    if (link) scene.state = states.parseFragment(link).state; // an exported file opens with the state it was made in
    open(linkState ?? { ...scene.state, ...selection });
    compareWithText(linkState?.beside);
    store.set({ drawCount: store.state.drawCount + 1 }); // read by the address, the tours, and the panel that checks maps
  }

  // Receive a translation after those before it, however long each takes to unpack: the last one stays on the page. Answers
  // of ask() need no order, because each names the translation that it belongs to.
  let lastReceipt = Promise.resolve();
  function receiveNext(value, linkState) {
    lastReceipt = lastReceipt.then(() => receive(value, linkState)).catch(reportError);
  }

  // --- what other parts of the page say ---------------------------------------------------------------------------
  // Overlays with `asks` depend on the question of the tab "Why": draw them again when it changes.
  store.follow(["asked"], () => {
    if (scene.trace && states.overlayOf(scene.state, overlays)?.asks) drawing.draw();
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

  onThemeChange(() => scene.trace && drawing.draw());
  let drawnWidth = 0; // only a new width requires drawing: the height follows the content
  new ResizeObserver(
    debounce(() => {
      if (!scene.trace || views.root.clientWidth === drawnWidth) return;
      drawnWidth = views.root.clientWidth;
      drawing.draw(scene.state);
    }, 80),
  ).observe(views.root);
  window.addEventListener("hashchange", followLink);
  const first = api.value();
  if (first.address) store.set({ address: first.address });
  for (const value of [first, ...(api.later ?? [])]) receiveNext(value); // an exported file may have several
  lastReceipt.then(followLink);
}
