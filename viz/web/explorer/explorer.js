// The attention explorer: its parts, its memory of translations, and what becomes of what a person and the server say.
import { ask as askServer } from "../core/ask.js";
import { debounce, invite, onTheme } from "../core/dom.js";
import { said } from "../core/language.js";
import { drawn, openers, pageLink, tabLinks } from "../core/links.js";
import { store } from "../store/store.js";
import { openAddress, stay, translateLink } from "../store/translation.js";
import { createOverlays } from "./overlays.js";
import { createParts } from "./parts.js";
import * as states from "./state.js";
import { Trace } from "./trace.js";
import { createMaps } from "./wire/maps.js";

const REMEMBERED = 6; // translations that stay reachable

export default function explorer(root, api) {
  // What is looked at, for all parts. traces: oldest first; trace: the one that is shown; map: what is drawn of it, or null;
  // refused: in words, why there is none.
  const scene = { state: states.initial(), traces: [], trace: null, map: null, refused: null };
  const options = api.options ?? {};
  let awaited = null; // a state to take on when the translation of a shared link arrives

  // Ask the server about the translation with this key. A translation without an address, as in an exported file, has no
  // server.
  async function ask(name, { key, ...fields }) {
    const trace = key === undefined ? scene.trace : known({ key }),
      { selection, asked } = store.state;
    if (!trace?.address) return;
    const question = { address: trace.address, fields: { ...fields, selection, asked } },
      { error, ...answer } = await askServer(`page_${name}`, question);
    await receive(error ? unanswered(name, { key, ...fields }, error) : answer);
  }

  // The answer to a question that was refused.
  const unanswered = (name, { key, as, other }, error) =>
    name === "cut"
      ? { cut: { error } }
      : name === "alike"
        ? { alike: { key, other: scene.traces.find((one) => one.address === other)?.key, error } }
        : { error, key, as };
  const overlays = createOverlays(options.overlays);
  const maps = createMaps({ scene, overlays, ask, isPointed });
  const acts = { update, step, page, toggleHeads, pin, openTrace },
    parts = createParts(root, { scene, overlays, maps, options, ask, openCut: openAddress, acts });
  const { controls, views, cut, actions, drawing, lay } = parts;

  // --- what a person does -----------------------------------------------------------------------------------------
  const fitted = (wanted) => overlays.fitted(states.fitted(wanted, scene.trace));

  // Another state: everything on the page can look up what is selected.
  function take(state) {
    scene.state = state;
    store.set({ selection: states.selectionOf(state) });
  }

  // Change the state and redraw what depends on it.
  function update(changes) {
    if (!scene.trace) return;
    const before = scene.state;
    take(fitted(states.changed(before, changes)));
    drawing.draw(before);
  }

  function step(down, right) {
    update(states.stepped(scene.state, scene.trace.kinds[scene.state.kind], down, right));
  }

  function page(by) {
    update(states.paged(scene.state, scene.trace.kinds[scene.state.kind], by));
  }

  function toggleHeads(heads) {
    update(states.toggled(scene.state, heads));
  }

  function pin(map, row, column) {
    take(states.withPin(scene.state, map, scene.trace, { row, column }));
    drawing.showPinned();
  }

  // Whether the pointer or the keyboard's cursor is at a cell of a large map.
  function isPointed(row, column) {
    const at = views.large.cursor();
    return at?.row === row && at.column === column;
  }

  // Another state, all of it.
  function open(state) {
    take(fitted(state));
    drawing.draw();
  }

  function openTrace(key) {
    scene.trace = scene.traces.find((one) => one.key === key);
    open(scene.state);
  }

  function openLink() {
    const link = states.fromFragment(pageLink().toString());
    if (!link) return;
    const { state: wanted, ...named } = link,
      what = { beam: 1, ...named },
      { trace } = scene;
    if (
      trace &&
      Object.keys(what).every((name) => trace[name] === null || what[name] === trace[name])
    ) {
      stay(trace.text);
      open(wanted);
      return bringBeside(wanted.beside);
    }
    awaited = wanted;
    translateLink(what);
  }

  // --- what the server says ---------------------------------------------------------------------------------------
  async function receive(value) {
    if (value.invitation) {
      lay();
      return invite(root, value.invitation);
    }
    if (value.cut) return cut.receive(value.cut);
    if (value.kept) return receiveKept(value.kept);
    if (value.alike) return receiveAlike(value.alike);
    if (value.download) return actions.receive(value.download);
    if (value.error) return maps.refuse(value) ? drawing.draw() : drawing.say(said(value.error));
    if (value.cell) return receiveCell(value);
    if (value.layers || value.overlay || value.tiles) return receivePart(value);
    if (value.format) await receiveTrace(value);
  }

  // Another token is pinned in the tab "Why": what is about it is computed anew.
  store.follow(["asked"], () => {
    if (scene.trace && overlays.find(scene.state)?.asks) drawing.draw();
  });

  // Another part of the page has selected something else.
  store.follow(["selection"], ({ selection }) => {
    const own = JSON.stringify(states.selectionOf(scene.state));
    if (scene.trace && selection && JSON.stringify(selection) !== own) update(selection);
  });

  function receiveCell({ key, cell }) {
    maps.takeExact(key, cell);
    if (scene.map?.pyramid) views.large.more();
    maps.ahead();
    if (key === scene.trace.key && isPointed(cell.row, cell.column))
      drawing.point(cell.row, cell.column);
  }

  async function receivePart(part) {
    const owner = await maps.take(part),
      { trace, map, state } = scene;
    const isShown = ({ kind }) => kind === state.kind;
    if (!map || owner !== trace || part.thumbnails?.some(isShown)) drawing.draw();
    else if (part.strips?.some(isShown)) drawing.heads();
    if (scene.map?.pyramid) views.large.more(); // what it lacks is asked for before anything else
    maps.ahead();
  }

  function remember(...traces) {
    const others = scene.traces.filter((one) => !traces.includes(one));
    scene.traces = [...others, ...traces].slice(-REMEMBERED);
    controls.history(scene.traces, scene.trace);
  }

  const known = ({ key }) => scene.traces.find((one) => one.key === key);

  // A sentence to compare with: beside the one that is shown, and not in its place.
  async function receiveKept(payload) {
    const one = known(payload) ?? (await Trace.from(payload));
    remember(...new Set([one, scene.trace]));
    update({ view: "compare", compare: "pair" });
    views.compare.keep(one);
  }

  // What a link says to compare with: here already, or to be translated by the same model.
  function bringBeside(text) {
    if (!text || !options.pairs) return;
    const one = views.compare.plain(text);
    if (!one) return ask("beside", { key: scene.trace.key, text });
    views.compare.keep(one);
    update({});
  }

  function receiveAlike(answer) {
    views.compare.alike(answer);
    if (scene.trace.key === answer.key && scene.state.view === "compare") drawing.draw(scene.state);
  }

  async function receiveTrace(payload) {
    scene.trace = known(payload) ?? (await Trace.from(payload));
    lay();
    invite(root, null);
    remember(scene.trace);
    const { selection: chosen, link } = payload;
    if (link) scene.state = states.fromFragment(link).state; // of a file: all that was chosen where it was made
    const wanted = awaited;
    awaited = null;
    open(wanted ?? { ...scene.state, ...chosen });
    bringBeside(wanted?.beside);
    store.set({ drawn: store.state.drawn + 1 });
  }

  openers.explorer = (head) => update({ ...head, heads: [], overlay: "" });
  tabLinks.explorer = () => scene.trace && states.toFragment(scene.state, scene.trace);

  // What a panel may pass on to the server to be checked: of which translation this page draws which weights.
  drawn.key = () => scene.trace?.key ?? null;
  drawn.weights = () => scene.trace && { key: scene.trace.key, layers: scene.trace.encoded() };

  onTheme(() => scene.trace && drawing.draw());
  let drawnWidth = 0; // the stage's height follows its content: only another width asks for another drawing
  new ResizeObserver(
    debounce(() => {
      if (!scene.trace || views.root.clientWidth === drawnWidth) return;
      drawnWidth = views.root.clientWidth;
      drawing.draw(scene.state);
    }, 80),
  ).observe(views.root);
  // One translation after another, however long each takes to unpack.
  let taken = Promise.resolve();
  function receiveNext(value) {
    const next = () => receive(value);
    taken = taken.then(next, next);
  }
  store.follow(
    ["translation"],
    ({ translation }) => translation.map && receiveNext(translation.map),
  );
  window.addEventListener("hashchange", openLink);
  const first = api.value();
  if (first.address) store.set({ address: first.address });
  for (const value of [first, ...(api.later ?? [])]) receiveNext(value); // several of a file or a notebook
  taken.then(openLink);
}
