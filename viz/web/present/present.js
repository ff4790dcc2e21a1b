// A presentation: one picture of the page fills the screen, with its title, the sentence, and the keys that lead on. The
// picture stays where it is in the page, lifted into the browser's top layer: whatever changes it changes it here, too.
import { arrow, modified } from "../core/keys.js";
import { el, styleOf } from "../core/dom.js";
import { t } from "../core/language.js";
import { pageLink, viewLink } from "../core/links.js";
import { described } from "../picture/copy.js";

const HEIGHT = 360,
  WIDTH = 560; // pixels for which a picture is laid out at most, before it is enlarged
const TABLES = 1180; // and what is nothing but tables
const LARGEST = 4; // times
const PATIENCE = 1000; // milliseconds for the browser's full screen
const SETTLED = 300; // and after a change
const PAGES = { PageUp: [0, -1], PageDown: [0, 1] };

const visible = (node) => Boolean(node?.isConnected && node.getClientRects().length);
const sheet = () => document.querySelector(".atlas-tour:not([hidden])");

// A promise of the presentation, once its style sheet is there.
export const ready = async () => {
  await styleOf(import.meta.url);
  return createPresentation();
};

function createPresentation() {
  const stilled = []; // what cannot be reached meanwhile
  let on = false,
    shown = null,
    wanted = null,
    opener = null,
    laid = "",
    lower = { room: "", by: 1 }, // of a picture that is too high as it was laid out: wider, it has fewer lines
    reached = [],
    met = null,
    slides = null, // views that are played: {about(), has(by), go(by)}
    place = Number(pageLink().get("present"));

  const title = el("h2", { id: "atlas-lectern-title", "aria-live": "polite" }),
    hint = el("p", { class: "hint" }),
    caption = el("p", { class: "caption", dir: "auto" });
  const button = (sign, words, onclick) =>
    el("button", { type: "button", "aria-label": words, title: words, onclick }, sign);
  const back = button("‹", t("Back"), () => go(0, -1)),
    next = button("›", t("Next"), () => go(0, 1));
  const room = el("div", { class: "room" });
  const lectern = el(
    "section",
    { class: "atlas-lectern", popover: "manual", "aria-label": t("Presentation") },
    el(
      "header",
      {},
      title,
      el("div", { class: "keys" }, hint, back, next, button("✕", t("End the presentation"), leave)),
    ),
    room,
    caption,
  );
  document.body.append(lectern);

  // --- which picture ----------------------------------------------------------------------------------------------
  const tab = () => [...document.querySelectorAll("#tabs > [role=tabpanel]")].find(visible);

  const isMain = (picture) => Boolean(described.get(picture).main);

  // Those of the open tab; the one that it is about comes first.
  function pictures() {
    return [...(tab()?.querySelectorAll(".pictured") ?? [])]
      .filter(visible)
      .sort((a, b) => isMain(b) - isMain(a));
  }

  const panel = () => [...(tab()?.querySelectorAll("[id^=panel-]") ?? [])].find(visible);

  // What a stop of a tour is about: a picture, or the part of the page with several, or with none.
  function pointed() {
    const about = document.querySelector(".atlas-pointed"),
      within = pictures().filter((one) => about?.contains(one));
    return (
      about?.closest(".pictured") ??
      (within.length === 1 || (within.length && isMain(within[0])) ? within[0] : about)
    );
  }

  function choose() {
    if (sheet()) return pointed() ?? (visible(shown) ? shown : null);
    if (visible(wanted)) return wanted;
    const all = pictures();
    wanted = all[place - 1] ?? all[0] ?? null;
    if (wanted) place = all.indexOf(wanted) + 1; // a panel that is drawn anew has it at the same place
    return wanted ?? panel() ?? null; // some panels are nothing but tables
  }

  // --- how it is shown --------------------------------------------------------------------------------------------
  const about = () => described.get(shown);
  const write = (node, text) => node.textContent !== text && (node.textContent = text);
  const style = (node, name, value) =>
    node.style.getPropertyValue(name) !== value && node.style.setProperty(name, value);

  function show(next) {
    if (next === shown) return;
    putBack();
    shown = next;
    if (!shown) return;
    lift(shown);
    shown.classList.add("atlas-presented");
    shown.tabIndex = -1;
  }

  function putBack() {
    if (!shown) return;
    shown.classList.remove("atlas-presented");
    drop(shown);
    for (const name of ["--w", "--h", "--s", "--x", "--y"]) shown.style.removeProperty(name);
    shown.removeAttribute("tabindex");
    laid = lower.room = "";
    about()?.fit?.(null);
    shown = null;
  }

  function lift(node) {
    if (node.popover !== "manual") node.popover = "manual";
    if (!node.matches(":popover-open")) node.showPopover();
  }
  function drop(node) {
    if (node?.matches("[popover]")) node.popover = null;
  }

  // Nothing of the page but these can be reached or read meanwhile.
  function reach(these) {
    if (these.length === reached.length && these.every((one, i) => one === reached[i])) return;
    reached = these;
    for (const child of stilled.splice(0)) child.inert = false;
    if (!these.length) return;
    still(document.body, these);
    const tour = sheet();
    if (tour ? !tour.contains(document.activeElement) : !lectern.contains(document.activeElement))
      (tour?.querySelector(".moves .strong") ?? shown ?? lectern).focus({ preventScroll: true });
  }

  function still(node, but) {
    for (const child of node.children) {
      if (but.includes(child) || child.inert || child.matches("dialog, script, style, link"))
        continue;
      if (but.some((one) => child.contains(one))) still(child, but);
      else stilled.push(Object.assign(child, { inert: true }));
    }
  }

  // Laid out for a small screen, then enlarged to this one: its letters grow with it.
  function fit() {
    const free = room.getBoundingClientRect(),
      now = about(),
      size = `${free.width} ${free.height}`;
    if (lower.room !== size) lower = { room: size, by: 1 };
    const least = Math.min(free.height / HEIGHT, free.width / (now ? WIDTH : TABLES)),
      large = Math.max(1, Math.min(LARGEST, least) * lower.by),
      width = Math.floor(free.width / large),
      height = Math.floor(free.height / large);
    style(shown, "--w", `${width}px`);
    style(shown, "--h", `${height}px`);
    if (laid !== `${width} ${height}`) {
      laid = `${width} ${height}`;
      now?.fit?.({ width, height });
    }
    const box = now ? extent(now.node) : { x: 0, y: 0, width, height };
    const scale =
      large * (now ? Math.min(LARGEST / large, width / box.width, height / box.height) : 1);
    if (now && !now.fit && lower.by === 1 && scale < 0.9 * large) {
      lower.by = scale / large;
      return fit();
    }
    style(shown, "--s", scale.toFixed(4));
    style(
      shown,
      "--x",
      `${Math.round(free.left + (free.width - box.width * scale) / 2 - box.x * scale)}px`,
    );
    style(
      shown,
      "--y",
      `${Math.round(free.top + (free.height - box.height * scale) / 2 - box.y * scale)}px`,
    );
  }

  // Where a picture's content lies in it, in its own pixels: it may leave some of its width free.
  function extent(node) {
    const frame = shown.getBoundingClientRect(),
      scale = frame.width / shown.offsetWidth || 1;
    const boxes = [...node.children].filter(visible).map((child) => child.getBoundingClientRect());
    const [left, top] = [
      Math.min(...boxes.map((box) => box.left)),
      Math.min(...boxes.map((box) => box.top)),
    ];
    const [right, bottom] = [
      Math.max(...boxes.map((box) => box.right)),
      Math.max(...boxes.map((box) => box.bottom)),
    ];
    return boxes.length
      ? {
          x: (left - frame.left) / scale,
          y: (top - frame.top) / scale,
          width: (right - left) / scale || 1,
          height: (bottom - top) / scale || 1,
        }
      : { x: 0, y: 0, width: shown.offsetWidth || 1, height: shown.offsetHeight || 1 };
  }

  function refresh() {
    refresh.frame = 0;
    if (!on) return;
    const tour = sheet();
    show(choose());
    const now = about();
    if (tour) lift(tour);
    reach([lectern, shown, tour, document.querySelector(".atlas-told")].filter(Boolean));
    style(lectern, "--sheet", `${tour?.offsetHeight ?? 0}px`);
    write(
      title,
      now?.title() ??
        (shown
          ? ""
          : (tab()?.querySelector(".invitation")?.textContent ??
            t("There is no picture here yet."))),
    );
    title.classList.toggle("long", title.textContent.length > 80);
    write(
      room,
      shown
        ? ""
        : t(
            "Nothing is drawn on this tab yet: leave the presentation, start it there, and present it then.",
          ),
    );
    write(caption, slides ? slides.about() : tour ? "" : (now?.caption() ?? ""));
    write(
      hint,
      `${slides ? t("← → my views") : tour ? t("← → stops of the tour") : (now?.hint ?? t("← → pictures of this tab"))} · ${t("Esc ends the presentation")}`,
    );
    for (const [one, by] of [
      [back, -1],
      [next, 1],
    ])
      one.setAttribute("aria-disabled", String(!further(by)));
    if (shown) fit();
    clearTimeout(refresh.later);
    refresh.later = setTimeout(remember, SETTLED);
  }
  const changed = () => (refresh.frame ||= requestAnimationFrame(refresh));
  const observer = new MutationObserver(changed),
    sizes = new ResizeObserver(changed);

  // The address is a link to what is shown.
  function remember() {
    if (!on || !shown) return;
    const fields = sheet() ? pageLink() : viewLink();
    fields.set("present", sheet() ? 1 : Math.max(1, pictures().indexOf(shown) + 1));
    if (pageLink().toString() !== fields.toString())
      history.replaceState(history.state, "", `${location.pathname}${location.search}#${fields}`);
  }

  // --- what a person does -----------------------------------------------------------------------------------------
  function go(down, right) {
    const tour = sheet();
    if (tour)
      return (
        right && tour.querySelector(right > 0 ? ".moves .strong" : ".moves :not(.strong)").click()
      );
    if (slides && right) return slides.has(right) && turn(right);
    if (about()?.move) return moved(about(), down, right);
    const all = pictures(),
      at = all.indexOf(shown) + (right || down);
    if (!all[at]) return;
    wanted = all[at];
    place = at + 1;
    refresh();
  }

  // To another slide: its picture is the one that its tab is about.
  function turn(by) {
    [wanted, place] = [null, 1];
    slides.go(by);
    refresh();
  }

  // A picture's own steps: where one changed nothing, there is nothing further that way until another did.
  function moved(picture, down, right) {
    const from = picture.title();
    picture.move(down, right);
    if (right)
      setTimeout(() => {
        if (picture.title() === from) met = { from, by: right };
        changed();
      }, SETTLED);
  }

  // Whether something comes next (1) or before (-1). Not asked before it is tried of a picture with steps of its own.
  function further(by) {
    const tour = sheet(),
      all = pictures();
    if (tour)
      return !tour.querySelector(by > 0 ? ".moves .strong" : ".moves :not(.strong)").disabled;
    if (slides) return slides.has(by);
    return about()?.move
      ? met?.by !== by || met.from !== about().title()
      : Boolean(all[all.indexOf(shown) + by]);
  }

  function keys(event) {
    if (modified(event) || event.target.closest?.("dialog")) return;
    const typing = event.target.closest?.("input, textarea, select, [contenteditable]"),
      step = arrow(event) ?? PAGES[event.key];
    if (event.key === "Escape") leave();
    else if (event.key === "f" && !typing) enlarge();
    else if (step && !typing && !(sheet() && !step[1])) go(...step);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  // The whole screen, where the browser permits it; the window else.
  function enlarge() {
    if (document.fullscreenElement || !navigator.userActivation?.isActive) return Promise.resolve();
    const asked = document.documentElement.requestFullscreen?.().catch(() => {});
    return Promise.race([asked, new Promise((resolve) => setTimeout(resolve, PATIENCE))]);
  }
  const screen = () => !document.fullscreenElement && leave();

  // from: {opener, pointed, slides}: what had the focus, the picture that was pointed at, and what is played
  async function start(from) {
    if (on) return;
    on = true;
    opener = from.opener;
    wanted = from.pointed;
    slides = from.slides ?? null;
    await enlarge(); // first: what is lifted later lies above
    document.documentElement.classList.add("atlas-presenting");
    lectern.showPopover();
    const told = document.querySelector(".atlas-told");
    if (told) lift(told);
    window.addEventListener("keydown", keys, true);
    window.addEventListener("resize", changed);
    document.addEventListener("fullscreenchange", screen);
    observer.observe(document.body, {
      subtree: true,
      childList: true,
      characterData: true,
      attributes: true,
      attributeFilter: ["class", "style", "hidden"],
    });
    sizes.observe(lectern);
    refresh();
  }

  function leave() {
    if (!on) return;
    on = false;
    observer.disconnect();
    sizes.disconnect();
    window.removeEventListener("keydown", keys, true);
    window.removeEventListener("resize", changed);
    document.removeEventListener("fullscreenchange", screen);
    show(null);
    reach([]);
    for (const node of [sheet(), document.querySelector(".atlas-told")]) drop(node);
    lectern.hidePopover();
    document.documentElement.classList.remove("atlas-presenting");
    [wanted, met, slides, place] = [null, null, null, 0];
    if (document.fullscreenElement) document.exitFullscreen().catch(() => {});
    const fields = pageLink();
    fields.delete("present");
    history.replaceState(
      history.state,
      "",
      `${location.pathname}${location.search}${fields.size ? `#${fields}` : ""}`,
    );
    const to =
      opener?.isConnected && opener !== document.body
        ? opener
        : document.querySelector(".atlas-title .present");
    to?.focus({ preventScroll: true });
  }

  return { start };
}
