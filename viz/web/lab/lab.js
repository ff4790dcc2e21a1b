// A tab of the page that contains panels (viz/panels/registry.py): its strip of tabs, and its panels, each created when it is
// first opened.
import { el, loadStyleOf } from "../core/dom.js";
import { opened, tabOpeners } from "../core/links.js";
import { store } from "../store/store.js";
import question from "../why/question.js";
import { createPanel } from "./panel.js";
import { createTabs } from "./tabs.js";

/**
 * @param {Element} root
 * @param {{options: any}} api options: viz/panels/registry.py, the tab's groups of panels
 */
export default function lab(root, api) {
  const { tab, asks, groups, folded, follows } = api.options,
    panels = new Map(); // name -> panel, of the panels that were opened
  const strip = createTabs(tab, groups, (panel, parent) =>
    panel.component ? mountComponent(panel, parent) : mount(panel, parent),
  );

  function mount(panel, parent) {
    const link = opened.link?.panel === panel.name ? opened.link : {};
    panels.set(panel.name, createPanel(panel, { parent, follows, link }));
  }

  // A component (root, {options}) => {} may stand in place of a panel. Its module is loaded when it is opened.
  async function mountComponent({ component, options }, parent) {
    const root = el("div", { class: `atlas-root atlas-${component}` });
    parent.append(el("div", { id: component }, root));
    const address = new URL(`../${component}/${component}.js`, import.meta.url).href;
    const [module] = await Promise.all([import(address), loadStyleOf(address)]);
    root.dataset.mounted = "";
    module.default(root, { options });
  }

  let lacking = new Set(); // names of the panels that the model cannot show (viz/panels/registry.py)
  // Show the panels that the model has. Returns the name of the one to open first.
  function showAvailable() {
    const entries = store.state.translation?.about?.lacking; // an error does not say anything about the model
    if (entries) lacking = new Set(entries.map(({ name }) => name));
    return strip.show((name) => !lacking.has(name));
  }

  // Open a panel of this tab with the settings of a link. link: panel, or group to open the group's first panel
  function open(link) {
    const isPanel = groups.some((group) => group.panels.some(({ name }) => name === link.panel)),
      name = isPanel ? link.panel : strip.firstOf(link.group);
    if (!name) return;
    if (fold) fold.open = true;
    const isMounted = panels.has(name);
    strip.open(name, { isChosen: true });
    if (isMounted) panels.get(name).set(link);
  }

  const openFirst = () => strip.opened() ?? strip.open(showAvailable());
  // With its methods open, the answer is only its headline.
  function toggleFold() {
    questionRoot.classList.toggle("brief", fold.open);
    if (fold.open) openFirst();
  }
  const fold =
    folded &&
    el("details", { id: `${tab}-fold`, ontoggle: toggleFold }, [
      el("summary", {}, folded),
      strip.element,
    ]);
  const questionRoot = el("div", { class: "atlas-root atlas-question", "data-mounted": "" });
  root.replaceChildren(
    ...(asks ? [el("div", { id: `${tab}-question` }, questionRoot)] : []),
    fold || strip.element,
  );
  if (asks) question(questionRoot);
  tabOpeners[tab] = open;
  store.follow(["translation"], showAvailable);
  showAvailable();
  if (opened.link?.tab === tab) open(opened.link);
  if (!fold) openFirst();
}
