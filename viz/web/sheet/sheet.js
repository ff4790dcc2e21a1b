// Worksheets: a tour's questions, or a teacher's own, as a page that prints on A4 with blanks, pictures and a key. It
// covers the page while it is open; what is printed is the sheet alone.
import { ask } from "../core/ask.js";
import { button, download, el, fileField, styleOf } from "../core/dom.js";
import { said, t } from "../core/language.js";
import { copyLink, pageLink, readdress } from "../core/links.js";
import { store } from "../store/store.js";
import { createEditor } from "./editor.js";
import { fromFile, fromLink, toFile, toLink } from "./keep.js";
import { page, paper } from "./paper.js";

const OWN = ""; // in the menu of what a sheet is made of
const STYLE = new URL("./paper.css", import.meta.url).href;

// A promise of the worksheets, once their style sheets are there.
export const ready = async () => {
  const answered = (name, fields) => ask(`page_${name}`, { address: store.state.address, fields });
  const [offer] = await Promise.all([
    answered("offer", {}),
    styleOf(import.meta.url),
    styleOf(STYLE.replace(/css$/, "js")),
  ]);
  return createSheets(answered, offer);
};

function createSheets(answered, offer) {
  const known = new Map(); // what was asked, as JSON -> its answer
  const asks = offer.asks.map((one) => one.name);
  let drawn = 0,
    opener = null,
    direction = "",
    own = null;

  const made = el(
    "select",
    { "aria-label": t("What the worksheet is made of"), onchange: () => choose(made.value) },
    offer.tours.map((one) => el("option", { value: one.name }, said(one.title))),
    el("option", { value: OWN }, t("My own sentences")),
  );
  const key = el("input", { type: "checkbox", id: "atlas-sheet-key", onchange: () => draw() });
  const status = el("p", { class: "status", role: "status" });
  const file = fileField(async (given) => {
    editor.put(await fromFile(given, asks));
    draw();
  }, refuse);
  const editor = createEditor(offer, () => draw());
  const ofOwn = [
    button(t("Copy link"), linked),
    button(t("Save as a file"), () => {
      download("worksheet.json", toFile(editor.read()));
    }),
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
    el(
      "div",
      { class: "bar" },
      el("h2", { id: "atlas-sheet-title", tabindex: "-1" }, t("Worksheet")),
      made,
      el("label", { for: key.id }, key, " ", t("With the teacher’s key")),
      ...ofOwn,
      file,
      button(t("Save as a page"), save),
      button(t("Print"), () => print(), { class: "strong" }),
      button("✕", leave, { "aria-label": t("Close the worksheet") }),
    ),
    status,
    el("div", { class: "both" }, editor.node, table),
  );
  document.body.append(root);

  const link = (fields) => `${location.origin}${location.pathname}#${new URLSearchParams(fields)}`;
  const title = () =>
    made.value === OWN
      ? editor.read().title || t("Worksheet")
      : said(offer.tours.find((one) => one.name === made.value).title);

  // What the sheet asks of the server, in order.
  function wanted() {
    if (made.value !== OWN) {
      const { name, stops } = offer.tours.find((one) => one.name === made.value);
      return stops.map((stop) => ["stop", { tour: name, stop, direction }]);
    }
    const sheet = editor.read();
    return sheet.items
      .filter((one) => one.text)
      .map((one) => ["task", { ...one, direction: sheet.direction, checkpoint: sheet.checkpoint }]);
  }

  // Each question as it comes: of two that are drawn at once, the later one goes on.
  async function draw() {
    const mine = ++drawn,
      all = wanted();
    const found = () => all.map((one) => known.get(JSON.stringify(one)) ?? null);
    for (const one of all) {
      if (known.has(JSON.stringify(one))) continue;
      status.textContent = t("{n} of {all}", { n: all.indexOf(one) + 1, all: all.length });
      show(found());
      const answer = await answered(...one);
      known.set(JSON.stringify(one), answer);
      if (mine !== drawn) return;
    }
    status.textContent = all.length
      ? ""
      : t("Type a sentence, and choose what is asked about it: the sheet appears beside it.");
    show(found());
    root.setAttribute("aria-busy", "false");
  }
  function show(questions) {
    root.setAttribute("aria-busy", "true");
    table.replaceChildren(paper({ title: title(), questions }, { key: key.checked, link }));
  }

  function choose(name) {
    made.value = name;
    root.classList.toggle("own", name === OWN);
    for (const one of ofOwn) one.hidden = name !== OWN;
    draw();
  }

  function start() {
    const shown = pageLink(),
      first = document.querySelector("#source-text :is(textarea, input)")?.value ?? "";
    const at = offer.directions[0] ?? {};
    own = {
      title: "",
      direction: shown.get("direction") ?? at.direction,
      checkpoint: shown.get("checkpoint") ?? "",
      items: asks.slice(0, 2).map((ask) => ({ text: first, ask, word: "" })),
    };
    editor.put(own);
  }

  // place: {sheet, direction}: a tour's name, or a worksheet of one's own as a link has it; nothing: one of one's own
  // about the sentence of the page.
  function open(place) {
    if (root.hidden) opener = document.activeElement;
    root.hidden = false;
    document.body.classList.add("atlas-sheeting");
    still(true);
    direction = place.direction ?? "";
    const tour = offer.tours.find((one) => one.name === place.sheet);
    if (!own) start();
    let refused = "";
    if (place.sheet && !tour)
      try {
        editor.put(fromLink(place.sheet, asks));
      } catch (error) {
        refused = error.message;
      }
    choose(tour ? tour.name : OWN);
    if (refused) refuse(refused);
    root.querySelector("h2").focus({ preventScroll: true });
  }
  function refuse(words) {
    drawn += 1;
    status.textContent = words;
    root.setAttribute("aria-busy", "false");
    table.replaceChildren();
  }

  function linked() {
    const sheet = toLink(editor.read(), location.href.length);
    if (!sheet)
      return (status.textContent = t(
        "This is too much for a link, which has at most 30 questions and 64 kB: save it as a file.",
      ));
    copyLink(
      new URLSearchParams({ sheet }),
      (said) => status.replaceChildren(said),
      t("Link to this worksheet"),
      t("Link copied."),
    );
  }

  async function save() {
    const style = await (await fetch(STYLE)).text();
    const text = page(table.firstElementChild, title(), style);
    download("worksheet.html", new Blob([text], { type: "text/html" }));
  }

  // Nothing of the page behind can be reached meanwhile.
  function still(on) {
    for (const child of document.body.children) if (child !== root) child.inert = on;
  }

  function leave() {
    root.hidden = true;
    still(false);
    drawn += 1;
    document.body.classList.remove("atlas-sheeting");
    const fields = pageLink();
    if (fields.get("sheet") !== null) {
      fields.delete("sheet");
      readdress(fields);
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
