// A tab of the page that contains panels (viz/panels/registry.py): its strips of tabs, and its panels, each created when it is
// first opened.
import { el, loadStyleOf } from "../core/dom.js";
import { toText } from "../core/language.js";
import { opened, tabOpeners } from "../core/links.js";
import { store } from "../store/store.js";
import question from "../why/question.js";
import { createPanel } from "./panel.js";
import { createTabs } from "./tabs.js";

/**
 * @param {Element} root
 * @param {{options: any}} api options: viz/panels/registry.py, the tab's places and panels
 */
export default function lab(root, api) {
  const { tab, asks, places, folded, follows } = api.options,
    panels = new Map(); // name -> panel, of the panels that were opened

  const strip = createTabs(tab, places, fill);
  const chapters = new Map(); // name of a place with several panels -> their strip of tabs
  for (const { name, panels: parts, is_chapter: isChapter } of places)
    if (isChapter) chapters.set(name, createTabs(`${tab}-${name}`, parts, mount, "tabs chapter"));

  function fill(place, parent) {
    if (place.component) return mountComponent(place, parent);
    const chapter = chapters.get(place.name);
    if (!chapter) return mount(place.panels[0], parent);
    const first = disableTabs(chapter);
    parent.append(chapter.element);
    if (chapter.opened() === null) chapter.open(first);
  }

  function mount(panel, parent) {
    const link = opened.link?.panel === panel.name ? opened.link : {};
    panels.set(panel.name, createPanel(panel, { parent, follows, link }));
  }

  // A place may contain a component (root, {options}) => {} in place of panels. Its module is loaded when the place is opened.
  async function mountComponent({ component, options }, parent) {
    const root = el("div", { class: `atlas-root atlas-${component}` });
    parent.append(el("div", { id: component }, root));
    const address = new URL(`../${component}/${component}.js`, import.meta.url).href;
    const [module] = await Promise.all([import(address), loadStyleOf(address)]);
    root.dataset.mounted = "";
    module.default(root, { options });
  }

  let lacking = []; // [{name, why}]: panels that have no answer for the model (viz/panels/registry.py)
  // Why none of these panels has an answer for the model, in words; "" if one has.
  function reasonFor(list) {
    const entries = list.map(({ name }) => lacking.find((entry) => entry.name === name));
    if (!entries.length || !entries.every(Boolean)) return "";
    return [...new Set(entries.map(({ why }) => toText(why)))].join(" ");
  }
  const disableTabs = (chapter) => chapter.disable((name) => reasonFor([{ name }]));
  function disablePlaces() {
    lacking = store.state.translation?.about?.lacking ?? lacking; // an error does not say anything about the model
    chapters.forEach(disableTabs);
    return strip.disable((name) => reasonFor(places.find((place) => place.name === name).panels));
  }

  // Open a panel of this tab with the settings of a link.
  function open(link) {
    const place = places.find(
      ({ name, component, panels: placePanels }) =>
        (component && name === link.panel) ||
        placePanels.some((panel) => panel.name === link.panel),
    );
    if (!place) return;
    if (fold) fold.open = true;
    const isMounted = panels.has(link.panel);
    chapters.get(place.name)?.open(link.panel, { isChosen: true });
    strip.open(place.name, { isChosen: true });
    if (isMounted) panels.get(link.panel).set(link);
  }

  const openFirst = () => {
    const first = disablePlaces();
    if (strip.opened() === null) strip.open(first);
  };
  const fold =
    folded &&
    el("details", { id: `${tab}-fold`, ontoggle: () => fold.open && openFirst() }, [
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
  store.follow(["translation"], disablePlaces);
  if (opened.link?.tab === tab) open(opened.link);
  if (!fold) openFirst();
}
