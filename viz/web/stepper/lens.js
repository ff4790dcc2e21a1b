// What each decoder layer would already predict: the logit lens.
import { el, shorten } from "../core/dom.js";
import { percent } from "../core/format.js";
import { t } from "../core/language.js";
import { pictured } from "../picture/copy.js";
import { element } from "../picture/drawing.js";

// hooks: jump(step), about(title): of a picture
export function lens(hooks) {
  const status = el("p", { class: "caption", "aria-live": "polite" }),
    scroll = el("div", { class: "scroll" });
  const root = el(
    "div",
    {},
    el(
      "p",
      { class: "caption" },
      t(
        "What each decoder layer would already predict: the final norm and the output projection on the residual stream after it. Colour: probability of that token. Point at a cell for the rank of the token finally taken.",
      ),
    ),
    pictured(scroll, {
      ...hooks.about(t("Layer by layer")),
      svg: () => element(scroll.firstChild),
    }),
    status,
  );
  let columns = [];

  function draw(path, branch) {
    if (!path.details) {
      scroll.replaceChildren(el("p", { class: "caption" }, t("Computing …")));
      return;
    }
    const { tokens, probabilities, ranks, chosen, ids } = path.details.lens;
    columns = branch.tokens.map(() => []);
    const rows = tokens
      .map((row, layer) =>
        el(
          "tr",
          {},
          el(
            "th",
            { scope: "row" },
            layer ? t("after layer {layer}", { layer }) : t("before layer 1"),
          ),
          row.map((token, step) => {
            const where = layer
              ? t("After layer {layer}, step {step}", { layer, step: step + 1 })
              : t("Before layer 1, step {step}", { step: step + 1 });
            const words = t(
              "{where}: “{token}” {p}. The token taken, “{taken}”, has rank {rank} ({q}).",
              {
                where,
                token,
                p: percent(probabilities[layer][step]),
                taken: branch.tokens[step].text,
                rank: ranks[layer][step],
                q: percent(chosen[layer][step]),
              },
            );
            const show = () => (status.textContent = words);
            const cell = el(
              "td",
              {},
              el(
                "button",
                {
                  type: "button",
                  class: ids[layer][step] === branch.ids[step] ? "right" : "",
                  style: `--p: ${probabilities[layer][step].toFixed(3)}`,
                  "aria-label": words,
                  tabindex: layer === tokens.length - 1 ? "0" : "-1",
                  onmouseenter: show,
                  onfocus: show,
                  onclick: () => hooks.jump(step),
                },
                shorten(token, 10),
              ),
            );
            columns[step].push(cell);
            return cell;
          }),
        ),
      )
      .reverse();
    const head = el(
      "tr",
      {},
      el("th", { scope: "row" }, t("taken")),
      branch.tokens.map((token, step) => {
        const cell = el("th", { scope: "col" }, shorten(token.text, 10));
        columns[step].push(cell);
        return cell;
      }),
    );
    scroll.replaceChildren(
      el("table", { class: "lens" }, el("thead", {}, head), el("tbody", {}, rows)),
    );
  }

  function step(at) {
    columns.forEach((cells, i) => cells.forEach((cell) => cell.classList.toggle("now", i === at)));
    const cell = columns[at]?.[0];
    if (!cell || scroll.scrollWidth <= scroll.clientWidth) return;
    const first = scroll.querySelector("th").offsetWidth,
      left = cell.offsetLeft - first; // of what the first column leaves free
    if (
      left < scroll.scrollLeft ||
      left + cell.offsetWidth > scroll.scrollLeft + scroll.clientWidth - first
    )
      scroll.scrollLeft = left;
  }
  return { root, draw, step };
}
