// The menu of example sentences beside the text field.
import { button, el } from "../core/dom.js";
import { t } from "../core/language.js";
import { textField, languagePair, submitExample } from "../store/controls.js";
import { store } from "../store/store.js";

export default function examples(root, api) {
  // Create a button with a list of sentences, which arrow keys walk through.
  function menuOf(sentences) {
    const list = el(
      "div",
      { class: "list", role: "menu", hidden: true, "aria-label": t("Examples") },
      sentences.map((text) =>
        button(text, () => (show(false), submitExample(text)), {
          class: "example",
          role: "menuitem",
        }),
      ),
    );
    const opens = button(t("Examples"), () => show(list.hidden), {
      class: "opens",
      "aria-haspopup": "menu",
      "aria-expanded": "false",
    });
    const show = (open) => {
      list.hidden = !open;
      opens.setAttribute("aria-expanded", String(open));
    };
    const menu = el("div", { class: "menu" }, opens, list);
    menu.addEventListener("focusout", (event) => menu.contains(event.relatedTarget) || show(false));
    menu.addEventListener("keydown", (event) => {
      const items = [...list.children],
        at = items.indexOf(document.activeElement);
      if (event.key === "Escape") {
        show(false);
        opens.focus();
      } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
        show(true);
        const next = event.key === "ArrowDown" ? at + 1 : at < 0 ? -1 : at - 1;
        items.at(next % items.length).focus();
        event.preventDefault();
      }
    });
    return menu;
  }

  const draw = ({ sentences, cost }) =>
    root.replaceChildren(
      cost ? el("p", { class: "cost" }, cost) : "",
      sentences.length ? menuOf(sentences) : "",
    );
  // Gradio does not translate placeholders.
  textField()?.setAttribute("placeholder", t("Type a sentence and press Enter"));
  let offered = null;
  store.follow(["direction"], ({ direction: { offer } }) => {
    if (offer !== offered) draw((offered = offer));
  });
  const first = api.value();
  store.set({ direction: { ...first, pair: languagePair(first.menus) } });
}
