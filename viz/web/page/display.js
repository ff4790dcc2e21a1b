// The menu of the page's language, colours and text size. The browser stores the choices, and
// early.js applies them before the first paint.
import { el, menu } from "../core/dom.js";
import { t, wordFiles } from "../core/language.js";
import { replaceFields, replaceQuery } from "../core/links.js";
import { isTechnical, setWording, STORAGE_KEY } from "../core/wording.js";

const SIZES = { 1: "100%", 1.15: "115%", 1.3: "130%", 1.5: "150%" };

function readChoices() {
  try {
    return JSON.parse(localStorage.getItem(STORAGE_KEY)) ?? {};
  } catch {
    return {};
  }
}

const languageName = (language) =>
  new Intl.DisplayNames([language], { type: "language" })
    .of(language)
    .replace(/^./u, (first) => first.toLocaleUpperCase(language));

export function createDisplayMenu() {
  const languages = ["en", ...Object.keys(wordFiles)],
    choices = readChoices();
  function choose(name, value) {
    choices[name] = value || undefined;
    try {
      localStorage.setItem(STORAGE_KEY, JSON.stringify(choices));
    } catch {
      // storage is not available: the choice holds until the page is left
    }
    if (name === "size") document.documentElement.style.zoom = value;
    if (name === "theme") {
      const parameters = new URLSearchParams(location.search);
      if (value) parameters.set("__theme", value);
      else parameters.delete("__theme");
      replaceQuery(parameters);
      const dark = value ? value === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
      document.body.classList.toggle("dark", dark);
    }
    if (name === "wording") {
      setWording(value);
      replaceFields(location.hash.slice(1));
    }
    if (["language", "wording"].includes(name)) location.reload(); // core/links.js restores the page
  }
  const choice = (name, label, options, now) =>
    el("label", {}, [
      el("span", {}, label),
      menu(options, String(now ?? ""), { onchange: ({ target }) => choose(name, target.value) }),
    ]);
  const label = t("Language, colours, text size, wording");
  return closeOnLeave(
    el("details", { class: "display" }, [
      el("summary", { class: "way", title: label }, [
        el("span", { "aria-hidden": "true" }, "Aa"),
        el("span", { class: "sr-only" }, label),
      ]),
      el("div", { class: "choices" }, [
        choice(
          "language",
          t("Language"),
          [["", t("Browser default")], ...languages.map((code) => [code, languageName(code)])],
          choices.language,
        ),
        choice(
          "theme",
          t("Colours"),
          Object.entries({ "": t("Match system"), light: t("light"), dark: t("dark") }),
          new URL(location.href).searchParams.get("__theme"),
        ),
        choice("size", t("Text size"), Object.entries(SIZES), choices.size ?? 1),
        choice(
          "wording",
          t("Wording"),
          Object.entries({ plain: t("plain"), technical: t("technical") }),
          isTechnical() ? "technical" : "plain",
        ),
      ]),
    ]),
  );
}

/** Close a <details> menu when the focus or a click leaves it, or on Escape. @param {any} root @returns {any} the menu */
export function closeOnLeave(root) {
  root.addEventListener("focusout", ({ relatedTarget }) => {
    if (relatedTarget && !root.contains(relatedTarget)) root.open = false;
  });
  root.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !root.open) return;
    root.open = false;
    root.querySelector("summary").focus();
    event.stopPropagation();
  });
  document.addEventListener("pointerdown", ({ target }) => {
    if (!root.contains(target)) root.open = false;
  });
  return root;
}
