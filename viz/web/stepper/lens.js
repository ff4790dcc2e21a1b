// The panel "Layer by layer": which token each decoder layer would already predict, seen through a lens.
import { button, el, menu, shorten, table } from "../core/dom.js";
import { formatPercent, formatSignificant } from "../core/format.js";
import { say, t } from "../core/language.js";
import { scrollToCell } from "../lab/scroll.js";
import { createPicture } from "../picture/copy.js";
import { elementSvg } from "../picture/drawing.js";

const NAMES = {
  logit: say("logit lens: the residual stream as it is"),
  tuned: say("tuned lens: the residual stream through a fitted map"),
  jacobian: say("Jacobian lens: the residual stream times the mean slope of the output"),
};

/**
 * Create the panel. draw() needs the path's details, and says so while they are missing.
 * @param {{jump: (step: number) => void, about: import("./heads.js").DescribePicture}} hooks
 */
export function createLens(hooks) {
  const choice = el("p", { class: "caption" }),
    status = el("p", { class: "caption", "aria-live": "polite" }),
    scroll = el("div", { class: "scroll" });
  const root = el("div", {}, [
    el("p", { class: "caption", "data-terms": "" }, [
      t(
        "What each decoder layer would already predict: its residual stream through a lens, the final norm and the output projection. Colour: probability of that token. Point at a cell to see the rank of the token finally chosen.",
      ),
    ]),
    choice,
    createPicture(scroll, {
      ...hooks.about(t("Layer by layer")),
      svg: () => elementSvg(scroll.firstChild),
    }),
    status,
  ]);
  let name = "logit", // of the selected lens
    columns = []; // step -> its heading and its cells

  /** @param {import("./path.js").Path} path @param {any} branch */
  function draw(path, branch) {
    if (!path.details) {
      scroll.replaceChildren(el("p", { class: "caption" }, t("Computing …")));
      return;
    }
    const { lenses } = path.details;
    if (!lenses[name]) [name] = Object.keys(lenses);
    drawChoice(path, branch);
    const { tokens, nats } = lenses[name],
      last = tokens.length - 1;
    const cells = tokens.map((row, layer) =>
      row.map((_, step) => createCell(lenses[name], branch, layer, step)),
    );
    const headings = branch.tokens.map(({ text }) => el("th", { scope: "col" }, shorten(text, 10)));
    columns = headings.map((heading, step) => [heading, ...cells.map((row) => row[step])]);
    const rows = cells.map((row, layer) => {
      const title = layer ? t("after layer {layer}", { layer }) : t("before layer 1"),
        distance = layer < last ? formatSignificant(nats[layer], 2) : null;
      return el("tr", {}, [
        el("th", { scope: "row" }, title),
        row,
        el("td", { class: "number" }, distance),
      ]);
    });
    const distance = t("KL divergence from the final prediction, in nats, mean over steps");
    const head = [
      el("th", { scope: "row" }, t("chosen")),
      ...headings,
      el("th", { scope: "col", title: distance }, t("nats")),
    ];
    scroll.replaceChildren(table(head, rows.reverse(), { class: "lens" }));
  }

  // The first argument is a lens of viz/wire/steps.py: `chosen` holds the probabilities of the tokens that were written.
  function createCell({ tokens, ids, probabilities, ranks, chosen }, branch, layer, step) {
    const words = t("{where}: “{token}” {p}. The chosen token, “{taken}”, has rank {rank} ({q}).", {
      where: layer
        ? t("After layer {layer}, step {step}", { layer, step: step + 1 })
        : t("Before layer 1, step {step}", { step: step + 1 }),
      token: tokens[layer][step],
      p: formatPercent(probabilities[layer][step]),
      taken: branch.tokens[step].text,
      rank: ranks[layer][step],
      q: formatPercent(chosen[layer][step]),
    });
    const node = button(shorten(tokens[layer][step], 10), () => hooks.jump(step), {
      class: ids[layer][step] === branch.ids[step] ? "right" : "",
      style: `--p: ${probabilities[layer][step].toFixed(3)}`,
      "aria-label": words,
      tabindex: layer === tokens.length - 1 ? "0" : "-1",
      "onmouseenter onfocus": () => (status.textContent = words),
    });
    return el("td", {}, node);
  }

  // Draw the menu of lenses, if there are several, and which of them is nearest to the output for this sentence.
  function drawChoice(path, branch) {
    const { lenses } = path.details,
      names = Object.keys(lenses);
    choice.replaceChildren();
    if (names.length < 2) return;
    const distance = (lens) => lenses[lens].nats.slice(0, -1).reduce((sum, nats) => sum + nats, 0),
      nearest = names.reduce((a, b) => (distance(b) < distance(a) ? b : a));
    const onchange = ({ target }) => {
      name = target.value;
      draw(path, branch);
      choice.querySelector("select").focus();
    };
    const options = names.map((lens) => [lens, NAMES[lens]]);
    choice.append(
      menu(options, name, { "aria-label": t("Lens"), onchange }),
      " ",
      t("Closest to the final prediction here: {lens}", { lens: NAMES[nearest] }),
    );
  }

  /**
   * Mark a step's column, and scroll it into the space beside the first column, which stays in place.
   * @param {number} current
   */
  function step(current) {
    columns.forEach((cells, i) =>
      cells.forEach((cell) => cell.classList.toggle("now", i === current)),
    );
    if (columns[current]) scrollToCell(scroll, columns[current][0], scroll.querySelector("th"));
  }
  return { root, draw, step };
}
