// How a person moves through the steps: buttons, a slider, keys, and playing automatically.
import { isKeyFor, isTyping } from "../core/keys.js";
import { button, el, menu, rangeField } from "../core/dom.js";
import { sayPlural, t, toText } from "../core/language.js";

// How long a step stays while it is played, in milliseconds, and the name of that speed.
const SPEEDS = [
  [1600, "0.5×"],
  [800, "1×"],
  [400, "2×"],
  [200, "4×"],
];
const MOVES = {
  first: () => 0,
  back: (step) => step - 1,
  next: (step) => step + 1,
  last: () => Infinity,
};
const KEYS = { ArrowRight: "next", ArrowLeft: "back", Home: "first", End: "last", " ": "play" };

/**
 * Create the bar.
 * @param {{
 *   move: (change: (step: number) => number) => void,
 *   isAtEnd: () => boolean,
 *   force: (rank: number) => void,
 * }} hooks move goes to the step change(current step); force writes the candidate of a rank
 * @param {any[]} extras nodes at the end of the bar
 */
export function createTransport({ move, isAtEnd, force }, extras) {
  /** @type {any} */
  let timer = null;

  const createMove = (name, text, label, key) =>
    button(text, () => press(name), {
      class: null,
      "data-move": name,
      "aria-label": label,
      title: `${label} (${key})`,
    });
  const buttons = {
    first: createMove("first", "⇤", t("First"), "Home"),
    back: createMove("back", "←", t("Back"), "←"),
    play: createMove("play", "▶", t("Play"), t("Space")),
    next: createMove("next", "→", t("Next"), "→"),
    last: createMove("last", "⇥", t("Last"), "End"),
  };
  const speed = menu(SPEEDS, 800, {
    "aria-label": t("Speed"),
    onchange: () => timer && (pause(), play()),
  });
  const slider = rangeField(t("Decoding step"), { max: 1, value: 0 }, (step) => move(() => step)),
    counter = el("output", { class: "counter" });
  const root = el("div", { class: "transport", role: "toolbar", "aria-label": t("Steps") }, [
    el("div", { class: "segmented" }, Object.values(buttons)),
    speed,
    slider,
    counter,
    extras,
  ]);

  function press(name) {
    if (name === "play") return play();
    pause();
    move(MOVES[name]);
  }

  function play() {
    if (timer) return pause();
    if (isAtEnd()) move(MOVES.first);
    const tick = () => {
      move(MOVES.next);
      if (isAtEnd()) pause();
    };
    timer = setInterval(tick, Number(speed.value));
    Object.assign(buttons.play, { textContent: "❚❚", ariaLabel: t("Pause") });
  }

  function pause() {
    clearInterval(timer);
    timer = null;
    Object.assign(buttons.play, { textContent: "▶", ariaLabel: t("Play") });
  }

  /**
   * Show a step. While a branch is on its way, moves wait for it, and no button is disabled.
   * @param {number} step
   * @param {{length: number, finished: boolean, isOpening: boolean}} branch finished: whether it has an end token
   */
  function show(step, { length, finished, isOpening }) {
    const isInside = step < length;
    slider.max = length;
    slider.value = step;
    counter.textContent = isInside
      ? t("Step {n} of {total}", { n: step + 1, total: length })
      : toText(sayPlural("Done: {n} token", "Done: {n} tokens", { n: length })) +
        (finished ? "" : `, ${t("stopped by the limit")}`);
    for (const name of ["first", "back"]) buttons[name].disabled = step === 0 && !isOpening;
    for (const name of ["next", "last"]) buttons[name].disabled = !isInside && !isOpening;
  }

  /**
   * Listen to the keyboard.
   * @param {HTMLElement} stepper @param {() => unknown} isReady whether there are steps to move through
   */
  function listen(stepper, isReady) {
    document.addEventListener("keydown", (/** @type {any} */ event) => {
      if (!isReady() || !isKeyFor(stepper, event) || isTyping(event, "input")) return;
      if (event.key === " " && event.target.closest("button")) return; // Space presses that button
      if (KEYS[event.key]) press(KEYS[event.key]);
      else if (/^[0-9]$/.test(event.key)) force(event.key === "0" ? 9 : Number(event.key) - 1);
      else return;
      event.preventDefault();
    });
  }

  return { root, pause, show, listen, position: () => counter.textContent };
}
