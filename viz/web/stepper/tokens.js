// The two sentences as tokens, and the candidates of the step.
import { button, el, menu } from "../core/dom.js";
import { t } from "../core/language.js";
import { createPicture } from "../picture/copy.js";
import { formatPercent } from "../core/format.js";

export const chipText = (token) => token.text.replaceAll("\u2581", "") || "␣";
export const chipClass = (token, i) =>
  `chip${token.symbol ? " symbol" : ""}${i === 0 || token.symbol || token.text.startsWith("\u2581") ? " starts" : ""}`;

// hooks: jump(step), say(words), redraw()
export function createSentences(hooks) {
  const source = el("div", { class: "chips", dir: "auto" }),
    target = el("div", {
      class: "chips",
      role: "group",
      "aria-label": t("Tokens written; choose one to go there"),
    });
  const note = el("p", { class: "caption" }),
    respelled = el("p", { class: "caption respelled" });
  const root = el(
    "div",
    { class: "sentences" },
    el("div", { class: "line" }, el("span", { class: "label" }, t("reads")), source),
    el("div", { class: "line" }, el("span", { class: "label" }, t("writes")), target),
    note,
    respelled,
  );
  const shadings = [
    ["mean", t("mean of all heads")],
    ["head", t("selected head")],
  ];
  const shading = menu(shadings, "mean", {
    "aria-label": t("Source shaded by"),
    onchange: hooks.redraw,
  });
  let sourceChips = [],
    targetChips = [],
    path = null,
    how = "";

  function open(next, branch) {
    path = next;
    how = branch.decoding;
    sourceChips = path.source.map((token, i) =>
      el("span", { class: `${chipClass(token, i)} shaded` }, chipText(token)),
    );
    source.replaceChildren(...sourceChips);
    targetChips = branch.tokens.map((token, i) => {
      const { rank } = path.steps[i],
        values = { step: i + 1, token: token.text, p: formatPercent(branch.probabilities[i]) };
      const say = () =>
        hooks.say(t("Step {step}: “{token}”, probability {p}, rank {rank}", { ...values, rank }));
      return button(chipText(token), () => hooks.jump(i), {
        class: `${chipClass(token, i)}${i < branch.given && rank > 1 ? " given" : ""}`,
        "aria-label": t("Step {step}: {token}, probability {p}", values),
        onmouseenter: say,
        onfocus: say,
      });
    });
    target.replaceChildren(...targetChips);
    respelled.textContent = path.respelled
      ? t("The tokenizer would split this text differently: {pieces}", {
          pieces: path.respelled.map((piece) => piece.text).join(" "),
        })
      : "";
    respelled.hidden = !path.respelled;
  }

  // What shades the source: that head where it reads it, or the mean of all.
  function step(at, { kind, layer, head }) {
    const one = shading.value === "head" && kind === "cross",
      shown = at < path.length && path.has(at);
    let weights = null;
    if (shown) weights = one ? path.row("cross", layer, head, at) : path.meanRow("cross", at);
    targetChips.forEach((chip, i) => {
      chip.classList.toggle("ahead", i > at);
      chip.classList.toggle("next", i === at);
      chip.ariaCurrent = i === at ? "step" : null;
    });
    const largest = weights ? Math.max(...weights) : 0;
    sourceChips.forEach((chip, i) => {
      chip.style.setProperty("--p", weights ? (weights[i] / largest).toFixed(4) : "0");
      chip.title = weights ? t("attention {weight}", { weight: weights[i].toFixed(3) }) : "";
    });
    const what = one
      ? t("layer {layer}, head {head}", { layer: layer + 1, head: head + 1 })
      : t("the mean of all heads");
    const sentences = [
      weights
        ? t("Source shaded by {what} at this step; full colour is {p}.", {
            what,
            p: formatPercent(largest),
          })
        : t("The sentence is complete."),
      t("Decoding: {how}.", { how }),
    ];
    if (root.querySelector(".given"))
      sentences.push(t("Underlined tokens were given, not decoded."));
    note.textContent = sentences.join(" ");
  }

  // While the server works: the token just chosen, at once.
  function expect(at, text) {
    targetChips.slice(at).forEach((chip) => chip.remove());
    target.append(el("span", { class: "chip starts next waiting" }, chipText({ text })));
  }

  // Of the heads that read the source, one that is chosen is to be seen there.
  const select = (kind) => kind === "cross" && (shading.value = "head");

  return { root, shading, open, step, expect, select };
}

// hooks: force(candidate), forceText(text, joined), temperature(value), about(title): of a picture
export function createCandidates(hooks) {
  const facts = el("p", { class: "facts", "aria-live": "polite" }),
    list = el("ol", { class: "candidates" });
  const heat = el("input", {
    type: "range",
    min: "0.1",
    max: "2",
    step: "0.1",
    value: "1",
    "aria-label": t("Temperature"),
    oninput: () => {
      heatValue.textContent = Number(heat.value).toFixed(1);
      hooks.temperature(Math.round(Number(heat.value) * 10) / 10);
    },
  });
  const heatValue = el("output", {}, "1.0");
  const text = el("input", {
    type: "text",
    placeholder: t("any text"),
    "aria-label": t("Text to put here"),
    maxlength: "500",
    autocomplete: "off",
  });
  const joined = el("input", { type: "checkbox" });
  function submit(event) {
    event.preventDefault();
    hooks.forceText(text.value, joined.checked);
  }
  const form = el(
    "form",
    { class: "force", onsubmit: submit },
    text,
    el("label", {}, joined, t("no space before")),
    button(t("Put here"), null, { type: "submit" }),
  );
  const root = el(
    "section",
    { class: "next-token" },
    el("h2", {}, t("Next token")),
    facts,
    createPicture(list, hooks.about(t("Next token"))),
    el("label", { class: "heat" }, `${t("Temperature")} `, heat, heatValue),
    el(
      "p",
      { class: "caption" },
      t(
        "Probabilities are re-normalised over the whole vocabulary. Greedy decoding takes the most probable token at any temperature.",
      ),
    ),
    form,
  );
  // A line of the list: what stands before, after and on its meter.
  function line(rank) {
    const token = el("span", { class: "token" }),
      value = el("span", { class: "value" }),
      meter = el("span", { class: "meter" }, el("i", {}));
    return { token, value, parts: [el("span", { class: "rank" }, rank), token, meter, value] };
  }
  function row(i) {
    const { token, value, parts } = line(i + 1),
      choice = button(parts, () => hooks.force(i), { class: "candidate" });
    list.append(el("li", {}, choice));
    return { choice, token, value };
  }
  const rows = [],
    others = line(null),
    rest = el("li", { class: "others" }, others.parts);

  function draw(path, at, temperature) {
    if (at >= path.length) {
      facts.textContent = t(
        "Nothing follows: this is the end of the branch. Go back to make another choice.",
      );
      list.hidden = true;
      return;
    }
    list.hidden = false;
    const shown = path.candidates(at, temperature) || path.steps[at].candidates;
    while (rows.length < shown.length) rows.push(row(rows.length));
    const step = path.steps[at];
    rows.forEach(({ choice, token, value }, i) => {
      const candidate = shown[i];
      choice.parentElement.hidden = !candidate;
      if (!candidate) return;
      const isTaken = candidate.id === step.id,
        values = { token: candidate.text, p: formatPercent(candidate.probability) };
      token.textContent = values.token;
      value.textContent = values.p;
      choice.style.setProperty("--p", candidate.probability.toFixed(4));
      choice.classList.toggle("taken", isTaken);
      choice.ariaCurrent = isTaken ? "true" : null;
      choice.ariaLabel = isTaken
        ? t("{token}, {p}, taken", values)
        : t("{token}, {p}, choose instead", values);
    });
    const count = path.vocabulary - shown.length,
      share = Math.max(0, 1 - shown.reduce((sum, { probability }) => sum + probability, 0));
    list.append(rest);
    rest.hidden = count <= 0;
    rest.style.setProperty("--p", share.toFixed(4));
    others.token.textContent = t("all {n} other tokens", { n: count });
    others.value.textContent = formatPercent(share);
    const p = path.taken(at, temperature),
      entropy = path.entropy(at, temperature);
    facts.textContent =
      p === null
        ? t("Computing …")
        : t(
            "Taken: rank {rank}, {p}. The other {rest} is spread over {n} tokens. Entropy: {bits} bits.",
            {
              rank: step.rank,
              p: formatPercent(p),
              rest: formatPercent(Math.max(0, 1 - p)),
              n: path.vocabulary - 1,
              bits: entropy.toFixed(2),
            },
          );
  }

  return { root, draw, clearText: () => (text.value = "") };
}
