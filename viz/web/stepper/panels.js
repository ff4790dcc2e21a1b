// Below the step: the tree of branches, two of them compared, the logit lens, and a target of one's own.
import { el, shorten } from "../core/dom.js";
import { said, say, t } from "../core/language.js";
import { pictured } from "../picture/copy.js";
import * as drawing from "../picture/drawing.js";
import { logP, percent, written } from "./path.js";

const ORIGINS = { forced: say("chosen"), beam: say("from the beam"), target: say("your own") };
const origin = (branch) => said(ORIGINS[branch.origin] ?? branch.decoding);
// Named by what is its own: the rest it shares with its parent.
const title = (branch) =>
  `${branch.number} · ${origin(branch)}: ${branch.fork ? "… " : ""}${shorten(written(branch.tokens.slice(branch.fork)), 60) || t("(end)")}`;

// hooks: open(number)
export function branches(hooks) {
  const list = el("ul", { class: "tree", "aria-label": t("Branches") }),
    note = el("p", { class: "caption" });
  const root = el("div", {}, note, list);

  function draw(tree, current) {
    note.textContent =
      t(
        "Every choice makes a branch; nothing is lost by going back. Kept: the last {n} branches.",
        { n: tree.limit },
      ) + (tree.dropped ? ` ${t("{n} of the oldest had to leave.", { n: tree.dropped })}` : "");
    const known = new Set(tree.branches.map((b) => b.number));
    const children = (number) =>
      tree.branches.filter((b) => (known.has(b.parent) ? b.parent : null) === number);
    const items = [];
    const add = (branch, depth) => {
      items.push(item(branch, depth, branch.number === current));
      children(branch.number).forEach((child) => add(child, depth + 1));
    };
    children(null).forEach((branch) => add(branch, 0));
    list.replaceChildren(...items);
  }

  function item(branch, depth, current) {
    const shared = written(branch.tokens.slice(0, branch.fork)),
      own = written(branch.tokens.slice(branch.fork));
    return el(
      "li",
      { style: `--depth: ${depth}` },
      el(
        "button",
        {
          type: "button",
          class: `branch${current ? " current" : ""}`,
          "aria-current": current ? "true" : null,
          onclick: () => hooks.open(branch.number),
        },
        el("span", { class: "number" }, branch.number),
        el(
          "span",
          { class: "sentence", dir: "auto" },
          el("span", { class: "shared" }, shared ? `${shared} ` : ""),
          own || t("(end)"),
        ),
        el(
          "span",
          { class: "about" },
          `${origin(branch)}${branch.finished ? "" : `, ${t("unfinished")}`} · ${t("log-probability {value}", { value: logP(branch.total) })}`,
        ),
      ),
    );
  }
  return { root, draw };
}

// hooks: compare(first, second), select(kind, layer, head), about(title): of a picture
export function comparison(hooks) {
  const picks = [t("First branch"), t("Second branch")].map((name) =>
    el("select", { "aria-label": name, onchange: ask }),
  );
  const content = el("div", { class: "compared" });
  const root = el(
    "div",
    {},
    el(
      "div",
      { class: "picks" },
      picks[0],
      el("span", { class: "caption" }, t("against")),
      picks[1],
    ),
    content,
  );
  let tree = null;

  function draw(next, current) {
    const before = picks.map((pick) => Number(pick.value)),
      first = tree === null || tree.text !== next.text;
    tree = next;
    const numbers = tree.branches.map((b) => b.number);
    const wanted = first ? [] : before.filter((n) => numbers.includes(n));
    const last = current === numbers[0] ? numbers[numbers.length - 1] : current;
    const chosen =
      wanted.length === 2 && wanted[0] !== wanted[1] && wanted.includes(current)
        ? wanted
        : [numbers[0], last];
    picks.forEach((pick, i) => {
      pick.replaceChildren(
        ...tree.branches.map((b) => el("option", { value: b.number }, title(b))),
      );
      pick.value = String(chosen[i]);
    });
    ask();
  }

  function ask() {
    if (tree.branches.length < 2) {
      content.replaceChildren(
        el(
          "p",
          { class: "caption" },
          t(
            "There is one branch so far. Choose another candidate at some step, and compare what became of it.",
          ),
        ),
      );
    } else hooks.compare(Number(picks[0].value), Number(picks[1].value));
  }

  function show(found) {
    const pair = found.numbers.map((n) => tree.branches.find((b) => b.number === n));
    if (pair.some((b) => !b)) return;
    const cell = (branch, i, same) =>
      el(
        "span",
        {
          class: `cell${same ? " same" : ""}`,
          style: i === null ? "" : `--p: ${branch.probabilities[i].toFixed(3)}`,
        },
        i === null ? "" : branch.tokens[i].text,
        el("small", {}, i === null ? "" : percent(branch.probabilities[i])),
      );
    const columns = found.rows.map(([a, b]) => {
      const same = a !== null && b !== null && pair[0].ids[a] === pair[1].ids[b];
      return el("span", { class: "pair" }, cell(pair[0], a, same), cell(pair[1], b, same));
    });
    const difference = pair[1].total - pair[0].total;
    content.replaceChildren(
      el(
        "div",
        {
          class: "aligned",
          tabindex: "0",
          role: "group",
          "aria-label": t("Tokens of the two branches, aligned"),
        },
        columns,
      ),
      el(
        "p",
        { class: "facts" },
        t("Total log-probability {first} and {second}: {verdict}", {
          first: logP(pair[0].total, 3),
          second: logP(pair[1].total, 3),
          verdict:
            Math.abs(difference) < 5e-4
              ? t("equal.")
              : t("branch {number} is {n} times as probable.", {
                  number: pair[difference > 0 ? 1 : 0].number,
                  n: ratio(Math.abs(difference)),
                }),
        }),
      ),
      el(
        "p",
        { class: "caption" },
        found.cross === null
          ? t("The two part at the last token of one of them: no later step can be compared.")
          : t(
              "How much each head's attention differs after the fork (steps {first} to {last}): mean Jensen-Shannon divergence in bits, 0 (the same) to 1 (nothing in common). Decoder self-attention: over the keys that both have.",
              { first: found.steps[0] + 1, last: found.steps[1] },
            ),
      ),
      ...(found.cross === null
        ? []
        : [
            pictured(
              el(
                "div",
                { class: "maps" },
                map("cross", t("Cross-attention"), found.cross),
                map("decoder_self", t("Decoder self-attention"), found.decoder_self),
              ),
              hooks.about(t("Compare")),
            ),
          ]),
    );
  }

  const ratio = (difference) =>
    difference > 13.8 ? t("more than a million") : Number(Math.exp(difference).toPrecision(2));

  function map(kind, name, values) {
    const heads = values[0].map((_, head) => el("th", { scope: "col" }, `H${head + 1}`));
    return el(
      "table",
      { class: "divergence" },
      el("caption", {}, name),
      el("thead", {}, el("tr", {}, el("td"), heads)),
      el(
        "tbody",
        {},
        values.map((row, layer) =>
          el(
            "tr",
            {},
            el("th", { scope: "row" }, `L${layer + 1}`),
            row.map((value, head) =>
              el(
                "td",
                {},
                el(
                  "button",
                  {
                    type: "button",
                    style: `--p: ${value.toFixed(3)}`,
                    "aria-label": t("Layer {layer}, head {head}: {bits} bits", {
                      layer: layer + 1,
                      head: head + 1,
                      bits: value.toFixed(4),
                    }),
                    title: t("{bits} bits", { bits: value.toFixed(4) }),
                    onclick: () => hooks.select(kind, layer, head),
                  },
                  value === 0 ? "0" : value.toFixed(2),
                ),
              ),
            ),
          ),
        ),
      ),
    );
  }
  return { root, draw, show };
}

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
      svg: () => drawing.element(scroll.firstChild),
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

// hooks: target(text)
export function ownTarget(hooks) {
  const text = el("textarea", {
    rows: "2",
    "aria-label": t("Your own translation"),
    placeholder: t("Type a translation of the sentence"),
    maxlength: "10000",
  });
  const verdict = el("p", { class: "facts", "aria-live": "polite" });
  const root = el(
    "form",
    {
      class: "own",
      onsubmit: (event) => {
        event.preventDefault();
        hooks.target(text.value);
      },
    },
    el(
      "p",
      { class: "caption" },
      t(
        "The model is made to write your translation token by token. You see its maps as for any other, and how probable each of your tokens was to it.",
      ),
    ),
    text,
    el("button", { type: "submit", class: "plain strong" }, t("Force-decode it")),
    verdict,
  );

  function draw(tree, current) {
    const own = tree.branches.find((b) => b.number === current && b.origin === "target"),
      model = tree.branches[0];
    verdict.textContent = own
      ? t(
          "Yours: log-probability {total} over {n} tokens ({each} a token). The model's own: {total2} over {n2} ({each2} a token).",
          {
            total: logP(own.total),
            n: own.ids.length,
            each: logP(own.total / own.ids.length),
            total2: logP(model.total),
            n2: model.ids.length,
            each2: logP(model.total / model.ids.length),
          },
        )
      : "";
  }
  text.addEventListener(
    "keydown",
    (event) =>
      event.key === "Enter" && !event.shiftKey && (event.preventDefault(), root.requestSubmit()),
  );
  return { root, draw };
}
