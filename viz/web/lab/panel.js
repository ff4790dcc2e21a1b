// A panel: its lead, its controls, and its content, which the server computes (viz/questions/panels.py).
import { createAsker, ask as askServer } from "../core/ask.js";
import { button, el, onVisible } from "../core/dom.js";
import { toText, t } from "../core/language.js";
import { explorerMaps, panelLinks, openLink } from "../core/links.js";
import { store } from "../store/store.js";
import { openAddress } from "../store/translation.js";
import { createProgress } from "../heads/take.js";
import { carryFigures } from "../picture/figure.js";
import { BLOCKS } from "./blocks.js";
import { createControls } from "./controls.js";
import { markPanel } from "./glossary.js";

/**
 * @typedef {object} PanelAnswer an answer of page_panel, or a part of one
 * @property {any} [error] in words; the earlier content stays
 * @property {any[]} [blocks] the content; the last part of a stream has none
 * @property {boolean} [more] true: another part follows; false: the stream has ended; missing: this is the whole answer
 * @property {any} [about] which translation the content is about, in words
 * @property {Record<string, any>} [controls] the values that the server used
 * @property {Record<string, number>} [ends] of sliders
 * @property {Record<string, string>} [suggested] examples for empty texts
 * @property {boolean} [lacks] whether the panel has no answer for this model; blocks says why
 */

// Keys of the long work that the visitor has begun. Each question names them, so that any server process may do the work.
const begunWorks = new Set();

/**
 * Create a panel, and put it into an element.
 * @param {any} description from viz/panels/registry.py
 * @param {{parent: Element, follows: string[], link: any}} options follows: the fields of the store whose change loads the
 *   content again; link: fields that set the panel's controls
 * @returns {{set: (link: any) => void}} set: set the controls that a link's fields name; if there are any, load the content
 *   again
 */
export function createPanel(description, { parent, follows, link }) {
  const { name, title, streams: isStreamed } = description;
  const contentAsker = createAsker(),
    pageAsker = createAsker(),
    slotAskers = {}; // by slot
  const firstNote = el("p", { class: "text note" }, t("Computing …")); // until the first answer
  const root = el("div", { class: "atlas-root atlas-panel", "data-mounted": "" }, firstNote);
  let about = null, // the translation that the panel is about, in words
    figures = /** @type {Promise<any>} */ (Promise.resolve()), // resolved once the content's figures are drawn
    sentMaps, // the explorer's weights as the last request had them, for a panel that checks them
    isReloadDue = false; // whether the content is requested again after the request under way

  const controls = createControls(name, description.controls, description.button, {
    // A moved control ends a stream under way. It waits for an answer in one part, which would otherwise never arrive while
    // a slider is dragged.
    onMove: () =>
      !description.button &&
      isPanelVisible() &&
      loadContent({ whenIdle: !isStreamed && !progress.isShown() }),
    onPress: () => isPanelVisible() && loadContent(),
  });
  controls.set(link);
  const paper = { href: description.paper, target: "_blank", rel: "noopener noreferrer" };
  const frame = el("section", { class: "atlas-frame" }, [
    el("div", { class: "atlas-prose" }, [
      el("h2", { class: "sr-only" }, title),
      el("p", { "data-terms": "" }, description.look),
    ]),
    controls.element,
    el("div", { id: `panel-${name}`, class: "content" }, root),
    el("div", { class: "atlas-prose method" }, [
      el("p", { "data-terms": "" }, [
        description.method ? [description.method, " "] : "",
        el("a", paper, description.section),
      ]),
    ]),
  ]);
  parent.append(frame);
  markPanel(frame);

  const setBusy = (isBusy) => root.setAttribute("aria-busy", String(isBusy));
  function stopLoading() {
    contentAsker.stop();
    stopButton.remove();
    setBusy(false);
  }
  const stopButton = button(t("Stop"), stopLoading, { class: "plain stop" });

  let workKey = null; // of the long work that was begun last in this panel
  const progress = createProgress(root, () => {
    begunWorks.delete(workKey);
    stopLoading();
  });
  function beginWork(key) {
    workKey = key;
    begunWorks.add(workKey);
    loadContent();
  }

  /** Show an answer, or a part of one. @param {PanelAnswer} answer */
  function receiveContent(answer) {
    if (answer.error) {
      begunWorks.delete(workKey); // or the next question would begin work that has failed
      return showError(answer.error);
    }
    if (!answer.blocks) return; // the end of a stream
    panelLinks[name] = answer.controls ?? {};
    controls.update(answer);
    about = answer.about;
    figures = putBlocks(root, answer.blocks);
    if (answer.more && description.stops) root.prepend(stopButton);
    root.dataset.drawn = String(Number(root.dataset.drawn || 0) + 1); // counts the contents, for tests
  }

  // Show an error above the content, which stays.
  function showError(error) {
    firstNote.remove();
    root.querySelector(".failed")?.remove();
    root.prepend(el("p", { class: "failed", role: "alert" }, error));
  }

  // Replace the content of an element by blocks. Returns a promise that is resolved once their figures are drawn.
  function putBlocks(element, blocks) {
    const callbacks = [],
      showCarriedFigures = carryFigures(element);
    element.replaceChildren(...blocks.map((block) => drawBlock(block, callbacks)));
    markPanel(frame);
    showCarriedFigures();
    // Figures take their width from the page, so they are drawn once they are on it.
    return Promise.allSettled(callbacks.map((callback) => callback()));
  }

  // Create the element of a block. afterInsert: an array that gets functions to call once the element is on the page.
  const drawBlock = (block, afterInsert) => BLOCKS[block.type](block, afterInsert, api);

  // Return the title and the caption of a picture in the panel: its name or else the panel's, and the sentence.
  const describePicture = (pictureName) => ({
    title: () => pictureName || toText(title),
    caption: () => toText(about) || "",
  });

  // Return a question of this panel: its address, the fields that all its questions have, and others.
  function createQuestion(fields) {
    const { address, selection, asked } = store.state,
      own = { panel: name, controls: controls.values(), begun: [...begunWorks] };
    return { address, fields: { ...own, selection, asked, ...fields } };
  }

  const askForAnswer = (action, data) =>
    askServer("page_panel_act", createQuestion({ act: action, data }));

  // Only the last answer for a slot is shown.
  async function askForSlot(action, slot, data = {}) {
    const element = root.querySelector(`[data-slot="${slot}"]`),
      asker = (slotAskers[slot] ??= createAsker());
    if (!element) return; // the panel has been drawn anew
    element.setAttribute("aria-busy", "true");
    const answer = await asker.ask("page_panel_act", createQuestion({ act: action, data }));
    if (!answer || !element.isConnected) return;
    const { error, blocks = [{ type: "text", text: error, tone: "bad" }] } = answer;
    await putBlocks(element, blocks);
    if (!asker.busy()) element.setAttribute("aria-busy", "false");
  }

  // Ask for what other parts of the page show: for the event "find" a text for the panel's own field, for others a translation
  // (page_panel_fill and page_panel_translate). The content stays as it is; an error is shown above it.
  async function askForPage(event, data) {
    const endpoint = event === "find" ? "page_panel_fill" : "page_panel_translate",
      answer = await pageAsker.ask(endpoint, createQuestion({ data }));
    if (!answer) return;
    if (answer.error) return showError(answer.error);
    if (event !== "find") return openAddress(answer.opens, { asks: answer.asks });
    controls.fill(answer.fill);
    loadContent({ whenIdle: !isStreamed });
  }

  const api = {
    askForSlot,
    askForAnswer,
    askForPage,
    beginWork,
    openLink,
    describePicture,
    drawBlock,
  };

  // Request the panel's content. A request under way is cancelled; with whenIdle it is awaited, and then the content for the
  // last values of the controls is requested once.
  async function loadContent({ whenIdle = false } = {}) {
    isReloadDue = whenIdle && contentAsker.busy();
    if (isReloadDue) return;
    setBusy(true);
    sentMaps = description.checks_page ? explorerMaps.weights() : undefined;
    const answer = await contentAsker.ask("page_panel", createQuestion({ drawn: sentMaps }), {
      part: receiveContent,
      working: progress.show,
    });
    if (isReloadDue && !contentAsker.busy()) return loadContent();
    if (!answer) return; // it was stopped, or replaced by another request
    stopButton.remove();
    await figures;
    if (!contentAsker.busy()) setBusy(false);
  }

  const isPanelVisible = onVisible(root, () => loadContent());
  store.follow(follows, () => isPanelVisible() && loadContent());
  // The explorer may draw a new translation after this panel has asked about it.
  const isOutdated = () => sentMaps?.key !== explorerMaps.key();
  if (description.checks_page)
    store.follow(["drawCount"], () => isPanelVisible() && isOutdated() && loadContent());
  return { set: (link) => controls.set(link) && isPanelVisible() && loadContent() };
}
