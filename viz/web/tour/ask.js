// A question of a stop: it is answered by a click before the page shows what is so. The answers are kept while the page is
// open: who comes back sees what was chosen.
import { button, el } from "../core/dom.js";
import { t } from "../core/language.js";

const ANSWERS = ".atlas-title, #atlas-input, .atlas-translation, #tabs > *, footer"; // what lies behind a question

// chosen(): the question was answered, and the stop can be shown.
export function createAsk(chosen) {
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
