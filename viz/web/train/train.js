// The Train tab: what is to be learnt and by which networks, and what they have learnt at any update.
import { ask } from "../core/ask.js";
import { sequential } from "../core/colours.js";
import { button, el, onTheme, shorten } from "../core/dom.js";
import { said, t } from "../core/language.js";
import { plotly } from "../core/plotly.js";
import { openAddress } from "../store/translation.js";
import { pictured } from "../picture/copy.js";
import { createCorpus } from "./corpus.js";
import { drawCurves } from "./curves.js";
import { TITLES, drawMaps } from "./maps.js";
import { outputsOf } from "./outputs.js";
import { createRuns, frameOf } from "./runs.js";
import { createSettings } from "./settings.js";

export default function train(root, api) {
  const options = api.options,
    colour = sequential(options.scale);
  let kind = "cross",
    pair = 0,
    at = null; // at: the update that is looked at; null: the latest
  let drawing = 0;

  const corpus = createCorpus(options.corpora);
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

  const shownSides = () => (sides.b.node.hidden ? ["a"] : ["a", "b"]);
  const runs = createRuns({
    updates: options.updates,
    sides: shownSides,
    begun: fresh,
    changed: schedule,
    say: (words) => status.replaceChildren(words),
    fail,
    rested: buttons,
  });

  const train = button(t("Train"), begin, { class: "plain strong" }),
    stop = button(t("Stop"), () => halt(t("Stopped at update {n}.", { n: runs.newest() }))),
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
      el("div", { class: "both" }, sides.a.node, sides.b.node),
    ),
    el("div", { class: "actions" }, train, stop, more, second, status),
    failed,
    result,
  );

  const updated = () => t("update {n}", { n: counter.textContent });

  function toggleSecond() {
    const hidden = (sides.b.node.hidden = !sides.b.node.hidden);
    if (!hidden) sides.b.set(sides.a.values());
    else runs.forget("b");
    second.replaceChildren(hidden ? t("Compare with another setup") : t("Stop comparing"));
    draw();
  }

  function begin() {
    halt("");
    at = null;
    failed.hidden = true;
    status.replaceChildren(t("Starting …"));
    runs.begin((side) => ({ corpus: corpus.text(), settings: sides[side].values() }));
    buttons();
  }

  function goOn() {
    failed.hidden = true;
    runs.goOn();
    buttons();
  }

  function halt(words) {
    runs.stop();
    status.replaceChildren(words);
    buttons();
  }

  function fail(words) {
    failed.replaceChildren(words);
    failed.hidden = false;
    halt("");
  }

  function schedule() {
    drawing ||= requestAnimationFrame(() => {
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
    const stops = runs.updates();
    at = Number(slider.value) >= stops.length - 1 ? null : stops[Number(slider.value)];
    draw();
  }

  function draw() {
    buttons();
    if (!runs.first()?.frames.length) return;
    const shown = runs.shown(),
      stops = runs.updates(),
      where = at === null ? stops.length - 1 : stops.indexOf(at);
    slider.max = stops.length - 1;
    slider.value = where;
    counter.replaceChildren(String(stops[where]));
    slider.setAttribute("aria-valuetext", t("update {n}", { n: stops[where] }));
    const found = new Set(
      shown.flatMap((run) =>
        Object.keys(frameOf(run, at).maps[0] ?? {}).filter((name) => name !== options.decoded),
      ),
    );
    if (!found.has(kind)) kind = found.has("alignment") ? "alignment" : [...found][0];
    if ([...kinds.options].map((o) => o.value).join() !== [...found].join())
      kinds.replaceChildren(
        ...[...found].map((name) => el("option", { value: name }, TITLES[name])),
      );
    kinds.value = kind;
    drawCurves(chart, shown, at);
    outputs.replaceChildren(outputsOf(shown, at));
    for (const side of ["a", "b"]) {
      const run = shown.find((one) => one.side === side);
      boxes[side].closest(".side").hidden = !run;
      if (run)
        drawMaps(boxes[side], {
          frame: frameOf(run, at),
          at: pair,
          kind,
          decoded: options.decoded,
          pair: run.pairs[pair],
          colour,
          tell: (text) => pointed.replaceChildren(text),
        });
    }
    root.dataset.update = String(runs.newest());
  }

  function buttons() {
    const busy = runs.isTraining();
    stop.disabled = !busy;
    more.disabled = busy || !runs.shown().some((run) => !run.done);
    opening.disabled = busy;
  }

  async function open() {
    status.replaceChildren(t("Opening …"));
    const { recipe, update } = runs.first(),
      fields = { recipe: { ...recipe, updates: update }, pair };
    const { error, opens, fill } = await ask("page_toy", { fields });
    if (error) return fail(said(error));
    await openAddress(opens, { fill });
    status.replaceChildren(
      t(
        "The other tabs now show your network. Links and files do not contain it: a file has only its maps.",
      ),
    );
  }

  // Once the tab has been opened, the server makes ready while it is read.
  const seen = new IntersectionObserver((entries) => {
    if (!entries.some((entry) => entry.isIntersecting)) return;
    seen.disconnect();
    ask("page_train", { fields: {} });
  });
  seen.observe(root);
  plotly().then(draw);
  onTheme(draw);
  buttons();
}
