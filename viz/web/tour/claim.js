// What a stop claims, with its number, and whether that was measured to hold.
import { el } from "../core/dom.js";
import { said, t } from "../core/language.js";

export function drawClaim(claim, { text: words, holds, learned }) {
  claim.className = `claim ${holds ? "holds" : "fails"}`;
  claim.replaceChildren(
    el(
      "span",
      {
        class: "mark",
        role: "img",
        "aria-label": holds ? t("The claim holds") : t("The claim does not hold"),
      },
      holds ? "✓" : "✗",
    ),
    el(
      "span",
      {},
      said(words),
      " ",
      el(
        "small",
        {
          title: learned
            ? t("Training brought this about: a model with random weights fails here.")
            : t("This holds for any network of this construction, trained or not."),
        },
        learned ? t("learned") : t("by construction"),
      ),
    ),
  );
}
