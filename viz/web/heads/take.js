// What stands beside a survey: long work that can be done here, menus, and the way to a head in the explorer.
import { button, el } from "../core/dom.js";
import { said, t } from "../core/language.js";
import { look } from "../core/links.js";

// Work of many parts: the page asks for one after another, so that it can stop at any time.
export function take(block, keep, api) {
  let going = false,
    asked = false;
  const bar = el("progress", { max: block.of, value: block.done, "aria-label": block.begin }),
    told = el("span", { role: "status" });
  const toggle = button("", () => {
    turn(!going);
    if (going && !asked) next(performance.now(), bar.value); // else what is under way goes on by itself
  });
  const root = el(
    "div",
    { class: "take" },
    el("p", { class: "text" }, block.about),
    el("div", { class: "row" }, toggle, bar, told),
  );
  function turn(isOn) {
    going = isOn;
    toggle.textContent = going ? t("Stop") : said(block.begin);
  }
  function next(started, from) {
    asked = true;
    api.request("step", {}, (value) => {
      asked = false;
      if (!root.isConnected) return;
      if (value.error) {
        turn(false);
        return told.replaceChildren(value.error);
      }
      const [found] = value.blocks;
      if (found?.type !== "take") return done(value.blocks);
      bar.value = found.done;
      const seconds = (performance.now() - started) / 1000 / Math.max(1, found.done - from);
      told.replaceChildren(
        t("{done} of {of} parts, about {n} seconds left", {
          done: found.done,
          of: found.of,
          n: Math.ceil(seconds * (found.of - found.done)),
        }),
      );
      if (going) next(started, from);
    });
  }
  function done(blocks) {
    if (!blocks.length) return api.again();
    root.className = "stack";
    const after = [];
    root.replaceChildren(...blocks.map((one) => api.block(one, after)));
    for (const complete of after) complete();
  }
  turn(false);
  return root;
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
    button(t("Open this head in the explorer"), () => look({ kind, layer, head })),
  );
