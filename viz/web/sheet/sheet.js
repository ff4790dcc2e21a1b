// Worksheets: a tour's questions, or a teacher's own, as a page that prints on A4 with blanks,
// pictures and a key. A worksheet covers the page while it is open, and only the sheet is printed.
import { ask } from "../core/ask.js";
import { button, download, el, fileField, menu, loadStyleOf } from "../core/dom.js";
import { toText, t } from "../core/language.js";
import { copyLink, pageLink, replaceFields } from "../core/links.js";
import { textField } from "../store/controls.js";
import { store } from "../store/store.js";
import { createReach } from "../present/layer.js";
import { createEditor } from "./editor.js";
import { fromFile, fromLink, toFile, toLink } from "./storage.js";
import { pageHtml, createPaper } from "./paper.js";

const OWN = ""; // menu entry for the teacher's own sentences
const STYLE = new URL("./paper.css", import.meta.url).href;

/** Return the worksheets, {open}, once their style sheets have loaded. */
export const ready = async () => {
  const askServer = (name, fields) => ask(`page_${name}`, { address: store.state.address, fields });
  const [offer] = await Promise.all([
    askServer("offer", {}),
    loadStyleOf(import.meta.url),
    loadStyleOf(STYLE.replace(/css$/, "js")),
  ]);
  return createSheets(askServer, offer);
};

function createSheets(answered, offer) {
  const known = new Map(); // request as JSON -> answer
  const asks = offer.asks.map((question) => question.name);
  let drawing = 0,
    opener = null,
    direction = "",
    isStarted = false; // whether the editor has content

  const source = menu(
    [...offer.tours.map(({ name, title }) => [name, title]), [OWN, t("My own sentences")]],
    null,
    { "aria-label": t("What the worksheet is made of"), onchange: () => choose(source.value) },
  );
  const key = el("input", { type: "checkbox", id: "atlas-sheet-key", onchange: () => draw() });
  const status = el("p", { class: "status", role: "status" });
  const file = fileField(async (jsonFile) => {
    editor.put(await fromFile(jsonFile, asks));
    draw();
  }, refuse);
  const editor = createEditor(offer, () => draw());
  const ownButtons = [
    button(t("Copy link"), copyWorksheetLink),
    button(t("Save as a file"), () => download("worksheet.json", toFile(editor.read()))),
    button(t("Open a file"), () => file.click()),
  ];
  const table = el("div", { class: "table", tabindex: "0", "aria-label": t("Worksheet") });
  const root = el(
    "section",
    {
      class: "atlas-worksheet",
      "aria-labelledby": "atlas-sheet-title",
      role: "dialog",
      "aria-modal": "true",
      hidden: true,
      onkeydown: keys,
    },
    el("div", { class: "bar" }, [
      el("h2", { id: "atlas-sheet-title", tabindex: "-1" }, t("Worksheet")),
      source,
      el("label", { for: key.id }, key, " ", t("With the teacher’s key")),
      ...ownButtons,
      file,
      button(t("Save as a page"), save),
      button(t("Print"), () => print(), { class: "strong" }),
      button("✕", leave, { "aria-label": t("Close the worksheet") }),
    ]),
    status,
    el("div", { class: "both" }, editor.node, table),
  );
  document.body.append(root);

  const reach = createReach(); // makes the page behind inert
  const link = (fields) => `${location.origin}${location.pathname}#${new URLSearchParams(fields)}`;
  const findTour = (name) => offer.tours.find((tour) => tour.name === name);
  const title = () =>
    toText(findTour(source.value)?.title) ?? (editor.read().title || t("Worksheet"));

  // The requests of the sheet, in order.
  function requests() {
    const tour = findTour(source.value);
    if (tour) return tour.stops.map((stop) => ["stop", { tour: tour.name, stop, direction }]);
    const { items, direction: ownDirection, checkpoint } = editor.read();
    return items
      .filter((item) => item.text)
      .map((item) => ["task", { ...item, direction: ownDirection, checkpoint }]);
  }

  // Show the questions as they arrive. A later call takes over.
  async function draw() {
    const number = ++drawing,
      all = requests(),
      keys = all.map((request) => JSON.stringify(request));
    const answers = () => keys.map((key) => known.get(key) ?? null);
    for (const [i, key] of keys.entries()) {
      if (known.has(key)) continue;
      status.textContent = t("{n} of {all}", { n: i + 1, all: all.length });
      show(answers());
      known.set(key, await answered(...all[i]));
      if (number !== drawing) return;
    }
    status.textContent = all.length
      ? ""
      : t("Type a sentence, and choose what is asked about it: the sheet appears beside it.");
    show(answers());
    root.setAttribute("aria-busy", "false");
  }
  function show(questions) {
    root.setAttribute("aria-busy", "true");
    table.replaceChildren(createPaper({ title: title(), questions }, { key: key.checked, link }));
  }

  function choose(name) {
    source.value = name;
    root.classList.toggle("own", name === OWN);
    for (const control of ownButtons) control.hidden = name !== OWN;
    draw();
  }

  // A worksheet about the sentence of the page.
  function startingSheet() {
    const link = pageLink(),
      text = textField()?.value ?? "";
    return {
      title: "",
      direction: link.get("direction") ?? offer.directions[0]?.direction,
      checkpoint: link.get("checkpoint") ?? "",
      items: asks.slice(0, 2).map((ask) => ({ text, ask, word: "" })),
    };
  }

  // Open a worksheet. place: {sheet, direction}; sheet: a tour's name, or a link's own worksheet;
  // without one, an own worksheet about the sentence of the page.
  function open(place) {
    if (root.hidden) opener = document.activeElement;
    root.hidden = false;
    document.body.classList.add("atlas-sheeting");
    reach([root]);
    direction = place.direction ?? "";
    if (!isStarted) editor.put(startingSheet());
    isStarted = true;
    let refused = "";
    const isTour = Boolean(findTour(place.sheet));
    if (place.sheet && !isTour)
      try {
        editor.put(fromLink(place.sheet, asks));
      } catch (error) {
        refused = error.message;
      }
    choose(isTour ? place.sheet : OWN);
    if (refused) refuse(refused);
    root.querySelector("h2").focus({ preventScroll: true });
  }
  function refuse(words) {
    drawing += 1;
    status.textContent = words;
    root.setAttribute("aria-busy", "false");
    table.replaceChildren();
  }

  function copyWorksheetLink() {
    const sheet = toLink(editor.read(), location.href.length);
    if (!sheet)
      return (status.textContent = t(
        "This is too much for a link, which has at most 30 questions and 64 kB: save it as a file.",
      ));
    copyLink(
      new URLSearchParams({ sheet }),
      (message) => status.replaceChildren(message),
      t("Link to this worksheet"),
      t("Link copied."),
    );
  }

  async function save() {
    const style = await (await fetch(STYLE)).text();
    const text = pageHtml(table.firstElementChild, title(), style);
    download("worksheet.html", new Blob([text], { type: "text/html" }));
  }

  function leave() {
    root.hidden = true;
    reach([]);
    drawing += 1;
    document.body.classList.remove("atlas-sheeting");
    const fields = pageLink();
    if (fields.get("sheet") !== null) {
      fields.delete("sheet");
      replaceFields(fields);
    }
    if (opener?.isConnected) opener.focus({ preventScroll: true });
  }

  function keys(event) {
    if (event.key !== "Escape" || event.target.closest("select")) return;
    event.stopPropagation();
    leave();
  }

  return { open };
}
