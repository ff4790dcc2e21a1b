// The page's title, and the ways to start a tour, a presentation, material for a class, and the
// display menu.
import { button, el } from "../core/dom.js";
import { t } from "../core/language.js";
import { isOpening } from "../core/opening.js";
import { listenForGlossary, openGlossary } from "../lab/glossary.js";
import { scrollToCell } from "../lab/scroll.js";
import { listenForPresentation, openViews, openWorkshop, present } from "../present/start.js";
import { store } from "../store/store.js";
import { openSheet, startTour } from "../tour/guide.js";
import { closeOnLeave, createDisplayMenu } from "./display.js";

// The page's strip of tabs scrolls to the tab that a link or a tour opened.
function keepInSight(strips) {
  const show = (tab) => {
    const strip = tab.closest(".tab-container:not(.visually-hidden)");
    if (strip && tab.getAttribute("aria-selected") === "true") scrollToCell(strip, tab);
  };
  strips.querySelectorAll("[aria-selected]").forEach(show);
  new MutationObserver((changes) => changes.forEach(({ target }) => show(target))).observe(strips, {
    subtree: true,
    attributeFilter: ["aria-selected"],
  });
}

// Start a tour in the direction of the translation on the page, but in its own direction in place of the browser's opening.
function beginTour(name, { direction }) {
  const own = isOpening(store.state.address) ? { direction } : {};
  startTour({ tour: name, stop: 1, ...own });
}

// Create the menu for a class. tour: the page's first tour, if it has any.
function teach(tour) {
  const entry = (words, about, start) => {
    const choose = () => {
      root.open = false;
      root.querySelector("summary").focus(); // the focus returns to here later
      start();
    };
    return button([el("b", {}, words), el("small", {}, about)], choose, { class: null });
  };
  const lesson = () => beginTour("lesson", tour);
  const root = el("details", { class: "teach" }, [
    el("summary", { class: "way" }, t("For a class")),
    el("div", { class: "choices" }, [
      tour && entry(t("A 45-minute lesson"), t("A tour that asks first"), lesson),
      entry(t("Worksheets"), t("From a tour or your own sentences, with an answer key"), () =>
        openSheet({}),
      ),
      entry(t("My views"), t("Collect and order views, play them as slides"), openViews),
      entry(t("A link for a workshop"), t("Sets the model, a tour and the tabs"), openWorkshop),
    ]),
  ]);
  return closeOnLeave(root);
}

// Move the focus to the first translated word: between the lines in the tab Attention, above the content of the other tabs.
function skip() {
  const words = document.querySelectorAll(
    ".sentence-lines .target .word[tabindex='0'], #translation-text .chip",
  );
  /** @type {any} */ ([...words].find((word) => word.checkVisibility()))?.focus();
}

export default function title(root, api) {
  const { heading, text } = api.value(),
    { tour } = api.options;
  const tourLabel = [
    el("span", { class: "wide" }, t("Take the tour ({n} minutes)", { n: tour?.minutes })),
    el("span", { class: "narrow" }, t("Take the tour")), // on a phone
  ];
  const begin = () => beginTour(tour.name, tour);
  root.replaceChildren(
    button(t("Skip to the words"), skip, { class: "way skip" }),
    el("h1", {}, heading),
    el("p", {}, text),
    tour ? button(tourLabel, begin, { class: "way tour" }) : "",
    button(t("Present"), () => present(), {
      class: "way present",
      title: t("One picture fills the screen, for a class (f)"),
    }),
    teach(tour),
    button(t("Glossary"), () => openGlossary(), { class: "way glossary" }),
    createDisplayMenu(),
  );
  keepInSight(document.querySelector(".gradio-container"));
  listenForPresentation();
  listenForGlossary();
}
