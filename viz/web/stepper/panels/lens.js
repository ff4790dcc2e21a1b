// What each decoder layer would already predict, through a lens.
import { button, el, menu, shorten, table } from "../../core/dom.js";
import { formatPercent, formatSignificant } from "../../core/format.js";
import { say, t } from "../../core/language.js";
import { createPicture } from "../../picture/copy.js";
import { elementSvg } from "../../picture/drawing.js";

const NAMES = {
  logit: say("logit lens: the stream as it is"),
  tuned: say("tuned lens: the stream through a fitted map"),
  jacobian: say("Jacobian lens: the stream times the mean slope of the end"),
};
const mean = (values) => values.slice(0, -1).reduce((sum, value) => sum + value, 0);

// hooks: jump(step), about(title): of a picture
export function lens(hooks) {
  const choice = el("p", { class: "caption" });
  let chosen = "logit";
  const status = el("p", { class: "caption", "aria-live": "polite" }),
    scroll = el("div", { class: "scroll" });
  const root = el(
    "div",
    {},
    el(
      "p",
      { class: "caption" },
      t(
        "What each decoder layer would already predict: its residual stream through a lens, the final norm and the output projection. Colour: probability of that token. Point at a cell for the rank of the token finally taken.",
      ),
    ),
    choice,
    createPicture(scroll, {
      ...hooks.about(t("Layer by layer")),
      svg: () => elementSvg(scroll.firstChild),
    }),
    status,
  );
  let columns = [];

  function draw(path, branch) {
    if (!path.details) {
      scroll.replaceChildren(el("p", { class: "caption" }, t("Computing …")));
      return;
    }
    const lenses = path.details.lenses,
      names = Object.keys(lenses);
    if (!lenses[chosen]) chosen = names[0];
    choose(path, branch, lenses, names);
    const { tokens, probabilities, ranks, chosen: taken, ids, nats } = lenses[chosen];
    function cellOf(layer, step) {
      const words = t(
        "{where}: “{token}” {p}. The token taken, “{taken}”, has rank {rank} ({q}).",
        {
          where: layer
            ? t("After layer {layer}, step {step}", { layer, step: step + 1 })
            : t("Before layer 1, step {step}", { step: step + 1 }),
          token: tokens[layer][step],
          p: formatPercent(probabilities[layer][step]),
          taken: branch.tokens[step].text,
          rank: ranks[layer][step],
          q: formatPercent(taken[layer][step]),
        },
      );
      const show = () => (status.textContent = words);
      const node = button(shorten(tokens[layer][step], 10), () => hooks.jump(step), {
        class: ids[layer][step] === branch.ids[step] ? "right" : "",
        style: `--p: ${probabilities[layer][step].toFixed(3)}`,
        "aria-label": words,
        tabindex: layer === tokens.length - 1 ? "0" : "-1",
        onmouseenter: show,
        onfocus: show,
      });
      return el("td", {}, node);
    }
    const cells = tokens.map((row, layer) => row.map((_, step) => cellOf(layer, step)));
    const headings = branch.tokens.map(({ text }) => el("th", { scope: "col" }, shorten(text, 10)));
    columns = headings.map((heading, step) => [heading, ...cells.map((row) => row[step])]);
    const rows = cells.map((row, layer) =>
      el(
        "tr",
        {},
        el(
          "th",
          { scope: "row" },
          layer ? t("after layer {layer}", { layer }) : t("before layer 1"),
        ),
        row,
        el(
          "td",
          { class: "number" },
          layer < tokens.length - 1 ? formatSignificant(nats[layer], 2) : null,
        ),
      ),
    );
    const distance = t("KL divergence from the end, in nats, mean over steps");
    const head = [
      el("th", { scope: "row" }, t("taken")),
      ...headings,
      el("th", { scope: "col", title: distance }, t("nats")),
    ];
    scroll.replaceChildren(table(head, rows.reverse(), { class: "lens" }));
  }

  // Which lens, where there are several, and which of them is nearest to the end here.
  function choose(path, branch, lenses, names) {
    const nearest = names.reduce((a, b) => (mean(lenses[b].nats) < mean(lenses[a].nats) ? b : a));
    const options = names.map((name) => [name, NAMES[name]]);
    const onchange = ({ target }) => {
      chosen = target.value;
      draw(path, branch);
      choice.querySelector("select").focus();
    };
    choice.replaceChildren();
    if (names.length > 1)
      choice.append(
        menu(options, chosen, { "aria-label": t("Lens"), onchange }),
        " ",
        t("Nearest to the end here, measured: {lens}.", { lens: NAMES[nearest] }),
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
