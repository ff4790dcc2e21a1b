// The attention explorer: its state, its memory of translations, and the drawing of what the state says.
import { debounce, el, invite, onTheme } from "../core/dom.js";
import { parts, said, say, t } from "../core/language.js";
import { drawn, pageLink, tabLinks } from "../core/links.js";
import { connect, tell } from "../core/rpc.js";
import { glossed } from "../lab/glossary.js";
import { createActions } from "./actions.js";
import * as colouring from "./colouring.js";
import { createControls } from "./controls.js";
import { createCut } from "./experiments/cut.js";
import { createHelp } from "./help.js";
import { listenKeys } from "./keys.js";
import * as model from "./model.js";
import { createOverlays } from "./overlays.js";
import { largeMap } from "./views/pyramid.js";
import * as states from "./state.js";
import { Trace } from "./trace.js";
import { createAtlas } from "./views/atlas.js";
import { viewPicture } from "./views/picture.js";
import { createSentence } from "./views/sentence.js";
import { createViews } from "./views/views.js";
import { createEcho } from "./wire/echo.js";
import { createRequests } from "./wire/requests.js";
import * as words from "./words.js";
import { pictured } from "../picture/copy.js";

export default function explorer(root, api) {
  const REMEMBERED = 6, // translations that stay reachable
    TILES = 40; // of a large map that are asked for at once
  const SETTLED = 150; // milliseconds without a change before the other tabs hear of a selection

  let state = states.initial();
  let traces = []; // oldest first; the shown one is `trace`
  let trace = null;
  let map = null;
  let refused = null; // in words, why there is none
  let awaited = null; // a state to take on when the translation of a shared link arrives

  const clock = () => performance.now();
  const echo = createEcho(clock),
    requests = createRequests(ask, clock);
  const overlays = createOverlays(api.options?.overlays);
  const controls = createControls((changes) => update(changes), openTrace, overlays);
  const thumbnails = createAtlas({
    select: (layer, head) => update({ layer, head, heads: [], combine: "single" }),
    toggle: toggleHeads,
    hover: hoverThumbnail,
  });
  const views = createViews({
    root,
    hover: showCell,
    pin,
    update,
    trace: () => trace,
    traces: () => traces,
    mapOf,
    askFor: requests.waitFor,
    tiles: (map, wanted) =>
      requests.request("tiles", { key: trace.key, head: map.head, wanted: wanted.slice(0, TILES) }),
    exact: askExactly,
    pairs: api.options?.pairs,
    ask,
    tell: (what) => tell("atlas-translate", what),
  });

  const guide = el("p", { class: "guide" });
  const heading = el("h2", { class: "heading-line" });
  const decoded = el("span", { class: "decoded" }),
    reading = el("p", { class: "reading" });
  const status = el("p", { class: "status", role: "status" });
  const summary = el("p", { class: "sr-only", "aria-live": "polite" });
  const legend = el("div", { class: "legend" });
  const tip = el("p", { class: "tip" });
  const actions = createActions({
    ask,
    formats: api.options?.formats,
    state: () => state,
    trace: () => trace,
    map: () => map,
    views,
    thumbnails,
    overlays,
    title: () => title(),
    caption: () => caption(),
    say: (text) => status.replaceChildren(text),
  });
  const cut = createCut({
    able: Boolean(api.options?.formats),
    ask,
    state: () => state,
    trace: () => trace,
    map: () => map,
    pinned: () => pinnedCells(),
  });
  const help = createHelp(overlays.available.length > 0, Boolean(api.options?.formats));
  const title = () => `${said(trace.kinds[state.kind].title)}, ${heading.textContent}`,
    caption = () => `${trace.text} → ${trace.translation}`,
    moves = { move: step, hint: t("← → heads · ↑ ↓ layers") };
  const heads = pictured(el("div", {}, thumbnails.root, legend), {
    title: () => thumbnails.root.firstChild?.ariaLabel ?? "",
    caption,
    ...moves,
  });
  const shown = pictured(views.root, {
    title,
    caption,
    svg: () => viewPicture({ views, state: () => state }),
    main: true,
    ...moves,
    fit: (room) => {
      views.fit(room);
      if (trace) draw(state);
    },
  });
  const sentence = createSentence({ pin: pinOf });
  const lines = pictured(sentence.root, {
    title,
    caption,
    ...moves,
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

  // Change the state and redraw what depends on it.
  function update(changes, { tell = true } = {}) {
    if (!trace) return;
    let next = state;
    if (changes.kind && changes.kind !== state.kind) next = states.withKind(next, changes.kind);
    const { predicted, ...rest } = changes;
    next = { ...next, ...rest };
    if (predicted === null || typeof predicted === "boolean")
      next.predicted = { ...next.predicted, [next.kind]: predicted };
    else if (predicted) next.predicted = predicted;
    // Several heads as one map: of attention alone.
    if (changes.heads?.length || (changes.combine || "single") !== "single") next.overlay = "";
    const before = state;
    state = fitted(next, trace);
    draw(before);
    if (tell) tellOthers();
  }

  const fitted = (wanted, one) => overlays.fitted(states.fitted(wanted, one));

  // The map of a translation that a state shows; null where it has not been sent. Then it is asked for, but for layers of
  // a translation that is not shown itself.
  function mapOf(one, wanted) {
    const view = states.viewOf(wanted);
    if (wanted.overlay) {
      const kept = overlays.kept(one, wanted),
        event = overlays.find(wanted).model ? "model_overlay" : "overlay";
      if (!kept) requests.request(event, { key: one.key, ...overlays.question(wanted) });
      return kept?.refused ? null : kept;
    }
    if (one.kinds[view.kind].large) return largeMapOf(one, view);
    const missing = model.missing(one, view);
    if (missing.length && one === trace) requests.layers(one, missing, view.kind);
    return missing.length ? null : model.scoreMap(one, view);
  }

  function largeMapOf(one, view) {
    const found = largeMap(one, view),
      { pyramid, head } = found;
    if (pyramid.begun) return found;
    if (one === trace)
      requests.request("tiles", { key: one.key, head, wanted: pyramid.within(pyramid.whole) });
    return null;
  }

  // The number of a cell of a large map, of which a tile has a byte.
  function askExactly(shown, row, column) {
    const at = views.large.cursor();
    if (shown !== map || at?.row !== row || at.column !== column) return;
    if (shown.pyramid.exact.has(`${row}.${column}`)) return;
    if (!requests.request("cell", { key: trace.key, head: shown.head, row, column }))
      setTimeout(() => askExactly(shown, row, column), SETTLED);
  }

  function receiveCell({ head, row, column, value }) {
    trace.pyramid(...head).exact.set(`${row}.${column}`, value);
    requests.answered();
    views.large.more();
    requests.ahead(trace, state.kind);
    const at = views.large.cursor();
    if (at && at.row === row && at.column === column) showCell(row, column);
  }

  // Of hundreds of tokens a mean weight is next to nothing: a linear scale would show a dark square.
  const toned = () =>
    trace.kinds[state.kind].large && state.transform === "linear"
      ? { ...state, transform: "sqrt" }
      : state;

  function draw(before = null) {
    views.measure();
    const overlay = overlays.find(state);
    map = mapOf(trace, state);
    refused = (overlay && overlays.kept(trace, state)?.refused) ?? null;
    controls.show(toned(), map);
    const used = model.usedHeads(trace, states.viewOf(state)),
      name = words.heading(state, used, overlay);
    heading.textContent = name;
    decoded.textContent =
      t("Decoding: {how}.", { how: trace.payload.decoding }) +
      (trace.payload.beyond ? ` ${said(trace.payload.beyond)}` : "") +
      (trace.payload.attention_only ? ` ${t("Attention only: this model runs elsewhere.")}` : "");
    if (!map && !refused && trace.payload.left_out) refused = trace.payload.left_out;
    const waits = refused ? "" : overlay ? t("Computing …") : t("Loading this layer…");
    reading.replaceChildren(...glossed(map ? words.reading(state, trace, map, overlay) : waits));
    clearTimeout(draw.wait);
    requests.waitForNone();
    if (map) {
      const colours = colouring.ofMap(toned(), map, trace.payload.colours, api.options?.diverging);
      views.draw(state, map, colours, {
        ...words.titles(state, map, trace),
        label: `${said(trace.kinds[state.kind].title)}, ${name}`,
      });
    } else if (refused) views.clear();
    else if (overlay || trace.kinds[state.kind].large) draw.wait = setTimeout(views.wait, SETTLED); // mostly it is here before that: no flicker
    else views.wait();
    const repaint =
      !before || ["kind", "transform", "colours"].some((name) => before[name] !== state[name]);
    if (repaint) drawAtlas();
    else if (before.overlay !== state.overlay) hoverThumbnail(null);
    thumbnails.select(state);
    drawSentence();
    guide.textContent = words.guide(state, overlay);
    showPinned();
    if (map) state = { ...state, beside: state.view === "compare" ? views.compare.beside() : "" };
    requests.ahead(trace, state.kind);
    clearTimeout(draw.timer);
    draw.timer = setTimeout(
      () => map && (summary.textContent = words.summary(state, trace, map, used, overlay)),
      400,
    );
  }

  function drawSentence() {
    lines.hidden = trace.kinds[state.kind].large;
    if (lines.hidden) return; // its words would be a hundred lines
    const view = {
      ...states.viewOf({ ...state, overlay: "", heads: [], combine: "single" }),
      words: true,
      special: "hide",
      predicted: true,
    };
    if (model.missing(trace, view).length) return; // drawn when they have come
    const small = model.scoreMap(trace, view);
    const glosses = state.glosses ? states.glossesOf(state, trace) : null;
    sentence.draw(small, states.pinnedCells(state, small, trace), words.lines(state), glosses);
  }

  function drawAtlas() {
    const colours = colouring.scale(state, trace.payload.colours),
      palette = colouring.palette(colours, toned().transform, 1);
    thumbnails.draw(trace, state.kind, palette);
    legend.replaceChildren(
      el("span", {
        class: "ramp",
        style: `background: linear-gradient(to right, ${colours.join(", ")})`,
      }),
      el(
        "span",
        { class: "ramp-ticks" },
        palette.ticks.texts.map((text, i) => {
          const tick = el("span", {}, text);
          tick.style.left = `${100 * palette.ticks.places[i]}%`;
          return tick;
        }),
      ),
    );
    hoverThumbnail(null);
  }

  function hoverThumbnail(layer, head) {
    const { entropies, readings } = trace.kinds[state.kind],
      named = layer === null ? "" : words.named(trace, state.kind, layer, head);
    tip.textContent =
      layer !== null && !readings[layer]
        ? t("Layer {layer} · Head {head}", { layer: layer + 1, head: head + 1 })
        : layer !== null
          ? t("Layer {layer}, head {head}: {reading} · {bits} bits", {
              layer: layer + 1,
              head: head + 1,
              reading: readings[layer][head],
              bits: entropies[layer][head].toFixed(2),
            }) + (named && ` · ${named}`)
          : words.thumbnailsTip(overlays.find(state));
  }

  // To the head so many layers below and heads to the right.
  function step(down, right) {
    const { layers, heads } = trace.kinds[state.kind],
      within = (value, count) => Math.min(count - 1, Math.max(0, value));
    update({ layer: within(state.layer + down, layers), head: within(state.head + right, heads) });
  }

  // Add these heads to the choice; if all of them are in it, take them out. A choice begins with the selected head.
  function toggleHeads(pairs) {
    const within = (list, [layer, head]) =>
      list.some((pair) => pair[0] === layer && pair[1] === head);
    const start =
      state.heads.length || pairs.length > 1 ? state.heads : [[state.layer, state.head]];
    const heads = pairs.every((pair) => within(start, pair))
      ? start.filter((pair) => !within(pairs, pair))
      : [...start, ...pairs.filter((pair) => !within(start, pair))];
    update({
      heads,
      combine: state.combine === "single" && state.view !== "lines" ? "mean" : state.combine,
    });
  }

  function pinnedCells() {
    return map ? states.pinnedCells(state, map, trace) : { row: null, column: null }; // still on its way
  }

  // From the sentences' picture, whose words may be hidden or cut into pieces in the large map.
  function pinOf(shown, row, column) {
    state = states.withPin(state, shown, trace, { row, column });
    if (map) views.pin(pinnedCells());
    showPinned();
    tellOthers();
  }

  function pin(row, column) {
    if (!map) return;
    state = states.withPin(state, map, trace, { row, column });
    views.pin(pinnedCells());
    showPinned();
    tellOthers();
  }

  function showCell(row, column) {
    if (row === null && column === null) showPinned();
    else if (map) status.replaceChildren(...words.pointing(map, row, column, trace, state.kind));
  }

  function showPinned() {
    cut.follow();
    if (sentence.map() && !lines.hidden)
      sentence.pin(states.pinnedCells(state, sentence.map(), trace));
    if (!map) return status.replaceChildren(refused ? said(refused) : "");
    const { row, column } = pinnedCells();
    views.pin({ row, column });
    if (row !== null || column !== null)
      status.replaceChildren(
        ...parts(
          say("Pinned: {what}", { what: words.pointing(map, row, column, trace, state.kind) }),
        ),
      );
    else status.replaceChildren(views.hint(state));
  }

  function ask(event, question) {
    rpc.ask(event, question, receive);
  }

  function tellOthers() {
    clearTimeout(tellOthers.timer);
    tellOthers.timer = setTimeout(() => {
      tellOthers.timer = null;
      const selection = states.selectionOf(state);
      if (echo.tell(JSON.stringify(selection))) rpc.tell("select", selection);
    }, SETTLED);
  }

  // In place of the empty frame, as late as there is something to show in it: nothing jumps.
  function lay() {
    if (!help.root.isConnected) root.replaceChildren(...all);
  }

  async function receive(value) {
    if (value.invitation) {
      lay();
      return invite(root, value.invitation);
    }
    if (value.cut) return cut.receive(value.cut);
    if (value.kept) return receiveKept(value.kept);
    if (value.alike) return receiveAlike(value.alike);
    if (value.asked !== undefined) return askedAnother(value.asked);
    if (value.download) return actions.receive(value.download);
    if (value.error) {
      const owner = traces.find((one) => one.key === value.key);
      if (owner && value.as) overlays.refuse(owner, value.as, value.error);
      requests.answered();
      if (owner && value.as && owner === trace) return draw();
      return status.replaceChildren(said(value.error));
    }
    if (value.cell && trace.key === value.key) return receiveCell(value.cell);
    if (value.layers || value.overlay || value.tiles) return receivePart(value);
    if (value.format) await receiveTrace(value);
    else if (value.selection && trace) receiveSelection(value.selection);
  }

  // Another token is pinned in the tab "Why": what is about it is computed anew.
  function askedAnother(name) {
    overlays.ask(name);
    if (trace && overlays.find(state)?.asks) draw();
  }

  function receiveSelection(selection) {
    const text = JSON.stringify(selection),
      isTaken = echo.said(text, Boolean(tellOthers.timer));
    if (isTaken && text !== JSON.stringify(states.selectionOf(state)))
      update(selection, { tell: false });
  }

  async function receivePart(part) {
    const { key, layers = [], thumbnails: small = [], strips = [], tiles, overlay, as } = part;
    const owner = traces.find((one) => one.key === key);
    if (owner) for (const block of layers) await owner.add(block);
    if (owner) for (const one of small) await owner.addThumbnails(one);
    if (owner) for (const one of strips) await owner.addStrip(one);
    if (owner && tiles) await owner.addTiles(tiles);
    if (owner && overlay) await overlays.keep(owner, as, overlay);
    requests.answered(); // not before: a redraw in between would ask for the same again
    if (!map || owner !== trace || small.some((one) => one.kind === state.kind)) draw();
    else if (strips.some((one) => one.kind === state.kind)) {
      drawAtlas();
      thumbnails.select(state);
      reading.replaceChildren(...glossed(words.reading(state, trace, map)));
    }
    if (map?.pyramid) views.large.more(); // what it lacks is asked for before anything else
    requests.ahead(trace, state.kind);
  }

  // A sentence to compare with: beside the one that is shown, and not in its place.
  async function receiveKept(payload) {
    const one = traces.find(({ key }) => key === payload.key) || (await Trace.from(payload));
    traces = [...traces.filter((other) => other !== one && other !== trace), one, trace];
    traces = [...new Set(traces)].slice(-REMEMBERED);
    controls.history(traces, trace);
    update({ view: "compare", compare: "pair" }, { tell: false });
    views.compare.keep(one);
  }

  // What a link says to compare with: here already, or to be translated by the same model.
  function bringBeside(text) {
    if (!text || !api.options?.pairs) return;
    const one = views.compare.plain(text);
    if (!one) return ask("keep", { key: trace.key, text });
    views.compare.keep(one);
    update({}, { tell: false });
  }

  function receiveAlike(answer) {
    views.compare.alike(answer);
    if (trace.key === answer.key && state.view === "compare") draw(state);
  }

  function openTrace(key) {
    trace = traces.find((one) => one.key === key);
    state = fitted(state, trace);
    draw();
  }

  async function receiveTrace(payload) {
    root.dispatchEvent(new CustomEvent("atlas-received"));
    const known = traces.find((one) => one.key === payload.key);
    const next = known || (await Trace.from(payload));
    traces = [...traces.filter((one) => one !== next), next].slice(-REMEMBERED);
    trace = next;
    lay();
    invite(root, null);
    controls.history(traces, trace);
    const { selection, link } = payload;
    if (link) state = states.fromFragment(link).state; // of a file: all that was chosen where it was made
    const beside = awaited?.beside; // draw() says what stands there now
    if (awaited) [state, awaited] = [awaited, null];
    else if (selection && echo.brought(JSON.stringify(selection), Boolean(tellOthers.timer)))
      state = { ...state, ...selection };
    state = fitted(state, trace);
    draw();
    bringBeside(beside);
    root.dispatchEvent(new CustomEvent("atlas-drawn", { bubbles: true }));
  }

  tabLinks.explorer = () => trace && states.toFragment(state, trace);

  // What a panel may pass on to the server to be checked: of which translation this page draws which weights.
  drawn.weights = () => trace && { key: trace.key, layers: trace.digests() };

  listenKeys(root, {
    state: () => state,
    trace: () => trace,
    update,
    step,
    toggleHeads,
    thumbnails,
    views,
    help,
    overlays,
  });
  onTheme(() => trace && draw());
  let drawnWidth = 0; // the stage's height follows its content: only another width asks for another drawing
  new ResizeObserver(
    debounce(() => {
      if (!trace || views.root.clientWidth === drawnWidth) return;
      drawnWidth = views.root.clientWidth;
      draw(state);
    }, 80),
  ).observe(views.root);
  function openLink() {
    const link = states.fromFragment(pageLink().toString());
    if (!link) return;
    const { state: wanted, ...named } = link,
      what = { beam: 1, ...named };
    // Of the sentence that is shown nothing would come back: Gradio passes on no value that equals the one before.
    if (
      trace &&
      Object.keys(what).every((name) => trace[name] === null || what[name] === trace[name])
    ) {
      state = fitted(wanted, trace);
      draw();
      bringBeside(wanted.beside);
      return tellOthers();
    }
    awaited = wanted;
    tell("atlas-translate", what); // its answer is another translation, which everybody is told
  }
  // Another translation, of which the line above the tabs tells: one after another, however long each takes to unpack.
  document.addEventListener("atlas-map", (event) => {
    event.preventDefault();
    const receiveNext = () => receiveTrace(event.detail);
    taken = taken.then(receiveNext, receiveNext);
  });
  window.addEventListener("hashchange", openLink);
  // A panel shows a head here.
  document.addEventListener(
    "atlas-look",
    ({ detail }) => trace && update({ ...detail, heads: [], overlay: "" }),
  );
  const rpc = connect(api, receive);
  let taken = rpc.take(api.value()).then(openLink);
}
