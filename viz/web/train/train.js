// The Train tab. The page asks for one turn of training after the other: whoever stops asking has stopped.
import { sequential } from "../core/colours.js";
import { el, onTheme, shorten, table } from "../core/dom.js";
import { fixed } from "../core/format.js";
import { said, t } from "../core/language.js";
import { plotly } from "../core/plotly.js";
import { connect } from "../core/rpc.js";
import { pictured } from "../picture/copy.js";
import { drawCurves } from "./curves.js";
import { TITLES, drawMaps } from "./maps.js";
import { createSettings } from "./settings.js";

export default function train(root, api) {
  const options = api.options,
    colour = sequential(options.scale);
  const runs = new Map(); // side -> {side, name, pairs, floor, guess, words, points, frames, done, going}
  let kind = "cross",
    pair = 0,
    at = null; // at: the update that is looked at; null: the latest
  let asking = false,
    drawing = 0;

  const corpus = el("textarea", {
    id: "train-corpus",
    rows: 8,
    spellcheck: "false",
    "aria-describedby": "train-lesson",
  });
  const lesson = el("p", { id: "train-lesson", class: "note" });
  const status = el("p", { class: "status", role: "status" }),
    failed = el("p", { class: "failed", role: "alert", hidden: true });
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
  const pointed = el("p", { class: "note pointed" });
  const sides = {
    a: createSettings("a", options, t("First setting")),
    b: createSettings("b", options, t("Second setting")),
  };
  sides.b.node.hidden = true;

  const corpusButtons = options.corpora.map((one) =>
    el(
      "button",
      { type: "button", "aria-pressed": "false", onclick: () => choose(one) },
      one.title,
    ),
  );
  function choose(one) {
    corpus.value = one.text;
    lesson.replaceChildren(said(one.lesson));
    corpusButtons.forEach((button, i) =>
      button.setAttribute("aria-pressed", String(options.corpora[i] === one)),
    );
  }

  const button = (words, act, strong) =>
    el("button", { type: "button", class: strong ? "plain strong" : "plain", onclick: act }, words);
  const train = button(t("Train"), begin, true),
    stop = button(t("Stop"), () => halt(t("Stopped at update {n}.", { n: newest() }))),
    more = button(t("Resume"), goOn),
    second = button(t("Compare with another setup"), toggleSecond);
  const opening = button(t("Open the first one in the other tabs"), open);
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
  const kinds = el("select", {
    id: "train-kind",
    onchange: () => {
      kind = kinds.value;
      draw();
    },
  });
  const pairs = el("select", {
    id: "train-pair",
    onchange: () => {
      pair = Number(pairs.value);
      draw();
    },
  });
  const boxes = { a: el("div", { class: "maps" }), b: el("div", { class: "maps" }) };
  const headings = { a: el("h2", {}, t("First setting")), b: el("h2", {}, t("Second setting")) };
  const words = el("details", { class: "words", hidden: true });
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
    pictured(chart, {
      title: () => chart.getAttribute("aria-label"),
      caption: () => updated(),
    }),
    outputs,
    words,
    el(
      "div",
      { class: "fields" },
      el("label", { class: "field", for: "train-kind" }, el("span", {}, t("Maps of")), kinds),
      el("label", { class: "field", for: "train-pair" }, el("span", {}, t("Sentence")), pairs),
    ),
    el(
      "div",
      { class: "pair" },
      ...["a", "b"].map((side) =>
        el(
          "div",
          { class: `side ${side}` },
          headings[side],
          pictured(boxes[side], {
            title: () => `${said(TITLES[kind])} · ${headings[side].textContent}`,
            caption: () => `${pairs.selectedOptions[0].textContent} · ${updated()}`,
          }),
        ),
      ),
    ),
    pointed,
    opening,
  );

  root.replaceChildren(
    el(
      "p",
      { class: "look" },
      t(
        "Train a network of your own while you watch: choose a corpus, switch off a part, and see what it was for. It runs on this server's processor for at most {n} updates or a minute, and is gone when you leave.",
        { n: options.updates },
      ),
    ),
    el(
      "div",
      { class: "setup" },
      el(
        "div",
        { class: "corpus" },
        el(
          "label",
          { for: "train-corpus" },
          t("Corpus: a sentence, a bar | and its translation on each line"),
        ),
        el("div", { class: "corpora", role: "group", "aria-label": t("Corpora") }, corpusButtons),
        corpus,
        lesson,
      ),
      el("div", { class: "both" }, sides.a.node, sides.b.node),
    ),
    el("div", { class: "actions" }, train, stop, more, second, status),
    failed,
    result,
  );
  choose(options.corpora[0]);

  const shown = () => [...runs.values()].filter((run) => run.side === "a" || !sides.b.node.hidden);
  const updated = () => t("update {n}", { n: counter.textContent });
  const newest = () => Math.max(0, ...shown().map((run) => run.update));
  const going = () => shown().filter((run) => run.going);

  function toggleSecond() {
    const hidden = (sides.b.node.hidden = !sides.b.node.hidden);
    if (!hidden) sides.b.set(sides.a.values());
    else runs.delete("b");
    second.replaceChildren(hidden ? t("Compare with another setup") : t("Stop comparing"));
    draw();
  }

  async function begin() {
    halt("");
    runs.clear();
    at = null;
    failed.hidden = true;
    const wanted = sides.b.node.hidden ? ["a"] : ["a", "b"];
    status.replaceChildren(t("Starting …"));
    for (const side of wanted)
      await ask({ action: "start", side, corpus: corpus.value, settings: sides[side].values() });
    goOn();
  }

  function goOn() {
    failed.hidden = true;
    for (const run of shown()) run.going = !run.done;
    if (!asking) loop();
  }

  function halt(words) {
    for (const run of runs.values()) run.going = false;
    status.replaceChildren(words);
    buttons();
  }

  // One question at a time, the runs taking turns, as long as one goes on and the page shows it.
  async function loop() {
    asking = true;
    while (going().length) {
      for (const run of going()) await ask({ action: "go", side: run.side });
      if (going().length) status.replaceChildren(t("Training: update {n}", { n: newest() }));
    }
    asking = false;
    buttons();
  }

  const ask = (question) =>
    new Promise((resolve) =>
      rpc.ask("act", question, (answer) => {
        take(answer);
        resolve();
      }),
    );

  function take(answer) {
    if (answer.error) {
      failed.replaceChildren(said(answer.error));
      failed.hidden = false;
      return halt("");
    }
    if (!answer.turn) return;
    const { side, turn } = answer;
    if (answer.run) {
      runs.set(side, {
        ...answer.run,
        side,
        name: side === "a" ? t("first") : t("second"),
        points: [],
        frames: [],
        going: false,
      });
      if (side === "a") fresh(runs.get("a"));
    }
    const run = runs.get(side);
    if (!run) return;
    run.points.push(...turn.points);
    run.frames.push(...turn.frames);
    Object.assign(run, { update: turn.update, done: turn.done });
    if (turn.done) {
      run.going = false;
      status.replaceChildren(said(turn.done));
    }
    if (!drawing)
      drawing = requestAnimationFrame(() => {
        drawing = 0;
        draw();
      });
  }

  // A new corpus: what can be chosen of it.
  function fresh(run) {
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

  function scrub() {
    const stops = updates();
    at = Number(slider.value) >= stops.length - 1 ? null : stops[Number(slider.value)];
    draw();
  }
  const updates = () =>
    [...new Set(shown().flatMap((run) => run.frames.map((frame) => frame.update)))].sort(
      (a, b) => a - b,
    );
  const frameOf = (run) =>
    run.frames.findLast((frame) => at === null || frame.update <= at) ?? run.frames[0];

  function draw() {
    const first = runs.get("a");
    buttons();
    if (!first?.frames.length) return;
    const stops = updates(),
      where = at === null ? stops.length - 1 : stops.indexOf(at);
    slider.max = stops.length - 1;
    slider.value = where;
    counter.replaceChildren(String(stops[where]));
    slider.setAttribute("aria-valuetext", t("update {n}", { n: stops[where] }));
    const found = new Set(
      shown().flatMap((run) =>
        Object.keys(frameOf(run).maps[0] ?? {}).filter((name) => name !== options.decoded),
      ),
    );
    if (!found.has(kind)) kind = found.has("alignment") ? "alignment" : [...found][0];
    if ([...kinds.options].map((o) => o.value).join() !== [...found].join())
      kinds.replaceChildren(
        ...[...found].map((name) => el("option", { value: name }, TITLES[name])),
      );
    kinds.value = kind;
    drawCurves(chart, shown(), at);
    outputs.replaceChildren(outputsOf());
    for (const side of ["a", "b"]) {
      const run = shown().find((one) => one.side === side);
      boxes[side].closest(".side").hidden = !run;
      if (run)
        drawMaps(boxes[side], {
          frame: frameOf(run),
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

  function outputsOf() {
    const mine = shown(),
      first = mine[0];
    const cell = (run, row) => {
      const output = frameOf(run).outputs[row],
        right = output.text === run.pairs[row].wanted;
      return el(
        "td",
        { class: right ? "right" : null },
        right ? el("b", {}, "✓ ") : null,
        output.text || t("(nothing)"),
        output.finished ? "" : " …",
      );
    };
    const count = (run) =>
      frameOf(run).outputs.filter((output, row) => output.text === run.pairs[row].wanted).length;
    const headings = mine.map((run) =>
      t("{run}, greedy: {right} of {n} right, loss {loss}", {
        run: run.name,
        right: count(run),
        n: run.pairs.length,
        loss: fixed(frameOf(run).loss ?? null, 3),
      }),
    );
    return table(
      [t("Source"), t("Wanted"), ...headings],
      first.pairs.map((one, row) =>
        el(
          "tr",
          {},
          el("th", { scope: "row" }, one.text),
          el("td", {}, one.wanted),
          mine.map((run) => cell(run, row)),
        ),
      ),
    );
  }

  function buttons() {
    const busy = going().length > 0;
    stop.disabled = !busy;
    more.disabled = busy || !shown().some((run) => !run.done);
    opening.disabled = busy;
  }

  function open() {
    status.replaceChildren(t("Opening …"));
    rpc.ask("open", { side: "a", pair }, (answer) => {
      if (answer.error) return take(answer);
      status.replaceChildren(
        t(
          "The other tabs now show your network. Links and files do not contain it: a file has only its maps.",
        ),
      );
    });
  }

  const rpc = connect(api, () => {});
  // Once the tab has been opened, the server makes ready while it is read.
  const seen = new IntersectionObserver((entries) => {
    if (!entries.some((entry) => entry.isIntersecting)) return;
    seen.disconnect();
    ask({ action: "prepare" });
  });
  seen.observe(root);
  plotly().then(draw);
  onTheme(draw);
  buttons();
}
