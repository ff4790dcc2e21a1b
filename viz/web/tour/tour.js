// A tour: one stop at a time in a sheet at the bottom of the window. A stop's view is a link of the page: the tabs follow
// it as they follow any other (viz/tours/).
import { ask as askServer } from "../core/ask.js";
import { arrowStep } from "../core/keys.js";
import { button, debounce, el, loadStyleOf } from "../core/dom.js";
import { toText, t } from "../core/language.js";
import { copyLink, pageLink, replaceFields, isVisible } from "../core/links.js";
import { textField } from "../store/controls.js";
import { store } from "../store/store.js";
import { restoreFocus } from "../present/layer.js";

const AGAIN = 300; // milliseconds until it is asked whether that still stands
const PATIENCE = 15000; // milliseconds for what a stop points at to appear
const ANSWERS = ".atlas-title, #atlas-input, .atlas-translation, #tabs > *, footer"; // what lies behind a question
const MOVES = ["wheel", "touchmove", "pointerdown", "keydown"]; // of a visitor who looks around

// A promise of the tours, once their style sheet is there.
export const ready = async (root, openSheet) => {
  await loadStyleOf(import.meta.url);
  return createTour(root, openSheet);
};

function createTour(root, openSheet) {
  let shown = null,
    wanted = null,
    asked = 0,
    pointed = null,
    opener = null;

  const heading = el("h2", { tabindex: "-1", id: "atlas-tour-title" });
  const text = el("p", { class: "text" }),
    claim = el("p", { class: "claim" });
  const ask = createAsk((answer) => {
    sheet.classList.remove("asking");
    reveal(answer);
    sheet.scrollTop = sheet.scrollHeight; // what was said before may take all of a small sheet
  });
  const list = el("select", {
    "aria-label": t("Choose a tour"),
    onchange: () => go({ tour: list.value, stop: 1, direction: shown?.direction }),
  });
  const count = el("span", { class: "count" });
  const back = button(t("Back"), () => move(-1)),
    next = button(t("Next"), () => move(1), { class: "strong" });
  const sheetOf = button(t("Worksheet"), () =>
    openSheet({ sheet: shown.tour, direction: shown.direction }),
  );
  const again = button(t("Back to this stop's view"), () => open(shown));
  const link = button(t("Copy link"), copy),
    leaving = button(t("Leave the tour"), leave);
  const sheet = el(
    "section",
    { class: "atlas-tour", "aria-labelledby": "atlas-tour-title", hidden: true, onkeydown: keys },
    el("div", { class: "bar" }, list, count, again, sheetOf, link, leaving),
    el("div", { class: "story", "aria-live": "polite" }, heading, text, ask.root, claim),
    el("div", { class: "moves" }, back, next),
  );
  root.replaceChildren(sheet);

  // place: {tour, stop, direction}. What is on its way, or shown, is not asked for again: a stop's own view comes here, too.
  async function go(place) {
    const name = `${place.tour} ${place.stop}`;
    if (name === wanted) return;
    wanted = name;
    if (sheet.hidden) opener = document.activeElement;
    const mine = ++asked;
    sheet.setAttribute("aria-busy", "true");
    const answer = await askServer("page_stop", { address: store.state.address, fields: place });
    if (mine === asked && wanted) draw(answer);
  }

  function draw(answer) {
    const first = sheet.hidden;
    sheet.hidden = false;
    sheet.setAttribute("aria-busy", "false");
    if (answer.error) {
      heading.textContent = toText(answer.error);
      text.replaceChildren();
      claim.replaceChildren();
      ask.root.hidden = true;
      ask.close();
      [back, next, again, link, sheetOf].forEach((one) => (one.hidden = true));
      return settle(first);
    }
    shown = answer;
    heading.textContent = toText(answer.title);
    text.textContent = toText(answer.missing ?? answer.text);
    text.classList.toggle("missing", Boolean(answer.missing));
    ask.draw(answer);
    claim.hidden = true;
    list.replaceChildren(
      ...answer.tours.map((one) =>
        el(
          "option",
          { value: one.name, selected: one.name === answer.tour },
          t("{title} ({n} min)", { title: toText(one.title), n: one.minutes }),
        ),
      ),
    );
    count.textContent = t("{n} of {all}", { n: answer.stop, all: answer.stops });
    [back, next, link].forEach((one) => (one.hidden = false));
    again.hidden = true;
    sheetOf.hidden = !answer.asks;
    back.disabled = answer.stop === 1;
    next.textContent = answer.stop < answer.stops ? t("Next") : t("Finish");
    sheet.classList.toggle("asking", ask.open(answer));
    if (!ask.open(answer)) return reveal(answer, first);
    settle(first);
    hold(answer);
  }

  // What a question asks is not to be seen before it is answered; a link leads to the question.
  function hold({ tour, stop, direction }) {
    point(null);
    const fields = new URLSearchParams({ tour, stop, direction });
    if (pageLink().get("stop") !== String(stop) || pageLink().get("tour") !== tour)
      location.hash = fields;
  }

  function reveal(answer, first = false) {
    claim.hidden = !answer.claim;
    if (answer.claim) drawClaim(answer.claim);
    settle(first); // what is pointed at is brought to where nothing covers it then
    open(answer);
  }

  // What a stop claims, with its number, and whether that was measured to hold.
  function drawClaim({ text: words, holds, learned }) {
    claim.className = `claim ${holds ? "holds" : "fails"}`;
    const mark = { class: "mark", role: "img" };
    const origin = learned
      ? t("Training brought this about: a model with random weights fails here.")
      : t("This holds for any network of this construction, trained or not.");
    claim.replaceChildren(
      holds
        ? el("span", { ...mark, "aria-label": t("The claim holds") }, "✓")
        : el("span", { ...mark, "aria-label": t("The claim does not hold") }, "✗"),
      el(
        "span",
        {},
        words,
        " ",
        el("small", { title: origin }, learned ? t("learned") : t("by construction")),
      ),
    );
  }

  // Pixels of the window's height that it covers: none where it stands beside the page.
  const covered = () => (sheet.offsetLeft > 0 ? 0 : sheet.offsetHeight);
  const makeRoom = () => document.body.style.setProperty("--atlas-tour", `${covered()}px`);

  // The focus is where the person moves on from; what the page needs below, so that nothing stays covered.
  function settle(first) {
    makeRoom();
    document.body.classList.add("atlas-touring");
    const { activeElement: focused } = document;
    if (first || !sheet.contains(focused) || focused.disabled || focused.hidden)
      (next.hidden ? leaving : next).focus({ preventScroll: true });
  }

  // The stop's view, by the address: every tab that is concerned follows.
  function open(answer) {
    point(null);
    const fields = new URLSearchParams({ ...answer.open, tour: answer.tour, stop: answer.stop });
    if (pageLink().toString() !== fields.toString()) {
      // What was asked has its place in the history already.
      if (answer.ask?.choices) location.replace(`${location.pathname}${location.search}#${fields}`);
      else location.hash = fields;
    } else if (!again.hidden) dispatchEvent(new Event("hashchange")); // the address still says so
    again.hidden = true;
    const since = performance.now();
    const look = () => {
      if (shown !== answer || sheet.hidden) return;
      const found = [...document.querySelectorAll(answer.look)].find(isVisible);
      const late = performance.now() - since > PATIENCE;
      if (found && found !== pointed?.element && (late || ready(answer))) point(found);
      else pointed?.follow();
      // What is pointed at may be drawn anew, by an answer that was under way: then it is looked for again. And it may
      // be moved where no size changes and no scrolling ends.
      if (!late) setTimeout(look, pointed ? AGAIN : 80);
    };
    look();
  }

  // Whether the explorer already draws the sentence of the stop.
  const ready = ({ open }) => textField()?.value === open.text;

  // A visitor may have gone on to another tab, or to another sentence, than the stop's.
  const stray = () => {
    if (!pointed) return;
    again.hidden = [...document.querySelectorAll(shown.look)].some(isVisible) && ready(shown);
    makeRoom();
  };
  const away = new IntersectionObserver(stray);
  store.follow(["drawCount"], stray);

  function point(element) {
    away.disconnect();
    pointed?.element.classList.remove("atlas-pointed");
    pointed?.leave();
    pointed = null;
    if (!element) return;
    element.classList.add("atlas-pointed");
    const calm = matchMedia("(prefers-reduced-motion: reduce)").matches,
      since = performance.now();
    const show = () => {
      const { top, bottom, height } = element.getBoundingClientRect(),
        free = innerHeight - covered();
      if (top >= 8 && bottom <= free - 8) return;
      const to = Math.round(height > free - 24 ? top - 12 : top - (free - height) / 2);
      scrollBy({ top: to, behavior: calm || performance.now() - since > 50 ? "auto" : "smooth" });
    };
    // What is still being drawn, here or above, moves it: it is followed until the visitor moves. A picture that is taken
    // out and put back within a frame leaves all sizes as they were, but may have cut short how far the page was scrolled.
    const sizes = new ResizeObserver(show);
    addEventListener("scrollend", show);
    const leave = () => {
      pointed.follow = () => {};
      sizes.disconnect();
      removeEventListener("scrollend", show);
      MOVES.forEach((move) => removeEventListener(move, leave, true));
    };
    [element, document.body, sheet].forEach((one) => sizes.observe(one));
    MOVES.forEach((move) => addEventListener(move, leave, { capture: true, passive: true }));
    pointed = { element, leave, follow: show };
    away.observe(element);
    show();
  }

  function move(by) {
    if (!shown) return;
    const stop = shown.stop + by;
    if (stop < 1) return;
    if (stop > shown.stops) return leave();
    go({ tour: shown.tour, stop, direction: shown.direction });
  }

  // The view of the last stop stays; only its address forgets the tour.
  function leave() {
    if (sheet.hidden) return;
    sheet.hidden = true;
    wanted = null;
    asked += 1;
    point(null);
    ask.close();
    document.body.classList.remove("atlas-touring");
    const fields = pageLink();
    fields.delete("tour");
    fields.delete("stop");
    replaceFields(fields);
    restoreFocus(opener, ".atlas-title .tour");
  }

  function copy() {
    const { tour, stop, direction } = shown;
    copyLink(
      new URLSearchParams({ tour, stop, direction }),
      (said) => count.replaceChildren(said),
      t("Link to this stop"),
      t("Link copied."),
    );
  }

  // Arrows in the sheet alone: elsewhere they choose heads. Escape also where nothing has the focus.
  function keys(event) {
    const [, by] = arrowStep(event) ?? [];
    if (!by || event.target.closest("select, input")) return;
    event.preventDefault();
    move(by);
  }
  function escape(event) {
    const isOurs = event.target === document.body || sheet.contains(event.target);
    if (event.key !== "Escape" || sheet.hidden || !isOurs) return;
    event.preventDefault();
    event.stopPropagation();
    leave();
  }
  document.addEventListener("keydown", escape, true);
  const resized = debounce(() => !sheet.hidden && makeRoom(), 100);
  addEventListener("resize", resized);

  return { go, leave };
}

// A question of a stop: it is answered by a click before the page shows what is so. The answers are kept while the page is
// open: who comes back sees what was chosen. chosen(): the question was answered, and the stop can be shown.
function createAsk(chosen) {
  const answers = new Map(); // stop -> the number of the choice; -1: none was wanted
  const root = el("div", { class: "ask" });

  const name = ({ tour, stop, direction }) => `${tour} ${stop} ${direction}`;
  const open = (answer) => Boolean(answer.ask?.choices) && !answers.has(name(answer));

  function take(answer, number) {
    answers.set(name(answer), number);
    draw(answer);
    chosen(answer);
  }

  function choice(answer, words, i) {
    const mine = answers.get(name(answer)),
      done = mine !== undefined,
      right = done && answer.ask.right.includes(i);
    const sign = right ? "✓ " : done && mine === i ? "✗ " : "";
    const text = [sign ? el("span", { "aria-hidden": "true" }, sign) : "", words];
    return button(text, () => done || take(answer, i), {
      class: right ? "right" : sign ? "wrong" : "",
      "aria-pressed": done ? String(mine === i) : null,
      "aria-disabled": done ? "true" : null,
    });
  }

  function verdict({ right, told }, mine) {
    const words = mine < 0 ? "" : right.includes(mine) ? t("Right.") : t("Not so.");
    return el("p", { class: "told" }, words ? [el("b", {}, words), " "] : "", told);
  }

  // While a question is open, what the page shows is veiled: the picture before it may hold the answer.
  function veil(open) {
    for (const one of document.querySelectorAll(ANSWERS)) one.inert = open;
  }

  function draw(answer) {
    const { ask } = answer,
      mine = answers.get(name(answer));
    veil(open(answer));
    root.hidden = !ask;
    if (!ask) return;
    if (ask.missing) return root.replaceChildren(el("p", { class: "missing" }, ask.missing));
    root.replaceChildren(
      el(
        "p",
        { class: "read" },
        el("bdi", { class: "source" }, answer.read),
        ...(ask.hides ? [] : [" → ", el("bdi", { class: "source" }, answer.wrote)]),
      ),
      el("p", { class: "prompt", id: "atlas-tour-ask" }, ask.prompt),
      el(
        "div",
        { class: "choices", role: "group", "aria-labelledby": "atlas-tour-ask" },
        ask.choices.map((words, i) => choice(answer, words, i)),
        mine === undefined
          ? button(t("Show me"), () => take(answer, -1), { class: "give-up" })
          : null,
      ),
      mine === undefined
        ? el("p", { class: "read" }, t("The picture comes with your answer."))
        : verdict(ask, mine),
    );
  }

  return { root, draw, open, close: () => veil(false) };
}
