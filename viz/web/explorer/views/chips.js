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
  let shown = "";
  return {
    root,
    /**
     * @param {any} state @param {any} kind sizes of its attention @param {Map<string, string>} colours "layer.head" -> colour of each
     *   chosen head
     */
    draw({ layer, head, heads, overlay, combine }, kind, colours) {
      const chosen = (heads.length ? heads : [[layer, head]]).map((pair) => pair.join("."));
      root.hidden =
        kind.large || Boolean(overlay) || combine === "rollout" || kind.layers * kind.heads < 2;
      const others = heads.filter(([other]) => other !== layer),
        own = Array.from({ length: kind.heads }, (_, i) => [layer, i]),
        about = JSON.stringify([layer, kind.heads, chosen, others, [...colours]]);
      if (about === shown) return;
      shown = about;
      const focused = root.querySelector(":focus")?.dataset.at;
      const chip = ([l, h]) => {
        const at = `${l}.${h}`,
          isOn = chosen.includes(at),
          names = { layer: l + 1, head: h + 1 };
        const name = t("Layer {layer} · Head {head}", names);
        return button(l === layer ? String(h + 1) : `${l + 1}·${h + 1}`, () => toggle([[l, h]]), {
          class: "head-chip",
          "data-at": at,
          "aria-pressed": String(isOn),
          "aria-label": name,
          title: isOn ? name : t("Add layer {layer} · head {head}", names),
          style: isOn && colours.has(at) ? `--c: ${colours.get(at)}` : null,
        });
      };
      root.replaceChildren(
        el("span", { class: "caption" }, t("Heads of layer {layer}", { layer: layer + 1 })),
        ...own.map(chip),
        ...others.map(chip),
      );
      if (focused) root.querySelector(`[data-at="${focused}"]`)?.focus();
    },
  };
}
