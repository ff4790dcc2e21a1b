// What stands below the steps: one panel at a time, chosen by its button.
import { el } from "../../core/dom.js";
import { say, t } from "../../core/language.js";

const PANELS = [
  ["branches", say("Branches")],
  ["compare", say("Compare")],
  ["lens", say("Layer by layer")],
  ["beam", say("Beam search")],
  ["own", say("Your own target")],
];

// panels: name -> {root, ..}; draw(): the one that is shown.
export function createPanels(panels, draw) {
  const stage = el("div", { class: "panel-stage" });
  const buttons = PANELS.map(([name, title]) =>
    el(
      "button",
      { type: "button", "aria-pressed": "false", "data-panel": name, onclick: () => show(name) },
      title,
    ),
  );
  let shown = "";

  function show(name) {
    shown = name;
    for (const button of buttons)
      button.setAttribute("aria-pressed", String(button.dataset.panel === name));
    stage.replaceChildren(panels[name].root);
    draw();
  }

  return {
    nodes: [
      el(
        "div",
        { class: "segmented choose-panel", role: "group", "aria-label": t("More") },
        buttons,
      ),
      stage,
    ],
    show,
    shown: () => shown,
  };
}
