// The attention explorer: builds its parts, remembers translations, and handles what a person does
// and what the server answers.
import { ask as askServer } from "../core/ask.js";
import { debounce, download, el, showInvitation, onThemeChange } from "../core/dom.js";
import { toText, t } from "../core/language.js";
import { explorerMaps, tabOpeners, pageLink, tabLinks } from "../core/links.js";
import { createPicture } from "../picture/copy.js";
import { store } from "../store/store.js";
import { keepTranslation, translateLink } from "../store/translation.js";
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

export default function explorer(root, api) {
  const { formats, pairs, diverging, overlays = [] } = api.options ?? {};
  // The scene, which all parts read. traces: oldest first; trace: the translation that is shown;
  // map: its map, or null; refused: why there is no map; overlays: descriptors {id, title, about,
  // kinds, scope, asks} of maps that can replace attention.
  const scene = {
    state: states.initialState(),
    traces: [],
    trace: null,
    map: null,
    refused: null,
    overlays,
  };
  let pendingState = null; // the state to open when a link's translation arrives

  // --- its parts --------------------------------------------------------------------------------------------------
  const isInApp = Boolean(formats);
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
  // Titles of pictures, and what keys do in a presentation.
  const about = {
    title: () => drawing.title(),
    caption: () => drawing.caption(),
    move: step,
    page: (by) => update(states.pageHead(scene.state, shownKind(), by)),
    hint: t("← → heads · ↑ ↓ layers"),
  };
  const sentence = createSentence({ pin }), // pins a word of the sentences; the map may name it by its tokens
    lines = createPicture(sentence.root, { ...about, name: t("What each word read") });
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
  const exports = createExports({ scene, formats, ask, views, ...about, tell: drawing.tell });
  const heads = createPicture(el("div", {}, thumbnails.root, legend), {
    ...about,
    name: t("All heads"),
    title: () => thumbnails.root.firstChild?.ariaLabel ?? "",
  });
  const viewPicture = createPicture(views.root, {
    ...about,
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
        heads,
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
  const shownKind = () => scene.trace.kinds[scene.state.kind];

  // Set the state, and the selection that the other tabs follow.
  function setState(state) {
    scene.state = state;
    store.set({ selection: states.selectionOf(state) });
  }

  // Open a state. before: the state drawn last, to draw only what changed; null to draw everything.
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

  function toggleHeads(pairs) {
    update(states.toggleHeads(scene.state, pairs));
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

  const traceByKey = (key) => scene.traces.find((trace) => trace.key === key);

  function openTrace(key) {
    scene.trace = traceByKey(key);
    open(scene.state);
  }

  function followLink() {
    const link = states.parseFragment(pageLink().toString());
    if (!link) return;
    const { state: linkState, ...named } = link,
      translation = { beam: 1, ...named },
      { trace } = scene;
    const isShown = ([name, value]) => trace[name] === null || trace[name] === value;
    if (trace && Object.entries(translation).every(isShown)) {
      keepTranslation(trace.text);
      open(linkState);
      return compareWith(linkState.beside);
    }
    pendingState = linkState;
    translateLink(translation);
  }

  // --- what the server says ---------------------------------------------------------------------------------------
  // Send a question about a translation. A translation of an exported file has no address, and no
  // server.
  async function ask(name, { key, ...fields }) {
    const trace = key === undefined ? scene.trace : traceByKey(key),
      { selection, asked } = store.state;
    if (!trace?.address) return;
    const question = { address: trace.address, fields: { ...fields, selection, asked } },
      { error, ...answer } = await askServer(`page_${name}`, question);
    if (!error) return receive(answer);
    const { as, other: otherAddress } = fields,
      otherKey = () => scene.traces.find((trace) => trace.address === otherAddress)?.key;
    if (name === "cut") cut.receive({ error });
    else if (name === "alike") receiveAlike({ key, other: otherKey(), error });
    else if (maps.refuse({ key, as, error })) drawing.draw();
    else drawing.tell(toText(error));
  }

  async function receive(value) {
    if (value.invitation) {
      showParts();
      showInvitation(root, value.invitation);
    } else if (value.cut) cut.receive(value.cut);
    else if (value.kept) await receiveKept(value.kept);
    else if (value.alike) receiveAlike(value.alike);
    else if (value.file) download(value.file.name, value.file.blob);
    else if (value.cell) receiveCell(value);
    else if (value.layers || value.overlay || value.tiles) await receivePart(value);
    else if (value.format) await receiveTrace(value);
  }

  function receiveCell({ key, cell }) {
    maps.takeExact(key, cell);
    if (scene.map?.pyramid) views.large.more();
    maps.askAhead();
    if (key === scene.trace.key && isPointed(cell.row, cell.column))
      drawing.point(cell.row, cell.column);
  }

  async function receivePart(part) {
    const owner = await maps.take(part),
      { trace, map, state } = scene;
    const isShown = ({ kind }) => kind === state.kind;
    if (!map || owner !== trace || part.thumbnails?.some(isShown)) drawing.draw();
    else if (part.strips?.some(isShown)) drawing.heads();
    if (scene.map?.pyramid) views.large.more(); // its tiles are requested first
    maps.askAhead();
  }

  function remember(...traces) {
    const others = scene.traces.filter((trace) => !traces.includes(trace));
    scene.traces = [...others, ...traces].slice(-REMEMBERED);
    controls.history(scene.traces, scene.trace);
  }

  // Add a translation to compare with the one that is shown.
  async function receiveKept(payload) {
    const trace = traceByKey(payload.key) ?? (await Trace.from(payload));
    remember(...new Set([trace, scene.trace]));
    update({ view: "compare", compare: "pair" });
    views.compare.keep(trace);
  }

  // Compare with a link's sentence, which is here already or is translated by the same model.
  function compareWith(text) {
    if (!text || !pairs) return;
    const trace = views.compare.plain(text);
    if (!trace) return ask("beside", { key: scene.trace.key, text });
    views.compare.keep(trace);
    update({});
  }

  function receiveAlike(answer) {
    views.compare.receiveAlike(answer);
    if (scene.trace.key === answer.key && scene.state.view === "compare") drawing.draw(scene.state);
  }

  async function receiveTrace(payload) {
    scene.trace = traceByKey(payload.key) ?? (await Trace.from(payload));
    showParts();
    showInvitation(root, null);
    remember(scene.trace);
    const { selection, link } = payload;
    if (link) scene.state = states.parseFragment(link).state; // an exported file opens with the state it was made in
    const linkState = pendingState;
    pendingState = null;
    open(linkState ?? { ...scene.state, ...selection });
    compareWith(linkState?.beside);
    store.set({ drawCount: store.state.drawCount + 1 });
  }

  // Receive translations in order, however long each takes to unpack.
  let lastReceipt = Promise.resolve();
  function receiveNext(value) {
    const next = () => receive(value);
    lastReceipt = lastReceipt.then(next, next);
  }

  // --- what other parts of the page say ---------------------------------------------------------------------------
  // A question of the tab "Why" changes overlays that are about it.
  store.follow(["asked"], () => {
    if (scene.trace && states.overlayOf(scene.state, overlays)?.asks) drawing.draw();
  });
  store.follow(["selection"], ({ selection }) => {
    const ownSelection = JSON.stringify(states.selectionOf(scene.state));
    if (selection && JSON.stringify(selection) !== ownSelection) update(selection);
  });
  store.follow(["translation"], ({ translation }) => {
    if (translation.map) receiveNext(translation.map);
  });
  tabOpeners.explorer = (head) => update({ ...head, heads: [], overlay: "" });
  tabLinks.explorer = () => scene.trace && states.toFragment(scene.state, scene.trace);
  // Lets a panel ask the server to check the weights that this page draws.
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
