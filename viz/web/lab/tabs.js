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
 * @param {string} id with which the ids of its parts begin
 * @param {{name: string, title: any}[]} parts
 * @param {(part: any, panel: any) => void} fill is called when a part's tab is opened for the first time
 * @param {string} [kind] class names
 */
export function createTabs(id, parts, fill, kind = "tabs") {
  let current = null, // the open tab
    isCurrentChosen = false; // whether a person or a link opened it: it stays open even if it is disabled
  const tabs = parts.map((part) => {
    const panelId = `${id}-${part.name}`;
    const node = button(part.title, () => open(part.name, { isChosen: true }), {
      class: null,
      role: "tab",
      id: `${panelId}-button`,
      "aria-controls": panelId,
      "aria-selected": "false",
      "data-tab-id": part.name,
      tabindex: "-1",
    });
    const panel = el("div", {
      id: panelId,
      role: "tabpanel",
      "aria-labelledby": node.id,
      hidden: true,
    });
    return { part, node, panel };
  });
  const nodes = tabs.map(({ node }) => node),
    moveFocus = (event) => moveTabFocus(event, nodes);
  const element = el("div", { id: `${id}-tabs`, class: kind }, [
    el("div", { class: "strip", role: "tablist", onkeydown: moveFocus }, nodes),
    tabs.map(({ panel }) => panel),
  ]);
  nodes[0].tabIndex = 0;

  function open(name, { isChosen = false } = {}) {
    isCurrentChosen = isChosen || (isCurrentChosen && current.part.name === name);
    current = tabs.find(({ part }) => part.name === name);
    for (const tab of tabs) {
      tab.node.setAttribute("aria-selected", String(tab === current));
      tab.node.tabIndex = tab === current ? 0 : -1;
      tab.panel.hidden = tab !== current;
    }
    if (!current.panel.hasChildNodes()) fill(current.part, current.panel);
  }

  // Disable tabs. reasonFor(name): in words, why a tab can show nothing; "" if it can. If no tab was chosen, the first one that
  // can show something is opened. Returns its name.
  function disable(reasonFor) {
    for (const { part, node } of tabs) {
      node.title = reasonFor(part.name);
      node.ariaDisabled = node.title ? "true" : null;
    }
    if (isCurrentChosen) return;
    const { name } = parts.find((part) => !reasonFor(part.name)) ?? parts[0];
    if (current && name !== current.part.name) open(name);
    return name;
  }

  return { element, open, disable, opened: () => current?.part.name ?? null };
}
