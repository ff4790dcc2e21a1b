// A panel: its lead, its controls, and its content, which the server computes (viz/questions/panels.py).
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
import { words } from "../why/choices.js";
import { SIMPLE_BLOCKS } from "./blocks.js";
import { createControls } from "./controls.js";
import { markTerms } from "./glossary.js";
import { grid, heads } from "./heads.js";
import { matrix } from "./matrix.js";

// The functions that draw blocks, by type (viz/wire/blocks.py).
const SURVEY_BLOCKS = { take, pick, open_head, survey, links };
const BLOCKS = { ...SIMPLE_BLOCKS, ...SURVEY_BLOCKS, grid, heads, matrix, words };

const begunWorks = new Set(); // keys of long work that the visitor has begun, and that any server process may do

/**
 * Create a panel, and put it into an element.
 * @param {any} description from viz/panels/registry.py
 * @param {{parent: Element, follows: string[], link: any}} options follows: the fields of the store whose change makes the
 *   panel ask again; link: fields that set its controls
 * @returns {{set: (link: any) => void}} set: set the controls by a link's fields, and ask again
 */
export function createPanel(description, { parent, follows, link }) {
  const { name, title, look, section, paper, streams, stops } = description,
    checksPage = description.checks_page,
    asker = createAsker();
  const root = el(
    "div",
    { class: "atlas-root atlas-panel", "data-mounted": "" },
    el("p", { class: "text note" }, t("Computing …")),
  );
  let about = null, // the translation that the panel is about, in words
    turn = 0, // counts the requests and the answers with content
    figures = /** @type {Promise<any>} */ (Promise.resolve()), // that the figures of the last answer are drawn
    actions = 0, // counts the requests for slots
    checkedMaps, // what the explorer drew when the last request was sent, for a panel that checks it
    isSeen = () => false; // whether the panel is visible, and can be drawn

  const controls = createControls(name, description.controls, description.button, {
    // A move cuts a stream short, but waits for an answer in one part.
    onMove: () =>
      !description.button && isSeen() && ask({ waits: !streams && !progress.isShown() }),
    onPress: () => isSeen() && ask(),
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
          ...markTerms(toText(look)),
          " ",
          el("a", { href: paper, target: "_blank", rel: "noopener noreferrer" }, toText(section)),
        ),
      ),
      controls.element ?? "",
      el("div", { id: `panel-${name}`, class: "content" }, root),
    ),
  );

  const setBusy = (isBusy) => root.setAttribute("aria-busy", String(isBusy));
  const stop = () => (asker.stop(), stopButton.remove(), setBusy(false));
  const stopButton = button(t("Stop"), stop, { class: "plain stop" });
  let work = null; // the key of the work that was begun last in this panel
  const progress = createProgress(root, () => {
    begunWorks.delete(work);
    stop();
  });
  function begin(key) {
    work = key;
    begunWorks.add(work);
    ask();
  }

  // Show an answer, or a part of one: {error}, {blocks, controls, about, more, ..}, or {more: false} at the end.
  function receive(answer) {
    if (answer.error) {
      begunWorks.delete(work);
      setBusy(false);
      stopButton.remove();
      root.querySelector(".failed")?.remove();
      root.prepend(el("p", { class: "failed", role: "alert" }, toText(answer.error)));
      return; // the earlier content stays
    }
    const ownTurn = answer.blocks ? ++turn : turn,
      endBusy = () => ownTurn === turn && setBusy(false);
    if (answer.more === false) stopButton.remove();
    if (!answer.blocks) return void figures.then(endBusy);
    panelLinks[name] = answer.controls ?? {};
    controls.update(answer);
    about = answer.about;
    figures = putBlocks(root, answer.blocks);
    if (!answer.more) figures.then(endBusy);
    if (answer.more && stops) root.prepend(stopButton);
    root.dataset.drawn = String(Number(root.dataset.drawn || 0) + 1);
  }

  // Replace the content of an element by blocks. Returns a promise that their figures are drawn.
  function putBlocks(element, blocks) {
    const callbacks = [],
      carryOver = carryFigures(element);
    element.replaceChildren(...blocks.map((block) => drawBlock(block, callbacks)));
    carryOver();
    // Figures take their width from the page, so they are drawn once they are on it.
    return Promise.allSettled(callbacks.map((callback) => callback()));
  }

  const drawBlock = (block, keep) =>
    BLOCKS[block.type](block, keep, {
      act,
      request,
      begin,
      ask: askElsewhere,
      open: openLink,
      about: describePicture,
      block: drawBlock,
    });

  // The title and the caption of a picture in the panel: its name or else the panel's, and the sentence.
  const describePicture = (pictureName) => ({
    title: () => pictureName || toText(title),
    caption: () => toText(about) || "",
  });

  // A question of this panel: the address, and the fields that all its questions have.
  const question = (fields) => ({
    address: store.state.address,
    fields: {
      panel: name,
      controls: controls.values(),
      selection: store.state.selection,
      asked: store.state.asked,
      begun: [...begunWorks],
      ...fields,
    },
  });

  const request = async (act, data, callback) =>
    callback(await askServer("page_panel_act", question({ act, data })));

  // Ask a block's question whose answer other parts of the page show: another translation, or a text for the panel's field.
  // The panel itself shows only an error.
  let questions = 0;
  async function askElsewhere(event, data) {
    const number = ++questions,
      isText = event === "find",
      endpoint = isText ? "page_panel_fill" : "page_panel_translate";
    const answer = await askServer(endpoint, question({ data }));
    if (number !== questions) return;
    if (answer.error) return receive(answer);
    if (!isText) return openAddress(answer.opens, { asks: answer.asks });
    controls.fill(answer.fill);
    ask({ waits: !streams });
  }

  // Ask a block's question whose answer replaces the content of a slot. The last question for a slot counts.
  function act(name, slot, data = {}) {
    const box = root.querySelector(`[data-slot="${slot}"]`),
      number = String(++actions);
    if (!box) return; // the panel has been drawn anew
    box.dataset.act = number;
    box.setAttribute("aria-busy", "true");
    request(name, data, ({ error, blocks }) => {
      if (!box.isConnected || box.dataset.act !== number) return;
      putBlocks(box, error ? [{ type: "text", text: error, tone: "bad" }] : blocks).then(
        () => box.dataset.act === number && box.setAttribute("aria-busy", "false"),
      );
    });
  }

  // Ask for the panel's content. waits: whether to wait for the answers that are under way, after which one question with the
  // last values of the controls is sent.
  let asking = 0, // how many questions are under way
    isWaiting = false;
  async function ask({ waits = false } = {}) {
    isWaiting = waits && asking > 0;
    if (isWaiting) return;
    turn += 1;
    asker.stop();
    setBusy(true);
    checkedMaps = checksPage ? explorerMaps.weights() : undefined;
    asking += 1;
    await asker.ask("page_panel", question({ drawn: checkedMaps }), {
      part: receive,
      working: progress.show,
    });
    asking -= 1;
    if (isWaiting && !asking) ask();
  }

  loadPlotly().then(() => {
    isSeen = onVisible(root, ask);
    store.follow(follows, () => isSeen() && ask());
    // The explorer may draw a new translation after this panel has asked about it.
    if (checksPage)
      store.follow(
        ["drawCount"],
        () => isSeen() && checkedMaps?.key !== explorerMaps.key() && ask(),
      );
  });

  return { set: (link) => controls.set(link) && isSeen() && ask() };
}
