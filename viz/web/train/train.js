// The tab "Train": choose a corpus and one or two networks, train them on the server, and look at what they have learned at any
// update.
import { ask, createAsker } from "../core/ask.js";
import { sequentialScale } from "../core/colours.js";
import { button, el, onThemeChange, onVisible, rangeField, shorten, table } from "../core/dom.js";
import { formatFixed } from "../core/format.js";
import { toText, t } from "../core/language.js";
import { loadPlotly } from "../core/plotly.js";
import { openAddress } from "../store/translation.js";
import { markPanel } from "../lab/glossary.js";
import { createPicture } from "../picture/copy.js";
import { DECODED, KIND_TITLES, drawCurves, drawMaps, minimisesAnother } from "./pictures.js";
import { createSettings } from "./settings.js";

/**
 * Create the text field for the sentence pairs to learn, and the buttons that fill it.
 * @param {{title: any, text: string, lesson: any, settings: Record<string, any>, measured: any[]}[]} corpora the first is filled in
 * @param {(settings: Record<string, any>) => void} apply is called with the settings of a corpus that has some, and with {} when
 *   another corpus follows it
 */
function createCorpus(corpora, apply) {
  const text = el("textarea", {
    id: "train-corpus",
    rows: 8,
    spellcheck: "false",
    "aria-describedby": "train-lesson",
  });
  const lesson = el("p", { id: "train-lesson", class: "note" }),
    measured = el("div", { class: "scroll" });
  let hasSettings = false; // of the corpus before
  const buttons = corpora.map((corpus) => button(corpus.title, () => fill(corpus)));
  function fill(corpus) {
    text.value = corpus.text;
    lesson.replaceChildren(toText(corpus.lesson));
    measured.replaceChildren(createHeadsTable(corpus.measured));
    const { settings } = corpus,
      isMadeFor = Object.keys(settings).length > 0;
    if (isMadeFor || hasSettings) apply(settings);
    hasSettings = isMadeFor;
    for (const [i, node] of buttons.entries())
      node.setAttribute("aria-pressed", String(corpora[i] === corpus));
  }
  fill(corpora[0]);
  const node = el("div", { class: "corpus" }, [
    el("label", { for: "train-corpus" }, [t("Corpus, one pair per line: sentence | translation")]),
    el("div", { class: "corpora", role: "group", "aria-label": t("Corpora") }, buttons),
    text,
    lesson,
    measured,
  ]);
  return { node, text: () => text.value };
}

/**
 * Create the table of measured losses by the number of heads, or nothing.
 * @param {{heads: number, losses: {update: number, mean: number, deviation: number}[]}[]} measured
 */
function createHeadsTable(measured) {
  if (!measured.length) return "";
  const cell = ({ mean, deviation }) =>
    el("td", {}, `${formatFixed(mean, 3)} ± ${formatFixed(deviation, 3)}`);
  return table(
    [
      t("Heads per layer"),
      ...measured[0].losses.map(({ update }) => t("Loss after {n} updates", { n: update })),
    ],
    measured.map(({ heads, losses }) =>
      el("tr", {}, el("th", { scope: "row" }, String(heads)), losses.map(cell)),
    ),
  );
}

/**
 * The frame of a run at an update, or the last one before it.
 * @param {any} run @param {number | null} update null: the latest
 */
const frameOf = (run, update) =>
  run.frames.findLast((frame) => update === null || frame.update <= update) ?? run.frames[0];

/**
 * Create the table of translations at an update: a row for each sentence pair, a column for each run.
 * @param {any[]} runs @param {number | null} update null: the latest
 */
function createOutputs(runs, update) {
  const outputOf = (run, row) => frameOf(run, update).outputs[row];
  const isRight = (run, row) => outputOf(run, row).text === run.pairs[row].wanted;
  const cell = (run, row) => {
    const { text, finished } = outputOf(run, row);
    return el("td", { class: isRight(run, row) ? "right" : null }, [
      isRight(run, row) ? el("b", {}, "✓ ") : null,
      text || t("(nothing)"),
      finished ? "" : " …",
    ]);
  };
  const headings = runs.map((run) =>
    t("{run}, greedy: {right} of {n} right, loss {loss}", {
      run: run.name,
      right: run.pairs.filter((_, row) => isRight(run, row)).length,
      n: run.pairs.length,
      loss: formatFixed(frameOf(run, update).loss ?? null, 3),
    }),
  );
  const row = ({ text, wanted }, i) =>
    el("tr", {}, [
      el("th", { scope: "row" }, text),
      el("td", {}, wanted),
      runs.map((run) => cell(run, i)),
    ]);
  return table([t("Source"), t("Expected"), ...headings], runs[0].pairs.map(row));
}

/**
 * @param {any} root the element of the tab
 * @param {{options: any}} api options: viz/questions/train.py, options()
 */
export default function train(root, api) {
  const options = api.options,
    colour = sequentialScale(options.scale);
  let selected = null, // the update that is looked at; null: the latest
    frame = 0; // of the browser, in which draw() is due

  // --- the settings and the results -----------------------------------------------------------------------------------
  const corpus = createCorpus(options.corpora, (settings) =>
    first.settings.set({ ...options.settings, ...settings }),
  );
  const status = el("p", { class: "status", role: "status" }),
    failed = el("p", { class: "failed", role: "alert", hidden: true });
  const startButton = button(t("Train"), start, { class: "plain strong" }),
    stopButton = button(t("Stop"), () => stop(t("Stopped at update {n}.", { n: latestUpdate() }))),
    resumeButton = button(t("Resume"), resume),
    compareButton = button(t("Compare with another setting"), toggleSecond),
    openButton = button(t("Open setting A in the other tabs"), open);
  const chart = el("div", {
    class: "chart",
    role: "img",
    "aria-label": t("Loss and gradient length of each update"),
  });
  const losses = el("p", { class: "note losses" });
  const outputs = el("div", {
    class: "scroll",
    tabindex: "0",
    role: "region",
    "aria-label": t("Translations of each sentence"),
  });
  const slider = rangeField(null, { id: "train-update", max: 0, value: 0 }, scrub),
    counter = el("output", { for: "train-update" });
  const kinds = el("select", { id: "train-kind", onchange: draw }),
    pairs = el("select", { id: "train-pair", onchange: draw });
  const words = el("details", { class: "words", hidden: true }),
    reading = el("p", { class: "note pointed" });
  const updateName = () => t("update {n}", { n: counter.textContent });

  // One of the networks that are compared. name: "a" or "b"; run: {side, name, recipe: {corpus, settings}, pairs, floor, guess,
  // words, points, frames, update, done}, or null. A run is one request (page_train), which the server answers in parts, one
  // for each turn of updates. Stopping the request ends the training.
  function createSide(name, title, runName) {
    const box = el("div", { class: "maps" });
    const picture = createPicture(box, {
      title: () => `${toText(KIND_TITLES[kinds.value])} · ${title}`,
      caption: () => `${pairs.selectedOptions[0].textContent} · ${updateName()}`,
    });
    return {
      name,
      runName,
      settings: createSettings(name, options, title),
      asker: createAsker(),
      run: /** @type {any} */ (null),
      box,
      node: el("div", { class: `side ${name}` }, el("h2", {}, title), picture),
    };
  }
  const first = createSide("a", t("Setting A"), "A"),
    second = createSide("b", t("Setting B"), "B");
  second.settings.node.hidden = true;
  const sides = () => (second.settings.node.hidden ? [first] : [first, second]);
  const runs = () => sides().flatMap(({ run }) => run ?? []);
  const isTraining = () => sides().some(({ asker }) => asker.busy());
  const latestUpdate = () => Math.max(0, ...runs().map((run) => run.update));

  const result = el("section", { class: "result", hidden: true }, [
    el("div", { class: "transport" }, [
      el("label", { for: "train-update" }, t("Show update")),
      slider,
      counter,
    ]),
    createPicture(chart, { title: () => chart.getAttribute("aria-label"), caption: updateName }),
    losses,
    outputs,
    words,
    el("div", { class: "fields" }, [
      el("label", { class: "field", for: "train-kind" }, el("span", {}, t("Maps of")), kinds),
      el("label", { class: "field", for: "train-pair" }, el("span", {}, t("Sentence")), pairs),
    ]),
    el("div", { class: "pair" }, first.node, second.node),
    reading,
    openButton,
  ]);
  root.replaceChildren(
    el("h2", { class: "sr-only" }, t("Train your own")),
    el("p", { class: "look", "data-terms": "" }, [
      t(
        "Train your own network and watch: choose a corpus, switch off a part, and see what it was for. It runs on this server's processor for at most {n} updates and is deleted when you leave.",
        { n: options.updates },
      ),
    ]),
    el("div", { class: "setup" }, [
      corpus.node,
      el("div", { class: "both" }, first.settings.node, second.settings.node),
    ]),
    el("div", { class: "actions" }, startButton, stopButton, resumeButton, compareButton, status),
    failed,
    result,
  );
  markPanel(root);

  // --- the runs -----------------------------------------------------------------------------------------------------
  async function requestTraining(side, recipe, from = 0) {
    const fields = { ...recipe, from, updates: options.updates },
      part = (answer) => receive(side, recipe, answer);
    await side.asker.ask("page_train", { fields }, { part });
    if (!isTraining()) enable();
  }

  // run: what is known of a run from the start, with its first part only.
  function receive(side, recipe, { error, run: description, turn }) {
    if (error) return fail(toText(error));
    if (description && !side.run) {
      const empty = { points: [], frames: [], update: 0 };
      side.run = { ...description, ...empty, side: side.name, name: side.runName, recipe };
      if (side === first) offer(description);
    }
    const { run } = side;
    // A request that was sent again after a broken connection repeats turns.
    const last = run.points.at(-1)?.[0] ?? 0,
      lastFrame = run.frames.at(-1)?.update ?? -1;
    run.points.push(...turn.points.filter(([update]) => update > last));
    run.frames.push(...turn.frames.filter(({ update }) => update > lastFrame));
    Object.assign(run, { update: Math.max(run.update, turn.update), done: turn.done });
    status.replaceChildren(
      turn.done ? toText(turn.done) : t("Training: update {n}", { n: latestUpdate() }),
    );
    frame ||= requestAnimationFrame(() => {
      frame = 0;
      draw();
    });
  }

  // The updates that have a frame, in order.
  const updates = () =>
    [...new Set(runs().flatMap((run) => run.frames.map((frame) => frame.update)))].sort(
      (a, b) => a - b,
    );

  // --- actions -----------------------------------------------------------------------------------------------------
  function toggleSecond() {
    const isHidden = !second.settings.node.hidden;
    second.settings.node.hidden = isHidden;
    second.asker.stop();
    second.run = null;
    if (!isHidden) second.settings.set(first.settings.values());
    compareButton.replaceChildren(
      isHidden ? t("Compare with another setting") : t("Stop comparing"),
    );
    draw();
  }

  function start() {
    stop("");
    selected = null;
    failed.hidden = true;
    status.replaceChildren(t("Starting …"));
    for (const side of sides()) {
      side.run = null;
      requestTraining(side, { corpus: corpus.text(), settings: side.settings.values() });
    }
    enable();
  }

  function resume() {
    failed.hidden = true;
    for (const side of sides())
      if (side.run && !side.run.done) requestTraining(side, side.run.recipe, side.run.update);
    enable();
  }

  function stop(text) {
    for (const { asker } of sides()) asker.stop();
    status.replaceChildren(text);
    enable();
  }

  function fail(text) {
    failed.replaceChildren(text);
    failed.hidden = false;
    stop("");
  }

  function scrub(index) {
    const all = updates();
    selected = index >= all.length - 1 ? null : all[index];
    draw();
  }

  async function open() {
    status.replaceChildren(t("Opening …"));
    const { recipe, update } = first.run,
      fields = { recipe: { ...recipe, updates: update }, pair: Number(pairs.value) };
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
  // Offer the sentences of a new corpus, and its vocabulary.
  function offer(run) {
    result.hidden = words.hidden = false;
    pairs.replaceChildren(
      ...run.pairs
        .slice(0, options.mapped)
        .map(({ text }, i) => el("option", { value: i }, shorten(text, 40))),
    );
    words.replaceChildren(
      el("summary", {}, t("Vocabulary: {n} words and 3 symbols", { n: run.words.length })),
      el("p", { class: "note" }, run.words.join(" · ")),
    );
  }

  function draw() {
    enable();
    if (!first.run?.frames.length) return;
    const all = updates(),
      index = selected === null ? all.length - 1 : all.indexOf(selected);
    slider.max = all.length - 1;
    slider.value = index;
    counter.replaceChildren(String(all[index]));
    slider.setAttribute("aria-valuetext", updateName());
    drawKinds();
    drawCurves(chart, runs(), selected);
    losses.replaceChildren(runs().map(describeLosses).join(" "));
    outputs.replaceChildren(createOutputs(runs(), selected));
    for (const { run, node, box } of [first, second]) {
      node.hidden = !run;
      if (run)
        drawMaps(box, {
          frame: frameOf(run, selected),
          index: Number(pairs.value),
          pair: run.pairs[pairs.value],
          kind: kinds.value,
          colour,
          describe: (text) => reading.replaceChildren(text),
        });
    }
    root.dataset.update = String(latestUpdate());
  }

  // The losses of a run's batch at the update that is looked at.
  function describeLosses({ name, points, frames }) {
    const { update } = frameOf({ frames }, selected),
      [, loss, minimised] = points.find(([n]) => n === update) ?? [];
    if (loss === undefined) return "";
    const values = { run: name, n: update, loss: formatFixed(loss, 3) };
    return minimisesAnother(points)
      ? t("{run}, update {n}: training loss {trained}; cross-entropy {loss} nats per token.", {
          ...values,
          trained: formatFixed(minimised, 3),
        })
      : t("{run}, update {n}: {loss} nats per token.", values);
  }

  // Fill the menu of the kinds of maps that the runs have.
  function drawKinds() {
    const maps = runs().map((run) => frameOf(run, selected).maps[0] ?? {}),
      names = new Set(maps.flatMap(Object.keys));
    names.delete(DECODED);
    const kind = [kinds.value, "cross", "alignment", ...names].find((name) => names.has(name));
    if ([...kinds.options].map((option) => option.value).join() !== [...names].join())
      kinds.replaceChildren(
        ...[...names].map((name) => el("option", { value: name }, KIND_TITLES[name])),
      );
    kinds.value = kind;
  }

  function enable() {
    const isBusy = isTraining();
    stopButton.disabled = !isBusy;
    resumeButton.disabled = isBusy || runs().every((run) => run.done);
    openButton.disabled = isBusy;
  }

  // While the visitor reads the opened tab, the server loads what training needs (once: later it answers immediately).
  onVisible(root, () => ask("page_train", { fields: {} }));
  loadPlotly().then(draw);
  onThemeChange(draw);
  enable();
}
