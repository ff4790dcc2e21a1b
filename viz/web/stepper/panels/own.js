// A target of one's own.
import { el } from "../../core/dom.js";
import { formatFixed } from "../../core/format.js";
import { t } from "../../core/language.js";

// hooks: target(text)
export function ownTarget(hooks) {
  const text = el("textarea", {
    rows: "2",
    "aria-label": t("Your own translation"),
    placeholder: t("Type a translation of the sentence"),
    maxlength: "10000",
    onkeydown: (event) => {
      if (event.key !== "Enter" || event.shiftKey) return;
      event.preventDefault();
      root.requestSubmit();
    },
  });
  const verdict = el("p", { class: "facts", "aria-live": "polite" });
  const root = el(
    "form",
    {
      class: "own",
      onsubmit: (event) => {
        event.preventDefault();
        hooks.target(text.value);
      },
    },
    el(
      "p",
      { class: "caption" },
      t(
        "The model is made to write your translation token by token. You see its maps as for any other, and how probable each of your tokens was to it.",
      ),
    ),
    text,
    el("button", { type: "submit", class: "plain strong" }, t("Force-decode it")),
    verdict,
  );

  function draw(tree, current) {
    const own = tree.branches.find((b) => b.number === current && b.origin === "target"),
      model = tree.branches[0];
    verdict.textContent = "";
    if (!own) return;
    const each = ({ total, ids }) => formatFixed(total / ids.length, 2);
    verdict.textContent = t(
      "Yours: log-probability {total} over {n} tokens ({each} a token). The model's own: {total2} over {n2} ({each2} a token).",
      {
        total: formatFixed(own.total, 2),
        n: own.ids.length,
        each: each(own),
        total2: formatFixed(model.total, 2),
        n2: model.ids.length,
        each2: each(model),
      },
    );
  }
  return { root, draw };
}
