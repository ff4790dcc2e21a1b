// Word links (viz/wire/blocks.py): two lines of words with lines between them; where they do not fit side by side, two
// columns. A click on a word of each side links them, once more makes the link a possible one, and once more takes it away.
import { button, download, el, svg } from "../core/dom.js";
import { t } from "../core/language.js";

const SIDES = ["source", "target"];
const NEXT = { none: "sure", sure: "possible", possible: "none" };
const SAID = {
  sure: (words) => t("{source} and {target}: linked", words),
  possible: (words) => t("{source} and {target}: possibly linked", words),
  none: (words) => t("{source} and {target}: not linked", words),
};

export function links(block, keep, api) {
  const links = new Map(block.links.map((link) => [link.join("-"), "sure"])); // "source-target" -> sure or possible
  const picked = { source: null, target: null };
  const told = el("span", { class: "count", role: "status" });
  const lines = svg("svg", { "aria-hidden": "true" });
  const pairs = () =>
    [...links]
      .map(([link, kind]) => [...link.split("-").map(Number), kind])
      .sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  const of = (kind) =>
    pairs()
      .filter((pair) => pair[2] === kind)
      .map(([source, target]) => [source, target]);
  const text = (side, i) => block.words[side][i].text;

  const side = (name) =>
    el(
      "div",
      {
        class: "link-words",
        role: "group",
        "aria-label": name === "source" ? t("source") : t("target"),
      },
      block.words[name].map((word, i) =>
        el(
          "button",
          {
            type: "button",
            class: "link-word",
            dir: "auto",
            "aria-pressed": "false",
            onclick: () => pick(name, i),
          },
          word.text,
        ),
      ),
    );
  const rows = { source: side("source"), target: side("target") };
  const stage = el("div", { class: "link-stage" }, rows.source, lines, rows.target);

  function pick(name, i) {
    picked[name] = picked[name] === i ? null : i;
    if (picked.source !== null && picked.target !== null) {
      const link = `${picked.source}-${picked.target}`,
        next = NEXT[links.get(link) ?? "none"];
      if (next === "none") links.delete(link);
      else links.set(link, next);
      told.replaceChildren(
        SAID[next]({
          source: text("source", picked.source),
          target: text("target", picked.target),
        }),
      );
      picked.source = picked.target = null;
    }
    for (const one of SIDES)
      [...rows[one].children].forEach((button, at) =>
        button.setAttribute("aria-pressed", picked[one] === at),
      );
    draw();
  }

  // Side by side where each side is one line, else as columns: lines across several rows of words cannot be followed.
  function lay() {
    stage.classList.remove("upright");
    const wraps = SIDES.some(
      (name) =>
        rows[name].lastChild &&
        rows[name].lastChild.offsetTop > rows[name].firstChild.offsetTop + 4,
    );
    stage.classList.toggle("upright", wraps);
    return wraps;
  }

  function draw() {
    const upright = lay(),
      box = stage.getBoundingClientRect();
    if (!box.width) return;
    const end = (name, i) => {
      const word = rows[name].children[i].getBoundingClientRect(),
        first = name === "source";
      if (!upright)
        return {
          x: (word.left + word.right) / 2 - box.left,
          y: (first ? word.bottom : word.top) - box.top,
        };
      const before = first === (getComputedStyle(stage).direction === "ltr");
      return {
        x: (before ? word.right : word.left) - box.left,
        y: (word.top + word.bottom) / 2 - box.top,
      };
    };
    lines.setAttribute("viewBox", `0 0 ${box.width} ${box.height}`);
    lines.replaceChildren(
      ...pairs().map(([source, target, kind]) => {
        const [a, b] = [end("source", source), end("target", target)];
        return svg("line", {
          x1: a.x,
          y1: a.y,
          x2: b.x,
          y2: b.y,
          class: kind,
          "stroke-width": 1.5 + 4.5 * (block.scores[target][source] ?? 0),
        });
      }),
    );
    list.replaceChildren(
      ...pairs().map(([source, target, kind]) => {
        const values = {
          source: text("source", source),
          target: text("target", target),
          percent: Math.round(100 * block.scores[target][source]),
        };
        return el(
          "li",
          {},
          kind === "sure"
            ? t("{source} – {target}: {percent}%", values)
            : t("{source} – {target}: {percent}%, possible", values),
        );
      }),
    );
  }

  const file = (name, line) => download(name, new Blob([`${line}\n`], { type: "text/plain" }));
  const list = el("ul", { class: "link-list" });
  const root = el(
    "div",
    { class: "links" },
    stage,
    el(
      "p",
      { class: "count" },
      t(
        "A word of each side: linked, possibly linked, not linked. A line is as wide as what the two have of each other.",
      ),
      " ",
      told,
    ),
    el(
      "div",
      { class: "row" },
      button(t("Score every head by these links"), () =>
        api.act("score", "score", { sure: of("sure"), possible: of("possible") }),
      ),
      button(t("Clear links"), () => {
        links.clear();
        draw();
      }),
      // Words count from 1 there, and "p" marks a possible link: what is read as links by hand (model/trace/alignment/formats.py).
      button(t("Save as hand-made links (talp)"), () =>
        file(
          "gold.talp",
          pairs()
            .map(([a, b, kind]) => `${a + 1}${kind === "sure" ? "-" : "p"}${b + 1}`)
            .join(" "),
        ),
      ),
      button(t("Save the links (Pharaoh)"), () =>
        file(
          "links.txt",
          of("sure")
            .map((pair) => pair.join("-"))
            .join(" "),
        ),
      ),
    ),
    el("details", {}, el("summary", {}, t("The links as a list")), list),
  );
  let width = 0;
  new ResizeObserver(() => {
    if (stage.clientWidth !== width) draw(); // its height follows from what is drawn
    width = stage.clientWidth;
  }).observe(stage);
  return root;
}
