// A lab panel. It is told {stale} (ask for content once it can be seen), asks, and is answered {blocks} or {error}.
import { createAsker, ask as askServer } from "../core/ask.js";
import { el, whenSeen } from "../core/dom.js";
import { said, t } from "../core/language.js";
import { drawn, panelLinks, visit } from "../core/links.js";
import { plotly } from "../core/plotly.js";
import { connect } from "../core/rpc.js";
import { store } from "../store/store.js";
import { links } from "../heads/links.js";
import { survey } from "../heads/survey.js";
import * as surveying from "../heads/take.js";
import { taken } from "../picture/figure.js";
import { words } from "../why/words.js";
import { simple } from "./blocks.js";
import { exports } from "./exports.js";
import { grid, heads } from "./heads.js";
import { matrix } from "./matrix.js";

const BLOCKS = { ...simple, ...surveying, survey, exports, grid, heads, links, matrix, words }; // by their type (viz/wire/blocks.py)

export default async function panel(root, api) {
  const { name, linked = {}, follows = [] } = api.options ?? {},
    asker = createAsker();
  let about = null; // which translation the panel is about, in words
  let turn = 0, // of what was asked and of what came
    figures = null; // a promise that those of what came are drawn, until they are
  let acts = 0,
    checked; // what the page drew when the last question went out, for a panel that checks it
  root.replaceChildren(el("p", { class: "text note" }, t("Computing …")));
  await plotly();

  const stop = el(
    "button",
    {
      type: "button",
      class: "plain stop",
      onclick: () => (asker.stop(), stop.remove(), root.setAttribute("aria-busy", "false")),
    },
    t("Stop"),
  );

  function show(value) {
    if (value.error) {
      root.setAttribute("aria-busy", "false");
      stop.remove();
      root.querySelector(".failed")?.remove();
      root.prepend(el("p", { class: "failed", role: "alert" }, said(value.error)));
      return; // what was there stays readable
    }
    const mine = value.blocks ? ++turn : turn,
      ready = () => mine === turn && root.setAttribute("aria-busy", "false");
    if (value.more === false) stop.remove();
    if (!value.blocks) return void (figures ? figures.then(ready) : ready());
    panelLinks[name] = value.controls ?? {};
    about = value.about;
    root.classList.toggle("lacking", Boolean(value.lacks)); // whose controls would do nothing
    const plotted = (figures = place(root, value.blocks));
    if (plotted) plotted.then(() => plotted === figures && (figures = null));
    if (!value.more) show({});
    if (value.more && api.options?.stops) root.prepend(stop);
    root.dataset.drawn = String(Number(root.dataset.drawn || 0) + 1);
  }

  // A promise that its figures are drawn, where there are some.
  function place(parent, blocks) {
    const after = [],
      handOver = taken(parent);
    parent.replaceChildren(...blocks.map((block) => drawBlock(block, after)));
    handOver();
    // A figure takes its width from the page, so it must be in it.
    const plotted = after.map((plot) => plot()).filter((one) => one instanceof Promise);
    return plotted.length ? Promise.allSettled(plotted) : null;
  }

  // keep: takes what is to be called once the block stands on the page.
  const drawBlock = (block, keep) =>
    BLOCKS[block.type](block, keep, {
      ...api,
      act,
      request,
      again: () => ask(),
      ask: beside,
      open: visit,
      about: pictureOf,
      block: drawBlock,
    });

  // Of a picture in it: what it is called, else what the panel is, and the sentence.
  const pictureOf = (title) => ({
    title: () =>
      title ||
      root
        .closest("[role=tabpanel]")
        ?.parentElement.querySelector(":scope > .tab-wrapper [role=tab][aria-selected=true]")
        ?.textContent.trim() ||
      "",
    caption: () => said(about) || "",
  });

  // A question of this panel: its address, and the fields that all its questions have.
  const question = async (fields) => ({
    address: store.state.address,
    fields: {
      panel: name,
      controls: await controls(),
      selection: store.state.selection,
      asked: store.state.asked,
      ...fields,
    },
  });

  const request = async (act, data, answered) =>
    answered(await askServer("page_panel_act", await question({ act, data })));

  // The values of the panel's controls, which are components of Gradio.
  const readers = [];
  const controls = () =>
    Object.keys(linked).length
      ? new Promise((resolve) => (readers.push(resolve), api.trigger("read", {})))
      : Promise.resolve({});
  document.addEventListener(`atlas-read-${name}`, (event) => {
    event.preventDefault();
    for (const resolve of readers.splice(0)) resolve(event.detail);
  });

  // What led to this panel may set its controls.
  const set = () => {
    if (visit.link?.panel === name && Object.keys(linked).some((one) => one in visit.link))
      api.trigger("set", {});
  };
  document.addEventListener("atlas-visit", set);
  document.addEventListener(`atlas-set-${name}`, ({ detail }) => {
    for (const [one, kind] of Object.entries(linked))
      if (one in visit.link)
        detail[one] = kind === "number" ? Number(visit.link[one]) : visit.link[one];
    detail.told = { id: null, after: null, mark: Math.random(), json: '{"stale": true}' };
  });

  // What a block asks for that other parts of the page show; here only why it cannot be had.
  async function beside(event, data) {
    if (event !== "find") return rpc.ask(event, data, show, null, { beside: true });
    const mine = ++finds,
      found = await askServer("page_panel_fill", await question({ data }));
    if (mine !== finds) return;
    if (found.error) show(found);
    else fill(found.fill);
  }

  // What a block asks for besides: its answer takes the place of what stood in a slot. Of several, the last one counts.
  function act(name, slot, data = {}) {
    const box = root.querySelector(`[data-slot="${slot}"]`),
      mine = String(++acts);
    box.dataset.act = mine;
    box.setAttribute("aria-busy", "true");
    request(name, data, (value) => {
      if (!box.isConnected || box.dataset.act !== mine) return;
      const ready = () => box.dataset.act === mine && box.setAttribute("aria-busy", "false");
      const plotted = place(
        box,
        value.error ? [{ type: "text", text: value.error, tone: "bad" }] : value.blocks,
      );
      if (plotted) plotted.then(ready);
      else ready();
    });
  }

  // The panel's line of text becomes what a block found for it.
  let finds = 0,
    filling = "";
  function fill(text) {
    filling = text;
    api.trigger("fill", {});
  }
  document.addEventListener(`atlas-fill-${name}`, ({ detail }) => (detail.text = filling));

  // waits: a control was moved. What was asked before is waited for, and then the last position counts.
  let asks = 0,
    asking = 0, // how many questions are under way
    held = false; // whether a question waits for them
  async function ask({ waits = false } = {}) {
    held = waits && asking > 0;
    if (held) return;
    const mine = ++asks;
    turn += 1;
    asker.stop();
    root.setAttribute("aria-busy", "true");
    checked = api.options?.checks_page ? drawn.weights() : undefined;
    asking += 1;
    const asked = await question({ drawn: checked });
    if (mine === asks) await asker.ask("page_panel", asked, { part: show });
    asking -= 1;
    if (held && !asking) ask();
  }

  const rpc = connect(api, (value) => {
    if (value.stale === undefined) show(value);
    else if (shown()) ask(value);
  });
  const shown = whenSeen(root, ask);
  store.follow(follows, () => shown() && ask());
  set();
  // The explorer may draw a new translation after this panel has asked about it.
  if (api.options?.checks_page)
    document.addEventListener(
      "atlas-drawn",
      () => shown() && checked?.key !== drawn.weights().key && ask(),
    );
}
