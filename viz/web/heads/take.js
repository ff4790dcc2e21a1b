// What stands beside a survey: long work that can be done here, menus, and the way to a head in the explorer.
import { restartNotice } from "../core/ask.js";
import { button, el } from "../core/dom.js";
import { toText, t } from "../core/language.js";
import { showHead } from "../core/links.js";

// Work of many parts, which the panel's answer then begins with.
export const take = (block, keep, api) =>
  el(
    "div",
    { class: "take" },
    el("p", { class: "text" }, block.about),
    button(toText(block.begin), () => api.begin(block.work), { class: "begin" }),
  );

// Create what shows how far work is, beside the button that began it, else at the top of a panel: show({done, of}, isAnew), and
// show(null) once it is over. halt: called by its button.
export function createProgress(root, halt) {
  let first = null; // when the first part came, and how many were done
  const bar = el("progress", { "aria-label": t("Computing …") }),
    words = el("span", { role: "status" }),
    stop = button(t("Stop"), () => {
      halt();
      show(null);
    }),
    element = el("div", { class: "row progress" }, stop, bar, words);
  function show(progress, isAnew) {
    const begin = root.querySelector(".take .begin"),
      hadFocus = [begin, stop].includes(document.activeElement);
    if (!progress) {
      first = null;
      element.remove();
      if (hadFocus) begin?.focus();
      return;
    }
    const { done, of } = progress;
    if (!element.isConnected) {
      if (begin) begin.after(element);
      else root.prepend(element);
      if (hadFocus) stop.focus();
    }
    first ??= { time: performance.now(), done };
    Object.assign(bar, { max: of, value: done });
    const each = (performance.now() - first.time) / 1000 / Math.max(1, done - first.done),
      n = Math.ceil(each * (of - done));
    words.replaceChildren(
      restartNotice(isAnew) + t("{done} of {of} parts, about {n} seconds left", { done, of, n }),
    );
  }
  return { show, isShown: () => element.isConnected };
}

// A menu whose choice is answered in a slot.
export function pick(block, keep, api) {
  const onchange = ({ target }) => api.act(block.act, block.slot, { option: target.selectedIndex });
  const choices = el(
    "select",
    { onchange },
    block.options.map((name) => el("option", {}, name)),
  );
  return el(
    "div",
    { class: "survey-controls" },
    el("label", {}, el("span", {}, block.title), choices),
  );
}

// A button that shows a head in the explorer.
export const open_head = ({ kind, layer, head }) =>
  el(
    "p",
    {},
    button(t("Open this head in the explorer"), () => showHead({ kind, layer, head })),
  );
