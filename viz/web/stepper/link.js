// The step in the page's address: it is gone to once its sentence is the one that is shown, and can be copied.
import { button, el } from "../core/dom.js";
import { t } from "../core/language.js";
import { copyLink, isAbout, linkTo, pageLink, tabLinks } from "../core/links.js";

// shown(): {tree, path, at, stale}; open(branch, step).
export function createLink(shown, open) {
  let wanted = null; // what a link names, until its sentence is the one that is shown

  // The branch that a link brings back: what the model wrote by itself.
  const own = (tree) => tree.branches.find((one) => one.origin === "own");

  function read() {
    const link = pageLink();
    wanted =
      link.get("tab") === "stepper" && /^\d{1,5}$/.test(link.get("step") || "") ? link : null;
    follow();
  }

  function follow() {
    const { tree, path, stale } = shown();
    if (!wanted || !path || stale || !own(tree) || !isAbout(wanted, tree)) return;
    const step = Number(wanted.get("step")) - 1;
    wanted = null;
    open(own(tree), step);
  }

  const fields = () => linkTo(shown().tree, { tab: "stepper", step: shown().at + 1 });
  tabLinks.stepper = () => shown().path && fields();

  const copy = () => copyLink(fields(), (said) => copied.replaceChildren(said));
  const copied = el("span", { class: "caption", role: "status" }),
    sharing = button(t("Copy link"), copy, { title: t("A link that restores this view") });
  window.addEventListener("hashchange", read);

  return {
    nodes: [sharing, copied],
    read,
    follow,
    show({ origin }) {
      copied.replaceChildren(); // it was about what was shown before
      sharing.hidden = origin !== "own"; // what was forced is in no link
    },
  };
}
