// A strip of tabs and the panels behind them (WAI-ARIA Authoring Practices, "Tabs with manual activation": a panel may
// take seconds to compute, so arrow keys move the focus alone).
import { button, el } from "../core/dom.js";
import { arrowStep, hasModifier } from "../core/keys.js";

// Arrow keys, Home and End move the focus along nodes, of which one is a stop of the tabulator.
export function rove(event, nodes) {
  const at = nodes.indexOf(event.target),
    [, step] = arrowStep(event) ?? [0, 0];
  const ends = hasModifier(event) ? {} : { Home: 0, End: nodes.length - 1 },
    next = step ? (at + step + nodes.length) % nodes.length : ends[event.key];
  if (at < 0 || next === undefined) return;
  event.preventDefault();
  for (const [i, node] of nodes.entries()) node.tabIndex = i === next ? 0 : -1;
  nodes[next].focus();
}

// Create a strip. tabs: [{name, id, title, fill}]; fill(panel) is called when the tab is opened for the first time.
// Returns {element, open, mark, opened}.
export function createTabs(id, tabs, attributes = {}) {
  let current = null; // the name of the open tab
  const parts = new Map(tabs.map((tab) => [tab.name, { ...tab, ...drawn(tab) }])),
    all = [...parts.values()];
  const buttons = all.map(({ tab }) => tab),
    walk = (event) => rove(event, buttons);
  const element = el(
    "div",
    { id, ...attributes },
    el("div", { class: "strip", role: "tablist", onkeydown: walk }, buttons),
    all.map(({ panel }) => panel),
  );
  all[0].tab.tabIndex = 0;

  function drawn({ name, id: panelId, title }) {
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

  // isChosen: by a person or a link, so that it stays open.
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

  // reasons(name): in words, why nothing can be shown behind a tab; "" where something can. Without a choice, the first
  // tab that shows something is opened.
  function mark(reasons) {
    for (const { name, tab } of all) {
      const why = reasons(name);
      if (why) tab.setAttribute("aria-disabled", "true");
      else tab.removeAttribute("aria-disabled");
      tab.title = why;
    }
    if (current !== null && parts.get(current).isChosen) return;
    const first = (all.find(({ name }) => !reasons(name)) ?? all[0]).name;
    if (current !== null && first !== current) open(first);
    return first;
  }

  return { element, open, mark, opened: () => current };
}
