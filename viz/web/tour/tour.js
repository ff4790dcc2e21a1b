// Tours: one stop at a time, in a sheet at the right of a wide window and at the bottom of others. The view of a stop is a link of the page, which the tabs
// follow like any other link (viz/tours/).
import { createAsker } from "../core/ask.js";
import { arrowStep } from "../core/keys.js";
import { button, createOptions, debounce, el, loadStyleOf, restoreFocus } from "../core/dom.js";
import { toText, t } from "../core/language.js";
import { copyLink, pageLink, replaceFields, isVisible } from "../core/links.js";
import { textField } from "../store/controls.js";
import { store } from "../store/store.js";

const SEARCH_INTERVAL = 80; // milliseconds between two searches for the element that a stop points at
const FOLLOW_INTERVAL = 300; // the same once it has been found: it may be drawn anew
const PATIENCE = 15000; // milliseconds until the search ends
const PAGE = ".atlas-title, #atlas-input, .atlas-translation, #tabs > *, footer"; // hidden behind a question
const MOVES = ["wheel", "touchmove", "pointerdown", "keydown"]; // with which a visitor looks around

/** @typedef {{tour: string, stop: number, direction?: string, digest?: string}} Place of a stop */

/**
 * Create the tours.
 * @param {Element} root
 * @param {(place: {sheet: string, direction?: string}) => void} openSheet opens a worksheet
 */
export async function createTours(root, openSheet) {
  await loadStyleOf(import.meta.url);
  let current = null, // the answer of the server (page_stop) for the stop in the sheet
    requested = null, // the name of the last stop that was requested; null: no tour
    target = null, // the element that the stop points at: {element, follow(), stop()}
    opener = null; // what had the focus before the tour
  const asker = createAsker();

  const heading = el("h2", { tabindex: "-1", id: "atlas-tour-title" });
  const text = el("p", { class: "text" }),
    claim = el("p", { class: "claim" });
  const quiz = createQuiz((stop) => {
    sheet.classList.remove("asking");
    reveal(stop);
    story.scrollTop = story.scrollHeight; // the text before may fill a small sheet
  });
  const list = el("select", {
    "aria-label": t("Choose a tour"),
    onchange: () => go({ tour: list.value, stop: 1, direction: current?.direction }),
  });
  const count = el("span", { class: "count" });
  const back = button(t("Back"), () => move(-1)),
    next = button(t("Next"), () => move(1), { class: "strong" });
  const worksheet = button(t("Worksheet"), () =>
    openSheet({ sheet: current.tour, direction: current.direction }),
  );
  const backToView = button(t("Back to this stop's view"), () => openView(current));
  const link = button(t("Copy link"), copy),
    leaveButton = button(t("Leave the tour"), leave);
  const own = button(t("Try your own sentence"), tryOwn, { class: "strong" }),
    onward = button("", () => go({ ...following, stop: 1, direction: current.direction })),
    after = el("div", { class: "after" }, own, onward); // on the last card
  let following = /** @type {any} */ (null); // {tour}: the one after this
  const story = el("div", { class: "story", "aria-live": "polite" }, [
    heading,
    text,
    quiz.root,
    claim,
    after,
  ]);
  const sheet = el(
    "section",
    {
      class: "atlas-tour",
      "aria-labelledby": "atlas-tour-title",
      hidden: true,
      onkeydown: moveByKey,
    },
    el("div", { class: "bar" }, list, count, backToView, worksheet, link, leaveButton),
    story,
    el("div", { class: "moves" }, back, next),
  );
  root.replaceChildren(sheet);

  /**
   * Go to a stop, unless it is already on its way or in the sheet: the view of a stop is a link that leads here.
   * @param {Place} place
   */
  async function go(place) {
    const name = `${place.tour} ${place.stop}`;
    if (name === requested) return;
    requested = name;
    if (sheet.hidden) opener = document.activeElement;
    sheet.setAttribute("aria-busy", "true");
    const stop = await asker.ask("page_stop", { address: store.state.address, fields: place });
    if (stop) draw(stop);
  }

  function draw(stop) {
    const isFirst = sheet.hidden,
      isOpen = quiz.isOpen(stop);
    sheet.hidden = false;
    sheet.setAttribute("aria-busy", "false");
    sheet.classList.toggle("asking", isOpen);
    heading.textContent = toText(stop.error ?? stop.title);
    text.textContent = toText(stop.missing ?? stop.text ?? "");
    text.classList.toggle("missing", Boolean(stop.missing));
    quiz.draw(stop);
    claim.hidden = backToView.hidden = after.hidden = true;
    story.scrollTop = 0;
    worksheet.hidden = !stop.asks;
    for (const node of [back, next, link]) node.hidden = Boolean(stop.error);
    if (stop.error) return settle(isFirst);
    current = stop;
    const tours = stop.tours.map(({ name, title, minutes: n }) => [
      name,
      t("{title} ({n} min)", { title, n }),
    ]);
    list.replaceChildren(...createOptions(tours, stop.tour));
    count.textContent = t("{n} of {all}", { n: stop.stop, all: stop.stops });
    back.disabled = stop.stop === 1;
    next.hidden = stop.stop === stop.stops;
    after.hidden = !next.hidden;
    const at = stop.tours.findIndex(({ name }) => name === stop.tour),
      { name, title } = stop.tours[(at + 1) % stop.tours.length];
    following = { tour: name };
    onward.hidden = name === stop.tour;
    onward.textContent = t("Next tour: {title}", { title });
    if (!isOpen) return reveal(stop, isFirst);
    settle(isFirst);
    showQuestion(stop);
  }

  // Show only the question of a stop. The page's address leads to the question, not to the view that answers it.
  function showQuestion({ tour, stop, direction }) {
    pointAt(null);
    const fields = new URLSearchParams({ tour, stop, direction });
    if (pageLink().get("stop") !== String(stop) || pageLink().get("tour") !== tour)
      location.hash = String(fields);
  }

  function reveal(stop, isFirst = false) {
    claim.hidden = !stop.claim;
    if (stop.claim) drawClaim(stop.claim);
    settle(isFirst); // before the view is opened: its target is scrolled to where the sheet does not cover it
    openView(stop);
  }

  // Draw the claim of a stop with its number, and whether it was measured to hold.
  function drawClaim({ text: words, holds, learned }) {
    claim.className = `claim ${holds ? "holds" : "fails"}`;
    const verdict = holds ? t("The claim holds") : t("The claim does not hold");
    const origin = learned
      ? t("This was learned: a model with random weights fails here.")
      : t("This holds for any network with this architecture, trained or not.");
    claim.replaceChildren(
      el("span", { class: "mark", role: "img", "aria-label": verdict }, holds ? "✓" : "✗"),
      el("span", {}, [
        words,
        " ",
        el("small", { title: origin }, learned ? t("learned") : t("by construction")),
      ]),
    );
  }

  // How many pixels of the window the sheet covers at the bottom: none where it is beside the page.
  const coveredHeight = () => (sheet.offsetLeft > 0 ? 0 : sheet.offsetHeight);
  function reserveSpace() {
    document.body.style.setProperty("--atlas-tour", `${coveredHeight()}px`);
    story.tabIndex = story.scrollHeight > story.clientHeight ? 0 : -1; // it scrolls with the arrow keys
  }

  // Reserve space for the sheet below the page, and put the focus on the button with which the visitor goes on.
  function settle(isFirst) {
    reserveSpace();
    document.body.classList.add("atlas-touring");
    const { activeElement: focused } = /** @type {any} */ (document);
    if (isFirst || !sheet.contains(focused) || focused.disabled || focused.hidden)
      [next, own, leaveButton].find(isVisible)?.focus({ preventScroll: true });
  }

  // Open the view of a stop by the page's address, and point at its target once it is visible.
  function openView(stop) {
    pointAt(null);
    const fields = new URLSearchParams({ ...stop.open, tour: stop.tour, stop: stop.stop });
    if (pageLink().toString() !== fields.toString()) {
      // The question is in the history already: its answer replaces it.
      if (stop.ask?.choices) location.replace(`${location.pathname}${location.search}#${fields}`);
      else location.hash = String(fields);
    } else if (!backToView.hidden) dispatchEvent(new Event("hashchange")); // the address is right, the view is not
    backToView.hidden = true;
    const since = performance.now();
    const search = () => {
      if (current !== stop || sheet.hidden) return;
      const element = [...document.querySelectorAll(stop.look)].find(isVisible),
        isLate = performance.now() - since > PATIENCE;
      if (element && element !== target?.element && (isLate || hasSentence(stop))) pointAt(element);
      else target?.follow();
      // The search goes on after a match: a late answer may draw the element again, and something that no observer reports may
      // move it.
      if (!isLate) setTimeout(search, target ? FOLLOW_INTERVAL : SEARCH_INTERVAL);
    };
    search();
  }

  // Whether the page has the sentence of a stop.
  const hasSentence = ({ open }) => textField()?.value === open.text;

  // Offer the way back when the visitor has gone on to another tab or sentence.
  const checkView = () => {
    if (!target) return;
    const element = [...document.querySelectorAll(current.look)].find(isVisible);
    if (element) watch(element); // it may have been drawn anew
    backToView.hidden = Boolean(element) && hasSentence(current);
    reserveSpace();
  };
  // An element has no size in a tab that is not open. Whether it is in the window does not matter: the visitor may have
  // scrolled up to the tabs.
  const visibility = new ResizeObserver(checkView);
  let watched = null;
  function watch(element) {
    if (element === watched) return;
    visibility.disconnect();
    watched = element;
    if (element) visibility.observe(element);
  }
  store.follow(["drawCount"], checkView);

  // Mark an element, and scroll to it whenever something moves it, until the visitor looks around.
  function pointAt(element) {
    watch(null);
    target?.element.classList.remove("atlas-pointed");
    target?.stop();
    target = null;
    if (!element) return;
    element.classList.add("atlas-pointed");
    const isCalm = matchMedia("(prefers-reduced-motion: reduce)").matches,
      since = performance.now();
    const show = () => {
      const { top, bottom, height } = element.getBoundingClientRect(),
        free = innerHeight - coveredHeight();
      if (top >= 8 && bottom <= free - 8) return;
      const distance = Math.round(height > free - 24 ? top - 12 : top - (free - height) / 2),
        behavior = isCalm || performance.now() - since > 50 ? "auto" : "smooth";
      scrollBy({ top: distance, behavior });
    };
    const sizes = new ResizeObserver(show);
    // A picture that is removed and put back within a frame changes no size, but may have cut the scrolling short.
    addEventListener("scrollend", show);
    const stop = () => {
      target.follow = () => {};
      sizes.disconnect();
      removeEventListener("scrollend", show);
      MOVES.forEach((move) => removeEventListener(move, stop, true));
    };
    for (const node of [element, document.body, sheet]) sizes.observe(node);
    MOVES.forEach((move) => addEventListener(move, stop, { capture: true, passive: true }));
    target = { element, stop, follow: show };
    watch(element);
    show();
  }

  function move(by) {
    if (!current) return;
    const stop = current.stop + by;
    if (stop < 1) return;
    if (stop > current.stops) return leave();
    go({ tour: current.tour, stop, direction: current.direction });
  }

  // Close the sheet. The view of the last stop stays, but the page's address no longer names the tour.
  function leave() {
    if (sheet.hidden) return;
    sheet.hidden = true;
    requested = null;
    asker.stop();
    pointAt(null);
    quiz.close();
    document.body.classList.remove("atlas-touring");
    const fields = pageLink();
    fields.delete("tour");
    fields.delete("stop");
    replaceFields(fields);
    restoreFocus(opener, ".atlas-title .tour");
  }

  // Leave the tour for the field in which a sentence is typed.
  function tryOwn() {
    leave();
    textField()?.focus();
    textField()?.select();
    scrollTo({ top: 0 });
  }

  function copy() {
    const { tour, stop, direction } = current;
    copyLink(
      new URLSearchParams({ tour, stop, direction }),
      (words) => count.replaceChildren(words),
      t("Link to this stop"),
      t("Link copied."),
    );
  }

  // Arrow keys move between stops, but only in the sheet: elsewhere they select heads.
  function moveByKey(event) {
    const [, by] = arrowStep(event) ?? [];
    if (
      !by ||
      event.target.closest("select, input") ||
      (event.target === story && !event.key.match(/Left|Right/))
    )
      return;
    event.preventDefault();
    move(by);
  }
  // Escape leaves the tour, in the sheet and where nothing has the focus.
  function leaveOnEscape(event) {
    const isForSheet = event.target === document.body || sheet.contains(event.target);
    if (event.key !== "Escape" || sheet.hidden || !isForSheet) return;
    event.preventDefault();
    event.stopPropagation();
    leave();
  }
  document.addEventListener("keydown", leaveOnEscape, true);
  addEventListener(
    "resize",
    debounce(() => !sheet.hidden && reserveSpace(), 100),
  );

  return { go, leave };
}

/**
 * Create the questions of stops. Until its question is answered, a stop shows only that. Answers are kept while the page is open.
 * @param {(stop: any) => void} onAnswer is called with a stop when its question has been answered
 */
function createQuiz(onAnswer) {
  const answers = new Map(); // name of a stop -> index of the choice; -1: the visitor gave up
  const root = el("div", { class: "ask" });

  const nameOf = ({ tour, stop, direction }) => `${tour} ${stop} ${direction}`;
  const isOpen = (stop) => Boolean(stop.ask?.choices) && !answers.has(nameOf(stop));

  function answer(stop, choice) {
    answers.set(nameOf(stop), choice);
    draw(stop);
    onAnswer(stop);
  }

  function createChoice(stop, words, i) {
    const choice = answers.get(nameOf(stop)),
      isAnswered = choice !== undefined,
      isRight = isAnswered && stop.ask.right.includes(i);
    const sign = isRight ? "✓ " : isAnswered && choice === i ? "✗ " : "";
    const content = [sign ? el("span", { "aria-hidden": "true" }, sign) : "", words];
    return button(content, () => isAnswered || answer(stop, i), {
      class: isRight ? "right" : sign ? "wrong" : "",
      "aria-pressed": isAnswered ? String(choice === i) : null,
      "aria-disabled": isAnswered ? "true" : null,
    });
  }

  function createVerdict({ right, answer: explanation }, choice) {
    const words = choice < 0 ? "" : right.includes(choice) ? t("Right.") : t("Not quite.");
    return el("p", { class: "told" }, words ? [el("b", {}, words), " "] : "", explanation);
  }

  // Make the page inert while a question is open: the picture of the stop before may contain the answer.
  function setInert(isInert) {
    for (const node of document.querySelectorAll(PAGE))
      /** @type {HTMLElement} */ (node).inert = isInert;
  }

  function draw(stop) {
    const { ask } = stop,
      choice = answers.get(nameOf(stop));
    setInert(isOpen(stop));
    root.hidden = !ask;
    if (!ask) return;
    if (ask.missing) return root.replaceChildren(el("p", { class: "missing" }, ask.missing));
    root.replaceChildren(
      el("p", { class: "read" }, [
        el("bdi", { class: "source" }, stop.read),
        ask.hides ? [] : [" → ", el("bdi", { class: "source" }, stop.wrote)],
      ]),
      el("p", { class: "prompt", id: "atlas-tour-ask" }, ask.prompt),
      el("div", { class: "choices", role: "group", "aria-labelledby": "atlas-tour-ask" }, [
        ask.choices.map((words, i) => createChoice(stop, words, i)),
        choice === undefined
          ? button(t("Show me"), () => answer(stop, -1), { class: "give-up" })
          : null,
      ]),
      choice === undefined
        ? el("p", { class: "read" }, t("The picture appears after you answer."))
        : createVerdict(ask, choice),
    );
  }

  return { root, draw, isOpen, close: () => setInert(false) };
}
