// The menu of example sentences beside the text field.
import { button, el } from "../core/dom.js";
import { moveFocus } from "../core/keys.js";
import { t } from "../core/language.js";
import { textField, languagePair, submitExample } from "../store/controls.js";
import { store } from "../store/store.js";
import { closeOnLeave } from "./display.js";

export default function examples(root, api) {
  const opens = el("summary", { class: "opens" }, t("Examples")),
    list = el("div", { class: "list" });
  const walk = (event) => {
    if (event.key === "ArrowDown") menu.open = true;
    const nodes = [opens, ...list.children];
    moveFocus(
      event,
      nodes.map((node) => [node]),
    );
  };
  const menu = closeOnLeave(el("details", { class: "menu", onkeydown: walk }, opens, list));
  function choose(text) {
    menu.open = false;
    submitExample(text);
  }

  function draw({ sentences, cost }) {
    list.replaceChildren(
      ...sentences.map((text) => button(text, () => choose(text), { class: "example" })),
    );
    root.replaceChildren(
      cost ? el("p", { class: "cost" }, cost) : "",
      sentences.length ? menu : "",
    );
  }
  // Gradio does not translate placeholders.
  textField()?.setAttribute("placeholder", t("Type a sentence and press Enter"));
  let offered = null;
  store.follow(["direction"], ({ direction: { offer } }) => {
    if (offer !== offered) draw((offered = offer));
  });
  const first = api.value();
  store.set({ direction: { ...first, pair: languagePair(first.menus) } });
}
