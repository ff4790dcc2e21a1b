// Blocks beside a survey of heads: the button that starts long work and its progress, and a menu.
import { restartNotice } from "../core/ask.js";
import { button, el } from "../core/dom.js";
import { toText, t } from "../core/language.js";

/**
 * A block with a button that begins long work, such as a survey. The panel's next answer contains its result.
 * @param {any} block @param {any} afterInsert @param {import("../lab/blocks.js").Panel} api
 */
export const take = (block, afterInsert, api) =>
  el("div", { class: "take" }, [
    el("p", { class: "text" }, block.about),
    button(toText(block.begin), () => api.beginWork(block.work), { class: "begin" }),
  ]);

/**
 * Create a progress bar beside the button that started the work, or at the top of a panel.
 * @param {any} root of the panel @param {() => void} halt called by the Stop button
 * @returns {{show: (progress: any, isAnew?: boolean) => void, isShown: () => boolean}} show({done, of}), and show(null) at the
 *   end
 */
export function createProgress(root, halt) {
  let first = null; // time and count of the first part
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

/** A menu whose choice is answered in a slot of the panel. @param {any} block @param {any} afterInsert @param {any} api */
export function pick(block, afterInsert, api) {
  const onchange = ({ target }) =>
    api.askForSlot(block.act, block.slot, { option: target.selectedIndex });
  const choices = el("select", { onchange }, [block.options.map((name) => el("option", {}, name))]);
  return el("div", { class: "survey-controls" }, [
    el("label", {}, el("span", {}, block.title), choices),
  ]);
}
