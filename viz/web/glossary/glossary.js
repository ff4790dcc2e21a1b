// The glossary: an entry in a popover beside a term, and a page with all entries.
import { ask } from "../core/ask.js";
import { button, el, loadStyleOf, restoreFocus } from "../core/dom.js";
import { say, t, textParts, toText } from "../core/language.js";
import { pageLink, replaceFields } from "../core/links.js";
import { MARKS, TERMS } from "../lab/glossary.js";
import { store } from "../store/store.js";
import { ENTRIES, EXAMPLE, GROUPS } from "./entries.js";

const HOVER_DELAY = 250; // milliseconds until a hovered term is explained
const LEAVE_DELAY = 300; // and until its popover closes behind the pointer
const GAP = 6; // pixels between a term and its popover

/** @type {Record<string, import("./entries.js").Entry>} */
const entries = Object.assign({}, ...Object.values(ENTRIES));

/** Return a term's spellings; the last is its heading. @param {string} term @returns {string[]} */
const spellingsOf = (term) => (toText(TERMS[term]) ?? MARKS[term]).split("|");

/** Return a term's heading. @param {string} term */
function headingOf(term) {
  const spellings = spellingsOf(term);
  if (MARKS[term]) return spellings.join("  ");
  return (toText(entries[term].name) ?? spellings.at(-1)).replace(/^\p{L}/u, (first) =>
    first.toLocaleUpperCase(),
  );
}

/** Load the glossary's style, and return its two ways to show an entry. */
export async function createGlossary() {
  await loadStyleOf(import.meta.url);
  let shown = { key: "", data: /** @type {Promise<any>} */ (Promise.resolve(EXAMPLE)) }; // the answer for a sentence

  /** Return what pictures show: of the page's sentence, or of an example. @returns {Promise<[any, boolean]>} */
  async function getSentence() {
    const { address, selection } = store.state,
      key = JSON.stringify([address, selection]);
    if (!address) return [EXAMPLE, false];
    if (key !== shown.key)
      shown = { key, data: ask("page_glossary", { address, fields: { selection } }) };
    const data = await shown.data;
    if (data?.error) shown.key = "";
    return data && !data.error ? [data, true] : [EXAMPLE, false];
  }

  /** Put a picture where it belongs once its data have arrived. */
  async function fillPicture(place, term) {
    const { picture, here } = entries[term],
      [sentence, isHere] = here ? await getSentence() : [EXAMPLE, false];
    place.replaceChildren(
      picture(sentence),
      here && isHere ? el("small", {}, t("In this sentence.")) : "",
    );
  }

  const popover = createPopover(fillPicture, (term) => page.open(term));
  const page = createPage(fillPicture);
  return { show: popover.show, open: page.open };
}

// The sentence and the names of an entry, and a place for its picture.
function describe(term) {
  const { text, papers } = entries[term],
    place = el("div", { class: "picture" }),
    names = el("span", { lang: "en" }, papers);
  const parts = [
    el("p", {}, text),
    place,
    papers ? el("p", { class: "papers" }, textParts(say("In papers: {names}", { names }))) : "",
  ];
  return { parts, place };
}

function createPopover(fillPicture, openPage) {
  let opener = null, // the term whose entry is shown
    timer = null;
  const root = el("div", {
    class: "atlas-root atlas-term",
    role: "dialog",
    id: "atlas-term",
    popover: "manual",
    "aria-labelledby": "atlas-term-title",
    onpointerenter: () => clearTimeout(timer),
    onpointerleave: leave,
  });

  function close() {
    clearTimeout(timer);
    opener?.setAttribute("aria-expanded", "false");
    opener = null;
    if (root.isConnected) root.hidePopover();
    root.remove();
  }

  function leave({ pointerType }) {
    clearTimeout(timer);
    if (pointerType === "mouse" && !root.contains(document.activeElement))
      timer = setTimeout(close, LEAVE_DELAY);
  }

  function place() {
    const zoom = Number(document.documentElement.style.zoom) || 1,
      at = opener.getBoundingClientRect(),
      { width, height } = root.getBoundingClientRect();
    const left = Math.max(
        8,
        Math.min(at.left, document.documentElement.clientWidth * zoom - width - 8),
      ),
      isBelow = at.bottom + GAP + height <= innerHeight || at.top < height + GAP,
      top = isBelow ? at.bottom + GAP : at.top - GAP - height;
    root.style.left = `${left / zoom}px`;
    root.style.top = `${top / zoom}px`;
  }

  /**
   * Show the entry of a term beside it.
   * @param {any} term its button @param {{isHovered?: boolean, takesFocus?: boolean}} options
   */
  function show(term, { isHovered = false, takesFocus = false } = {}) {
    clearTimeout(timer);
    if (isHovered && term !== opener) {
      term.addEventListener("pointerleave", leave, { once: true });
      timer = setTimeout(draw, HOVER_DELAY, term);
    } else {
      if (term !== opener) draw(term);
      if (takesFocus) root.querySelector("button").focus();
    }
  }

  function draw(term) {
    close();
    if (!term.isConnected) return;
    opener = term;
    term.setAttribute("aria-expanded", "true");
    const { term: name } = term.dataset,
      { parts, place: picture } = describe(name);
    const link = () => {
      close();
      openPage(name);
    };
    root.replaceChildren(
      el("h3", { id: "atlas-term-title" }, headingOf(name)),
      ...parts,
      el("p", {}, button(t("Glossary"), link, { class: "plain link" })),
    );
    (term.closest("dialog, :fullscreen") ?? document.body).append(root);
    root.showPopover();
    place();
    fillPicture(picture, name).then(() => opener === term && place());
  }

  document.addEventListener(
    "keydown",
    (event) => {
      if (event.key !== "Escape" || !opener) return;
      event.stopPropagation();
      event.preventDefault();
      const hadFocus = root.contains(document.activeElement),
        term = opener;
      close();
      if (hadFocus) term.focus();
    },
    { capture: true },
  );
  const closeOutside = ({ target }) =>
    opener && !root.contains(target) && !opener.contains(target) && close();
  for (const name of ["pointerdown", "focusin"]) document.addEventListener(name, closeOutside);
  const follow = () => opener && (opener.isConnected ? place() : close());
  for (const name of ["scroll", "resize"])
    window.addEventListener(name, follow, { capture: true, passive: true });
  return { show };
}

function createPage(fillPicture) {
  let opener = null, // what had the focus before
    isDrawn = false;
  const articles = new Map(); // term -> its article
  const search = el("input", {
    type: "search",
    autocomplete: "off",
    "aria-label": t("Search the glossary"),
    placeholder: t("Search"),
    oninput: filter,
    onkeydown: (event) => {
      if (event.key !== "ArrowDown") return;
      event.preventDefault();
      visible()[0]?.focus();
    },
  });
  const count = el("p", { class: "count", role: "status" }),
    list = el("div", { class: "entries" }),
    groups = el("nav", { "aria-label": t("Groups of terms") });
  const root = el(
    "dialog",
    {
      class: "atlas-root atlas-glossary",
      "aria-labelledby": "atlas-glossary-title",
      onclose: leave,
    },
    el("div", { class: "bar" }, [
      el("h2", { id: "atlas-glossary-title", tabindex: "-1" }, t("Glossary")),
      search,
      count,
      button(t("Print"), () => print()),
      button("✕", () => root.close(), { "aria-label": t("Close the glossary") }),
    ]),
    groups,
    list,
  );

  const visible = () => [...articles.values()].filter((article) => article.offsetParent);

  function draw() {
    for (const [group, members] of Object.entries(ENTRIES)) {
      const heading = el("h3", { id: `atlas-glossary-${group}`, tabindex: "-1" }, GROUPS[group]);
      const jump = () => {
        heading.scrollIntoView({ block: "start" });
        heading.focus({ preventScroll: true });
      };
      groups.append(button(GROUPS[group], jump));
      const byName = new Intl.Collator(document.documentElement.lang);
      const names = Object.keys(members);
      if (group !== "marks") names.sort((a, b) => byName.compare(headingOf(a), headingOf(b)));
      for (const term of names) articles.set(term, createArticle(term));
      list.append(
        el("section", { "aria-labelledby": heading.id }, [
          heading,
          el(
            "div",
            { class: "group" },
            names.map((term) => articles.get(term)),
          ),
        ]),
      );
    }
    document.body.append(root);
    isDrawn = true;
  }

  function createArticle(term) {
    const { parts, place } = describe(term),
      id = `atlas-glossary-entry-${term}`;
    const article = el(
      "article",
      { tabindex: "-1", "aria-labelledby": id, "data-term": term, onkeydown: move },
      [el("h4", { id }, headingOf(term)), ...parts],
    );
    const words = [
      headingOf(term),
      ...spellingsOf(term),
      toText(entries[term].text),
      entries[term].papers ?? "",
    ];
    article.dataset.words = words.join(" ").toLocaleLowerCase();
    article.fill = () => fillPicture(place, term);
    return article;
  }

  // Up and down lead from entry to entry.
  function move(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key],
      list = visible();
    if (!step) return;
    event.preventDefault();
    (list[list.indexOf(event.currentTarget) + step] ?? search).focus();
  }

  function filter() {
    const sought = search.value.trim().toLocaleLowerCase();
    for (const article of articles.values())
      article.hidden = !article.dataset.words.includes(sought);
    for (const section of list.children)
      section.hidden = !section.querySelector("article:not([hidden])");
    const n = visible().length;
    count.textContent = sought ? t("{n} of {all}", { n, all: articles.size }) : "";
  }

  /** Open the page, at a term if one is named. @param {string} [term] */
  function open(term = "") {
    if (!isDrawn) draw();
    if (!root.open) {
      opener = document.activeElement;
      root.showModal();
    }
    search.value = "";
    filter();
    for (const article of articles.values()) article.fill();
    const fields = pageLink();
    fields.set("glossary", articles.has(term) ? term : "");
    replaceFields(fields);
    const article = articles.get(term);
    root.querySelector(".sought")?.classList.remove("sought");
    article?.classList.add("sought");
    article?.scrollIntoView({ block: "center" });
    (article ?? root.querySelector("h2")).focus({ preventScroll: true });
  }

  function leave() {
    const fields = pageLink();
    if (fields.has("glossary")) {
      fields.delete("glossary");
      replaceFields(fields);
    }
    restoreFocus(opener, ".atlas-title .glossary");
  }

  return { open };
}
