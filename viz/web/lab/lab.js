// A tab of the lab: its strips of tabs, and its panels, each mounted when it is first opened (viz/panels/registry.py).
import { el, loadStyleOf } from "../core/dom.js";
import { toText } from "../core/language.js";
import { tabOpeners, openLink } from "../core/links.js";
import { store } from "../store/store.js";
import question from "../why/question.js";
import { createPanel } from "./panel.js";
import { createTabs } from "./tabs.js";

export default function lab(root, api) {
  const { tab, asks, places, folded, follows } = api.options,
    panels = new Map(), // name -> what createPanel returns, of those that were opened
    chapters = new Map(); // name -> the strip of a place with several panels

  const strip = createTabs(
    `${tab}-tabs`,
    places.map((place) => ({
      name: place.name,
      id: `${tab}-${place.name}`,
      title: toText(place.title),
      fill: (parent) => fill(place, parent),
    })),
    { class: "tabs" },
  );

  function fill(place, parent) {
    if (place.component) return mountComponent(place, parent);
    if (!place.is_chapter) return mount(place.panels[0], parent);
    const chapter = chapterOf(place),
      first = markChapter(chapter);
    parent.append(chapter.element);
    if (chapter.opened() === null) chapter.open(first);
  }

  function chapterOf({ name, panels: within }) {
    const tabs = within.map((panel) => ({
      name: panel.name,
      id: `${tab}-${name}-${panel.name}`,
      title: toText(panel.title),
      fill: (parent) => mount(panel, parent),
    }));
    if (!chapters.has(name))
      chapters.set(name, createTabs(`${tab}-${name}-tabs`, tabs, { class: "tabs chapter" }));
    return chapters.get(name);
  }

  function mount(panel, parent) {
    const link = openLink.link?.panel === panel.name ? openLink.link : {};
    panels.set(panel.name, createPanel(panel, { parent, follows, link }));
  }

  // A component with an inner tab of its own is loaded when that is opened: (root, {options}) => {}.
  async function mountComponent({ component, options }, parent) {
    const root = el("div", { class: `atlas-root atlas-${component}` });
    parent.append(el("div", { id: component }, root));
    const address = new URL(`../${component}/${component}.js`, import.meta.url).href;
    const [module] = await Promise.all([import(address), loadStyleOf(address)]);
    root.dataset.mounted = "";
    module.default(root, { options });
  }

  // Why none of these panels can answer for the present model, in words; "" if one can (viz/panels/registry.py).
  let lacking = [];
  function reasons(list) {
    const found = list.map(({ name }) => lacking.find((entry) => entry.name === name));
    if (!found.length || !found.every(Boolean)) return "";
    return [...new Set(found.map(({ why }) => toText(why)))].join(" ");
  }
  const markChapter = (chapter) => chapter.mark((name) => reasons([{ name }]));
  function mark() {
    lacking = store.state.translation?.about?.lacking ?? lacking; // an error says nothing of the model
    chapters.forEach(markChapter);
    return strip.mark((name) => reasons(places.find((place) => place.name === name).panels));
  }

  // A link opens a panel of this tab.
  function open(link) {
    const place = places.find(
      ({ name, component, panels: within }) =>
        (component && name === link.panel) || within.some((panel) => panel.name === link.panel),
    );
    if (!place) return;
    if (fold) fold.open = true;
    const isMounted = panels.has(link.panel);
    if (place.is_chapter) chapterOf(place).open(link.panel, { isChosen: true });
    strip.open(place.name, { isChosen: true });
    if (isMounted) panels.get(link.panel).set(link);
  }

  const begin = () => {
    const first = mark();
    if (strip.opened() === null) strip.open(first);
  };
  const fold =
    folded &&
    el(
      "details",
      { id: `${tab}-fold`, ontoggle: () => fold.open && begin() },
      el("summary", {}, toText(folded)),
      strip.element,
    );
  const asked = el("div", { class: "atlas-root atlas-question", "data-mounted": "" });
  root.replaceChildren(
    ...(asks ? [el("div", { id: `${tab}-question` }, asked)] : []),
    fold || strip.element,
  );
  if (asks) question(asked);
  tabOpeners[tab] = open;
  store.follow(["translation"], mark);
  if (openLink.link?.tab === tab) open(openLink.link);
  if (!fold) begin();
}
