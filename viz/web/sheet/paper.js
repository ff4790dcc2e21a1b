// A worksheet as it is printed: questions with blanks, and the teacher's key on pages of its own. It holds nothing but
// text and pictures, so that it can be saved as a page that needs no other file.
import { el } from "../core/dom.js";
import { said, t } from "../core/language.js";
import { picture } from "./pictures.js";

const MANY = 12; // characters of a choice, beyond which each has a line of its own

// questions: [{title, text, read, wrote, ask}], ask as viz/ui/tours/asks.py makes it; one without ask is a note, one with
// missing says why it cannot be asked, one that is null is still on its way.
export function paper({ title, questions }, { key, link }) {
  const numbered = questions.filter((one) => one === null || one.ask || one.error);
  const number = (one) => numbered.indexOf(one) + 1;
  const head = el(
    "header",
    {},
    el("h1", {}, title),
    el("p", { class: "who" }, blank(t("Name")), blank(t("Date"))),
  );
  const asked = el(
    "div",
    { class: "questions" },
    questions.map((one) => question(one, one && number(one))),
  );
  const answers = !key
    ? null
    : el(
        "section",
        { class: "key" },
        el("h2", {}, t("Teacher’s key: {title}", { title })),
        numbered.map((one) => one?.ask?.choices && answer(one, number(one), link)),
        el(
          "p",
          { class: "how" },
          t(
            "Every answer was computed from the model’s own pass over the sentence, by the program that made this sheet.",
          ),
        ),
      );
  return el(
    "article",
    { class: "paper", lang: document.documentElement.lang },
    head,
    asked,
    answers,
  );
}

const blank = (words) => el("span", {}, `${words} `, el("span", { class: "blank" }));

const sentence = ({ read, wrote, ask }) =>
  el(
    "p",
    { class: "sentence" },
    el("bdi", { class: "source" }, read),
    ...(ask.hides ? [] : [" → ", el("bdi", { class: "source" }, wrote)]),
  );

function question(one, number) {
  if (one === null) return el("div", { class: "question waits" }, "…");
  const told = [
    one.title ? el("h2", {}, one.ask ? `${number}. ` : "", said(one.title)) : "",
    one.text ? el("p", {}, said(one.text)) : "",
  ];
  if (one.error || one.ask?.missing)
    return el(
      "div",
      { class: "question" },
      ...told,
      one.read ? el("p", { class: "sentence" }, el("bdi", { class: "source" }, one.read)) : "",
      el(
        "p",
        { class: "missing" },
        one.title ? "" : `${number}. `,
        said(one.error ?? one.ask.missing),
      ),
    );
  if (!one.ask) return el("div", { class: "note" }, ...told, lines("", "", ""));
  const { prompt, choices } = one.ask,
    texts = choices.map(said),
    tall = texts.some((text) => [...text].length > MANY);
  return el(
    "div",
    { class: "question" },
    ...told,
    sentence(one),
    el("p", { class: "prompt" }, one.title ? "" : `${number}. `, said(prompt)),
    el(
      "ul",
      { class: tall ? "choices tall" : "choices" },
      texts.map((text) => el("li", {}, "☐ ", text)),
    ),
    drawn(one, false),
    lines(t("Because")),
  );
}

const lines = (...words) => words.map((one) => el("p", { class: "line" }, one));

function drawn({ ask }, filled) {
  const found = picture(ask.picture, filled);
  return (
    found &&
    el(
      "figure",
      {},
      found,
      filled
        ? null
        : el(
            "figcaption",
            {},
            ask.picture.unit === "nats"
              ? t("Draw how much you expect each to cost.")
              : t("Shade what you expect, then compare with the page."),
          ),
    )
  );
}

function answer(one, number, link) {
  const { ask } = one;
  return el(
    "div",
    { class: "answer" },
    el(
      "p",
      {},
      el("b", {}, `${number}. ${ask.right.map((i) => said(ask.choices[i])).join(t(" or "))}`),
      " · ",
      said(ask.told),
      " ",
      el("a", { href: link(ask.view) }, t("See it on the page")),
    ),
    drawn(one, true),
  );
}

// The whole as a page of its own, as text. style: what its style sheet holds.
export function page(article, title, style) {
  const made = document.implementation.createHTMLDocument(title);
  made.documentElement.lang = document.documentElement.lang;
  const add = (tag, attributes, text = "") => {
    const node = made.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    node.textContent = text;
    made.head.append(node);
  };
  made.head.querySelector("title").before(
    Object.assign(made.createElement("meta"), {
      name: "viewport",
      content: "width=device-width",
    }),
  );
  made.head.prepend(made.createElement("meta"));
  made.head.firstChild.setAttribute("charset", "utf-8");
  add("style", {}, style);
  made.body.append(made.importNode(article, true));
  // oxlint-disable-next-line no-restricted-properties -- read, not set: the browser writes out the nodes made above
  return `<!doctype html>\n${made.documentElement.outerHTML}\n`;
}
