// A strip of tabs and the panels behind them (WAI-ARIA Authoring Practices, "Tabs with manual activation": a panel may
// take seconds to compute, so arrow keys move the focus alone).
import { button, el } from "../core/dom.js";
import { arrowStep, hasModifier } from "../core/keys.js";

/**
 * Move the focus along nodes with the arrow keys, Home and End. The Tab key stops at one of them only.
 * @param {any} event @param {any[]} nodes
 */
export function moveTabFocus(event, nodes) {
  const current = nodes.indexOf(event.target),
    [, step] = arrowStep(event) ?? [0, 0];
  const ends = hasModifier(event) ? {} : { Home: 0, End: nodes.length - 1 },
    next = step ? (current + step + nodes.length) % nodes.length : ends[event.key];
  if (current < 0 || next === undefined) return;
  event.preventDefault();
  for (const [i, node] of nodes.entries()) node.tabIndex = i === next ? 0 : -1;
  nodes[next].focus();
}

/**
 * Create a strip of tabs.
 * @param {string} id
 * @param {{name: string, id: string, title: string, fill: (panel: any) => void}[]} tabs fill is called when the tab is opened
 *   for the first time
 */
export function createTabs(id, tabs, attributes = {}) {
  let current = null; // the name of the open tab
  const parts = new Map(tabs.map((tab) => [tab.name, { ...tab, ...createPart(tab) }])),
    all = [...parts.values()];
  const buttons = all.map(({ tab }) => tab),
    moveFocus = (event) => moveTabFocus(event, buttons);
  const element = el("div", { id, ...attributes }, [
    el("div", { class: "strip", role: "tablist", onkeydown: moveFocus }, buttons),
    all.map(({ panel }) => panel),
  ]);
  all[0].tab.tabIndex = 0;

  function createPart({ name, id: panelId, title }) {
    const tab = button(title, () => open(name, { isChosen: true }), {
      class: null,
      role: "tab",
      id: `${panelId}-button`,
      "aria-controls": panelId,
      "aria-selected": "false",
      "data-tab-id": name,
      tabindex: "-1",
    });
    const panel = el("div", {
      id: panelId,
      role: "tabpanel",
      "aria-labelledby": tab.id,
      hidden: true,
    });
    return { tab, panel, isFilled: false, isChosen: false };
  }

  // A tab that a person or a link opens (isChosen) stays open even if it is disabled.
  function open(name, { isChosen = false } = {}) {
    for (const part of all) {
      const isOpen = part.name === name;
      part.tab.setAttribute("aria-selected", String(isOpen));
      part.tab.tabIndex = isOpen ? 0 : -1;
      part.panel.hidden = !isOpen;
      part.isChosen = isOpen && (isChosen || part.isChosen);
    }
    current = name;
    const part = parts.get(name);
    if (!part.isFilled) {
      part.isFilled = true;
      part.fill(part.panel);
    }
  }

  // Disable tabs. reasonFor(name): in words, why a tab can show nothing; "" if it can. If no tab was chosen, the first one that
  // can show something is opened. Returns its name.
  function disable(reasonFor) {
    for (const { name, tab } of all) {
      const reason = reasonFor(name);
      if (reason) tab.setAttribute("aria-disabled", "true");
      else tab.removeAttribute("aria-disabled");
      tab.title = reason;
    }
    if (current !== null && parts.get(current).isChosen) return;
    const first = (all.find(({ name }) => !reasonFor(name)) ?? all[0]).name;
    if (current !== null && first !== current) open(first);
    return first;
  }

  return { element, open, disable, opened: () => current };
}
