// The block of word links (viz/wire/blocks.py): two lines of words with lines between them, or two
// columns where they do not fit side by side. Clicking a word of each side links them; again makes
// the link a possible one; again removes it.
import { button, download, el, group, svg } from "../core/dom.js";
import { t } from "../core/language.js";

const NEXT = { none: "sure", sure: "possible", possible: "none" };
const DESCRIPTIONS = {
  sure: (words) => t("{source} and {target}: linked", words),
  possible: (words) => t("{source} and {target}: possibly linked", words),
  none: (words) => t("{source} and {target}: not linked", words),
};

export function links(block, afterInsert, api) {
  const links = new Map(block.links.map((link) => [link.join("-"), "sure"])); // "source-target" -> "sure" or "possible"
  const picked = { source: null, target: null };
  const status = el("span", { class: "count", role: "status" });
  const lines = svg("svg", { "aria-hidden": "true" });
  const pairs = () =>
    [...links]
      .map(([link, kind]) => [...link.split("-").map(Number), kind])
      .sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  const linksOf = (kind) =>
    pairs().flatMap(([a, b, itsKind]) => (itsKind === kind ? [[a, b]] : []));
  const texts = (source, target) => ({
    source: block.words.source[source].text,
    target: block.words.target[target].text,
  });

  const createWords = (name) =>
    block.words[name].map(({ text }, i) =>
      button(text, () => pick(name, i), {
        class: "link-word",
        dir: "auto",
        "aria-pressed": "false",
      }),
    );
  const rows = {
    source: group("link-words", t("source"), createWords("source")),
    target: group("link-words", t("target"), createWords("target")),
  };
  const stage = el("div", { class: "link-stage" }, rows.source, lines, rows.target);

  function pick(name, i) {
    picked[name] = picked[name] === i ? null : i;
    if (picked.source !== null && picked.target !== null) {
      const link = `${picked.source}-${picked.target}`,
        next = NEXT[links.get(link) ?? "none"];
      if (next === "none") links.delete(link);
      else links.set(link, next);
      status.replaceChildren(DESCRIPTIONS[next](texts(picked.source, picked.target)));
      picked.source = picked.target = null;
    }
    for (const [side, row] of Object.entries(rows))
      for (const [at, word] of [...row.children].entries())
        word.setAttribute("aria-pressed", picked[side] === at);
    draw();
  }

  // Lay out both sides as lines if each fits one line, else as columns: links across wrapped lines
  // cannot be followed.
  function lay() {
    stage.classList.remove("upright");
    const wraps = Object.values(rows).some(
      ({ firstChild, lastChild }) => lastChild?.offsetTop > firstChild?.offsetTop + 4,
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
      const before = first === (getComputedStyle(stage).direction === "ltr");
      const [x, y] = upright
        ? [before ? word.right : word.left, (word.top + word.bottom) / 2]
        : [(word.left + word.right) / 2, first ? word.bottom : word.top];
      return [x - box.left, y - box.top];
    };
    lines.setAttribute("viewBox", `0 0 ${box.width} ${box.height}`);
    lines.replaceChildren(
      ...pairs().map(([source, target, kind]) => {
        const [x1, y1] = end("source", source),
          [x2, y2] = end("target", target),
          width = 1.5 + 4.5 * (block.scores[target][source] ?? 0);
        return svg("line", { x1, y1, x2, y2, class: kind, "stroke-width": width });
      }),
    );
    list.replaceChildren(
      ...pairs().map(([source, target, kind]) => {
        const percent = Math.round(100 * block.scores[target][source]),
          values = { ...texts(source, target), percent };
        const words =
          kind === "sure"
            ? t("{source} – {target}: {percent}%", values)
            : t("{source} – {target}: {percent}%, possible", values);
        return el("li", {}, words);
      }),
    );
  }

  const save = (name, links) =>
    download(name, new Blob([`${links.join(" ")}\n`], { type: "text/plain" }));
  const list = el("ul", { class: "link-list" });
  const root = el("div", { class: "links" }, [
    stage,
    el("p", { class: "count" }, [
      t(
        "Pick a word on each side; repeat to cycle linked / possibly linked / not linked. Wider line: higher score.",
      ),
      " ",
      status,
    ]),
    el("div", { class: "row" }, [
      button(t("Score every head by these links"), () =>
        api.askForSlot("score", "score", { sure: linksOf("sure"), possible: linksOf("possible") }),
      ),
      button(t("Clear links"), () => {
        links.clear();
        draw();
      }),
      // talp counts words from 1 and marks a possible link by "p"; model/trace/alignment/formats.py
      // reads it.
      button(t("Save as hand-made links (talp)"), () =>
        save(
          "gold.talp",
          pairs().map(([a, b, kind]) => `${a + 1}${kind === "sure" ? "-" : "p"}${b + 1}`),
        ),
      ),
      button(t("Save the links (Pharaoh)"), () =>
        save(
          "links.txt",
          linksOf("sure").map((pair) => pair.join("-")),
        ),
      ),
    ]),
    el("details", {}, el("summary", {}, t("The links as a list")), list),
  ]);
  let width = 0;
  new ResizeObserver(() => {
    if (stage.clientWidth !== width) draw(); // only a new width: the height follows the content
    width = stage.clientWidth;
  }).observe(stage);
  return root;
}
