// Two fields to choose the languages of a multilingual model: type a name or a code, or pick from
// the list. The browser provides the languages' names.
import { button, el } from "../core/dom.js";
import { t } from "../core/language.js";
import { chooseDirection, languagePair } from "../store/controls.js";
import { store } from "../store/store.js";

export default function languages(root) {
  const known = new Intl.DisplayNames([document.documentElement.lang || "en", "en"], {
    type: "language",
    fallback: "none",
  });
  let value = null;

  // Return the name of a code such as "zho" or, with a script or country, "zho_Hans"; undefined if
  // the browser has none.
  function languageName(code) {
    try {
      return known.of(code.replaceAll("_", "-"));
    } catch {
      return undefined;
    }
  }

  // Return code -> name in alphabetical order. A name has its script or country only if it would
  // not be unique otherwise.
  function names(codes) {
    const isUnique = (name, i, all) => all.indexOf(name) === all.lastIndexOf(name);
    const fullNames = codes
      .map((code) => languageName(code.split("_")[0]) ?? code)
      .map((name, i, all) => (isUnique(name, i, all) ? name : (languageName(codes[i]) ?? codes[i])))
      .map((name, i, all) => (isUnique(name, i, all) ? name : `${name} (${codes[i]})`));
    return new Map(
      codes.map((code, i) => [code, fullNames[i]]).sort((a, b) => a[1].localeCompare(b[1])),
    );
  }

  // Return the code that a person typed: a name, a code, or the beginning of a single name; else
  // null.
  function matchCode(text, all) {
    const plain = (word) => word.trim().toLocaleLowerCase(),
      typed = plain(text);
    const exact = [...all].find(([code, name]) => plain(name) === typed || plain(code) === typed);
    const begun = [...all].filter(([, name]) => typed && plain(name).startsWith(typed));
    return exact?.[0] ?? (begun.length === 1 ? begun[0][0] : null);
  }

  function menu(side, title, codes) {
    const all = names(codes),
      list = `atlas-${side}`;
    const show = () => (input.value = all.get(value[side]) ?? value[side]);
    const input = el("input", {
      type: "text",
      list,
      "data-side": side,
      autocomplete: "off",
      spellcheck: "false",
      onfocus: () => ([input.placeholder, input.value] = [input.value, ""]),
      onblur: show,
      onchange: take,
      oninput: () => [...all.values()].includes(input.value) && take(),
      onkeydown: (event) => event.key === "Enter" && take(),
    });
    function take() {
      const code = matchCode(input.value, all);
      if (code) choose({ [side]: code });
      show();
    }
    show();
    return [
      el("label", {}, el("span", {}, title), input),
      el("datalist", { id: list }, [
        [...all].map(([code, name]) => el("option", { value: name, label: code })),
      ]),
    ];
  }

  // If both sides would be the same language, the other side takes the language that this one had.
  function choose(changed) {
    const next = { ...value, ...changed };
    if (next.source === next.target && changed.source) next.target = value.source;
    else if (next.source === next.target) next.source = value.target;
    if (next.source === value.source && next.target === value.target) return;
    if (!next.sources.includes(next.source) || !next.targets.includes(next.target)) return;
    value = next;
    for (const input of root.querySelectorAll("input")) {
      const { side } = input.dataset;
      input.value = names(value[`${side}s`]).get(value[side]);
    }
    enableSwap();
    chooseDirection(value.entry, languagePair(value));
  }

  const label = t("Swap the two languages");
  const swap = button("⇄", () => choose({ source: value.target, target: value.source }), {
    class: "plain swap",
    "aria-label": label,
    title: label,
  });
  const enableSwap = () =>
    (swap.disabled =
      !value.sources.includes(value.target) || !value.targets.includes(value.source));

  function draw(next) {
    value = next;
    if (!value) return root.replaceChildren();
    root.replaceChildren(
      ...menu("source", t("From"), value.sources),
      swap,
      ...menu("target", t("Into"), value.targets),
      el("span", { class: "caption" }, [
        t("{n} languages: type a name or a code.", {
          n: new Set([...value.sources, ...value.targets]).size,
        }),
      ]),
    );
    enableSwap();
  }
  let seen = null; // the menus of the last answer
  function follow({ direction: { menus } }) {
    if (menus === seen) return;
    seen = menus;
    // Keep menus that did not change: somebody may be typing in them.
    if (!["model", "source", "target"].every((name) => menus && value?.[name] === menus[name]))
      draw(menus);
  }
  store.follow(["direction"], follow);
  follow(store.state);
}
