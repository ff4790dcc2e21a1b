// A presentation: one picture of the page fills the screen, with its title, the sentence, and the keys that lead on. The
// picture stays where it is in the page, lifted into the browser's top layer: whatever changes it changes it here, too.
import { arrow, modified } from "../core/keys.js";
import { el, styleOf } from "../core/dom.js";
import { t } from "../core/language.js";
import { openPanel, openTab, pageLink, readdress, seen, viewLink } from "../core/links.js";
import { described } from "../picture/copy.js";
import { createFit, style } from "./fit.js";
import { createReach, drop, lift } from "./layer.js";
import { pictures, pointed, sheet } from "./pictures.js";

const PATIENCE = 1000; // milliseconds for the browser's full screen
const SETTLED = 300; // and after a change
const PAGES = { PageUp: -1, PageDown: 1 };

// A promise of the presentation, once its style sheet is there.
export const ready = async () => {
  await styleOf(import.meta.url);
  return createPresentation();
};

function createPresentation() {
  let on = false,
    shown = null,
    wanted = null,
    opener = null,
    met = null,
    slides = null, // views that are played: {about(), has(by), go(by)}
    place = Number(pageLink().get("present"));

  const title = el("h2", { id: "atlas-lectern-title", "aria-live": "polite" }),
    hint = el("p", { class: "hint" }),
    caption = el("p", { class: "caption", dir: "auto" });
  const button = (sign, words, onclick) =>
    el("button", { type: "button", "aria-label": words, title: words, onclick }, sign);
  const back = button("‹", t("Back"), () => page(-1)),
    next = button("›", t("Next"), () => page(1));
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
  const { fit, undo } = createFit(room),
    reach = createReach();

  // --- which picture ----------------------------------------------------------------------------------------------
  function choose() {
    if (sheet()) return pointed() ?? (seen(shown) ? shown : null);
    if (seen(wanted)) return wanted;
    const all = pictures();
    wanted = all[place - 1] ?? all[0] ?? null;
    if (wanted) place = all.indexOf(wanted) + 1; // a panel that is drawn anew has it at the same place
    return wanted ?? openPanel() ?? null; // some panels are nothing but tables
  }

  // --- how it is shown --------------------------------------------------------------------------------------------
  const about = () => described.get(shown);
  const write = (node, text) => node.textContent !== text && (node.textContent = text);

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
    shown.removeAttribute("tabindex");
    undo(shown, about());
    shown = null;
  }

  function refresh() {
    refresh.frame = 0;
    if (!on) return;
    const tour = sheet();
    show(choose());
    const now = about();
    if (tour) lift(tour);
    const lifted = [lectern, shown, tour, document.querySelector(".atlas-told")].filter(Boolean);
    if (reach(lifted) && !(tour ?? lectern).contains(document.activeElement))
      (tour?.querySelector(".moves .strong") ?? shown ?? lectern).focus({ preventScroll: true });
    style(lectern, "--sheet", `${tour?.offsetHeight ?? 0}px`);
    write(
      title,
      now?.title() ??
        (shown
          ? ""
          : (openTab()?.querySelector(".invitation")?.textContent ??
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
    if (shown) fit(shown, now);
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
    if (pageLink().toString() !== fields.toString()) readdress(fields);
  }

  // --- what a person does -----------------------------------------------------------------------------------------
  function go(down, right) {
    const tour = sheet();
    if (tour)
      return (
        right && tour.querySelector(right > 0 ? ".moves .strong" : ".moves :not(.strong)").click()
      );
    if (slides && right) return slides.has(right) && turn(right);
    const picture = about();
    if (picture?.move)
      return moved(picture, () => picture.move(down, right), picture.page ? 0 : right);
    const all = pictures(),
      at = all.indexOf(shown) + (right || down);
    if (!all[at]) return;
    wanted = all[at];
    place = at + 1;
    refresh();
  }

  // What the buttons do, and a presenter's remote control, which sends Page Up and Page Down.
  function page(by) {
    const picture = about();
    if (sheet() || slides || !picture?.page) return go(0, by);
    moved(picture, () => picture.page(by), by);
  }

  // To another slide: its picture is the one that its tab is about.
  function turn(by) {
    [wanted, place] = [null, 1];
    slides.go(by);
    refresh();
  }

  // A picture's own steps: where one changed nothing, there is nothing further that way until another did. by: the way of
  // the buttons that it went, if any. The next step ends the wait: a step and its opposite leave the title as it was.
  function moved(picture, act, by) {
    const from = picture.title();
    act();
    clearTimeout(moved.later);
    moved.later = setTimeout(() => {
      if (picture.title() !== from) met = null;
      else if (by) met = { from, by };
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
      step = arrow(event);
    if (event.key === "Escape") leave();
    else if (event.key === "f" && !typing) enlarge();
    else if (PAGES[event.key] && !typing) page(PAGES[event.key]);
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
    readdress(fields);
    const to =
      opener?.isConnected && opener !== document.body
        ? opener
        : document.querySelector(".atlas-title .present");
    to?.focus({ preventScroll: true });
  }

  return { start };
}
