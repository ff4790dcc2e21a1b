// The sentence and its translation with lines between their words: who attends to whom. Words never move: cross-attention runs
// between the two, self-attention hangs as arcs on one of them. On a narrow page the sentences stand side by side.
import { button, el, setText, svg } from "../../core/dom.js";
import { formatPercent } from "../../core/format.js";
import { KINDS } from "../../core/kinds.js";
import { arrowStep, clamp } from "../../core/keys.js";
import { t } from "../../core/language.js";
import { createScrollBox } from "../../lab/scroll.js";
import { FAINT, litWeights, looked } from "../lit.js";
import { pointingHint } from "../words.js";
import { NONE } from "./frame.js";

const SIZES = [20, 19, 17.5, 16, 14.5, 13], // pixels of type; a longer sentence scrolls
  MOST_UPRIGHT = 14, // words of a sentence that stands upright
  REST = { across: 50, down: 240 }, // milliseconds that the pointer rests on a word to light it
  SLIGHT = 0.3; // nats: smaller losses are pale
const narrow = matchMedia("(max-width: 640px)");

const clampTo = (value, least, most) => Math.max(least, Math.min(value, most));

const languageName = (code, otherwise) => {
  try {
    const { lang } = document.documentElement;
    return (
      new Intl.DisplayNames(lang, { type: "language", fallback: "none" }).of(code) ?? otherwise
    );
  } catch {
    return otherwise; // not a language's code
  }
};

/**
 * Create the sentences.
 * @param {any} hooks point(at, side): a word is pointed at, null on leaving; pin(at): a word is clicked; test(): the lit word is
 *   tested; letGo(): Escape; switchWidth(): pixels of the switch at the left of the bubble, 0 while it is hidden
 */
export function createSentence(hooks) {
  const lines = svg("svg", { class: "lines", "aria-hidden": "true" }),
    rowNames = el("div", { class: "row-names", "aria-hidden": "true" }, [
      el("span", { class: "without" }),
      el("span", { class: "looked" }),
    ]),
    bubble = el("div", { class: "bubble" });
  const createSide = (side) => {
    const name = el("span", { class: "name" }),
      words = el("div", { class: "words", role: "group" });
    return { name, words, nodes: [], root: el("div", { class: `side ${side}` }, name, words) };
  };
  const sides = { source: createSide("source"), target: createSide("target") };
  const sheet = el("div", { class: "sheet" }, [
    rowNames,
    sides.source.root,
    el("div", { class: "band" }),
    sides.target.root,
    bubble,
    lines,
  ]);
  const scroller = createScrollBox(sheet, { tabindex: null, role: null }); // its words take the focus
  const glossNote = el("p", { class: "caption guess", hidden: true }, [
    t(
      "Below each word: its counterpart by the model's links. A guess, shown only where the alignment heads agree in both directions.",
    ),
  ]);
  const root = el("div", { class: "sentence-lines" }, scroller);
  const places = { source: [], target: [] };
  let scene = null, // what draw() got
    drawnLines = [], // {row, column, path} of each line
    shownWords = "", // the words on the page, as JSON
    room = "", // sizes that the words were laid out for
    isUpright = false,
    resting = null,
    placing = 0, // request of the frame that places the bubble
    isDown = false, // whether the pointer moves down, on its way to the bubble or to the map
    before = [0, 0];

  const rowSide = () => KINDS[scene.kind].rows,
    columnSide = () => KINDS[scene.kind].columns;
  // Return the cell of the map that a word stands for, or null if this kind has none.
  function cellOf(side, index) {
    if (side === rowSide() && scene.map.rows[index]) return { ...NONE, row: index };
    if (side === columnSide() && scene.map.columns[index]) return { ...NONE, column: index };
    return null;
  }

  // --- words --------------------------------------------------------------------------------------------------------
  function point(at) {
    clearTimeout(resting);
    const rest = isDown ? REST.down : REST.across,
      wait = litWeights(scene.map, scene.at) ? rest : 0;
    resting = setTimeout(hooks.point, wait, at);
  }
  sheet.addEventListener(
    "pointermove",
    ({ clientX, clientY }) => {
      const [across, down] = [clientX - before[0], clientY - before[1]];
      if (Math.hypot(across, down) < 3) return;
      before = [clientX, clientY];
      isDown = down > Math.abs(across) / 4;
    },
    { passive: true },
  );
  sheet.addEventListener("pointerleave", () => {
    clearTimeout(resting);
    hooks.point(null);
  });

  // gloss: what the word became; "" if the model links it with none; null: without glosses
  function createWord(side, index, label, gloss, lang) {
    const badge = el("span", { class: "badge", "aria-hidden": "true" }),
      without = el("span", { class: "badge without", "aria-hidden": "true" }),
      below = gloss === null ? null : el("bdi", { class: "gloss" }, gloss || "\u00a0"),
      name = t("{word}, from the model's links: {gloss}", { word: label, gloss });
    const node = button(el("bdi", {}, label), () => hooks.pin(cellOf(side, index)), {
      class: "word",
      tabindex: "-1",
      lang,
      "data-side": side,
      "data-index": index,
      "aria-label": gloss ? name : null,
      onpointerenter: ({ pointerType }) => pointerType !== "touch" && point(cellOf(side, index)),
      onpointerleave: () => clearTimeout(resting),
      onfocus: () => node.matches(":focus-visible") && hooks.point(cellOf(side, index)),
      onblur: () => hooks.point(null),
    });
    const parts = side === "source" ? [without, badge, below, node] : [node, below, badge];
    return { node, badge, without, slot: el("span", { class: "slot" }, parts) };
  }

  // The language of a code such as "de" or "deu_Latn", for the lang attribute; null if it is not a language's code.
  const languageTag = (code) => /^[a-z]{2,3}(?=$|[_-])/.exec(code ?? "")?.[0] ?? null;

  function fillSide(side, words, glosses, code) {
    const { name, words: box } = sides[side],
      isSource = side === "source",
      title = languageName(code, isSource ? t("Sentence") : t("Translation"));
    const guess = glosses
      ? el("span", { class: "gloss", title: glossNote.textContent }, t("a guess"))
      : "";
    name.replaceChildren(...(isSource ? [guess, title] : [title, guess]));
    box.ariaLabel = title;
    sides[side].nodes = words.map(({ label }, i) =>
      createWord(side, i, label, glosses?.[i] ?? null, languageTag(code)),
    );
    box.replaceChildren(...sides[side].nodes.map(({ slot }) => slot));
    if (sides[side].nodes.length) sides[side].nodes[0].node.tabIndex = 0;
  }

  // Return where lines end at a word: at its side that faces the other sentence.
  function anchorOf(
    { offsetLeft: x, offsetTop: y, offsetWidth: width, offsetHeight: height },
    isFirst,
  ) {
    return isUpright
      ? { x: isFirst ? x + width + 3 : x - 3, y: y + height / 2 }
      : { x: x + width / 2, y: isFirst ? y + height + 1 : y - 1 };
  }

  const sizes = () => `${scroller.clientWidth} ${sheet.offsetWidth} ${narrow.matches}`;

  // Lay out the words in the largest type in which they fit; else they scroll. Called only when they or their room change,
  // because it delays a frame.
  function layOutWords() {
    const both = Object.values(sides);
    isUpright = narrow.matches && both.every(({ nodes }) => nodes.length <= MOST_UPRIGHT);
    root.classList.toggle("upright", isUpright);
    sheet.classList.remove("wide");
    const isWide = () => sheet.offsetWidth > scroller.clientWidth + 1;
    for (const size of isUpright ? [16] : SIZES) {
      sheet.style.setProperty("--size", `${size}px`);
      if (!isWide()) break;
    }
    sheet.classList.toggle("wide", isWide());
    lines.style.setProperty("--width", `${sheet.offsetWidth}px`);
    for (const [side, { nodes }] of Object.entries(sides))
      places[side] = nodes.map(({ node }) => anchorOf(node, side === "source"));
    room = sizes();
  }

  // In the next frame: resizing inside a ResizeObserver is an error.
  const watch = new ResizeObserver(() =>
    requestAnimationFrame(() => {
      if (!scene || !root.offsetParent || sizes() === room) return;
      layOutWords();
      drawLines();
      show();
    }),
  );
  for (const node of [scroller, sheet]) watch.observe(node);

  // --- lines --------------------------------------------------------------------------------------------------------
  function curve(from, to) {
    const isArc = rowSide() === columnSide(),
      [along, across] = isUpright ? ["y", "x"] : ["x", "y"];
    const distance = Math.abs(from[along] - to[along]),
      way = rowSide() === "source" ? 1 : -1,
      reach = isUpright ? Math.min(76, 12 + distance * 0.55) : Math.min(76, 14 + distance * 0.34);
    const bend = (place) => {
      const [at, end] = [place[along], place[across]],
        turn = isArc ? end + way * reach : (from[across] + to[across]) / 2;
      return isUpright ? `${turn} ${at}` : `${at} ${turn}`;
    };
    return `M${from.x} ${from.y}C${bend(from)} ${bend(to)} ${to.x} ${to.y}`;
  }

  // layers: [{map, colour, dash}], a map for each head that has its own lines
  function drawLines() {
    const { layers } = scene,
      isArc = rowSide() === columnSide(),
      thinning = layers.length > 1 ? 1.6 : 1;
    drawnLines = [];
    const groups = layers.map(({ map, colour, dash }, i) => {
      const shift = (i - (layers.length - 1) / 2) * 3,
        move = ({ x, y }) => (isUpright ? { x, y: y + shift } : { x: x + shift, y }),
        group = svg("g", { stroke: colour, "stroke-dasharray": dash });
      map.rows.forEach((_, row) =>
        map.columns.forEach((_, column) => {
          const weight = map.values[row * map.columns.length + column],
            [from, to] = [places[columnSide()][column], places[rowSide()][row]];
          if (!(weight >= FAINT) || (isArc && row === column) || !from || !to) return;
          const path = svg("path", {
            d: curve(move(from), move(to)),
            "stroke-width": ((1 + 5.5 * weight) / thinning).toFixed(2),
            "stroke-opacity": (0.25 + 0.65 * weight).toFixed(2),
          });
          drawnLines.push({ row, column, path });
          group.append(path);
        }),
      );
      return group;
    });
    lines.replaceChildren(...groups);
  }

  // --- the lit word -------------------------------------------------------------------------------------------------
  // Show which word is lit, what it attends to, and how far its test is.
  function show() {
    const { map, at, test } = scene,
      lit = litWeights(map, at);
    const [own, others] = lit?.isRow ? [rowSide(), columnSide()] : [columnSide(), rowSide()];
    for (const [side, { nodes }] of Object.entries(sides))
      nodes.forEach(({ node, badge, without, slot }, i) => {
        const isLit = Boolean(lit) && side === own && lit.index === i,
          weight = lit && side === others ? (lit.items[i]?.weight ?? 0) : 0,
          isSeen = weight >= FAINT;
        node.classList.toggle("chosen", isLit);
        node.classList.toggle("looked", isSeen && !isLit);
        if (isSeen) node.style.setProperty("--p", weight.toFixed(3));
        slot.classList.toggle("idle", Boolean(lit) && !isLit && !isSeen);
        setText(badge, isSeen ? formatPercent(weight) : "");
        const effect = side === "source" ? test?.effects?.all[i] : null,
          isShown = effect && i < test.step;
        setText(without, isShown ? formatPercent(effect.p) : "");
        without.classList.toggle("slight", Boolean(isShown) && effect.loss < SLIGHT);
        if (isShown) without.style.setProperty("--p", Math.max(0, 1 - effect.p / test.effects.p));
        node.classList.toggle(
          "hidden-now",
          Boolean(test?.isRunning) && i === test.step - 1 && side === "source",
        );
      });
    for (const { row, column, path } of drawnLines) {
      const isOwn = Boolean(lit) && (lit.isRow ? row : column) === lit.index;
      path.classList.toggle("away", Boolean(lit) && !isOwn);
      path.classList.toggle("lit", isOwn);
      if (isOwn) path.parentNode.append(path); // above the others
    }
    const most = test && !test.isRunning ? (test.verdict?.most ?? null) : null;
    sides.source.nodes.forEach(({ node }, i) => node.classList.toggle("decides", i === most));
    drawDecisiveLine(lit, most);
    const [withoutName, lookedName] = rowNames.children;
    setText(withoutName, test?.effects ? t("“{word}” if hidden", { word: lit?.label ?? "" }) : "");
    withoutName.title = test?.effects
      ? t("Probability of “{word}” if this word is hidden", { word: lit?.label ?? "" })
      : "";
    setText(lookedName, lit && others === "source" ? t("attention") : "");
    drawBubble(lit);
  }

  // Draw the effect of the decisive word as a line of its own, beside those of attention.
  function drawDecisiveLine(lit, most) {
    lines.querySelector(".effect")?.remove();
    const [from, to] = [places.source[most ?? -1], places[rowSide()][lit?.index ?? -1]];
    if (from && to) lines.append(svg("path", { d: curve(from, to), class: "effect" }));
  }

  function drawBubble(lit) {
    const { test, canTest } = scene,
      asks = Boolean(lit?.isRow) && canTest;
    cancelAnimationFrame(placing);
    bubble.hidden = Boolean(lit) && !asks;
    bubble.classList.toggle("asking", asks);
    if (!asks) {
      bubble.style.left = "";
      bubble.dataset.about = "";
      if (!lit) setText(bubble, pointingHint(rowSide() === "source"));
      return;
    }
    const word = lit.label,
      own = looked(lit);
    const most = test?.verdict?.most ?? null,
      about = JSON.stringify([word, own, Boolean(test), test?.isRunning, most]);
    if (bubble.dataset.about !== about) {
      bubble.dataset.about = about;
      const ask = button(t("Test it"), hooks.test, {
        class: "test-it",
        title: t("Key: Shift + T"),
      });
      bubble.replaceChildren(
        ...(test?.isRunning
          ? [t("Hiding one word after the other …")]
          : test
            ? [
                most === null
                  ? t("No single word decides “{word}”", { word })
                  : t("“{word}”: {before}, without “{other}” {after}", {
                      word,
                      before: formatPercent(test.effects.p),
                      other: lit.items[most].label,
                      after: formatPercent(test.effects.all[most].p),
                    }),
              ]
            : [
                own === null
                  ? t("What decides “{word}”?", { word })
                  : t("Is “{word}” really why?", { word: lit.items[own].label }),
                " ",
                ask,
              ]),
      );
    }
    placing = requestAnimationFrame(() => placeBubble(lit.index));
  }

  // Put the bubble below a word. In the next frame, as measuring it delays whatever else is drawn now.
  function placeBubble(index) {
    const place = places[rowSide()][index]?.x ?? 0,
      left = clampTo(
        place - bubble.offsetWidth / 2,
        hooks.switchWidth(),
        sheet.offsetWidth - bubble.offsetWidth,
      );
    bubble.style.left = `${left}px`;
    bubble.style.setProperty("--tip", `${Math.max(14, place - left)}px`);
  }

  // Arrow keys move along the words and between the sentences.
  root.addEventListener("keydown", (event) => {
    const { side, index } = event.target.dataset;
    if (!side) return;
    const act = { t: hooks.test, T: hooks.test, Escape: hooks.letGo }[event.key],
      step = arrowStep(event);
    if (act && !event.ctrlKey && !event.metaKey && !event.altKey) act();
    else if (step || event.key === "Home" || event.key === "End") {
      const nodes = sides[side].nodes,
        [along, across] = step ? (isUpright ? step : step.toReversed()) : [0, 0],
        other = sides[side === "source" ? "target" : "source"].nodes;
      const next = across
        ? other[clamp(Number(index), other.length)]
        : nodes[
            clamp(step ? Number(index) + along : event.key === "End" ? Infinity : 0, nodes.length)
          ];
      if (!next) return;
      for (const { node } of sides[next.node.dataset.side].nodes) node.tabIndex = -1;
      next.node.tabIndex = 0;
      next.node.focus();
    } else return;
    event.preventDefault();
    event.stopPropagation();
  });

  return {
    root,
    note: glossNote, // to stand below the sentences
    /**
     * @param {any} drawing {kind, map, layers, source, target, direction, glosses, at, test, canTest}; map: of whole words, the mean
     *   of the layers; source, target: the words; glosses: {source, target}, a gloss for each word of a side, or null; at: the lit {row,
     *   column}; test: {effects, step, isRunning, verdict} of the lit row, or null
     */
    draw(drawing) {
      scene = drawing;
      glossNote.hidden = !(scene.glosses.source && scene.glosses.target);
      sheet.dataset.kind = scene.kind;
      const { source, target, glosses, direction } = scene,
        [from, to] = (direction ?? "").split("-"),
        spelling = JSON.stringify([source, target, glosses, direction]);
      if (spelling !== shownWords) {
        shownWords = spelling;
        fillSide("source", source, glosses.source, from);
        fillSide("target", target, glosses.target, to);
        layOutWords();
      }
      drawLines();
    },
    /** Show which word is lit, after draw(), or another one. @param {any} at {row, column} @param {any} test */
    light(at, test) {
      if (!scene) return;
      Object.assign(scene, { at, test });
      show();
    },
    focusLit: () => sheet.querySelector(".word.chosen")?.focus({ preventScroll: true }),
    map: () => scene?.map ?? null,
  };
}
