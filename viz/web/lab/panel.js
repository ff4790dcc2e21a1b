// A lab panel: what to look for, its controls, and its content, which the server computes (viz/questions/panels.py).
import { createAsker, ask as askServer } from "../core/ask.js";
import { button, el, onVisible } from "../core/dom.js";
import { toText, t } from "../core/language.js";
import { explorerMaps, panelLinks, openLink } from "../core/links.js";
import { loadPlotly } from "../core/plotly.js";
import { store } from "../store/store.js";
import { openAddress } from "../store/translation.js";
import { links } from "../heads/links.js";
import { survey } from "../heads/survey.js";
import { createProgress, open_head, pick, take } from "../heads/take.js";
import { carryFigures } from "../picture/figure.js";
import { words } from "../why/kept.js";
import { simple } from "./blocks.js";
import { createControls } from "./controls.js";
import { glossed } from "./glossary.js";
import { grid, heads } from "./heads.js";
import { matrix } from "./matrix.js";

const BLOCKS = { ...simple, take, pick, open_head, survey, grid, heads, links, matrix, words }; // by their type (viz/wire/blocks.py)

const begun = new Set(); // keys of the works that were begun on this page: any process that lacks a result computes it

// Create a panel. described: what viz/panels/registry.py says of it. parent: the element that it is put into; follows: fields of
// the store that make it ask again; link: fields that set its controls. Returns {set(link)}.
export function createPanel(described, { parent, follows, link }) {
  const { name, title, look, section, paper, streams, stops, checks_page: checksPage } = described,
    asker = createAsker();
  const root = el(
    "div",
    { class: "atlas-root atlas-panel", "data-mounted": "" },
    el("p", { class: "text note" }, t("Computing …")),
  );
  let about = null; // which translation the panel is about, in words
  let turn = 0, // of what was asked and of what came
    figures = Promise.resolve(); // that those of what came are drawn
  let acts = 0,
    checked; // what the page drew when the last question went out, for a panel that checks it
  let shown = () => false; // whether the panel is seen, and can be drawn

  const controls = createControls(name, described.controls, described.button, {
    // A stream that is under way ends; all else is waited for.
    moved: () => !described.button && shown() && ask({ waits: !streams && !progress.isShown() }),
    pressed: () => shown() && ask(),
  });
  controls.set(link);
  parent.append(
    el(
      "section",
      { class: "atlas-frame" },
      el(
        "div",
        { class: "atlas-prose" },
        el("h2", { class: "sr-only" }, toText(title)),
        el(
          "p",
          {},
          ...glossed(toText(look)),
          " ",
          el("a", { href: paper, target: "_blank", rel: "noopener noreferrer" }, toText(section)),
        ),
      ),
      controls.element ?? "",
      el("div", { id: `panel-${name}`, class: "content" }, root),
    ),
  );

  const setBusy = (isBusy) => root.setAttribute("aria-busy", String(isBusy));
  const halt = () => (asker.stop(), stop.remove(), setBusy(false));
  const stop = button(t("Stop"), halt, { class: "plain stop" });
  let work = null; // the key of what was begun last in this panel
  const progress = createProgress(root, () => {
    begun.delete(work);
    halt();
  });
  function begin(key) {
    begun.add((work = key));
    ask();
  }

  function show(value) {
    if (value.error) {
      begun.delete(work);
      setBusy(false);
      stop.remove();
      root.querySelector(".failed")?.remove();
      root.prepend(el("p", { class: "failed", role: "alert" }, toText(value.error)));
      return; // what was there stays readable
    }
    const mine = value.blocks ? ++turn : turn,
      ready = () => mine === turn && setBusy(false);
    if (value.more === false) stop.remove();
    if (!value.blocks) return void figures.then(ready);
    panelLinks[name] = value.controls ?? {};
    controls.take(value);
    about = value.about;
    figures = place(root, value.blocks);
    if (!value.more) figures.then(ready);
    if (value.more && stops) root.prepend(stop);
    root.dataset.drawn = String(Number(root.dataset.drawn || 0) + 1);
  }

  // Returns a promise that its figures are drawn.
  function place(parent, blocks) {
    const after = [],
      handOver = carryFigures(parent);
    parent.replaceChildren(...blocks.map((block) => drawBlock(block, after)));
    handOver();
    // A figure takes its width from the page, so it must be in it.
    return Promise.allSettled(after.map((plot) => plot()));
  }

  // keep: takes what is to be called once the block stands on the page.
  const drawBlock = (block, keep) =>
    BLOCKS[block.type](block, keep, {
      act,
      request,
      begin,
      ask: beside,
      open: openLink,
      about: pictureOf,
      block: drawBlock,
    });

  // Of a picture in it: what it is called, else what the panel is, and the sentence.
  const pictureOf = (named) => ({
    title: () => named || toText(title),
    caption: () => toText(about) || "",
  });

  // A question of this panel: its address, and the fields that all its questions have.
  const question = (fields) => ({
    address: store.state.address,
    fields: {
      panel: name,
      controls: controls.values(),
      selection: store.state.selection,
      asked: store.state.asked,
      begun: [...begun],
      ...fields,
    },
  });

  const request = async (act, data, answered) =>
    answered(await askServer("page_panel_act", question({ act, data })));

  // What a block asks for that other parts of the page show; here only why it cannot be had.
  let others = 0;
  async function beside(event, data) {
    const mine = ++others,
      isText = event === "find",
      found = await askServer(
        isText ? "page_panel_fill" : "page_panel_translate",
        question({ data }),
      );
    if (mine !== others) return;
    if (found.error) return show(found);
    if (!isText) return openAddress(found.opens, { asks: found.asks });
    controls.fill(found.fill);
    ask({ waits: !streams });
  }

  // What a block asks for besides: its answer takes the place of what stood in a slot. Of several, the last one counts.
  function act(name, slot, data = {}) {
    const box = root.querySelector(`[data-slot="${slot}"]`),
      mine = String(++acts);
    if (!box) return; // the panel was drawn anew meanwhile
    box.dataset.act = mine;
    box.setAttribute("aria-busy", "true");
    request(name, data, (value) => {
      if (!box.isConnected || box.dataset.act !== mine) return;
      const blocks = value.error
        ? [{ type: "text", text: value.error, tone: "bad" }]
        : value.blocks;
      place(box, blocks).then(
        () => box.dataset.act === mine && box.setAttribute("aria-busy", "false"),
      );
    });
  }

  // waits: a control was moved. What was asked before is waited for, and then the last position counts.
  let asking = 0, // how many questions are under way
    held = false; // whether a question waits for them
  async function ask({ waits = false } = {}) {
    held = waits && asking > 0;
    if (held) return;
    turn += 1;
    asker.stop();
    setBusy(true);
    checked = checksPage ? explorerMaps.weights() : undefined;
    asking += 1;
    await asker.ask("page_panel", question({ drawn: checked }), {
      part: show,
      working: progress.show,
    });
    asking -= 1;
    if (held && !asking) ask();
  }

  loadPlotly().then(() => {
    shown = onVisible(root, ask);
    store.follow(follows, () => shown() && ask());
    // The explorer may draw a new translation after this panel has asked about it.
    if (checksPage)
      store.follow(["drawCount"], () => shown() && checked?.key !== explorerMaps.key() && ask());
  });

  return { set: (link) => controls.set(link) && shown() && ask() };
}
