// A line of prose, with a link after it.
import { el } from "../core/dom.js";
import { said } from "../core/language.js";
import { glossed } from "./glossary.js";

export default function prose(root, api) {
  const { text, link } = api.value();
  root.replaceChildren(
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
