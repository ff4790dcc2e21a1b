// How a person moves through the steps: buttons, a slider, the keyboard, and playing by itself.
import { isFor, typed } from "../core/keys.js";
import { el } from "../core/dom.js";
import { t } from "../core/language.js";

const SPEEDS = [
  ["0.5×", 1600],
  ["1×", 800],
  ["2×", 400],
  ["4×", 200],
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

  const buttons = {};
  const button = (name, text, label, key) =>
    (buttons[name] = el(
      "button",
      {
        type: "button",
        "data-move": name,
        "aria-label": label,
        title: `${label} (${key})`,
        onclick: () => press(name),
      },
      text,
    ));
  const speed = el(
    "select",
    { "aria-label": t("Speed"), onchange: () => timer && (pause(), play()) },
    SPEEDS.map(([name, wait]) => el("option", { value: wait, selected: wait === 800 }, name)),
  );
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
    el(
      "div",
      { class: "segmented" },
      button("first", "⇤", t("First"), "Home"),
      button("back", "←", t("Back"), "←"),
      button("play", "▶", t("Play"), t("Space")),
      button("next", "→", t("Next"), "→"),
      button("last", "⇥", t("Last"), "End"),
    ),
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
    buttons.play.textContent = "❚❚";
    buttons.play.setAttribute("aria-label", t("Pause"));
  }

  function pause() {
    clearInterval(timer);
    timer = null;
    buttons.play.textContent = "▶";
    buttons.play.setAttribute("aria-label", t("Play"));
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
      if (!isReady() || !isFor(root, event) || typed(event, "input")) return;
      if (event.key === " " && event.target.closest("button")) return; // the button's own key
      if (KEYS[event.key]) press(KEYS[event.key]);
      else if (/^[0-9]$/.test(event.key)) force(event.key === "0" ? 9 : Number(event.key) - 1);
      else return;
      event.preventDefault();
    });
  }

  return { root: bar, pause, show, listen, where: () => counter.textContent };
}
