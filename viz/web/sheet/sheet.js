// Worksheets: a tour's questions, or a teacher's own, as a page that prints on A4 with blanks, pictures and the teacher's key.
// A worksheet covers the page while it is open, and only the sheet is printed.
import { ask } from "../core/ask.js";
import { button, download, el, fileField, menu, loadStyleOf } from "../core/dom.js";
import { toText, t } from "../core/language.js";
import { copyLink, pageLink, replaceFields } from "../core/links.js";
import { textField } from "../store/controls.js";
import { store } from "../store/store.js";
import { createEditor } from "./editor.js";
import { fromFile, fromLink, toFile, toLink } from "./storage.js";
import { pageHtml, createPaper } from "./paper.js";

const OWN = ""; // menu entry for the teacher's own sentences
const PAPER = new URL("./paper.js", import.meta.url).href,
  PAPER_STYLE = PAPER.replace(/js$/, "css");

/**
 * @typedef {object} Offer what a worksheet can contain (viz/tours/guide.py)
 * @property {{name: string, title: any, stops: number[]}[]} tours with the numbers of their stops
 * @property {{direction: string, checkpoint: string, title: any}[]} directions of the served models. A checkpoint names a model
 *   where several translate in one direction
 * @property {{name: string, title: any}[]} asks the kinds of questions
 *
 * @typedef {object} Place which worksheet to open
 * @property {string} [sheet] a tour's name, or a worksheet as a link holds it (storage.js)
 * @property {string} [direction] the direction that a tour is to be about; "" lets the server choose
 */

/** Create the dialog of worksheets, once its style sheets and the server's offer have arrived. */
export async function createWorksheets() {
  const askServer = (name, fields) => ask(`page_${name}`, { address: store.state.address, fields });
  /** @type {[Offer, void, void]} */
  const [offer] = await Promise.all([
    askServer("offer", {}),
    loadStyleOf(import.meta.url),
    loadStyleOf(PAPER),
  ]);
  const answers = new Map(); // request as JSON -> its answer, or a promise. An error is not kept: the request is sent again
  const questionKinds = offer.asks.map(({ name }) => name);
  let drawNumber = 0, // of the last drawing: an earlier one stops when its next answer arrives
    shownAnswers = null, // those in the preview, or null without a sheet
    tourDirection = "", // as the place that was opened says
    isStarted = false; // whether the editor has content

  const source = menu(
    [...offer.tours.map(({ name, title }) => [name, title]), [OWN, t("My own sentences")]],
    null,
    { "aria-label": t("Source of the worksheet"), onchange: () => choose(source.value) },
  );
  const keyBox = el("input", {
    type: "checkbox",
    id: "atlas-sheet-key",
    onchange: () => shownAnswers && show(shownAnswers),
  });
  const status = el("p", { class: "status", role: "status" });
  const file = fileField(async (jsonFile) => {
    editor.put(await fromFile(jsonFile, questionKinds));
    draw();
  }, showProblem);
  const editor = createEditor(offer, () => draw());
  const ownButtons = [
    button(t("Copy link"), copyWorksheetLink),
    button(t("Save as a file"), () => download("worksheet.json", toFile(editor.read()))),
    button(t("Open a file"), () => file.click()),
  ];
  const preview = el("div", { class: "preview", tabindex: "0", "aria-label": t("Worksheet") });
  const root = el(
    "dialog",
    { class: "atlas-worksheet", "aria-labelledby": "atlas-sheet-title", onclose: leave },
    el("div", { class: "bar" }, [
      el("h2", { id: "atlas-sheet-title", tabindex: "-1" }, t("Worksheet")),
      source,
      el("label", { for: keyBox.id }, keyBox, " ", t("With the teacher’s key")),
      ...ownButtons,
      file,
      button(t("Save as a page"), save),
      button(t("Print"), () => print(), { class: "strong" }),
      button("✕", () => root.close(), { "aria-label": t("Close the worksheet") }),
    ]),
    status,
    el("div", { class: "both" }, editor.node, preview),
  );
  document.body.append(root);

  const viewUrl = (fields) =>
    `${location.origin}${location.pathname}#${new URLSearchParams(fields)}`;
  const findTour = (name) => offer.tours.find((tour) => tour.name === name);
  const title = () =>
    toText(findTour(source.value)?.title) ?? (editor.read().title || t("Worksheet"));
  const setBusy = (isBusy) => root.setAttribute("aria-busy", String(isBusy));

  // Return the requests for the sheet's questions, in order: [name, fields] of page_stop, which answers with the question at a
  // tour's stop, or of page_task, with a question about the teacher's own sentence (viz/questions/tours.py).
  function listRequests() {
    const tour = findTour(source.value);
    if (tour)
      return tour.stops.map((stop) => [
        "stop",
        { tour: tour.name, stop, direction: tourDirection },
      ]);
    const { items, direction, checkpoint } = editor.read();
    return items
      .filter((item) => item.text)
      .map((item) => ["task", { ...item, direction, checkpoint }]);
  }

  // Return the answer to a request, or {error}. A request that is under way is not sent twice.
  async function fetchAnswer([name, fields]) {
    const key = JSON.stringify([name, fields]);
    if (!answers.has(key)) answers.set(key, askServer(name, fields));
    const answer = await answers.get(key);
    if (answer.error) answers.delete(key);
    else answers.set(key, answer);
    return answer;
  }

  // Show the questions as their answers arrive. A later call of draw() ends this one.
  async function draw() {
    const number = ++drawNumber,
      requests = listRequests(),
      known = requests.map((request) => answers.get(JSON.stringify(request)) ?? null),
      questions = known.map((answer) => (answer instanceof Promise ? null : answer));
    setBusy(true);
    for (const [i, request] of requests.entries()) {
      if (questions[i]) continue;
      status.textContent = t("{n} of {all}", { n: i + 1, all: requests.length });
      show(questions);
      questions[i] = await fetchAnswer(request);
      if (number !== drawNumber) return;
    }
    const isEmpty = !requests.length && !findTour(source.value);
    status.textContent = isEmpty
      ? t("Type a sentence and choose the questions: the sheet appears next to them.")
      : "";
    show(questions);
    setBusy(false);
  }

  // Put the sheet into the preview. questions: answers, or null for those that have not arrived.
  function show(questions) {
    shownAnswers = questions;
    const options = { withKey: keyBox.checked, viewUrl };
    preview.replaceChildren(createPaper({ title: title(), questions }, options));
  }

  function showProblem(message) {
    drawNumber += 1;
    shownAnswers = null;
    status.textContent = message;
    setBusy(false);
    preview.replaceChildren();
  }

  function choose(name) {
    source.value = name;
    root.classList.toggle("own", name === OWN);
    for (const control of ownButtons) control.hidden = name !== OWN;
    draw();
  }

  // Return the worksheet that the editor starts with: two kinds of questions, as examples, about the sentence of the page.
  function startingSheet() {
    const fields = pageLink(),
      text = textField()?.value ?? "";
    return {
      title: "",
      direction: fields.get("direction") ?? offer.directions[0]?.direction,
      checkpoint: fields.get("checkpoint") ?? "",
      items: questionKinds.slice(0, 2).map((kind) => ({ text, ask: kind, word: "" })),
    };
  }

  /**
   * Open a worksheet. Without place.sheet it is the editor's, which starts with the sentence of the page.
   * @param {Place} place
   */
  function open(place) {
    if (!root.open) root.showModal();
    tourDirection = place.direction ?? "";
    if (!isStarted) editor.put(startingSheet());
    isStarted = true;
    let problem = "";
    const isTour = Boolean(findTour(place.sheet));
    if (place.sheet && !isTour)
      try {
        editor.put(fromLink(place.sheet, questionKinds));
      } catch (error) {
        problem = error.message;
      }
    choose(isTour ? place.sheet : OWN);
    if (problem) showProblem(problem);
    root.querySelector("h2").focus({ preventScroll: true });
  }

  function copyWorksheetLink() {
    const sheet = toLink(editor.read(), location.href.length);
    if (!sheet)
      return (status.textContent = t(
        "This is too large for a link (at most 30 questions and 64 kB): save it as a file.",
      ));
    copyLink(
      new URLSearchParams({ sheet }),
      (message) => status.replaceChildren(message),
      t("Link to this worksheet"),
      t("Link copied."),
    );
  }

  async function save() {
    const article = preview.firstElementChild;
    if (!article) return; // a problem is shown in place of a sheet
    try {
      const response = await fetch(PAPER_STYLE);
      if (!response.ok) throw new Error(response.statusText);
      const text = pageHtml(article, title(), await response.text());
      download("worksheet.html", new Blob([text], { type: "text/html" }));
    } catch {
      status.textContent = t("The server is not responding. Please try again in a moment.");
    }
  }

  function leave() {
    drawNumber += 1;
    const fields = pageLink();
    if (!fields.has("sheet")) return;
    fields.delete("sheet");
    replaceFields(fields);
  }

  return { open };
}
