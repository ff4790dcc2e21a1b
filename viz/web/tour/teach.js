// What a class needs: a small menu beside the tours.
import { el } from "../core/dom.js";
import { t } from "../core/language.js";
import { closing } from "../page/display.js";

// tours: whether there are any here.
export function teach(tours) {
  const entry = (words, about, event, detail) =>
    el(
      "button",
      {
        type: "button",
        onclick: () => {
          root.open = false;
          root.querySelector("summary").focus(); // here one comes back
          document.dispatchEvent(new CustomEvent(event, { detail }));
        },
      },
      el("b", {}, words),
      el("small", {}, about),
    );
  const root = el(
    "details",
    { class: "teach" },
    el("summary", { class: "way" }, t("For a class")),
    el(
      "div",
      { class: "choices" },
      tours
        ? entry(t("A lesson of 45 minutes"), t("A tour that asks before it shows"), "atlas-tour", {
            tour: "lesson",
          })
        : "",
      entry(
        t("Worksheets"),
        t("Of a tour, or of your own sentences, with a key"),
        "atlas-sheet",
        {},
      ),
      entry(t("My views"), t("Collected, ordered, played as slides"), "atlas-views", {}),
    ),
  );
  return closing(root);
}
