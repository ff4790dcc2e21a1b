// The heads that are combined, as chips in their colours: a click adds a head or removes it.
import { button, el } from "../../core/dom.js";
import { t } from "../../core/language.js";

/**
 * Create a function from chosen heads, [layer, head] each, to the numbers of their colours. A head keeps its colour while others
 * come and go.
 * @param {number} count of colours
 */
export function createSlots(count) {
  let slots = new Map(); // "layer.head" -> number
  return (heads) => {
    const names = heads.map((pair) => pair.join("."));
    slots = new Map([...slots].filter(([name]) => names.includes(name)));
    for (const name of names) {
      const used = new Set(slots.values()),
        free = Array.from({ length: count }, (_, i) => i).find((i) => !used.has(i));
      if (!slots.has(name)) slots.set(name, free ?? count - 1);
    }
    return names.map((name) => slots.get(name));
  };
}

/** Create the chips. @param {(pairs: number[][]) => void} toggle adds heads to the choice or removes them */
export function createChips(toggle) {
  const root = el("div", {
    class: "chips",
    role: "group",
    "aria-label": t("Heads shown together"),
  });
  let shownHeads = "", // the layer and the heads that have chips, as JSON
    chips = []; // {layer, head, node} of each, both counted from 1
  function build(layer, heads) {
    const focused = root.querySelector(":focus")?.dataset.at;
    chips = heads.map(([l, h]) => {
      const place = { layer: l + 1, head: h + 1 },
        text = l === layer ? String(h + 1) : `${l + 1}·${h + 1}`;
      const node = button(text, () => toggle([[l, h]]), {
        class: "head-chip",
        "data-at": `${l}.${h}`,
        "aria-label": t("Layer {layer} · Head {head}", place),
      });
      return { ...place, node };
    });
    root.replaceChildren(
      el("span", { class: "caption" }, t("Heads of layer {layer}", { layer: layer + 1 })),
      ...chips.map(({ node }) => node),
    );
    if (focused) root.querySelector(`[data-at="${focused}"]`)?.focus();
  }
  return {
    root,
    /**
     * @param {any} state @param {any} kind sizes of its attention @param {Map<string, string>} colours "layer.head" -> colour of each
     *   chosen head
     */
    draw({ layer, head, heads, overlay, combine }, kind, colours) {
      root.hidden =
        kind.large || Boolean(overlay) || combine === "rollout" || kind.layers * kind.heads < 2;
      const own = Array.from({ length: kind.heads }, (_, i) => [layer, i]),
        all = [...own, ...heads.filter(([other]) => other !== layer)],
        about = JSON.stringify([layer, all]);
      if (about !== shownHeads) build(layer, all);
      shownHeads = about;
      const chosenNames = new Set(
        (heads.length ? heads : [[layer, head]]).map((pair) => pair.join(".")),
      );
      for (const { node, ...place } of chips) {
        const { at } = node.dataset,
          isOn = chosenNames.has(at);
        node.ariaPressed = String(isOn);
        node.title = isOn ? node.ariaLabel : t("Add layer {layer} · head {head}", place);
        node.style.setProperty("--c", (isOn && colours.get(at)) || "");
      }
    },
  };
}
