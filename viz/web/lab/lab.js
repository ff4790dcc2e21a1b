// A tab of the lab: its strips of tabs, and its panels, each mounted when it is first opened (viz/ui/lab/lab.py).
import { el } from "../core/dom.js";
import { said } from "../core/language.js";
import { openers, visit } from "../core/links.js";
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
      title: said(place.title),
      fill: (parent) => fill(place, parent),
    })),
    { class: "tabs" },
  );

  function fill(place, parent) {
    if (place.element) return; // adopted
    if (!place.is_chapter) return mount(place.panels[0], parent);
    const chapter = chapterOf(place),
      first = markChapter(chapter);
    parent.append(chapter.element);
    if (chapter.opened() === null) chapter.open(first);
  }

  function chapterOf(place) {
    if (!chapters.has(place.name))
      chapters.set(
        place.name,
        createTabs(
          `${tab}-${place.name}-tabs`,
          place.panels.map((panel) => ({
            name: panel.name,
            id: `${tab}-${place.name}-${panel.name}`,
            title: said(panel.title),
            fill: (parent) => mount(panel, parent),
          })),
          { class: "tabs chapter" },
        ),
      );
    return chapters.get(place.name);
  }

  function mount(panel, parent) {
    const link = visit.link?.panel === panel.name ? visit.link : {};
    panels.set(panel.name, createPanel(panel, { parent, follows, link }));
  }

  // A component of Gradio's that stands beside this one becomes the content of an inner tab.
  function adopt(id, parent) {
    const element = document.getElementById(id);
    if (element) parent.append(element);
    else requestAnimationFrame(() => adopt(id, parent));
  }

  // Why none of these panels can answer for the present model, in words; "" if one can (viz/ui/lab/registry.py).
  let lacking = [];
  function reasons(list) {
    const found = list.map(({ name }) => lacking.find((entry) => entry.name === name));
    if (!found.length || !found.every(Boolean)) return "";
    return [...new Set(found.map(({ why }) => said(why)))].join(" ");
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
      ({ name, element, panels: within }) =>
        (element && name === link.panel) || within.some((panel) => panel.name === link.panel),
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
      el("summary", {}, said(folded)),
      strip.element,
    );
  const asked = el("div", { class: "atlas-root atlas-question", "data-mounted": "" });
  root.replaceChildren(
    ...(asks ? [el("div", { id: `${tab}-question` }, asked)] : []),
    fold || strip.element,
  );
  if (asks) question(asked);
  for (const { name, element } of places) if (element) adopt(element, strip.panelOf(name));
  openers[tab] = open;
  store.follow(["translation"], mark);
  if (visit.link?.tab === tab) open(visit.link);
  if (!fold) begin();
}
