// The picture of the whole model in the tab Inside. It draws what the store says: the place that is open (inside), the pinned word
// and the selected head. What a person does changes the store, never the picture itself.
import { el, button, onThemeChange, onVisible, rangeField } from "../core/dom.js";
import { hasModifier } from "../core/keys.js";
import { t } from "../core/language.js";
import { panelLinks, pushFields, tabOpeners, viewLink } from "../core/links.js";
import { pin } from "../store/question.js";
import { store } from "../store/store.js";
import {
  beatsOf,
  cellFigures,
  followFields,
  followFigures,
  Lights,
  strongestCross,
} from "./follow.js";
import { headFields } from "./head.js";
import { stopsOf } from "./keyboard.js";
import { arrange, knotsOf } from "./layout.js";
import { createList } from "./list.js";
import { Model } from "./model.js";
import { Painter } from "./paint.js";
import {
  depthOf,
  formatCell,
  formatPlace,
  isLayer,
  keySide,
  kindOf,
  layerOf,
  parseCell,
  parsePlace,
  querySide,
  stageOf,
  subOf,
  subsOf,
} from "./place.js";
import { hitAt, lineAt, numberAt, rowAt, subAt } from "./pointer.js";
import { Scene } from "./scene.js";
import { nextWord } from "./stages.js";
import { Transition } from "./tween.js";
import { describeHit, explain, panelsOf, stageName, subName } from "./words.js";

const OPENING = 560; // milliseconds
const MOVING = 320; // to another word
const POINTING = 140;
const BEAT = 1200; // a caption of Play
const MISSED = 24; // milliseconds of a frame, after which thin lines are left out while items move
const FOOT = 72; // pixels below the picture, for the line that explains it
const PRESENTED = 1120; // pixels, the least width in a presentation
const reducedMotion = matchMedia("(prefers-reduced-motion: reduce)");
/** @type {(() => void) | null} ends the picture of the translation before */
let endLast = null;

/**
 * Draw the picture into an element.
 * @param {HTMLElement} root @param {any} block of viz/panels/picture.py @param {any} api of the panel
 * @returns {{fit: (room: any) => void, move: (down: number, right: number) => void, image: () => {href: string, width: number, height: number}}}
 */
export default function inside(root, block, api) {
  endLast?.();
  const model = new Model(block, { address: store.state.address, arrived });
  const canvas = el("canvas", { "aria-hidden": "true" }),
    tip = el("div", { class: "tip", "aria-hidden": "true" }),
    picture = el(
      "div",
      {
        class: "scene",
        tabindex: "0",
        role: "application",
        "aria-label": t("The model, from the typed words to the next word"),
        "aria-describedby": "inside-keys",
      },
      canvas,
      tip,
    ),
    crumbs = el("nav", { class: "crumbs", "aria-label": t("Open part of the picture") }),
    slider = rangeField(t("Word being written"), { min: 1, max: model.steps, step: 1 }, (n) =>
      setStep(n - 1),
    ),
    stepLabel = el("span", { class: "step" }),
    player = el("div", { class: "player" }),
    caption = el("p", { class: "caption" }),
    status = el("p", { class: "status", role: "status" }),
    figures = el("div", {}),
    links = el("p", { class: "links" }),
    windowBar = el("p", { class: "window", hidden: true }),
    list = el("div", {}),
    details = el(
      "details",
      { class: "list", ontoggle: () => drawList() },
      el("summary", {}, t("This picture as a list")),
      list,
    );
  root.replaceChildren(
    el("div", { class: "top" }, crumbs, el("label", { class: "steps" }, stepLabel, slider)),
    picture,
    windowBar,
    el("div", { class: "foot" }, caption, player),
    status,
    figures,
    links,
    details,
    el(
      "p",
      { class: "sr-only", id: "inside-keys" },
      t(
        "Left and right arrows go from stage to stage, up and down from word to word. Enter opens, Escape goes up, P plays.",
      ),
    ),
  );

  const painter = new Painter(canvas),
    transition = new Transition(),
    stop = { index: 0, isVisible: false }; // where the keyboard is
  let view = null, // what is drawn
    layout = null,
    scene = null,
    displayed = null, // the layout of what the canvas shows
    word = null, // the chosen position of the source
    chosenWindow = null, // the first key of the open head's window, if a person chose it
    pointed = { hover: null, hoverStage: null, hoverHead: null },
    follow = null, // the followed number: {place, cell} or {probability}
    beat = null, // the caption that is shown
    timer = null, // of Play
    room = null, // of a presentation
    isOver = false;

  // --- From the store to the picture ------------------------------------------------------------------------------

  function readStore() {
    const { pinned, selection, inside: state } = store.state;
    const step = Math.min(pinned ?? block.step, model.steps - 1),
      open = parsePlace(state.place, model),
      depth = depthOf(open);
    let cell = depth === 2 ? parseCell(state.cell) : null,
      query = step;
    const heads = Object.fromEntries(
      Object.entries(model.attentions).map(([kind, layers]) => [
        kind,
        layers.map(({ head }) => head),
      ]),
    );
    if (heads[selection?.kind]?.[selection.layer] !== undefined)
      heads[selection.kind][selection.layer] = Math.min(
        selection.head,
        model.sides[querySide(selection.kind)].heads - 1,
      );
    if (depth === 2) {
      const kind = kindOf(open.stage, open.sub);
      if (heads[kind]) heads[kind][layerOf(open.stage)] = open.head;
      if (kind === "encoder_self")
        query = Math.min(cell?.[0] ?? word ?? firstWord(), model.sides.encoder.tokens.length - 1);
      const count = model.sides[keySide(kind)].tokens.length;
      if (cell) cell = cell[1] < count ? [query, cell[1]] : null;
    }
    const next = {
      ...pointed,
      open,
      step,
      query,
      cell,
      word: depth === 2 && kindOf(open.stage, open.sub) === "encoder_self" ? query : word,
      heads,
      follow,
      window: null,
    };
    if (depth === 2) {
      const first = cell && chosenWindow === null ? Math.max(0, cell[1] - 12) : chosenWindow;
      next.window = {
        first: first ?? 0,
        chosen:
          first !== null && model.sides[keySide(kindOf(open.stage, open.sub))].tokens.length > 24,
        count: 24,
      };
      const data = model.stage(headFields(next));
      if (data) next.window = { ...next.window, first: data.first, count: data.weights.length };
    }
    return next;
  }

  const firstWord = () => {
    const at = model.sides.encoder.rows.find(({ symbol }) => !symbol)?.at;
    return at ? at[1] - 1 : 0;
  };

  // The store has changed.
  function update() {
    if (isOver || !root.isConnected) return;
    const before = view,
      next = readStore();
    const isOpening = formatPlace(before?.open) !== formatPlace(next.open);
    if (isOpening && before) chosenWindow = null;
    if (follow && before && beat === null && !keepsFollow(next)) follow = null;
    panelLinks.map = {
      ...(store.state.inside.place ? { inside: formatPlace(next.open) } : {}),
      ...(next.cell ? { cell: formatCell(next.cell) } : {}),
    };
    redraw(isOpening ? OPENING : MOVING, { sweeps: Boolean(before) && before.step !== next.step });
    if (isOpening && before) reveal();
  }

  // Whether the followed number is still in sight.
  function keepsFollow({ open, cell, step }) {
    if (follow.probability !== undefined) return open?.stage === "out" && step === view.step;
    return (
      formatPlace(open) === formatPlace(follow.place) &&
      formatCell(cell) === formatCell(follow.cell)
    );
  }

  const own = JSON.stringify(store.state.address), // of this picture's translation
    isSelected = (kind, layer, head) => {
      const { selection } = store.state;
      return selection?.kind === kind && selection.layer === layer && selection.head === head;
    };

  // Select a linked head on the whole page, and pin the word of a linked cell, also when the same sentence is translated again.
  function followPlace() {
    if (isOver || !root.isConnected || JSON.stringify(store.state.address) !== own) return;
    const { place, cell } = store.state.inside,
      open = parsePlace(place, model),
      [query] = parseCell(cell) ?? [];
    if (!open || depthOf(open) !== 2) return;
    const kind = kindOf(open.stage, open.sub),
      layer = layerOf(open.stage);
    if (!isSelected(kind, layer, open.head))
      tabOpeners.explorer?.({ kind, layer, head: open.head });
    if (query === undefined || querySide(kind) === "encoder") return;
    if (query < model.steps && query !== store.state.pinned) pin(query);
  }

  const endFollowers = [
    store.follow(["inside", "translation"], followPlace),
    store.follow(["inside", "pinned"], update),
    store.follow(["selection"], followSelection),
  ];
  function followSelection({ selection }) {
    if (isOver || !selection) return;
    const { open } = view ?? {};
    // A head that is selected elsewhere opens here, at the same depth; in sight, the picture leads.
    const isElsewhere =
      !isVisible() &&
      open &&
      isLayer(open.stage) &&
      open.sub !== "ff" &&
      selection.kind in model.attentions;
    if (!isElsewhere) {
      update();
      return followPlace(); // the maps may have opened another head after this picture
    }
    const { kind, layer, head } = selection,
      place = {
        stage: stageOf(kind, layer),
        sub: subOf(kind),
        head: open.head === null ? null : head,
      };
    store.set({ inside: { place: formatPlace(place), cell: "" } });
  }

  // --- Drawing ----------------------------------------------------------------------------------------------------

  // The first view of the picture is whole where the window allows it.
  function size() {
    if (room) return room;
    const width = Math.floor(picture.clientWidth),
      top = picture.getBoundingClientRect().top + window.scrollY,
      rows = model.sides.encoder.rows.length + model.sides.decoder.rows.length;
    const height = Math.min(720, window.innerHeight - top - FOOT);
    return { width, height: Math.max(430, height, 200 + 8 * rows) };
  }

  function build() {
    view = readStore();
    const box = size();
    layout = arrange(view, model, box);
    scene = new Scene(view, model, layout, null);
    let beats = [];
    if (follow) {
      const place = follow.place;
      if (place)
        follow.sums = {
          subs: subsOf(model, place.stage).length,
          layer: layerOf(place.stage),
          index: subsOf(model, place.stage).indexOf(place.sub),
        };
      beats = followData() ? beatsOf(view, model, follow, followData()) : [];
      scene = new Scene(view, model, layout, new Lights(view, beats, beats.length ? beat : null));
    }
    if (stop.isVisible) {
      const stops = stopsOf(scene);
      stop.index = Math.min(stop.index, stops.length - 1);
      scene = new Scene({ ...view, cursor: stops[stop.index].area }, model, layout, scene.lights);
    }
    scene.beats = beats;
    return { width: box.width, height: layout.tall ? Math.ceil(layout.flow) : box.height };
  }

  // What a followed number is made of: also while Play shows another part of the picture.
  function followData() {
    if (!follow) return null;
    const fields = followFields({ ...view, ...follow, open: follow.place, follow }, model);
    return fields && model.stage(fields);
  }

  let request = 0, // of the next frame
    isMoving = false,
    isWaiting = false; // for the end of a transition, to draw what has arrived meanwhile

  function redraw(duration, { sweeps = false } = {}) {
    if (isOver || !picture.clientWidth) return;
    if (duration === POINTING && isMoving) {
      isWaiting = true;
      return;
    }
    const before = displayed,
      { width, height } = build(),
      drawn = layout,
      time = reducedMotion.matches ? 0 : duration;
    const tallest = Math.max(height, layout.tall && time ? painter.size.height : 0);
    if (painter.size.width !== width || painter.size.height !== tallest)
      painter.resize(width, tallest);
    picture.style.height = `${height}px`;
    transition.to(scene, {
      duration: time,
      knots: before && before.tall === layout.tall ? knotsOf(before, layout) : null,
      tall: layout.tall,
      sweep: sweeps ? layout.flow : 0,
    });
    isMoving = time > POINTING;
    root.dataset.moving = String(isMoving);
    cancelAnimationFrame(request);
    let last = null,
      missed = 0;
    const tick = (now) => {
      if (isOver) return;
      const { items, done } = transition.frame(now);
      displayed = drawn;
      if (last !== null && now - last > MISSED) missed++;
      last = now;
      painter.draw(items, { moving: !done, coarse: !done && missed > 1 });
      if (!done) return (request = requestAnimationFrame(tick));
      if (painter.size.height !== height) {
        painter.resize(width, height);
        painter.draw(items);
      }
      isMoving = false;
      root.dataset.moving = "false";
      if (isWaiting) {
        isWaiting = false;
        redraw(POINTING);
      }
    };
    if (time) request = requestAnimationFrame(tick);
    else tick(performance.now());
    if (duration !== POINTING || !pointed.isLast) drawAround();
  }

  // On a narrow screen: scroll to the open stage.
  function reveal() {
    if (!layout.tall || !view.open || room) return;
    const { a } = layout.spans[view.open.stage];
    const top = picture.getBoundingClientRect().top + window.scrollY + a - window.innerHeight * 0.2;
    window.scrollTo({ top, behavior: reducedMotion.matches ? "auto" : "smooth" });
  }

  // --- What stands around the picture -----------------------------------------------------------------------------

  function drawAround() {
    drawCrumbs();
    slider.value = String(view.step + 1);
    const [[token]] = model.overview.steps[view.step];
    stepLabel.textContent = t("word {n} of {total}: “{word}”", {
      n: `${view.step + 1}`,
      total: `${model.steps}`,
      word: nextWord(block.written[view.step].text || token),
    });
    drawFigures();
    drawWindow();
    drawPlayer();
    caption.textContent =
      beat !== null && scene.beats[beat] ? scene.beats[beat].text : explain(scene);
    root.classList.toggle("playing", beat !== null);
    status.classList.toggle("sr-only", beat !== null); // the caption shows the same text
    const error = [...model.errors.values()].find(Boolean);
    if (error) status.textContent = String(error);
    links.replaceChildren(
      ...(view.open ? [t("In detail:"), " "] : []),
      ...panelsOf(view.open, view).flatMap(([panel, title, controls]) => [
        button(title, () => api.openLink({ tab: "inside", panel, ...controls }), {
          class: "plain detail",
        }),
        " ",
      ]),
    );
    drawList();
    root.dataset.place = formatPlace(view.open);
    root.dataset.busy = String(model.isBusy);
  }

  function drawCrumbs() {
    const { open } = view,
      parts = [[t("Whole model"), null]];
    if (open) {
      const layer = { ...open, head: null };
      parts.push([
        isLayer(open.stage)
          ? `${stageName(open.stage)}: ${subName(open.stage, open.sub)}`
          : stageName(open.stage),
        layer,
      ]);
      if (open.head !== null) parts.push([t("Head {n}", { n: open.head + 1 }), open]);
    }
    const hadFocus = crumbs.contains(document.activeElement);
    crumbs.replaceChildren(
      ...parts.flatMap(([name, target], i) => [
        ...(i ? [el("span", { "aria-hidden": "true" }, "›")] : []),
        button(name, () => go(target), {
          class: "crumb",
          "aria-current": i === parts.length - 1 ? "location" : null,
        }),
      ]),
    );
    if (hadFocus) picture.focus();
  }

  function drawFigures() {
    const parts = [];
    if (view.cell && view.open?.head !== null) {
      const data = model.stage(headFields(view)),
        node = data && cellFigures(scene, data);
      if (node) parts.push(node);
      if (node && !isFollowing())
        parts.push(
          button(
            t("Follow this weight"),
            () => {
              startFollowing({ place: view.open, cell: view.cell });
              showFigures();
            },
            { class: "plain follow" },
          ),
        );
    }
    const node = follow && followFigures(follow, followData(), keyName);
    if (node) parts.push(node);
    figures.replaceChildren(...parts);
  }

  // The word that a key of the followed weight is a piece of.
  function keyName(key) {
    const rows = scene.rows(keySide(kindOf(follow.place.stage, follow.place.sub))),
      row = rows.find(({ at: [start, end] }) => key >= start && key < end);
    return `“${row ? scene.label(row) : key + 1}”`;
  }

  // Scroll to the end of the figures, which are below the window as a rule.
  const showFigures = () =>
    figures.lastElementChild?.scrollIntoView({
      block: "nearest",
      behavior: reducedMotion.matches ? "auto" : "smooth",
    });

  const isFollowing = () =>
    follow?.place &&
    formatPlace(follow.place) === formatPlace(view.open) &&
    formatCell(follow.cell) === formatCell(view.cell);

  function drawWindow() {
    const count =
      view.open?.head === null || !view.open
        ? 0
        : model.sides[keySide(kindOf(view.open.stage, view.open.sub))].tokens.length;
    windowBar.hidden = count <= 24;
    if (windowBar.hidden) return;
    const { first, count: size_ } = view.window;
    const move = (by) => {
      chosenWindow = Math.max(0, Math.min(count - size_, first + by));
      redraw(MOVING);
    };
    windowBar.replaceChildren(
      button("‹", () => move(-12), { "aria-label": t("Earlier keys"), disabled: first <= 0 }),
      " ",
      t("keys {from} to {to} of {n}", {
        from: `${first + 1}`,
        to: `${first + size_}`,
        n: `${count}`,
      }),
      " ",
      button("›", () => move(12), {
        "aria-label": t("Later keys"),
        disabled: first + size_ >= count,
      }),
    );
  }

  function drawPlayer() {
    const isPlaying = timer !== null;
    const focused = [...player.children].indexOf(document.activeElement);
    const count = scene.beats.length;
    if (beat === null)
      player.replaceChildren(button(t("Play"), () => play(), { class: "plain strong" }));
    else
      player.replaceChildren(
        button(t("Back"), () => showBeat(beat - 1), { disabled: beat === 0 }),
        isPlaying
          ? button(t("Pause"), pause, { class: "plain strong" })
          : button(t("Play"), () => play(), { class: "plain strong" }),
        button(t("Next"), () => showBeat(beat + 1), { disabled: beat >= count - 1 }),
        el("span", { class: "count" }, `${beat + 1} / ${count}`),
        button("✕", endFollowing, { "aria-label": t("Stop following") }),
      );
    if (focused >= 0)
      /** @type {HTMLElement} */ (
        player.children[Math.min(focused, player.children.length - 1)]
      ).focus();
  }

  function drawList() {
    if (details.open) list.replaceChildren(createList(scene, (open) => perform({ open }, null)));
  }

  // --- What a person does -----------------------------------------------------------------------------------------

  /** Open a place: a step in the history. */
  function go(open, cell = null) {
    pause();
    if (beat !== null || (follow && !open)) [beat, follow] = [null, null];
    show(open, cell);
    pushFields(viewLink());
  }

  // Put a place into the store, and select its head on the whole page.
  function show(open, cell = null) {
    store.set({ inside: { place: formatPlace(open), cell: formatCell(cell) } });
    if (!open || !isLayer(open.stage) || open.sub === "ff") return;
    const kind = kindOf(open.stage, open.sub),
      layer = layerOf(open.stage);
    if (open.head === null) tabOpeners.explorer?.({ kind, layer, head: scene.headOf(kind, layer) });
  }

  const goUp = () => {
    const { open } = view;
    if (follow || beat !== null) return endFollowing();
    if (view.cell) return go(open, null);
    if (open) go(open.head === null ? null : { ...open, head: null });
  };

  function setStep(step) {
    const next = Math.max(0, Math.min(model.steps - 1, step));
    pause();
    [beat, follow] = [null, null];
    if (next !== view.step) pin(next);
  }

  function chooseRow(row) {
    if (row.side === "decoder") return setStep(row.at[1] - 1);
    word =
      word !== null && word >= row.at[0] && word < row.at[1] && layout.depth < 2
        ? null
        : row.at[1] - 1;
    if (layout.depth === 2 && querySide(kindOf(view.open.stage, view.open.sub)) === "encoder")
      return show(view.open, null);
    redraw(MOVING);
  }

  function perform(action, pointer) {
    if (!action) return;
    if (action.row) return chooseRow(action.row);
    if (action.cell) return go(view.open, action.cell);
    if ("probability" in action) return startFollowing({ probability: action.probability });
    const { stage, sub, head } = action.open;
    if (head !== null && head !== undefined) {
      const side = querySide(kindOf(stage, sub)),
        row = pointer && layout.depth === 1 ? rowAt(layout, side, pointer) : null;
      if (row?.side === "encoder") word = row.at[1] - 1;
      if (row?.side === "decoder" && !scene.isAhead(row) && !scene.contains(row, view.step))
        setStep(row.at[1] - 1);
      return go({ stage, sub, head });
    }
    go({
      stage,
      sub: isLayer(stage) ? (sub ?? subAt(layout, model, stage, pointer)) : null,
      head: null,
    });
  }

  // --- Following a number -------------------------------------------------------------------------------------------

  function startFollowing(number) {
    pause();
    [follow, beat] = [number, null];
    redraw(MOVING);
  }

  // The key that the query of the open head attends to most.
  function strongestKey() {
    const { first, weights } = model.stage(headFields(view)) ?? { first: 0, weights: [0] };
    return first + weights.indexOf(Math.max(...weights));
  }

  function endFollowing() {
    pause();
    [follow, beat] = [null, null];
    redraw(MOVING);
  }

  function play() {
    follow ??=
      view.open && (view.cell || depthOf(view.open) === 2)
        ? { place: view.open, cell: view.cell ?? [view.query, strongestKey()] }
        : strongestCross(scene);
    if (!follow) return;
    const data = followData();
    if (!data) {
      // Its numbers are on the way.
      timer = setTimeout(play, 60);
      return;
    }
    const last = (scene.beats.length || 10) - 1;
    showBeat(beat === null || beat >= last ? 0 : beat + 1, { isPlaying: true });
  }

  function showBeat(number, { isPlaying = false } = {}) {
    clearTimeout(timer);
    timer = null;
    const beats = beatsOf(view, model, follow, followData());
    if (number < 0 || number >= beats.length) return;
    beat = number;
    const { open } = beats[beat];
    if (isPlaying && beat < beats.length - 1)
      timer = setTimeout(() => showBeat(beat + 1, { isPlaying: true }), BEAT);
    const isSame = formatPlace(open) === formatPlace(view.open);
    if (isSame) redraw(MOVING);
    else show(open, open?.head === null || !open ? null : (follow.cell ?? null));
    status.textContent = beats[beat].text;
  }

  function pause() {
    clearTimeout(timer);
    timer = null;
    if (scene) drawPlayer();
  }

  // --- Pointer ------------------------------------------------------------------------------------------------------

  function pointerOf(event) {
    const { left, top, width } = picture.getBoundingClientRect(),
      scale = picture.clientWidth / (width || 1);
    return { x: (event.clientX - left) * scale, y: (event.clientY - top) * scale };
  }

  function point(event) {
    if (!scene) return;
    const pointer = pointerOf(event),
      hit = hitAt(scene, pointer),
      curve = lineAt(scene, pointer),
      action = hit?.action;
    picture.classList.toggle("pointing", Boolean(hit));
    const next = {
      hover: action?.row ? { side: action.row.side, index: action.row.index } : null,
      hoverStage: action?.open && !action.open.sub ? action.open.stage : null,
      hoverHead: action?.open?.head ?? null,
    };
    if (JSON.stringify(next) !== JSON.stringify(pointed)) {
      pointed = next;
      if (next.hoverStage && isLayer(next.hoverStage)) model.layer(next.hoverStage); // it is probably opened next
      redraw(POINTING);
    }
    const text = numberAt(scene, pointer) ?? describeHit(hit, curve, scene);
    tip.classList.toggle("shown", Boolean(text));
    if (!text) return;
    tip.textContent = text;
    const x = Math.max(0, Math.min(pointer.x + 14, picture.clientWidth - tip.offsetWidth - 4)),
      isLow = pointer.y + 22 + tip.offsetHeight > picture.clientHeight,
      y = isLow ? pointer.y - tip.offsetHeight - 10 : pointer.y + 18;
    tip.style.transform = `translate(${x}px, ${y}px)`;
  }

  picture.addEventListener("pointermove", point);
  picture.addEventListener("pointerleave", () => {
    tip.classList.remove("shown");
    if (Object.values(pointed).every((value) => value === null)) return;
    pointed = { hover: null, hoverStage: null, hoverHead: null };
    redraw(POINTING);
  });
  picture.addEventListener("click", (event) => {
    const pointer = pointerOf(event);
    stop.isVisible = false;
    tip.classList.remove("shown"); // it describes what was here before
    const action = hitAt(scene, pointer)?.action;
    perform(action, pointer);
    if (action?.cell || "probability" in (action ?? {})) showFigures();
  });

  // --- Keyboard -----------------------------------------------------------------------------------------------------

  function moveStop(by) {
    const stops = stopsOf(scene);
    stop.index = Math.max(
      0,
      Math.min(stops.length - 1, stop.isVisible ? stop.index + by : stop.index),
    );
    stop.isVisible = true;
    redraw(POINTING);
  }

  function moveRow(by) {
    const current = stopsOf(scene)[stop.index];
    stop.isVisible = true;
    if (layout.depth === 2 && current?.id.startsWith("column.")) {
      const rows = layout[current.side].filter((row) => !row.isOthers),
        at = rows.findIndex((row) => row.at[0] === view.cell?.[1]),
        next =
          rows[
            Math.max(
              0,
              Math.min(rows.length - 1, at < 0 ? (by > 0 ? 0 : rows.length - 1) : at + by),
            )
          ];
      return show(view.open, [view.query, next.at[0]]);
    }
    const side = current?.side ?? "decoder",
      rows = layout[side],
      active = scene.active(side),
      at = rows.indexOf(active),
      next = rows[Math.max(0, Math.min(rows.length - 1, at < 0 ? 0 : at + by))];
    if (side === "decoder") return setStep(next.at[1] - 1);
    word = next.at[1] - 1;
    redraw(MOVING);
  }

  picture.addEventListener("keydown", (event) => {
    if (hasModifier(event) || !scene) return;
    const along = layout.tall ? ["ArrowUp", "ArrowDown"] : ["ArrowLeft", "ArrowRight"],
      across = layout.tall ? ["ArrowLeft", "ArrowRight"] : ["ArrowUp", "ArrowDown"];
    const { key } = event;
    if (along.includes(key)) moveStop(key === along[0] ? -1 : 1);
    else if (across.includes(key)) moveRow(key === across[0] ? -1 : 1);
    else if (key === "Enter") {
      const current = stopsOf(scene)[stop.index];
      stop.isVisible = true;
      perform(current?.action, null);
      const start = stopsOf(scene).findIndex(({ starts }) => starts);
      if (start >= 0) stop.index = start;
    } else if (key === "Escape" && (view.open || follow)) {
      const { stage, sub, head } = view.open ?? {};
      goUp();
      const closed = head === null ? stage : `${stage}.${sub}.h${head}`,
        index = stopsOf(scene).findIndex(({ id }) => id === closed);
      if (index >= 0) stop.index = index;
    } else if (key === "p" || key === "P") (timer === null ? play : pause)();
    else return;
    event.preventDefault();
    event.stopPropagation();
    announce();
  });

  // Say in the status line where the keyboard is.
  function announce() {
    const current = stopsOf(scene)[stop.index];
    if (current) status.textContent = beat === null ? current.say(scene) : scene.beats[beat]?.text;
  }

  // An answer of the server has arrived.
  function arrived() {
    redraw(POINTING);
    if (stop.isVisible && scene) announce();
  }

  // --- Its life -------------------------------------------------------------------------------------------------------

  const isVisible = onVisible(picture, () => {
    displayed = null;
    redraw(0);
  });
  const endTheme = onThemeChange(() => {
    painter.readColours();
    redraw(0);
  });
  let drawnWidth = 0;
  const observer = new ResizeObserver(() => {
    if (picture.clientWidth === drawnWidth || !picture.clientWidth) return;
    drawnWidth = picture.clientWidth;
    redraw(0);
  });
  observer.observe(picture);
  endLast = () => {
    isOver = true;
    for (const end of endFollowers) end();
    pause();
    endTheme();
    observer.disconnect();
    cancelAnimationFrame(request);
  };

  followPlace();
  update();

  return {
    // A presentation enlarges the picture to its space, so a wide one is laid out as on a wide page.
    fit(space) {
      const width = space && Math.max(PRESENTED, Math.floor(space.width));
      room = space && { width, height: Math.max(400, (space.height * width) / space.width - 150) };
      picture.style.width = room ? `${room.width}px` : "";
      displayed = null;
      redraw(0);
    },
    move: (down, right) => (down ? moveRow(down) : moveStop(right)),
    // The picture as an image, for copying.
    image() {
      const { width, height } = painter.size,
        ratio = painter.ratio;
      painter.resize(width, height, 2);
      painter.draw(transition.items);
      const href = canvas.toDataURL("image/png");
      painter.resize(width, height, ratio);
      painter.draw(transition.items);
      return { href, width, height };
    },
  };
}
