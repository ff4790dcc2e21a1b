// A line of prose, with a heading before it or a link after it.
import { el } from "../core/dom.js";

export default function prose(root, api) {
  const { heading, text, link } = api.value();
  root.replaceChildren(
    ...(heading ? [el("h1", {}, heading)] : []),
    el(
      "p",
      {},
      text,
      ...(link
        ? [
            " ",
            el("a", { href: link.url, target: "_blank", rel: "noopener noreferrer" }, link.text),
          ]
        : []),
    ),
  );
}
