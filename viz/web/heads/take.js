// What stands beside a survey: long work that can be done here, menus, and the way to a head in the explorer.
import { el } from "../core/dom.js";
import { said, t } from "../core/language.js";
import { look } from "../core/links.js";

// Work of many parts: the page asks for one after another, so that it can stop at any time.
export function take(block, keep, api) {
  let going = false,
    asked = false;
  const bar = el("progress", { max: block.of, value: block.done, "aria-label": said(block.begin) }),
    told = el("span", { role: "status" });
  const root = el("div", { class: "take" });
  const button = el("button", {
    type: "button",
    class: "plain",
    onclick: () => {
      going = !going;
      label();
      if (going && !asked) next(performance.now(), bar.value); // else what is under way goes on by itself
    },
  });
  const label = () => (button.textContent = going ? t("Stop") : said(block.begin));
  function next(started, from) {
    asked = true;
    api.request("step", {}, (value) => {
      asked = false;
      if (!root.isConnected) return;
      const found = value.blocks?.[0];
      if (found?.type !== "take") return value.error ? failed(value.error) : done(value.blocks);
      bar.value = found.done;
      const left =
        (((performance.now() - started) / Math.max(1, found.done - from)) *
          (found.of - found.done)) /
        1000;
      told.replaceChildren(
        t("{done} of {of} parts, about {n} seconds left", {
          done: found.done,
          of: found.of,
          n: Math.ceil(left),
        }),
      );
      if (going) next(started, from);
    });
  }
  function failed(error) {
    going = false;
    label();
    told.replaceChildren(error);
  }
  function done(blocks) {
    if (!blocks.length) return api.again();
    root.className = "stack";
    const after = [];
    root.replaceChildren(...blocks.map((one) => api.block(one, after)));
    for (const complete of after) complete();
  }
  label();
  root.append(
    el("p", { class: "text" }, block.about),
    el("div", { class: "row" }, button, bar, told),
  );
  return root;
}

// A menu whose choice is answered in a slot.
export const pick = (block, keep, api) =>
  el(
    "div",
    { class: "survey-controls" },
    el(
      "label",
      {},
      el("span", {}, block.title),
      el(
        "select",
        {
          onchange: (event) =>
            api.act(block.act, block.slot, { option: event.target.selectedIndex }),
        },
        block.options.map((name) => el("option", {}, name)),
      ),
    ),
  );

// A button that shows a head in the explorer.
export const open_head = (block) =>
  el(
    "p",
    {},
    el(
      "button",
      {
        type: "button",
        class: "plain",
        onclick: () => look({ kind: block.kind, layer: block.layer, head: block.head }),
      },
      t("Open this head in the explorer"),
    ),
  );
