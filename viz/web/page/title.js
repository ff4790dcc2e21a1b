// The page's name, what one can do here, and the ways into what goes through the page.
import { el } from "../core/dom.js";
import { t } from "../core/language.js";
import { presenting } from "../present/way.js";
import { teach } from "../tour/teach.js";
import { display } from "./display.js";

// A strip that is pushed aside with a finger shows the tab that a link or a tour has opened.
function keepInSight(strips) {
  const show = (tab) => {
    const strip = tab.closest(".tab-container:not(.visually-hidden), .atlas-lab .strip");
    if (!strip || tab.getAttribute("aria-selected") !== "true") return;
    const { left, right, width } = tab.getBoundingClientRect(),
      room = strip.getBoundingClientRect();
    if (left < room.left || right > room.right)
      strip.scrollBy({ left: left + width / 2 - room.left - room.width / 2 });
  };
  strips.querySelectorAll("[aria-selected]").forEach(show);
  new MutationObserver((changes) => changes.forEach(({ target }) => show(target))).observe(strips, {
    subtree: true,
    attributeFilter: ["aria-selected"],
  });
}

export default function title(root, api) {
  const { heading, text } = api.value(),
    { tour } = api.options;
  const begin = () =>
    document.dispatchEvent(new CustomEvent("atlas-tour", { detail: { tour: tour.name } }));
  const way = (name, label, onclick, about) =>
    el("button", { type: "button", class: `way ${name}`, title: about, onclick }, label);
  const tourLabel = [
    el("span", { class: "wide" }, t("Take the tour ({n} minutes)", { n: tour?.minutes })),
    el("span", { class: "narrow" }, t("Take the tour")), // on a phone
  ];
  root.replaceChildren(
    el("h1", {}, heading),
    el("p", {}, text),
    tour ? way("tour", tourLabel, begin) : "",
    way("present", t("Present"), presenting(), t("One picture fills the screen, for a class (f)")),
    teach(Boolean(tour)),
    display(),
  );
  keepInSight(document.querySelector(".gradio-container"));
}
