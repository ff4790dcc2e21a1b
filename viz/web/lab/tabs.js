// A strip of tabs in named groups, and the panels behind them (WAI-ARIA Authoring Practices, "Tabs with manual activation": a
// panel may take seconds to compute, so arrow keys move the focus alone).
import { button, el } from "../core/dom.js";
import { arrowStep, hasModifier } from "../core/keys.js";
import { scrollToCell } from "./scroll.js";

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
 * @param {{name: string, title: any, panels: {name: string, title: any}[]}[]} groups
 * @param {(part: any, panel: any) => void} fill is called when a part's tab is opened for the first time
 */
export function createTabs(id, groups, fill) {
  let current = null, // the open tab
    isCurrentChosen = false; // whether a person or a link opened it: it stays open even if it is not available
  const strip = el("div", { class: "strip", role: "tablist", onkeydown: moveFocus });
  const rows = groups.map((group) => {
    const label = el("span", { class: "group", id: `${id}-group-${group.name}` }, group.title);
    const tabs = group.panels.map((part) => createTab(part, group, label.id));
    const element = el("div", { role: "presentation" }, [label, tabs.map(({ node }) => node)]);
    strip.append(element);
    return { name: group.name, tabs, element };
  });
  const tabs = rows.flatMap((row) => row.tabs);
  tabs[0].node.tabIndex = 0;

  function createTab(part, group, labelId) {
    const panelId = `${id}-${part.name}`;
    const node = button(part.title, () => open(part.name, { isChosen: true }), {
      class: null,
      role: "tab",
      id: `${panelId}-button`,
      "aria-controls": panelId,
      "aria-describedby": labelId,
      "aria-selected": "false",
      "data-tab-id": part.name,
      tabindex: "-1",
    });
    const panel = el("div", {
      id: panelId,
      role: "tabpanel",
      "aria-labelledby": node.id,
      "data-group": group.name,
      hidden: true,
    });
    return { part, node, panel };
  }

  const availableNodes = () => tabs.flatMap(({ node }) => (node.hidden ? [] : [node]));
  function moveFocus(event) {
    moveTabFocus(event, availableNodes());
  }

  // Let the Tab key stop at the open tab, or at the first one if that is not available.
  function placeTabStop() {
    const stop = current && !current.node.hidden ? current.node : availableNodes()[0];
    for (const { node } of tabs) node.tabIndex = node === stop ? 0 : -1;
  }

  function open(name, { isChosen = false } = {}) {
    isCurrentChosen = isChosen || (isCurrentChosen && current.part.name === name);
    current = tabs.find(({ part }) => part.name === name);
    for (const tab of tabs) {
      tab.node.setAttribute("aria-selected", String(tab === current));
      tab.panel.hidden = tab !== current;
    }
    placeTabStop();
    reveal();
    if (!current.panel.hasChildNodes()) fill(current.part, current.panel);
  }

  // Buttons at the ends of a strip that is wider than the page, for a mouse without a second wheel. Arrow keys scroll, too.
  const ends = [-1, 1].map((side) =>
    el(
      "button",
      {
        type: "button",
        class: `end ${side < 0 ? "before" : "after"}`,
        tabindex: "-1",
        "aria-hidden": "true",
        hidden: true,
        onclick: () => strip.scrollBy({ left: side * 0.7 * strip.clientWidth }),
      },
      "›", // the style sheet mirrors the first one
    ),
  );
  function markEnds() {
    const rest = strip.scrollWidth - strip.clientWidth;
    ends[0].hidden = strip.scrollLeft <= 1;
    ends[1].hidden = rest - strip.scrollLeft <= 1;
  }
  // Scroll the strip sideways to the open tab, if the buttons leave it uncovered.
  function reveal() {
    const [before, after] = ends.map((node) => (node.hidden ? undefined : node));
    if (strip.clientWidth && current && !current.node.hidden)
      scrollToCell(strip, current.node, before ?? null, after);
    markEnds();
  }
  strip.addEventListener("scroll", markEnds, { passive: true });
  new ResizeObserver(reveal).observe(strip);

  // Show only the tabs of available parts. If no tab was chosen, the first available one is opened. Returns its name.
  function show(isAvailable) {
    for (const { tabs: members, element } of rows) {
      for (const { part, node } of members) node.hidden = !isAvailable(part.name);
      element.hidden = members.every(({ node }) => node.hidden);
    }
    placeTabStop();
    markEnds();
    if (isCurrentChosen) return current.part.name;
    const { part } = tabs.find(({ node }) => !node.hidden) ?? tabs[0];
    if (current && part !== current.part) open(part.name);
    return part.name;
  }

  // Return the name of the first available part of a group, undefined if there is no such group.
  function firstOf(groupName) {
    const members = rows.find(({ name }) => name === groupName)?.tabs;
    return (members?.find(({ node }) => !node.hidden) ?? members?.[0])?.part.name;
  }

  const element = el("div", { id: `${id}-tabs`, class: "tabs" }, [
    el("div", { class: "strip-box" }, strip, ends),
    tabs.map(({ panel }) => panel),
  ]);
  return { element, open, show, firstOf, opened: () => current?.part.name ?? null };
}
