// The Train tab: what is to be learnt and by which networks, and what they have learnt at any update.
import { ask, createAsker } from "../core/ask.js";
import { sequentialScale } from "../core/colours.js";
import { button, el, onThemeChange, shorten, table } from "../core/dom.js";
import { formatFixed } from "../core/format.js";
import { toText, t } from "../core/language.js";
import { loadPlotly } from "../core/plotly.js";
import { openAddress } from "../store/translation.js";
import { createPicture } from "../picture/copy.js";
import { drawCurves } from "./curves.js";
import { TITLES, drawMaps } from "./maps.js";
import { createSettings } from "./settings.js";

// What is taught: sentence pairs, of which one may take some that are there or type one's own.
// corpora: [{title, text, lesson}], of which the first stands there.
function createCorpus(corpora) {
  const text = el("textarea", {
    id: "train-corpus",
    rows: 8,
    spellcheck: "false",
    "aria-describedby": "train-lesson",
  });
  const lesson = el("p", { id: "train-lesson", class: "note" });
  const buttons = corpora.map((corpus) =>
    button(corpus.title, () => choose(corpus), { class: null }),
  );
  function choose(corpus) {
    text.value = corpus.text;
    lesson.replaceChildren(toText(corpus.lesson));
    for (const [i, one] of buttons.entries())
      one.setAttribute("aria-pressed", String(corpora[i] === corpus));
  }
  choose(corpora[0]);
  const node = el(
    "div",
    { class: "corpus" },
    el(
      "label",
      { for: "train-corpus" },
      t("Corpus: a sentence, a bar | and its translation on each line"),
    ),
    el("div", { class: "corpora", role: "group", "aria-label": t("Corpora") }, buttons),
    text,
    lesson,
  );
  return { node, text: () => text.value };
}

// A run's frame of an update, or the last before it; null: of the latest.
const frameOf = (run, at) =>
  run.frames.findLast((frame) => at === null || frame.update <= at) ?? run.frames[0];

// What each sentence becomes at an update: a row for each pair, a column for each run.
function outputsOf(runs, at) {
  const isRight = (run, row) => frameOf(run, at).outputs[row].text === run.pairs[row].wanted;
  const cell = (run, row) => {
    const { text, finished } = frameOf(run, at).outputs[row];
    return el(
      "td",
      { class: isRight(run, row) ? "right" : null },
      isRight(run, row) ? el("b", {}, "✓ ") : null,
      text || t("(nothing)"),
      finished ? "" : " …",
    );
  };
  const headings = runs.map((run) =>
    t("{run}, greedy: {right} of {n} right, loss {loss}", {
      run: run.name,
      right: run.pairs.filter((_, row) => isRight(run, row)).length,
      n: run.pairs.length,
      loss: formatFixed(frameOf(run, at).loss ?? null, 3),
    }),
  );
  const row = ({ text, wanted }, i) =>
    el(
      "tr",
      {},
      el("th", { scope: "row" }, text),
      el("td", {}, wanted),
      runs.map((run) => cell(run, i)),
    );
  return table([t("Source"), t("Wanted"), ...headings], runs[0].pairs.map(row));
}

export default function train(root, api) {
  const options = api.options,
    colour = sequentialScale(options.scale);
  let kind = "cross",
    pair = 0,
    at = null; // at: the update that is looked at; null: the latest
  let drawing = 0;

  // --- what is chosen -----------------------------------------------------------------------------------------------
  const corpus = createCorpus(options.corpora);
  const setups = {
    a: createSettings("a", options, t("First setting")),
    b: createSettings("b", options, t("Second setting")),
  };
  setups.b.node.hidden = true;
  const sides = () => (setups.b.node.hidden ? ["a"] : ["a", "b"]);
  const status = el("p", { class: "status", role: "status" }),
    failed = el("p", { class: "failed", role: "alert", hidden: true });
  const begins = button(t("Train"), begin, { class: "plain strong" }),
    stops = button(t("Stop"), () => halt(t("Stopped at update {n}.", { n: newest() }))),
    goesOn = button(t("Resume"), goOn),
    compares = button(t("Compare with another setup"), toggleSecond),
    opens = button(t("Open the first one in the other tabs"), open);

  // --- what was learnt ----------------------------------------------------------------------------------------------
  const chart = el("div", {
    class: "chart",
    role: "img",
    "aria-label": t("Loss and gradient length of each update"),
  });
  const outputs = el("div", {
    class: "scroll",
    tabindex: "0",
    role: "region",
    "aria-label": t("What each sentence becomes"),
  });
  const slider = el("input", {
    type: "range",
    id: "train-update",
    min: 0,
    max: 0,
    value: 0,
    step: 1,
    oninput: scrub,
  });
  const counter = el("output", { for: "train-update" });
  const chooser = (id, choose) =>
    el("select", { id, onchange: ({ target }) => (choose(target.value), draw()) });
  const kinds = chooser("train-kind", (value) => (kind = value)),
    pairs = chooser("train-pair", (value) => (pair = Number(value)));
  const words = el("details", { class: "words", hidden: true }),
    pointed = el("p", { class: "note pointed" });
  const updated = () => t("update {n}", { n: counter.textContent });
  const side = (name, title) => {
    const box = el("div", { class: "maps" }),
      picture = createPicture(box, {
        title: () => `${toText(TITLES[kind])} · ${title}`,
        caption: () => `${pairs.selectedOptions[0].textContent} · ${updated()}`,
      });
    return { box, node: el("div", { class: `side ${name}` }, el("h2", {}, title), picture) };
  };
  const shown = { a: side("a", t("First setting")), b: side("b", t("Second setting")) };
  const result = el(
    "section",
    { class: "result", hidden: true },
    el(
      "div",
      { class: "transport" },
      el("label", { for: "train-update" }, t("Show update")),
      slider,
      counter,
    ),
    createPicture(chart, { title: () => chart.getAttribute("aria-label"), caption: updated }),
    outputs,
    words,
    el(
      "div",
      { class: "fields" },
      el("label", { class: "field", for: "train-kind" }, el("span", {}, t("Maps of")), kinds),
      el("label", { class: "field", for: "train-pair" }, el("span", {}, t("Sentence")), pairs),
    ),
    el("div", { class: "pair" }, shown.a.node, shown.b.node),
    pointed,
    opens,
  );

  root.replaceChildren(
    el("h2", { class: "sr-only" }, t("Train your own")),
    el(
      "p",
      { class: "look" },
      t(
        "Train a network of your own while you watch: choose a corpus, switch off a part, and see what it was for. It runs on this server's processor for at most {n} updates, and is gone when you leave.",
        { n: options.updates },
      ),
    ),
    el(
      "div",
      { class: "setup" },
      corpus.node,
      el("div", { class: "both" }, setups.a.node, setups.b.node),
    ),
    el("div", { class: "actions" }, begins, stops, goesOn, compares, status),
    failed,
    result,
  );

  // --- the runs -----------------------------------------------------------------------------------------------------
  // Each is one question (page_train), which the server answers turn by turn; a question that is stopped ends the training.
  const runs = new Map(); // side -> {side, name, recipe: {corpus, settings}, pairs, floor, guess, words, points, frames, update, done}
  const askers = { a: createAsker(), b: createAsker() };
  const shownRuns = () => [...runs.values()].filter((run) => sides().includes(run.side));
  const isTraining = () => sides().some((name) => askers[name].busy());
  const newest = () => Math.max(0, ...shownRuns().map((run) => run.update));

  async function learn(name, recipe, from = 0) {
    const fields = { ...recipe, from, updates: options.updates };
    await askers[name].ask(
      "page_train",
      { fields },
      { part: (content) => take(name, recipe, content) },
    );
    if (!isTraining()) enable();
  }

  function take(name, recipe, { error, run: begun, turn }) {
    if (error) return fail(toText(error));
    if (begun && !runs.has(name)) {
      const title = name === "a" ? t("first") : t("second");
      runs.set(name, {
        ...begun,
        side: name,
        name: title,
        recipe,
        points: [],
        frames: [],
        update: 0,
      });
      if (name === "a") offer(begun);
    }
    const run = runs.get(name);
    // A question that was sent again, after a broken connection, repeats turns.
    const last = run.points.at(-1)?.[0] ?? 0,
      lastFrame = run.frames.at(-1)?.update ?? -1;
    run.points.push(...turn.points.filter(([update]) => update > last));
    run.frames.push(...turn.frames.filter(({ update }) => update > lastFrame));
    Object.assign(run, { update: Math.max(run.update, turn.update), done: turn.done });
    status.replaceChildren(
      turn.done ? toText(turn.done) : t("Training: update {n}", { n: newest() }),
    );
    drawing ||= requestAnimationFrame(() => {
      drawing = 0;
      draw();
    });
  }

  // The updates of which there is a frame, in order.
  const updates = () =>
    [...new Set(shownRuns().flatMap((run) => run.frames.map((frame) => frame.update)))].sort(
      (a, b) => a - b,
    );

  // --- what a person does -------------------------------------------------------------------------------------------
  function toggleSecond() {
    const hidden = (setups.b.node.hidden = !setups.b.node.hidden);
    if (hidden) {
      askers.b.stop();
      runs.delete("b");
    } else setups.b.set(setups.a.values());
    compares.replaceChildren(hidden ? t("Compare with another setup") : t("Stop comparing"));
    draw();
  }

  function begin() {
    halt("");
    at = null;
    failed.hidden = true;
    status.replaceChildren(t("Starting …"));
    runs.clear();
    for (const name of sides())
      learn(name, { corpus: corpus.text(), settings: setups[name].values() });
    enable();
  }

  function goOn() {
    failed.hidden = true;
    for (const run of shownRuns()) if (!run.done) learn(run.side, run.recipe, run.update);
    enable();
  }

  function halt(text) {
    for (const asker of Object.values(askers)) asker.stop();
    status.replaceChildren(text);
    enable();
  }

  function fail(text) {
    failed.replaceChildren(text);
    failed.hidden = false;
    halt("");
  }

  function scrub() {
    const stops = updates();
    at = Number(slider.value) >= stops.length - 1 ? null : stops[Number(slider.value)];
    draw();
  }

  async function open() {
    status.replaceChildren(t("Opening …"));
    const { recipe, update } = runs.get("a"),
      fields = { recipe: { ...recipe, updates: update }, pair };
    const { error, opens: address, fill } = await ask("page_toy", { fields });
    if (error) return fail(toText(error));
    await openAddress(address, { fill });
    status.replaceChildren(
      t(
        "The other tabs now show your network. Links and files do not contain it: a file has only its maps.",
      ),
    );
  }

  // --- the page -----------------------------------------------------------------------------------------------------
  // A new corpus: what can be chosen of it.
  function offer(run) {
    result.hidden = false;
    pair = 0;
    pairs.replaceChildren(
      ...run.pairs
        .slice(0, options.mapped)
        .map((one, i) => el("option", { value: i }, shorten(one.text, 40))),
    );
    words.hidden = false;
    words.replaceChildren(
      el("summary", {}, t("Vocabulary: {n} words and 3 symbols", { n: run.words.length })),
      el("p", { class: "note" }, run.words.join(" · ")),
    );
  }

  function draw() {
    enable();
    if (!runs.get("a")?.frames.length) return;
    const all = shownRuns(),
      stops = updates(),
      where = at === null ? stops.length - 1 : stops.indexOf(at);
    slider.max = stops.length - 1;
    slider.value = where;
    counter.replaceChildren(String(stops[where]));
    slider.setAttribute("aria-valuetext", t("update {n}", { n: stops[where] }));
    const found = new Set(all.flatMap((run) => Object.keys(frameOf(run, at).maps[0] ?? {})));
    found.delete(options.decoded);
    if (!found.has(kind)) kind = found.has("alignment") ? "alignment" : [...found][0];
    if ([...kinds.options].map((o) => o.value).join() !== [...found].join())
      kinds.replaceChildren(
        ...[...found].map((name) => el("option", { value: name }, TITLES[name])),
      );
    kinds.value = kind;
    drawCurves(chart, all, at);
    outputs.replaceChildren(outputsOf(all, at));
    for (const [name, { node, box }] of Object.entries(shown)) {
      const run = all.find((one) => one.side === name);
      node.hidden = !run;
      if (run)
        drawMaps(box, {
          frame: frameOf(run, at),
          at: pair,
          kind,
          decoded: options.decoded,
          pair: run.pairs[pair],
          colour,
          tell: (text) => pointed.replaceChildren(text),
        });
    }
    root.dataset.update = String(newest());
  }

  function enable() {
    const busy = isTraining();
    stops.disabled = !busy;
    goesOn.disabled = busy || !shownRuns().some((run) => !run.done);
    opens.disabled = busy;
  }

  // Once the tab has been opened, the server makes ready while it is read.
  const seen = new IntersectionObserver((entries) => {
    if (!entries.some((entry) => entry.isIntersecting)) return;
    seen.disconnect();
    ask("page_train", { fields: {} });
  });
  seen.observe(root);
  loadPlotly().then(draw);
  onThemeChange(draw);
  enable();
}
