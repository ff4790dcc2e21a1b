// What the tab "Why" asks: the pinned token, its contrast, and the answer in one measured sentence (viz/questions/panels.py).
import { button, el, showInvitation, onVisible } from "../core/dom.js";
import { formatPercent } from "../core/format.js";
import { textParts, toText, t } from "../core/language.js";
import { copyLink, isAbout, linkFields, pageLink, isVisible, tabLinks } from "../core/links.js";
import { createAsker } from "../core/ask.js";
import { glossed } from "../lab/glossary.js";
import { headsRestored } from "../lab/heads.js";
import { rove } from "../lab/tabs.js";
import { createPicture } from "../picture/copy.js";
import { chipClass, chipText } from "../stepper/tokens.js";
import { askAbout } from "../store/question.js";
import { store } from "../store/store.js";
import * as kept from "./kept.js";
import { whyPicture } from "./picture.js";

let onPage = null; // how the question that stands on the page asks another one

// Ask about a token: {step, and what to compare it with} as store/question.js has it.
export const askQuestion = (data) => onPage?.(data);

export default function question(root) {
  const emphasised = (sentence) =>
    textParts(sentence, (text, name) =>
      ["token", "contrast", "word"].includes(name) ? el("em", { dir: "auto" }, text) : text,
    );
  let shown = null; // the last answer
  let wanted = null; // what a link asks for, until its sentence is there

  const headline = el("p", { class: "headline", role: "status" });
  const failed = el("p", { class: "failed", role: "alert", hidden: true });
  const walk = (event) => rove(event, [...event.currentTarget.querySelectorAll("button:enabled")]);
  const group = (label) =>
    el("div", { class: "chips", role: "group", "aria-label": label, onkeydown: walk });
  const written = group(t("Tokens written: choose the one to ask about")),
    others = group(t("Compared with"));
  const typed = el("input", {
    type: "text",
    size: "12",
    maxlength: "200",
    placeholder: t("another word"),
    "aria-label": t("Another word to compare with"),
    autocomplete: "off",
  });
  function submit(event) {
    event.preventDefault();
    if (typed.value.trim()) ask({ step: shown.step, text: typed.value });
  }
  const form = el(
    "form",
    { class: "typed", onsubmit: submit },
    typed,
    button(t("compare"), null, { type: "submit" }),
  );
  const picture = el("div", {});
  const metric = el("p", { class: "metric" });
  const note = el("p", { class: "metric", hidden: true });
  const copied = el("p", { class: "metric", role: "status" });
  const link = button(t("Copy link"), copy, { title: t("A link that restores this question") });
  const lines = [
    el("div", { class: "line" }, el("span", { class: "label" }, t("why")), written),
    el(
      "div",
      { class: "line" },
      el("span", { class: "label" }, t("rather than")),
      el("div", { class: "against" }, others, form),
    ),
    el("div", { class: "foot" }, metric, link),
  ];
  const drawn = [headline, failed, picture, ...lines, note, copied];

  function chips(box, items) {
    const focused = [...box.children].indexOf(document.activeElement);
    const nodes = items.map(({ text, look = "chip", pressed, about, asks, p, far }) => {
      // It is marked at once; where the question is refused, the one before is drawn again.
      const choose = () => {
        for (const chip of nodes) chip.setAttribute("aria-pressed", String(chip === node));
        ask(asks);
      };
      const node = button(text, asks && choose, {
        class: look,
        "aria-pressed": String(pressed),
        disabled: far,
        title: about,
        "aria-label": p === undefined ? null : about,
        tabindex: pressed ? "0" : "-1",
        style: p === undefined ? null : `--p: ${p.toFixed(3)}`,
      });
      return node;
    });
    if (nodes.length && !items.some((item) => item.pressed)) nodes[0].tabIndex = 0;
    box.replaceChildren(...nodes);
    nodes[Math.min(focused, nodes.length - 1)]?.focus(); // of none, -1: not there
  }

  function draw(answer) {
    shown = answer;
    if (!headline.isConnected) root.replaceChildren(...drawn);
    const { tokens, step, most, limit } = answer;
    for (const line of lines) line.hidden = !most; // of another network no token can be asked about
    chips(
      written,
      tokens.map((token, i) => ({
        text: chipText(token),
        look: chipClass(token, i),
        pressed: i === step,
        p: token.probability,
        asks: { step: i },
        far: i >= most,
        about:
          i < most
            ? t("{token}, probability {p}", {
                token: chipText(token),
                p: formatPercent(token.probability),
              })
            : t("{token}: the sentence and what was written before it exceed {limit} tokens", {
                token: chipText(token),
                limit,
              }),
      })),
    );
    const isTyped =
      answer.contrast !== null && !answer.contrasts.some((one) => one.id === answer.contrast_id);
    chips(others, [
      ...answer.contrasts.map((one) => ({
        text: one.text,
        pressed: one.id === answer.contrast_id,
        p: one.probability,
        asks: { step, token: one.id },
        about: t("{token}, probability {p}", {
          token: one.text,
          p: formatPercent(one.probability),
        }),
      })),
      ...(isTyped
        ? [
            {
              text: answer.contrast,
              pressed: true,
              about: t("typed: {word}", { word: answer.contrast }),
            },
          ]
        : []),
      {
        text: t("nothing"),
        pressed: answer.contrast === null,
        about: t("Its own probability, compared with no other token"),
        asks: { step, alone: true },
      },
    ]);
    link.hidden = answer.beam === 0; // what somebody chose is in no link
    const sentences = answer.headline?.flatMap((sentence) => [...emphasised(sentence), " "]);
    headline.replaceChildren(
      el("span", {}, answer.refused ?? sentences),
      answer.refused ? "" : el("span", { class: "kind" }, t("measured")),
    );
    headline.title = toText(answer.exact) || "";
    // Without italics, a token in a title is set apart by quotation marks.
    const quoted = (sentence) =>
      textParts(sentence, (text, name) =>
        ["token", "contrast"].includes(name) ? t("“{word}”", { word: text }) : text,
      ).join("");
    const about = {
      main: true,
      title: () => answer.headline.map(quoted).join(" "),
      caption: () => answer.text,
    };
    picture.replaceChildren(
      answer.picture ? createPicture(whyPicture(answer.picture, answer.token), about) : "",
    );
    metric.replaceChildren(
      ...emphasised(answer.metric).flatMap((part) =>
        typeof part === "string" ? glossed(part) : part,
      ),
    );
    note.hidden = !answer.note;
    note.textContent = toText(answer.note) || "";
  }

  function take(answer) {
    root.setAttribute("aria-busy", "false");
    showInvitation(root, answer.invitation);
    failed.hidden = !answer.error;
    failed.textContent = toText(answer.error) || "";
    if (answer.error && shown) draw(shown);
    else if (answer.error && !headline.isConnected) root.replaceChildren(...drawn);
    if (!answer.tokens) return;
    typed.value = "";
    draw(answer);
    store.set({ pinned: answer.step });
    follow();
  }

  // If the question is valid, the store changes, and a follower of the store requests the answer. A question that stays the same
  // changes nothing in the store, so its answer is requested here.
  async function ask(data) {
    asker.stop();
    root.setAttribute("aria-busy", "true");
    const before = JSON.stringify(store.state.asked),
      answer = await askAbout(data);
    if (answer?.error) take(answer);
    else if (JSON.stringify(store.state.asked) === before) needed();
  }

  async function needed() {
    const { address, selection, asked } = store.state;
    root.setAttribute("aria-busy", "true");
    const answer = await asker.ask("page_why", { address, fields: { selection, asked } });
    if (answer && store.state.address === address) take(answer);
  }

  // --- links ----------------------------------------------------------------------------------------------------------
  function openLink() {
    const fields = pageLink();
    if (fields.get("tab") !== "why") return;
    wanted = fields.has("step") ? fields : null;
    follow();
  }

  // Ask what a link asks, once its sentence is the one that is shown.
  function follow() {
    if (!wanted || !shown || !isAbout(wanted, shown)) return;
    const link = wanted,
      data = { step: Number(link.get("step")) - 1 };
    wanted = null;
    if (link.has("alone")) data.alone = true;
    else if (/^\d{1,7}$/.test(link.get("against") || "")) data.token = Number(link.get("against"));
    if (kept.restore(shown.about, link)) headsRestored(shown.about);
    ask(data);
  }

  function linked() {
    const { step, contrast_id: against } = shown,
      fields = linkFields(shown, { tab: "why", step: step + 1 });
    if (against === null) fields.set("alone", "1");
    else fields.set("against", against);
    const panel = [...document.querySelectorAll("[id^=panel-why-]")].find(isVisible);
    if (panel) fields.set("panel", panel.id.replace("panel-", ""));
    for (const [name, value] of Object.entries(kept.fields(shown.about))) fields.set(name, value);
    return fields;
  }
  tabLinks.why = () => shown && linked();

  function copy() {
    failed.hidden = true;
    copyLink(
      linked(),
      (said) => copied.replaceChildren(said),
      t("Link to this question"),
      t(
        "Link copied: it asks exactly this question. The sentence comes after # and reaches no server log.",
      ),
    );
  }

  const asker = createAsker();
  const visible = onVisible(root, needed);
  store.follow(["address", "asked"], () => visible() && needed());
  window.addEventListener("hashchange", openLink);
  onPage = (data) => shown && ask(data);
  openLink();
}
