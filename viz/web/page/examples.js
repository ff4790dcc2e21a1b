// Example sentences in a menu.
import { ask, numbered } from "../core/ask.js";
import { el } from "../core/dom.js";
import { t } from "../core/language.js";
import { tell } from "../core/rpc.js";
import { store } from "../store/store.js";
import { withToy } from "../store/translation.js";

export default function examples(root, api) {
  // A button with a list of sentences below it, which the keyboard walks through.
  function menuOf(sentences) {
    const list = el(
      "div",
      { class: "list", role: "menu", hidden: true, "aria-label": t("Examples") },
      sentences.map((text) =>
        el(
          "button",
          {
            type: "button",
            class: "example",
            role: "menuitem",
            onclick: () => {
              show(false);
              tell("atlas-example", { text });
            },
          },
          text,
        ),
      ),
    );
    const button = el(
      "button",
      {
        type: "button",
        class: "opens",
        "aria-haspopup": "menu",
        "aria-expanded": "false",
        onclick: () => show(list.hidden),
      },
      t("Examples"),
    );
    const show = (open) => {
      list.hidden = !open;
      button.setAttribute("aria-expanded", String(open));
    };
    const menu = el("div", { class: "menu" }, button, list);
    menu.addEventListener("focusout", (event) => menu.contains(event.relatedTarget) || show(false));
    menu.addEventListener("keydown", (event) => {
      const items = [...list.children],
        at = items.indexOf(document.activeElement);
      if (event.key === "Escape") {
        show(false);
        button.focus();
      } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
        show(true);
        const next = event.key === "ArrowDown" ? at + 1 : at < 0 ? -1 : at - 1;
        items.at(next % items.length).focus();
        event.preventDefault();
      }
    });
    return menu;
  }

  let offered = []; // the sentences of the menu
  const draw = ({ sentences, cost }) => {
    offered = sentences;
    root.replaceChildren(
      cost ? el("p", { class: "cost" }, cost) : "",
      sentences.length ? menuOf(sentences) : "",
    );
  };
  const field = () => document.querySelector("#source-text :is(textarea, input)");
  // Gradio translates labels, but no placeholders.
  field()?.setAttribute("placeholder", t("Type a sentence and press Enter"));
  // A direction was chosen, in either menu: what that offers. What came with a link since is not undone.
  let newest = 0, // the number of the question whose answer is shown
    asked = 0; // of the last one
  document.addEventListener("atlas-choose", (event) => {
    event.preventDefault();
    choose(event.detail);
  });
  async function choose(fields) {
    const number = (asked = numbered()),
      { error, menus, offer } = await ask("page_direction", { fields: withToy(fields) });
    if (number <= newest || number !== asked) return;
    if (error) return store.set({ translation: { error } });
    // An example of the direction before gives way to one of the new direction; what was typed stays.
    const { value } = field(),
      stays = value.trim() && (!offered.includes(value) || offer.sentences.includes(value));
    document.dispatchEvent(new CustomEvent("atlas-chosen", { detail: { menus, offer, number } }));
    tell("atlas-clear", { text: stays ? value : (offer.sentences[0] ?? "") });
  }
  document.addEventListener("atlas-chosen", ({ detail }) => {
    newest = detail.number;
    draw(detail.offer);
  });
  draw(api.value());
}
