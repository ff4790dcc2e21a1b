// What a panel is called, for who cannot see the tab that says it, and a line of prose with a link after it.
import { el } from "../core/dom.js";
import { said } from "../core/language.js";
import { glossed } from "./glossary.js";

export default function prose(root, api) {
  const { title, text, link } = api.value();
  root.replaceChildren(
    ...(title ? [el("h2", { class: "sr-only" }, said(title))] : []),
    el(
      "p",
      {},
      ...glossed(said(text)),
      ...(link
        ? [
            " ",
            el("a", { href: link.url, target: "_blank", rel: "noopener noreferrer" }, link.text),
          ]
        : []),
    ),
  );
}
