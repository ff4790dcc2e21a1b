// How a person moves through the steps: buttons, a slider, the keyboard, and playing by itself.
import { isKeyFor, isTyping } from "../core/keys.js";
import { button, el, menu } from "../core/dom.js";
import { t } from "../core/language.js";

// milliseconds that a step stands while it is played
const SPEEDS = [
  [1600, "0.5×"],
  [800, "1×"],
  [400, "2×"],
  [200, "4×"],
];
const MOVES = {
  first: () => 0,
  back: (now) => now - 1,
  next: (now) => now + 1,
  last: () => Infinity,
};
const KEYS = { ArrowRight: "next", ArrowLeft: "back", Home: "first", End: "last", " ": "play" };

// steps: go(step), move(change): to change(step), isAtEnd(), force(i): the candidate of this rank. beside: nodes at the end
// of the bar.
export function createTransport({ go, move, isAtEnd, force }, beside) {
  let timer = null;

  const moving = (name, text, label, key) =>
    button(text, () => press(name), {
      class: null,
      "data-move": name,
      "aria-label": label,
      title: `${label} (${key})`,
    });
  const buttons = {
    first: moving("first", "⇤", t("First"), "Home"),
    back: moving("back", "←", t("Back"), "←"),
    play: moving("play", "▶", t("Play"), t("Space")),
    next: moving("next", "→", t("Next"), "→"),
    last: moving("last", "⇥", t("Last"), "End"),
  };
  const speed = menu(SPEEDS, 800, {
    "aria-label": t("Speed"),
    onchange: () => timer && (pause(), play()),
  });
  const slider = el("input", {
    type: "range",
    min: "0",
    max: "1",
    step: "1",
    value: "0",
    "aria-label": t("Decoding step"),
    oninput: () => move(() => Number(slider.value)),
  });
  const counter = el("output", { class: "counter" });
  const bar = el(
    "div",
    { class: "transport", role: "toolbar", "aria-label": t("Steps") },
    el("div", { class: "segmented" }, Object.values(buttons)),
    speed,
    slider,
    counter,
    beside,
  );

  function press(name) {
    if (name === "play") return play();
    pause();
    move(MOVES[name]);
  }

  function play() {
    if (timer) return pause();
    if (isAtEnd()) go(0);
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

  // opening: a branch is on its way, for which moves wait.
  function show(at, { length, finished, opening }) {
    const inside = at < length;
    slider.max = length;
    slider.value = at;
    counter.textContent = inside
      ? t("Step {n} of {total}", { n: at + 1, total: length })
      : t("Done: {n} tokens", { n: length }) + (finished ? "" : `, ${t("stopped by the limit")}`);
    for (const name of ["first", "back"]) buttons[name].disabled = at === 0 && !opening;
    for (const name of ["next", "last"]) buttons[name].disabled = !inside && !opening;
  }

  // isReady(): whether there is something to move through.
  function listen(root, isReady) {
    document.addEventListener("keydown", (event) => {
      if (!isReady() || !isKeyFor(root, event) || isTyping(event, "input")) return;
      if (event.key === " " && event.target.closest("button")) return; // the button's own key
      if (KEYS[event.key]) press(KEYS[event.key]);
      else if (/^[0-9]$/.test(event.key)) force(event.key === "0" ? 9 : Number(event.key) - 1);
      else return;
      event.preventDefault();
    });
  }

  return { root: bar, pause, show, listen, where: () => counter.textContent };
}
