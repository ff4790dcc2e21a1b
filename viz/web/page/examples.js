// Example sentences as a row of buttons, and the ways into what goes through the page.
import { el } from "../core/dom.js";
import { t } from "../core/language.js";
import { presenting } from "../present/way.js";

export default function examples(root, api) {
  const { tour } = api.options;
  const present = presenting();
  const begin = () =>
    document.dispatchEvent(new CustomEvent("atlas-tour", { detail: { tour: tour.name } }));
  const draw = ({ sentences, cost }) => {
    root.replaceChildren(
      el(
        "div",
        { class: "ways" },
        tour
          ? el(
              "button",
              { type: "button", class: "way tour", onclick: begin },
              t("Take the tour ({n} minutes)", { n: tour.minutes }),
            )
          : null,
        el(
          "button",
          {
            type: "button",
            class: "way present",
            title: t("One picture fills the screen, for a class (f)"),
            onclick: present,
          },
          t("Present"),
        ),
      ),
      cost ? el("p", { class: "cost" }, cost) : "",
      sentences.length ? el("span", { class: "label" }, t("Try")) : "",
      ...sentences.map((text) =>
        el(
          "button",
          { type: "button", class: "example", onclick: () => api.trigger("pick", { text }) },
          text,
        ),
      ),
    );
  };
  // Gradio translates labels, but no placeholders.
  document
    .querySelector("#source-text :is(textarea, input)")
    ?.setAttribute("placeholder", t("Type a sentence and press Enter"));
  draw(api.value());
  api.onValue(draw);
}
