// The question of the tab "Why": the pinned token, the token that it is compared with, and the answer in one measured sentence
// (viz/wire/question.py).
import { button, el, form, showInvitation, onVisible, textInput } from "../core/dom.js";
import { formatPercent } from "../core/format.js";
import { textParts, toText, t } from "../core/language.js";
import { copyLink, followStepLinks, linkFields, isVisible, tabLinks } from "../core/links.js";
import { createAsker } from "../core/ask.js";
import { markTerms } from "../lab/glossary.js";
import { showRestoredHeads } from "../lab/heads.js";
import { moveTabFocus } from "../lab/tabs.js";
import { createPicture } from "../picture/copy.js";
import { chipClass, chipText } from "../stepper/tokens.js";
import { askAbout } from "../store/question.js";
import { store } from "../store/store.js";
import { linkChoices, restoreChoices } from "./choices.js";

const MAX_BARS = 8,
  FULL_COLOUR = 2, // effect in nats that has the full colour, unless an effect is larger
  LINED = 0.05; // share of it from which a word that counts against the token is underlined

/**
 * @typedef {object} Word
 * @property {string} text
 * @property {number | null} loss what taking the word away costs the token, in nats
 * @property {number} p probability of the token without the word
 * @property {[text: string, p: number][]} instead the most probable other tokens then
 * @property {boolean} source whether the word is of the source, not of what was written before
 * @property {boolean} special
 */

/**
 * Create the picture: the sentence coloured by the effect of taking each word away, and what the model would write instead.
 * Every number was measured by running the model again (viz/wire/question.py, picture).
 * @param {{p: number, words: Word[]}} picture p: probability of the token that is asked about
 * @param {string} token
 */
export function createWhyPicture({ p, words }, token) {
  const measured = words.filter((word) => !word.special && word.loss !== null),
    largest = Math.max(FULL_COLOUR, ...measured.map((word) => Math.abs(word.loss)));
  const alternatives = (instead) =>
    instead.map(([text, value]) => el("span", {}, el("bdi", {}, text), ` ${formatPercent(value)}`));
  const bars = new Map(); // word -> its bar

  const createBar = (name, share, instead) =>
    el("div", { class: "bar-row" }, [
      el("span", { class: "name" }, name),
      el("span", { class: "meter" }, el("i", { style: `width: ${(100 * share).toFixed(1)}%` })),
      el("span", { class: "value" }, formatPercent(share)),
      el("span", { class: "instead" }, instead),
    ]);

  function createWord(word) {
    const highlight = (isOn) =>
      [node, bars.get(word)].forEach((part) => part?.classList.toggle("lit", isOn));
    const node = el(
      "span",
      {
        class: `word ${word.loss < 0 ? "against" : "for"}${-word.loss > LINED * largest ? " lined" : ""}`,
        title: t("Without “{word}”: {token} {p} ({n} nats)", {
          word: word.text,
          token,
          p: formatPercent(word.p),
          n: `${word.loss > 0 ? "−" : "+"}${Math.abs(word.loss).toFixed(2)}`,
        }),
        style: `--p: ${Math.min(1, Math.abs(word.loss) / largest).toFixed(3)}`,
        onmouseenter: () => highlight(true),
        onmouseleave: () => highlight(false),
      },
      el("bdi", {}, word.text),
    );
    return node;
  }
  const side = (label, isSource) => {
    const nodes = measured.filter((word) => word.source === isSource).map(createWord);
    return nodes.length
      ? el("div", { class: "side" }, el("span", { class: "label" }, label), el("p", {}, nodes))
      : "";
  };
  const ranked = [...measured].sort((a, b) => Math.abs(b.loss) - Math.abs(a.loss));
  for (const word of ranked.slice(0, MAX_BARS)) {
    const name = t("without {word}", { word: word.text });
    bars.set(word, createBar(name, word.p, alternatives(word.instead)));
  }
  return el("div", { class: "why-picture" }, [
    el("div", { class: "coloured" }, [
      side(t("sentence"), true),
      side(t("already written"), false),
      el("p", { class: "key" }, [
        el("i", { class: "for" }),
        t("supports it"),
        el("i", { class: "against lined" }),
        t("counts against it"),
      ]),
    ]),
    el("div", { class: "bars" }, [
      el("div", { class: "bar-row heading" }, [
        el("span", { class: "name" }),
        el("span", { class: "meter-title" }, t("probability of “{token}”", { token })),
        el("span", { class: "instead" }, t("what it writes instead")),
      ]),
      createBar(t("as it is"), p, []),
      [...bars.values()],
    ]),
  ]);
}

let askOnPage = null; // asks a question in the place of the one on the page

/** Ask about a token. @param {object} data its step, and what to compare it with (store/question.js) */
export const askQuestion = (data) => askOnPage?.(data);

/** @param {any} root the element of the question */
export default function question(root) {
  const emphasize = (sentence) =>
    textParts(sentence, (text, name) =>
      ["token", "contrast", "word"].includes(name) ? el("em", { dir: "auto" }, text) : text,
    );
  let current = null; // the last answer

  const headline = el("p", { class: "headline", role: "status" });
  const failed = el("p", { class: "failed", role: "alert" });
  const moveFocus = (event) =>
    moveTabFocus(event, [...event.currentTarget.querySelectorAll("button:enabled")]);
  const createGroup = (label) =>
    el("div", { class: "chips", role: "group", "aria-label": label, onkeydown: moveFocus });
  const tokenChips = createGroup(t("Written tokens: choose one to ask about")),
    contrastChips = createGroup(t("Compared with"));
  const field = textInput(t("Another word to compare with"), {
    size: 12,
    maxlength: 200,
    placeholder: t("another word"),
  });
  const compare = () => field.value.trim() && ask({ step: current.step, text: field.value });
  const picture = el("div", { class: "picture" });
  const metric = el("p", { class: "metric" });
  const note = el("p", { class: "metric" });
  const copied = el("p", { class: "metric", role: "status" });
  const copyButton = button(t("Copy link"), copy, {
    title: t("A link that restores this question"),
  });
  const lines = [
    el("div", { class: "line" }, el("span", { class: "label" }, t("why")), tokenChips),
    el("div", { class: "line" }, [
      el("span", { class: "label" }, t("rather than")),
      el("div", { class: "against" }, [
        contrastChips,
        form({ class: "typed" }, compare, field, button(t("compare"), null, { type: "submit" })),
      ]),
    ]),
  ];
  const foot = el("div", { class: "foot" }, metric, copyButton);
  const heading = el("h2", { class: "sr-only" }, t("Why this word?"));
  const content = [heading, ...lines, headline, failed, picture, foot, note, copied];

  /**
   * Draw a group of chips.
   * @param {any} group
   * @param {{
   *   text: any, look?: string, isPressed: boolean, about: string, question?: object, p?: number, isDisabled?: boolean,
   * }[]} chips question: what a click asks; p: the probability that shades the chip
   */
  function drawChips(group, chips) {
    const focused = [...group.children].indexOf(document.activeElement);
    const nodes = chips.map(
      ({ text, look = "chip", isPressed, about, question, p, isDisabled }) => {
        // The chip is marked at once. If the question is refused, the previous answer is drawn again.
        const choose = () => {
          for (const chip of nodes) chip.setAttribute("aria-pressed", String(chip === node));
          ask(question);
        };
        const node = button(text, question && choose, {
          class: look,
          "aria-pressed": String(isPressed),
          disabled: isDisabled,
          title: about,
          "aria-label": p === undefined ? null : about,
          tabindex: isPressed ? "0" : "-1",
          style: p === undefined ? null : `--p: ${p.toFixed(3)}`,
        });
        return node;
      },
    );
    if (nodes.length && !chips.some((chip) => chip.isPressed)) nodes[0].tabIndex = 0;
    group.replaceChildren(...nodes);
    showPressed(group);
    nodes[Math.min(focused, nodes.length - 1)]?.focus();
  }

  // On a phone, chips are in a row that scrolls: show the pressed one.
  function showPressed(group) {
    const row = group.closest(".line"),
      chip = group.querySelector("[aria-pressed=true]");
    if (!chip || row.scrollWidth <= row.clientWidth) return;
    const [at, frame] = [chip, row].map((node) => node.getBoundingClientRect());
    row.scrollLeft += (at.left + at.right - frame.left - frame.right) / 2;
  }

  function draw(answer) {
    current = answer;
    if (!headline.isConnected) root.replaceChildren(...content);
    const { tokens, step, most, limit } = answer;
    for (const line of [...lines, foot]) line.hidden = !most; // no question can be asked about such a network
    drawChips(
      tokenChips,
      tokens.map((token, i) => {
        const text = chipText(token);
        return {
          text,
          look: chipClass(token),
          isPressed: i === step,
          p: token.probability,
          question: { step: i },
          isDisabled: i >= most,
          about:
            i < most
              ? t("{token}, probability {p}", { token: text, p: formatPercent(token.probability) })
              : t("{token}: the sentence and the tokens before it exceed {limit} tokens", {
                  token: text,
                  limit,
                }),
        };
      }),
    );
    const { contrast, contrast_id: contrastId } = answer;
    const proposals = answer.contrasts.map(({ id, text, probability: p }) => ({
      text,
      isPressed: id === contrastId,
      p,
      question: { step, token: id },
      about: t("{token}, probability {p}", { token: text, p: formatPercent(p) }),
    }));
    if (contrast !== null && !proposals.some(({ isPressed }) => isPressed))
      proposals.push({
        text: contrast,
        isPressed: true,
        about: t("typed: {word}", { word: contrast }),
      });
    proposals.push({
      text: t("nothing"),
      isPressed: contrast === null,
      about: t("Its own probability, compared with no other token"),
      question: { step, alone: true },
    });
    drawChips(contrastChips, proposals);
    copyButton.hidden = answer.beam === 0; // no link contains what a person forced
    const sentences = answer.headline?.flatMap((sentence) => [...emphasize(sentence), " "]);
    headline.replaceChildren(
      el("span", {}, answer.refused ?? sentences),
      answer.refused ? "" : el("span", { class: "kind" }, t("measured")),
    );
    headline.title = toText(answer.exact) || "";
    const about = {
      main: true,
      title: () => answer.headline.map(toText).join(" "),
      caption: () => answer.text,
    };
    picture.replaceChildren(
      answer.picture ? createPicture(createWhyPicture(answer.picture, answer.token), about) : "",
    );
    metric.replaceChildren(
      ...emphasize(answer.metric).flatMap((part) =>
        typeof part === "string" ? markTerms(part) : part,
      ),
    );
    note.textContent = toText(answer.note) || "";
  }

  function receive(answer) {
    root.setAttribute("aria-busy", "false");
    showInvitation(root, answer.invitation);
    failed.textContent = toText(answer.error) || "";
    if (answer.error && current) draw(current);
    else if (answer.error && !headline.isConnected) root.replaceChildren(...content);
    if (!answer.tokens) return;
    field.value = "";
    draw(answer);
    if (store.state.pinned === null) store.set({ pinned: answer.step });
    followLink();
  }

  // A valid question changes the store, and a follower of the store requests the answer. The same question again changes nothing
  // in the store, so its answer is requested here.
  async function ask(data) {
    asker.stop();
    root.setAttribute("aria-busy", "true");
    const before = JSON.stringify(store.state.asked),
      answer = await askAbout(data);
    if (answer?.error) receive(answer);
    else if (JSON.stringify(store.state.asked) === before) requestAnswer();
  }

  async function requestAnswer() {
    const { address, selection, asked } = store.state;
    root.setAttribute("aria-busy", "true");
    const answer = await asker.ask("page_why", { address, fields: { selection, asked } });
    if (answer && store.state.address === address) receive(answer);
  }

  // --- links ----------------------------------------------------------------------------------------------------------
  const followLink = followStepLinks(
    "why",
    () => current,
    (step, link) => {
      const data = { step };
      if (link.has("alone")) data.alone = true;
      else if (/^\d{1,7}$/.test(link.get("against") ?? ""))
        data.token = Number(link.get("against"));
      if (restoreChoices(current.about, link)) showRestoredHeads(current.about);
      ask(data);
    },
  );

  function fields() {
    const { step, contrast_id: contrast, about } = current,
      link = linkFields(current, { tab: "why", step: step + 1 });
    if (contrast === null) link.set("alone", "1");
    else link.set("against", contrast);
    const panel = [...document.querySelectorAll("[id^=panel-why-]")].find(isVisible);
    if (panel) link.set("panel", panel.id.replace("panel-", ""));
    for (const [name, value] of Object.entries(linkChoices(about))) link.set(name, value);
    return link;
  }
  tabLinks.why = () => current && fields();

  function copy() {
    failed.textContent = "";
    copyLink(
      fields(),
      (words) => copied.replaceChildren(words),
      t("Link to this question"),
      t(
        "Link copied. It asks exactly this question. The sentence is after the #, so it appears in no server log.",
      ),
    );
  }

  const asker = createAsker(),
    isSeen = onVisible(root, requestAnswer);
  store.follow(["address", "asked"], () => isSeen() && requestAnswer());
  askOnPage = (data) => current && ask(data);
}
