// A presentation: one picture of the page fills the screen, with its title, its caption and hints on
// keys. The picture stays part of the page, lifted into the browser's top layer, so every change of it
// is shown. A panel without a picture is lifted as a whole.
//
// Keys and buttons lead through the stops of a running tour (its text is in the "tour sheet"), else
// through slides (the visitor's "my views"), else through the steps of the picture itself, else through
// the pictures of the open tab. picture/copy.js lists the fields of a picture's info.
import { arrowStep, hasModifier } from "../core/keys.js";
import { button, el, loadStyleOf, noticeBox, restoreFocus } from "../core/dom.js";
import { t } from "../core/language.js";
import { openPanel, openTab, pageLink, replaceFields, isVisible, viewLink } from "../core/links.js";
import { pictureInfo } from "../picture/copy.js";

// Pixels: a picture is laid out for at least this size, if the screen has it, and then enlarged.
const HEIGHT = 360,
  WIDTH = 560;
const PANEL_WIDTH = 1180; // instead of WIDTH, for panels without a picture, which are wider
const LARGEST = 4; // largest enlargement
const PATIENCE = 1000; // milliseconds to wait for full screen
const SETTLED = 300; // milliseconds without a change, after which the address and the buttons follow
const PAGES = { PageUp: -1, PageDown: 1 };

// The sheet of a running tour, or null.
/** @returns {any} */
const tourSheet = () => document.querySelector(".atlas-tour:not([hidden])");

const isMain = (picture) => Boolean(pictureInfo.get(picture)?.main);

// The pictures of the open tab, its main picture first.
const pictures = () =>
  [...(openTab()?.querySelectorAll(".pictured") ?? [])]
    .filter(isVisible)
    .sort((a, b) => Number(isMain(b)) - Number(isMain(a)));

// What a tour's stop points at: the picture around its target; a picture within it, if that is the only
// or the main one; else the target itself, or null.
function tourTarget() {
  const target = document.querySelector(".atlas-pointed"),
    within = pictures().filter((picture) => target?.contains(picture));
  return (
    target?.closest(".pictured") ??
    (within.length === 1 || (within.length && isMain(within[0])) ? within[0] : target)
  );
}

// Lift an element into the browser's top layer.
function liftToTopLayer(node) {
  if (node.popover !== "manual") node.popover = "manual";
  if (!node.matches(":popover-open")) node.showPopover();
}

function dropFromTopLayer(node) {
  if (node?.matches("[popover]")) node.popover = null;
}

// Return a function that makes everything but these elements inert, or, without elements, nothing. It returns whether
// that changed anything.
function createReach() {
  const inertNodes = [];
  let reached = [];

  function makeInert(node, but) {
    for (const child of node.children) {
      if (but.includes(child) || child.inert || child.matches("dialog, script, style, link"))
        continue;
      if (but.some((node) => child.contains(node))) makeInert(child, but);
      else inertNodes.push(Object.assign(child, { inert: true }));
    }
  }

  return (nodes) => {
    if (nodes.length === reached.length && nodes.every((node, i) => node === reached[i]))
      return false;
    reached = nodes;
    for (const child of inertNodes.splice(0)) child.inert = false;
    if (nodes.length) makeInert(document.body, nodes);
    return true;
  };
}

// Set a style only if it changes, because observers of the page react to each change.
const setStyle = (node, name, value) =>
  node.style.getPropertyValue(name) !== value && node.style.setProperty(name, value);

// The button of a tour's sheet that leads on (1) or back (-1), or null: after an error there is none.
const moveOf = (tour, by) =>
  tour.querySelector(
    `.moves ${by > 0 ? ".strong" : "button:not(.strong)"}:not([hidden], :disabled)`,
  );

/** Create the page's only presentation, {start}, once its style sheet has loaded. */
export async function createPresentation() {
  await loadStyleOf(import.meta.url);
  let isOn = false,
    current = null, // the picture, or a panel without one
    chosenPicture = null, // the picture that the presenter went to
    place = Number(pageLink().get("present")), // the picture's number in its tab, from 1; 0 or NaN: none
    opener = null, // had the focus before the start
    slides = null, // views to play: {about(), the words below; has(by); go(by)}, or null
    deadEnd = null; // {title, by}: at this title a step by 1 or -1 changed nothing

  const title = el("h2", { id: "atlas-lectern-title", "aria-live": "polite" }),
    hint = el("p", { class: "hint" }),
    caption = el("p", { class: "caption", dir: "auto" });
  const createKey = (text, words, onclick) =>
    button(text, onclick, { class: null, "aria-label": words, title: words });
  const back = createKey("‹", t("Back"), () => page(-1)),
    next = createKey("›", t("Next"), () => page(1));
  const room = el("div", { class: "room" });
  const lectern = el(
    "section",
    { class: "atlas-lectern", popover: "manual", "aria-label": t("Presentation") },
    el("header", {}, [
      title,
      el("div", { class: "keys" }, [
        hint,
        back,
        next,
        createKey("✕", t("End the presentation"), leave),
      ]),
    ]),
    room,
    caption,
  );
  document.body.append(lectern);
  const { fit, undo } = createFit(room),
    reach = createReach();

  // --- which picture ----------------------------------------------------------------------------------------------
  function choose() {
    if (tourSheet()) return tourTarget() ?? (isVisible(current) ? current : null);
    if (isVisible(chosenPicture)) return chosenPicture;
    const all = pictures();
    chosenPicture = all[place - 1] ?? all[0] ?? null;
    if (chosenPicture) place = all.indexOf(chosenPicture) + 1; // so that a redrawn panel shows its picture at the same place
    return chosenPicture ?? openPanel() ?? null; // a panel without a picture
  }

  // --- how it is shown --------------------------------------------------------------------------------------------
  const currentInfo = () => pictureInfo.get(current); // undefined for a panel
  const setText = (node, text) => node.textContent !== text && (node.textContent = text);

  function show(picture) {
    if (picture === current) return;
    restore();
    current = picture;
    if (!current) return;
    liftToTopLayer(current);
    current.classList.add("atlas-presented");
    current.tabIndex = -1;
  }

  function restore() {
    if (!current) return;
    current.classList.remove("atlas-presented");
    dropFromTopLayer(current);
    current.removeAttribute("tabindex");
    undo(current, currentInfo());
    current = null;
  }

  let frame = 0, // requests for the next refresh and two timers
    addressTimer = 0,
    stepTimer = 0;

  function refresh() {
    frame = 0;
    if (!isOn) return;
    const tour = tourSheet();
    show(choose());
    const info = currentInfo();
    if (tour) liftToTopLayer(tour);
    const lifted = [lectern, current, tour, noticeBox()].filter(Boolean);
    // Everything else becomes inert. If that changed what can be reached, the focus may be lost.
    if (reach(lifted) && !(tour ?? lectern).contains(document.activeElement))
      (tour?.querySelector(".moves .strong") ?? current ?? lectern).focus({ preventScroll: true });
    setStyle(lectern, "--sheet", `${tour?.offsetHeight ?? 0}px`);
    const invitation = openTab()?.querySelector(".invitation")?.textContent;
    const missing = t(
      "Nothing is drawn on this tab yet. Leave the presentation, open the tab, then present again.",
    );
    setText(
      title,
      info?.title() ?? (current ? "" : (invitation ?? t("There is no picture here yet."))),
    );
    title.classList.toggle("long", title.textContent.length > 80);
    setText(room, current ? "" : missing);
    let [words, arrows] = [info?.caption() ?? "", info?.hint ?? t("← → pictures of this tab")];
    if (slides) [words, arrows] = [slides.about(), t("← → my views")];
    else if (tour) [words, arrows] = ["", t("← → stops of the tour")];
    setText(caption, words);
    setText(hint, `${arrows} · ${t("Esc ends the presentation")}`);
    back.setAttribute("aria-disabled", String(!hasNext(-1)));
    next.setAttribute("aria-disabled", String(!hasNext(1)));
    if (current) fit(current, info);
    clearTimeout(addressTimer);
    addressTimer = setTimeout(updateAddress, SETTLED);
  }
  const scheduleRefresh = () => (frame ||= requestAnimationFrame(refresh));
  const observer = new MutationObserver(scheduleRefresh),
    sizes = new ResizeObserver(scheduleRefresh);

  // Make the address a link to the picture.
  function updateAddress() {
    if (!isOn || !current) return;
    // In a tour the address names the stop already, and the stop the picture.
    const fields = tourSheet() ? pageLink() : viewLink();
    fields.set("present", tourSheet() ? "1" : String(Math.max(1, pictures().indexOf(current) + 1)));
    if (pageLink().toString() !== fields.toString()) replaceFields(fields);
  }

  // --- what a person does -----------------------------------------------------------------------------------------
  // Follow an arrow key: down and right are 1, 0 or -1.
  function go(down, right) {
    const tour = tourSheet();
    if (tour) return right && moveOf(tour, right)?.click();
    if (slides && right) return slides.has(right) && goToSlide(right);
    const info = currentInfo();
    // Of a picture with page() the buttons do other steps than the arrows, whose ends say nothing of them.
    if (info?.move) return takeStep(info, () => info.move(down, right), info.page ? 0 : right);
    const all = pictures(),
      at = all.indexOf(current) + (right || down);
    if (!all[at]) return;
    chosenPicture = all[at];
    place = at + 1;
    refresh();
  }

  // Buttons, and Page Up and Page Down, which a presenter's remote control sends.
  function page(by) {
    const info = currentInfo();
    if (tourSheet() || slides || !info?.page) return go(0, by);
    takeStep(info, () => info.page(by), by);
  }

  // Go to another slide, which shows its tab's main picture.
  function goToSlide(by) {
    [chosenPicture, place] = [null, 1];
    slides.go(by);
    refresh();
  }

  // Take a step of the picture itself. If its title is the same when the page has settled, there is
  // nothing further in that direction: by, the buttons' direction, or 0. Of quick steps only the last one
  // is checked: forward then back would otherwise look like no step.
  function takeStep(info, act, by) {
    const title = info.title();
    act();
    clearTimeout(stepTimer);
    stepTimer = setTimeout(check, SETTLED);
    function check() {
      // A slow answer of the server is no end.
      if (openTab()?.querySelector("[aria-busy=true]")) {
        stepTimer = setTimeout(check, SETTLED);
        return;
      }
      if (info.title() !== title) deadEnd = null;
      else if (by) deadEnd = { title, by };
      scheduleRefresh();
    }
  }

  // Whether there is a next (1) or previous (-1) picture or step. A picture's own steps are only
  // known once they are tried.
  function hasNext(by) {
    const tour = tourSheet(),
      all = pictures();
    if (tour) return Boolean(moveOf(tour, by));
    if (slides) return slides.has(by);
    const info = currentInfo();
    return info?.move
      ? deadEnd?.by !== by || deadEnd.title !== info.title()
      : Boolean(all[all.indexOf(current) + by]);
  }

  function keys(event) {
    if (hasModifier(event) || event.target.closest?.("dialog")) return;
    const typing = event.target.closest?.("input, textarea, select, [contenteditable]"),
      step = arrowStep(event);
    if (event.key === "Escape") leave(); // also while typing
    else if (event.key === "f" && !typing) enterFullScreen();
    else if (PAGES[event.key] && !typing) page(PAGES[event.key]);
    else if (step && !typing && !(tourSheet() && !step[1])) go(...step);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  // Enter full screen if the browser permits it.
  function enterFullScreen() {
    if (document.fullscreenElement || !navigator.userActivation?.isActive) return Promise.resolve();
    const fullScreen = document.documentElement.requestFullscreen?.().catch(() => {});
    return Promise.race([fullScreen, new Promise((resolve) => setTimeout(resolve, PATIENCE))]);
  }
  const leaveWithFullScreen = () => !document.fullscreenElement && leave();

  // Start. from: {opener, pointed, slides}: the element that had the focus, the picture that was
  // pointed at, and views to play.
  async function start(from) {
    if (isOn) return;
    isOn = true;
    opener = from.opener;
    chosenPicture = from.pointed;
    slides = from.slides ?? null;
    await enterFullScreen(); // first: what enters the top layer later lies above the full-screen page
    document.documentElement.classList.add("atlas-presenting");
    lectern.showPopover();
    liftToTopLayer(noticeBox());
    window.addEventListener("keydown", keys, true);
    window.addEventListener("resize", scheduleRefresh);
    document.addEventListener("fullscreenchange", leaveWithFullScreen);
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
    if (!isOn) return;
    isOn = false;
    for (const timer of [stepTimer, addressTimer]) clearTimeout(timer);
    observer.disconnect();
    sizes.disconnect();
    window.removeEventListener("keydown", keys, true);
    window.removeEventListener("resize", scheduleRefresh);
    document.removeEventListener("fullscreenchange", leaveWithFullScreen);
    show(null);
    reach([]);
    for (const node of [tourSheet(), noticeBox()]) dropFromTopLayer(node);
    lectern.hidePopover();
    document.documentElement.classList.remove("atlas-presenting");
    [chosenPicture, deadEnd, slides, place] = [null, null, null, 0];
    if (document.fullscreenElement) document.exitFullscreen().catch(() => {});
    const fields = pageLink();
    fields.delete("present");
    replaceFields(fields);
    restoreFocus(opener, ".atlas-title .present");
  }

  return { start };
}

// Return functions that lay out a picture for a small screen and enlarge it to fill `room`, so that
// its letters grow with it.
function createFit(room) {
  let layout = "", // width and height that the picture is laid out for
    // A picture that is too high for the room is enlarged less, by this factor, and so laid out wider,
    // which makes it lower.
    reduction = { roomSize: "", by: 1 };

  function fit(picture, info) {
    const free = room.getBoundingClientRect(),
      roomSize = `${free.width} ${free.height}`;
    if (reduction.roomSize !== roomSize) reduction = { roomSize, by: 1 };
    const most = Math.min(free.height / HEIGHT, free.width / (info ? WIDTH : PANEL_WIDTH)),
      enlargement = Math.max(1, Math.min(LARGEST, most) * reduction.by),
      width = Math.floor(free.width / enlargement),
      height = Math.floor(free.height / enlargement);
    setStyle(picture, "--w", `${width}px`);
    setStyle(picture, "--h", `${height}px`);
    if (layout !== `${width} ${height}`) {
      layout = `${width} ${height}`;
      info?.fit?.({ width, height });
    }
    const box = info ? contentBox(picture, info.node) : { x: 0, y: 0, width, height };
    const scale =
      enlargement * Math.min(LARGEST / enlargement, width / box.width, height / box.height);
    // Lay the picture out again if it has to shrink by more than a tenth; once only, so that this ends.
    // A picture with fit() has just laid itself out for the room.
    if (info && !info.fit && reduction.by === 1 && scale < 0.9 * enlargement) {
      reduction.by = scale / enlargement;
      return fit(picture, info);
    }
    const centre = (edge, size, at, length) =>
      `${Math.round(edge + (size - length * scale) / 2 - at * scale)}px`;
    setStyle(picture, "--s", scale.toFixed(4));
    setStyle(picture, "--x", centre(free.left, free.width, box.x, box.width));
    setStyle(picture, "--y", centre(free.top, free.height, box.y, box.height));
  }

  return {
    fit,
    // Restore the picture's layout on the page.
    undo(picture, info) {
      for (const name of ["--w", "--h", "--s", "--x", "--y"]) picture.style.removeProperty(name);
      layout = reduction.roomSize = "";
      info?.fit?.(null);
    },
  };
}

// Return the box of a picture's content in its own pixels: the content may be narrower than the
// picture.
function contentBox(picture, node) {
  const frame = picture.getBoundingClientRect(),
    scale = frame.width / picture.offsetWidth || 1;
  const visible = [...node.children].filter(isVisible),
    boxes = (visible.length ? visible : [picture]).map((part) => part.getBoundingClientRect());
  const least = (side) => Math.min(...boxes.map((box) => box[side])),
    greatest = (side) => Math.max(...boxes.map((box) => box[side]));
  return {
    x: (least("left") - frame.left) / scale,
    y: (least("top") - frame.top) / scale,
    width: (greatest("right") - least("left")) / scale || 1,
    height: (greatest("bottom") - least("top")) / scale || 1,
  };
}
