// The attention explorer: builds its parts, draws them, remembers translations, and handles what a person does and what the
// server answers.
import { ask as askServer } from "../core/ask.js";
import { lineDash } from "../core/colours.js";
import { button, debounce, el, onThemeChange, setText, showInvitation } from "../core/dom.js";
import { KINDS } from "../core/kinds.js";
import { textParts, toText, say, t } from "../core/language.js";
import { explorerMaps, openLink, tabOpeners, pageLink, tabLinks } from "../core/links.js";
import { markTerms } from "../lab/glossary.js";
import { createPicture } from "../picture/copy.js";
import { pin as pinToken } from "../store/question.js";
import { store } from "../store/store.js";
import { returnToTranslation, translateLink } from "../store/translation.js";
import { createCut, createExports, viewSvg } from "./actions.js";
import { createControls } from "./controls.js";
import { createDemo } from "./demo.js";
import { createHelp, listenKeys } from "./keyboard.js";
import { cellsOf, headsThatLook, isNone, litWeights, verdictOf } from "./lit.js";
import { createMaps } from "./maps.js";
import * as model from "./model.js";
import * as states from "./state.js";
import { createPlayer } from "./sound.js";
import { createTest } from "./test.js";
import { Trace } from "./trace.js";
import { createAnswer } from "./views/answer.js";
import { createThumbnails } from "./views/atlas.js";
import { createCards } from "./views/cards.js";
import { createChips, createSlots } from "./views/chips.js";
import { NONE } from "./views/frame.js";
import { createSentence } from "./views/sentence.js";
import * as colouring from "./views/scale.js";
import { createTree } from "./views/tree.js";
import { createViews } from "./views/views.js";
import * as words from "./words.js";

const WAIT_MESSAGE_DELAY = 150; // milliseconds before a missing map is replaced by a message: most arrive sooner
const CARDS_DELAY = 60; // milliseconds: the map is painted first
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
  // map: its map, or null; refused: why there is no map. preview: the head under the pointer, [layer, head], or null;
  // headColours: "layer.head" -> colour of each chosen head; hover, last: the word that is pointed at, and was last.
  const scene = {
    state: states.initialState(),
    traces: [],
    trace: null,
    map: null,
    refused: null,
    overlays,
    preview: null,
    headColours: new Map(),
    hover: null,
    last: NONE,
  };

  // --- its parts --------------------------------------------------------------------------------------------------
  // The parts call each other. A callback may name a part that is created further down: it runs later.
  const guide = el("p", { class: "guide" }),
    heading = el("h2", { class: "heading-line" }),
    errorTag = el("span", { class: "tag" }),
    decoded = el("span", { class: "decoded" }),
    pattern = el("span", { class: "pattern" }),
    names = el("span", { class: "names" }),
    reading = el("p", { class: "reading" }),
    said = el("p", { class: "said" }),
    share = el("span", { class: "share" }),
    pieces = button("", () => update(states.togglePieces(scene.state)), { class: "link pieces" }),
    status = el("p", { class: "status", role: "status" }),
    summary = el("p", { class: "sr-only", "aria-live": "polite" }),
    news = el("p", { class: "sr-only", role: "status" }), // of the lit word
    legend = el("div", { class: "legend" }),
    tip = el("p", { class: "tip" });
  const maps = createMaps({ scene, ask, isPointed, show: showPart, tell });
  const controls = createControls(overlays, update, (key) => {
    scene.trace = traceByKey(key);
    open(scene.state);
  });
  const openHead = (layer, head) => update({ layer, head, heads: [], combine: "single" });
  const thumbnails = createThumbnails({
    select: openHead,
    toggle: toggleHeads,
    hover: describeHead,
    preview,
  });
  const chips = createChips(toggleHeads);
  let slots = null; // numbers of the chosen heads' colours
  const views = createViews({
    scene,
    ...maps,
    root,
    hover: describeCell,
    pin: (row, column) => scene.map && pin(scene.map, row, column),
    play: playRow,
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
  const test = createTest({ ask, able: isInApp, draw: drawLit });
  const pointByHand = (at) => {
    demo.stop();
    point(at);
    if (sentence.root.contains(document.activeElement)) tellLit();
  };
  const sentence = createSentence({
      point: pointByHand,
      pin: pinWord,
      test: testWord,
      letGo,
      switchWidth: () => controls.lines.offsetWidth && controls.lines.offsetWidth + 8,
    }),
    lines = createPicture(sentence.root, {
      ...pictureOptions,
      name: t("What each word attends to"),
    });
  const answer = createAnswer({ test: testWord, openHead, why: askWhy, play: () => demo.play() });
  const cards = createCards(openFromCard);
  const demo = createDemo({
    rows: () => demoRows(),
    measure: (row) => test.measure(scene.trace, scene.wordMap, row),
    surprising,
    light: (row) => point({ ...NONE, row }),
    async test() {
      scene.hover = null;
      await testWord();
      const { row } = litAt(),
        result = testOf()?.verdict;
      return result && result.most !== null ? lookingHeads(row, result.most).slice(0, 3) : [];
    },
    preview: (pair) => preview(pair && pair.slice(0, 2)),
    prepare() {
      update({ kind: "cross", heads: [], combine: "single", query: null, key: null });
    },
  });
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
  const player = createPlayer();
  const tree = createTree({ scene, ...maps, show: showHead, play });
  const about = el("details", { class: "about" }, [
    el("summary", {}, t("About this head")),
    el("p", {}, pattern, names),
    el("p", {}, decoded),
  ]);
  const section = (name, label, children) =>
    el("section", { class: name, "aria-label": label }, children);
  const title = (text) => el("h2", { class: "sr-only" }, text);
  const parts = [
    el("div", { class: "panes" }, [
      section("reader", t("What each word attends to"), [
        title(t("What each word attends to")),
        el("div", { class: "switched" }, controls.lines, lines),
        sentence.note,
      ]),
      answer.root,
      section("atlas-pane", t("All heads"), [
        title(t("All heads")),
        el("div", { class: "bar" }, controls.kind),
        headsPicture,
        tip,
        tree.root,
      ]),
      section("detail-pane", t("Selected head"), [
        el("div", { class: "detail-head" }, [
          el("div", { class: "titles" }, heading, errorTag, about),
          controls.view,
        ]),
        el("div", { class: "tools" }, [
          chips.root,
          el("details", { class: "view-options" }, [
            el("summary", {}, t("View options")),
            controls.options,
          ]),
        ]),
        reading,
        said,
        viewPicture,
        el("p", { class: "under" }, share, " ", pieces),
        status,
        guide,
        cut.root,
      ]),
    ]),
    isInApp && cards.root,
    el("div", { class: "actions" }, exports, help.button),
    summary,
    news,
    help.root,
  ];
  const acts = { update, step, toggleHeads, test: testWord, letGo, hush: player.stop };
  listenKeys(root, { scene, acts, thumbnails, views, help });

  // --- what is drawn ----------------------------------------------------------------------------------------------
  let waitTimer = null;

  // Over hundreds of tokens the mean weight is close to 0: a linear scale would show a dark square.
  const tonedState = () =>
    shownKind().large && scene.state.transform === "linear"
      ? { ...shownState(), transform: "sqrt" }
      : shownState();
  const overlayOf = () => states.overlayOf(shownState(), overlays);

  // Return the state that is drawn: of the head under the pointer, if there is one.
  function shownState() {
    const { state, preview } = scene;
    if (!preview) return state;
    const [layer, head] = preview;
    return { ...state, layer, head, heads: [], combine: "single", overlay: "", lines: "head" };
  }

  // Draw the scene. before: the state drawn last, or null to draw everything. Thumbnails and legend are
  // drawn only if their kind, scale or colours differ from those of `before`. The same state draws the
  // map for a new width.
  function draw(before = null) {
    const { trace } = scene,
      state = shownState(),
      overlay = overlayOf(),
      found = maps.mapOf(trace, state);
    const map = (scene.map = found?.refused ? null : found);
    scene.refused = map ? null : (found?.refused ?? trace.left_out ?? null);
    colourHeads();
    controls.show({ ...tonedState(), view: scene.state.view }, map);
    drawHeading(state, overlay);
    decoded.textContent = [
      t("Decoding: {how}.", { how: trace.decoding }),
      trace.beyond && toText(trace.beyond),
      trace.attention_only && t("Attention only: this model runs elsewhere."),
    ]
      .filter(Boolean)
      .join(" ");
    const waits = overlay ? t("Computing …") : t("Loading this layer…");
    read(map ? words.mapReading(state, map, overlay) : scene.refused ? "" : waits);
    drawPieces(state, map);
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
      !before ||
      ["kind", "transform", "colours", "words", "special", "predicted"].some(
        (name) => before[name] !== state[name],
      );
    if (repaint) drawThumbnails();
    else if (before.overlay !== state.overlay) describeHead(null);
    thumbnails.select(scene.state, scene.headColours);
    chips.draw(shownState(), trace.kinds[state.kind], scene.headColours);
    drawSentence();
    guide.textContent = words.viewGuide(state, overlay);
    showPinned();
    if (map)
      scene.state = {
        ...scene.state,
        beside: state.view === "compare" ? views.compare.referenceText() : "",
      };
    maps.askAhead();
    tree.draw();
    summarise();
  }

  // Give each chosen head its colour; one head alone has the accent.
  function colourHeads() {
    const { state, trace } = scene,
      { heads } = state,
      colours = trace.colours.heads;
    slots ??= createSlots(colours.length);
    const own = slots(heads);
    scene.headColours = new Map(
      heads.length > 1 ? heads.map((pair, i) => [pair.join("."), colours[own[i]]]) : [],
    );
  }

  function drawHeading(state, overlay) {
    const { trace } = scene,
      used = model.usedHeads(trace, states.viewOf(state)),
      isOne = used.length === 1 && !overlay && state.heads.length < 2;
    heading.textContent = words.mapHeading(state, used, overlay);
    about.hidden = !isOne;
    const [layer, head] = used[0],
      { errors = null, opens } = (state.kind === "cross" && trace.alignment) || {};
    errorTag.hidden = !isOne || !errors;
    if (!errorTag.hidden) {
      const isBest = opens.join() === used[0].join(),
        figure = { share: `${errors[layer][head].toFixed(1)}%` },
        error = isBest
          ? t("lowest alignment error: {share}", figure)
          : t("alignment error {share}", figure);
      errorTag.replaceChildren(...markTerms(error));
      errorTag.title = t(
        "How many links this head gets wrong, of words that people linked in {n} sentences. Lower is better.",
        { n: trace.alignment.sentences },
      );
    }
    if (!isOne) return;
    pattern.replaceChildren(...markTerms(words.headReading({ ...state, layer, head }, trace)));
    const habits = words.headNames(trace, state.kind, layer, head);
    names.textContent = habits && `; ${habits}`;
  }

  function drawPieces(state, map) {
    share.textContent = map && !overlayOf() ? words.hiddenShare(state, map) : "";
    pieces.hidden = shownKind().large;
    pieces.textContent = states.showsPieces(state)
      ? t("Show whole words")
      : t("Show the model's pieces");
  }

  const summarise = debounce(() => {
    const { state, trace, map } = scene,
      used = model.usedHeads(trace, states.viewOf(state));
    if (map) summary.textContent = words.mapSummary(state, trace, map, used, overlayOf());
  }, SUMMARY_DELAY);

  const read = (text) => reading.replaceChildren(...markTerms(text));

  // --- the lit word -----------------------------------------------------------------------------------------------
  // Return the view of whole words of the sentences' lines.
  const lineView = (state) => ({
    ...states.viewOf({ ...state, overlay: "", heads: [], combine: "single" }),
    words: true,
    special: "hide",
    predicted: state.kind !== "decoder_self",
  });

  // Return the layers of the lines, [{map, colour, dash}]; null while a map is missing.
  function lineLayers(state) {
    const { trace } = scene,
      view = lineView(state),
      accent = "var(--atlas-accent)";
    const layerOf = (pair, colour, more = {}) => {
      const [layer, head] = pair,
        own = { ...view, layer, head, ...more };
      return model.missingLayers(trace, own).length
        ? null
        : { map: model.scoreMap(trace, own), colour, dash: lineDash(trace.colours, colour) };
    };
    if (state.lines === "alignment" && state.kind === "cross") {
      const linking = trace.alignment.linked_by.map(([layer, head, row]) =>
        layerOf([layer, head], accent, { predicted: row === "predicted" }),
      );
      if (linking.includes(null)) return null;
      const map = meanOf(linking),
        { rows } = model.scoreMap(trace, {
          ...view,
          layer: trace.alignment.linked_by[0][0],
          head: 0,
        });
      return [{ map: { ...map, rows: rows.slice(0, map.rows.length) }, colour: accent }]; // rows by the word written
    }
    const heads = state.heads.length > 1 ? state.heads : [[state.layer, state.head]];
    const layers = heads.map((pair) =>
      layerOf(pair, scene.headColours.get(pair.join(".")) ?? accent),
    );
    return layers.includes(null) ? null : layers;
  }

  // Return the mean of maps of words. A map by the word read may lack the last row.
  function meanOf(layers) {
    const maps = layers.map(({ map }) => map);
    if (maps.length === 1) return maps[0];
    const most = maps.reduce((a, b) => (b.rows.length > a.rows.length ? b : a)),
      values = Float64Array.from(most.values, (_, i) => {
        const known = maps.map((map) => map.values[i]).filter((value) => value >= 0);
        return known.reduce((sum, value) => sum + value, 0) / known.length;
      });
    return { ...most, values };
  }

  function drawSentence() {
    const { trace } = scene,
      state = shownState();
    lines.hidden = trace.kinds[state.kind].large;
    root.classList.toggle("lineless", lines.hidden);
    controls.lines.hidden =
      lines.hidden || state.kind !== "cross" || !trace.alignment?.linked_by.length;
    const layers = lines.hidden ? null : lineLayers(state); // a large map's words would fill a hundred lines
    answer.root.hidden = said.hidden = lines.hidden;
    if (!layers) return; // drawn when the layers arrive
    const source = model.plainWords(trace.tokens.source),
      target = model.plainWords(trace.tokens.predicted),
      [from, to] = (trace.direction ?? "").split("-"),
      isGlossed = (code) =>
        trace.glosses &&
        (state.glosses === "all" ||
          (state.glosses === "foreign" && !code.startsWith(document.documentElement.lang))),
      of = (list, side) => list.map(({ positions }) => trace.glosses[side][positions[0]] ?? "");
    scene.wordMap = meanOf(layers);
    sentence.draw({
      kind: state.kind,
      map: scene.wordMap,
      layers,
      source,
      target,
      direction: trace.direction,
      glosses: {
        source: isGlossed(from) ? of(source, "source") : null,
        target: isGlossed(to) ? of(target, "target") : null,
      },
      at: litAt(),
      test: testOf(),
      canTest: canTest(),
    });
  }

  // Return the lit {row, column} of the sentences' map.
  function litAt() {
    const { hover, last, wordMap, trace, state } = scene,
      pinned = wordMap ? states.pinnedCells(state, wordMap, trace) : NONE,
      { row, column } = pinned;
    const at = hover ?? (row !== null ? { ...NONE, row } : column !== null ? pinned : last);
    return litWeights(wordMap, at) ? at : NONE;
  }
  const canTest = () =>
    test.able && ["cross", "alignment"].includes(scene.state.kind) && !isUntested();
  const isUntested = () => scene.trace.attention_only || scene.state.kind === "alignment";
  // Return the test of the lit row, or null.
  function testOf() {
    const { row } = litAt();
    return row === null || !canTest() ? null : test.of(scene.trace, scene.wordMap, row);
  }

  function drawLit() {
    if (!scene.wordMap || lines.hidden) return;
    const { map, wordMap } = scene,
      state = shownState(),
      at = litAt(),
      lit = litWeights(wordMap, at),
      current = testOf(),
      result = current?.isRunning ? null : current?.verdict;
    sentence.light(at, current);
    setText(said, words.litReading(state, lit));
    const decisive = wordMap.columns[result?.most ?? -1] ?? null;
    if (map && !map.overlay && !map.joint && lit)
      views.light({
        rows: lit.isRow ? cellsOf(map.rows, lit.positions) : [],
        columns: lit.isRow ? [] : cellsOf(map.columns, lit.positions),
        decisive: decisive ? cellsOf(map.columns, decisive.positions) : [],
      });
    else views.light(null);
    const isFramed = thumbnails.light(lit, decisive);
    scene.decisive = isFramed ? decisive : null;
    describeHead(...(scene.preview ?? [null]));
    const { heads, layer, head } = state,
      place = { layer: layer + 1, head: head + 1 };
    answer.draw({
      lit,
      who:
        state.lines === "alignment" && state.kind === "cross"
          ? t("by the alignment heads")
          : heads.length > 1
            ? t("by {n} heads, their mean", { n: heads.length })
            : t("by layer {layer} · head {head}", place),
      isWriting: state.kind === "cross" || state.kind === "alignment",
      isSource: state.kind === "encoder_self",
      canTest: canTest(),
      canPlay: test.able && state.kind === "cross" && canTest(),
      test: current,
      testing:
        current?.isRunning && current.effects ? wordMap.columns[current.step - 1]?.label : "",
      effects: result ? current.effects : null,
      result,
      heads: decisive && result.most !== result.own ? lookingHeads(at.row, result.most) : [],
      problem: current?.error,
    });
    if (isInApp) drawCardsLater();
  }

  // Tell a screen reader of the lit word: the verdict of its test, or what it attends to.
  function tellLit() {
    if (!scene.wordMap) return;
    const lit = litWeights(scene.wordMap, litAt());
    news.textContent = answer.verdict() || (lit ? words.litReading(shownState(), lit) : "");
  }

  // Draw the cards, which are about the lit translated word and stand below the maps.
  const drawCardsLater = debounce(drawCards, CARDS_DELAY);
  function drawCards() {
    const { trace, state, wordMap } = scene,
      lit = litWeights(wordMap, litAt()),
      isTarget = lit?.isRow && KINDS[state.kind].rows === "target";
    if (isTarget) scene.about = lit.index;
    const target = model.plainWords(trace.tokens.predicted),
      row = Math.min(scene.about ?? 0, target.length - 1);
    if (row < 0 || !wordMap) return;
    const step = target[row].positions[0],
      token = store.state.translation?.target?.[step],
      plain = (text) => text.replaceAll("\u2581", "") || "␣",
      candidates = token ? [...new Map([[token.text, token.probability], ...token.others])] : [],
      isCross = KINDS[state.kind].rows === "target" && KINDS[state.kind].columns === "source",
      encoder =
        trace.kinds.encoder_self && !trace.kinds.encoder_self.large
          ? trace.weights.encoder_self
          : [],
      view = { ...lineView({ ...state, kind: "encoder_self" }), head: 0 };
    cards.draw({
      key: trace.key,
      word: target[row].label,
      source: model.plainWords(trace.tokens.source),
      written: target.slice(0, row).map(({ label }) => label),
      candidates: candidates.map(([text, p]) => [plain(text), p]).sort((a, b) => b[1] - a[1]),
      effects: isCross && wordMap.rows[row] ? test.effects(trace, wordMap, row) : null,
      maps: encoder.flatMap((weights, layer) =>
        weights ? [model.scoreMap(trace, { ...view, layer })] : [],
      ),
      weights: isCross
        ? (litWeights(wordMap, { ...NONE, row })?.items ?? []).map(({ weight }) => weight)
        : [],
      colours: trace.colours.scales.viridis,
    });
  }

  function openFromCard(tab) {
    const { trace, about } = scene,
      word = model.plainWords(trace.tokens.predicted)[about ?? 0];
    openLink(tab === "why" ? { tab, panel: "why-tokens" } : { tab });
    if (word && tab !== "inside") pinToken(word.positions[0]);
  }

  // Return the rows of translated words without punctuation.
  const demoRows = () =>
    [...(scene.wordMap?.rows ?? []).entries()]
      .filter(([, { label }]) => /[\p{L}\p{N}]/u.test(label))
      .map(([row]) => row);

  // Return the measured row whose decisive word is another one than the word it looked at, and costs most; or null.
  function surprising() {
    const { trace, wordMap } = scene;
    const [best = null] = demoRows()
      .map((row) => {
        const effects = test.effects(trace, wordMap, row),
          result = effects && verdictOf(effects, litWeights(wordMap, { ...NONE, row }));
        return [
          row,
          result && result.most !== null && result.agrees !== "yes"
            ? effects.all[result.most].loss
            : 0,
        ];
      })
      .filter(([, loss]) => loss > 0)
      .sort((a, b) => b[1] - a[1]);
    return best && best[0];
  }

  // Return the heads of this kind that attend most to a column in a row.
  function lookingHeads(row, column) {
    const { trace, state } = scene,
      { layers } = trace.kinds[state.kind],
      loaded = Array.from({ length: layers }, (_, layer) => layer).filter(
        (layer) => trace.weights[state.kind][layer],
      );
    const all = loaded
      .flatMap((layer) => model.headsOfLayer(trace, state.kind, layer))
      .map(([layer, head]) => [
        layer,
        head,
        model.scoreMap(trace, { ...lineView(state), layer, head }),
      ]);
    return headsThatLook(all, row, column);
  }

  // Light a word while it is pointed at; it stays lit until another one is.
  function point(at) {
    if (isNone(at) && !scene.hover) return;
    scene.hover = isNone(at) ? null : at;
    if (scene.hover) scene.last = at;
    drawLit();
  }

  function pinWord(at) {
    if (isNone(at)) return;
    scene.last = at;
    pin(scene.wordMap, at.row, at.column);
  }

  // Let go of the lit word, and end its test.
  function letGo() {
    test.stop();
    demo.stop();
    Object.assign(scene, { hover: null, last: NONE });
    if (scene.state.query !== null || scene.state.key !== null)
      setState({ ...scene.state, query: null, key: null });
    showPinned();
  }

  async function testWord() {
    const { row } = litAt();
    if (row === null || !canTest()) return;
    scene.last = { ...NONE, row };
    const hadFocus = document.activeElement?.matches(".test-it"),
      { scrollY: before } = window;
    news.textContent = t("Hiding one word after the other …");
    await test.run(scene.trace, scene.wordMap, row);
    tellLit();
    // On a phone the end of the answer is below the window.
    if (testOf()?.verdict && window.scrollY === before)
      answer.root.scrollIntoView({ block: "nearest" });
    if (hadFocus && document.activeElement === document.body) sentence.focusLit();
  }

  function askWhy() {
    const { row } = litAt();
    if (row !== null) pinToken(scene.wordMap.rows[row].positions[0]);
    openLink({ tab: "why", panel: "why-tokens" });
  }

  // Draw the head under the pointer; null: the selected one again.
  function preview(pair) {
    const { trace, state } = scene;
    const isPossible =
      pair && trace.weights[state.kind][pair[0]] && state.view !== "compare" && !shownKind().large;
    const next = isPossible ? pair : null;
    if (next?.join() === scene.preview?.join()) return;
    scene.preview = next;
    thumbnails.preview(next);
    draw(scene.state);
  }

  function drawThumbnails() {
    const { state, trace } = scene,
      colours = colouring.chosenColours(state, trace.colours),
      palette = colouring.createPalette(colours, tonedState().transform, 1),
      { texts, places } = palette.ticks;
    thumbnails.draw(trace, state, palette);
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
    thumbnails.select(scene.state, scene.headColours);
    drawHeading(scene.state, overlayOf());
  }

  // Describe a head below the thumbnails; without one, the thumbnails.
  function describeHead(layer, head) {
    const { decisive } = scene,
      text =
        layer !== null
          ? words.headLabel(scene.trace, scene.state.kind, layer, head)
          : decisive
            ? t("Orange frames: “{word}”, the word that matters most here.", {
                word: decisive.label,
              })
            : words.thumbnailsTip(overlayOf());
    setText(tip, text);
  }

  const pointing = (row, column) =>
    words.describeCell(scene.map, row, column, scene.trace, scene.state);

  // Describe a cell, a row or a column of the map; without one, what is pinned.
  function describeCell(row, column) {
    if (row === null && column === null) {
      scene.hover = null;
      return showPinned();
    }
    if (!scene.map) return;
    status.replaceChildren(...pointing(row, column));
    lightCell(row, column);
  }

  // Light the word of the row that is pointed at in the map; of a column, if only that is.
  function lightCell(row, column) {
    const { map, wordMap } = scene;
    if (!wordMap || lines.hidden || map.overlay || map.joint) return;
    const [name, items, at] = row !== null ? ["row", "rows", row] : ["column", "columns", column];
    const [word = null] = cellsOf(wordMap[items], map[items][at].positions);
    scene.hover = word === null ? null : { ...NONE, [name]: word };
    drawLit();
  }

  function showPinned() {
    const { state, trace, map, refused } = scene;
    cut.follow();
    drawLit();
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
    scene.preview = null;
    store.set({ selection: states.selectionOf(state) });
  }

  // Open a state. before: the state drawn last, see draw().
  function open(state, before = null) {
    setState(states.fitState(state, scene.trace, overlays));
    if (before && before.kind !== scene.state.kind) forgetLit(before.kind);
    draw(before);
  }

  // Another kind of attention has other rows and columns: a lit row stays if it is of the same sentence.
  function forgetLit(kind) {
    test.stop();
    scene.hover = null;
    const isSameRows = KINDS[kind].rows === KINDS[scene.state.kind].rows;
    scene.last = isSameRows ? { ...NONE, row: scene.last.row } : NONE;
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

  // Show a head {kind, layer, head}, and pin {map, row, column}, unless that is null.
  function showHead(head, pinned) {
    const alone = { ...head, heads: [], combine: "single", overlay: "" },
      isShown = ([name, value]) => String(scene.state[name]) === String(value);
    if (!Object.entries(alone).every(isShown)) update(alone);
    if (!pinned) return;
    const { map, ...place } = pinned,
      unpinned = { ...scene.state, query: null, key: null };
    setState(states.togglePin(unpinned, map, scene.trace, place));
    showPinned();
  }

  // Play weights, 0 to 1, as sound.
  function play(weights) {
    if (!player.play(weights)) tell(t("This browser plays no sound."));
  }

  // Play a row of a map.
  function playRow({ values, columns, range }, row) {
    const width = columns.length,
      largest = range?.[1] ?? 1;
    play(
      Array.from(
        values.subarray(row * width, (row + 1) * width),
        (value) => Math.abs(value) / largest,
      ),
    );
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
    tree.draw();
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

  const isOpening = ({ kind, layer, head }, { alignment }) =>
    kind === "cross" && alignment?.opens?.join() === `${layer},${head}`;

  // Receive a translation and show it, or {invitation}: words to show while nothing is translated. linkState: the state to
  // open, if a link asked for the translation.
  async function receive(payload, linkState) {
    const { invitation = null } = payload;
    const { trace: before, state } = scene;
    if (!invitation) scene.trace = traceByKey(payload.key) ?? (await Trace.from(payload));
    if (!help.root.isConnected) root.replaceChildren(...parts.filter(Boolean)); // they replace the empty frame
    showInvitation(root, invitation);
    if (invitation) return;
    remember(scene.trace);
    const { selection, link } = payload;
    if (link) scene.state = states.parseFragment(link).state; // an exported file opens with the state it was made in
    if (before !== scene.trace) {
      test.stop();
      Object.assign(scene, {
        hover: null,
        last: NONE,
        wordMap: null,
        preview: null,
        about: null,
        decisive: null,
      });
      player.stop();
    }
    // A head that nobody chose gives way to the one that another model opens with.
    const isOther =
      before && ["direction", "checkpoint"].some((name) => before[name] !== scene.trace[name]);
    const isUnchosen = isOther && isOpening(state, before);
    const chosen = isUnchosen ? { ...scene.state, layer: null, head: null } : scene.state;
    open(linkState ?? { ...chosen, ...selection });
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
  new ResizeObserver(
    debounce(() => {
      // Only a new width requires drawing: the height follows the content.
      if (scene.trace && views.root.clientWidth !== views.drawnWidth()) draw(scene.state);
    }, 80),
  ).observe(views.root);
  window.addEventListener("hashchange", followLink);
  const first = api.value();
  if (first.address) store.set({ address: first.address });
  for (const value of [first, ...(api.later ?? [])]) receiveNext(value); // an exported file may have several
  lastReceipt.then(followLink).then(() => isInApp && scene.trace && demo.greet());
}
