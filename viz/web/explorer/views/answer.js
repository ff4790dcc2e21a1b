// The answer in words: what the lit word attends to, and whether hiding that word changes anything.
import { button, el } from "../../core/dom.js";
import { formatPercent } from "../../core/format.js";
import { say, t, textParts } from "../../core/language.js";
import { pointingHint } from "../words.js";

const LIKELY = 0.2, // what would be written instead is named from here on
  LISTED = 2; // source words whose removal is listed
const PUNCTUATION = /^\p{P}+$/u;

const quoteMark = (word) => (PUNCTUATION.test(word) ? `“${word}”` : word);
const strong = (text) => el("strong", {}, text);

// Return a row of bars: a name, a bar of a share, the share in figures.
const bar = (name, share, kind) =>
  el("li", { class: kind }, [
    el("span", { class: "name", dir: "auto" }, name),
    " ",
    el("span", { class: "bar" }, el("i", { style: `width: ${(100 * share).toFixed(1)}%` })),
    el("span", { class: "value" }, formatPercent(share)),
  ]);

// Return what the model writes without a word, as a sentence, where that is another word.
function insteadOf({ p, instead: [best] }) {
  if (!best || best[1] < Math.max(p, LIKELY)) return "";
  const [word, share] = [best[0].replace(/…$/u, ""), formatPercent(best[1])];
  if (/^<\/s>$|^[.!?]$/.test(word)) return t("It would end the sentence ({share}).", { share });
  return /[\p{L}\p{N}]/u.test(word) ? t("It would write “{word}” ({share}).", { word, share }) : "";
}

/**
 * Create the card.
 * @param {any} hooks test(): tests the lit word; openHead(layer, head); why(): opens the tab "Why" on the lit word; play(): shows how
 *   it works
 */
export function createAnswer(hooks) {
  const body = el("div", {}),
    why = button(t("More in Why →"), hooks.why, { class: "link", hidden: true }),
    play = button(t("Show me"), hooks.play, { class: "link play" });
  const root = el(
    "section",
    { class: "answer", "aria-label": t("The answer") },
    body,
    el("div", { class: "foot" }, why, play),
  );
  let shown = "";

  function start({ isSource }) {
    return [
      el("h2", {}, t("Which word did it look at?")),
      el("p", {}, [
        `${pointingHint(isSource)} `,
        el(
          "span",
          { class: "more" },
          t("The words it attends to light up in the sentence, the lines and every map."),
        ),
      ]),
    ];
  }

  function attended({ lit, who, isWriting, canTest, test, testing }) {
    const word = lit.label,
      title = lit.isRow
        ? isWriting
          ? t("When it wrote “{word}”, it looked at", { word })
          : t("“{word}” looks at", { word })
        : t("“{word}” is looked at by", { word });
    const onSpecial =
      lit.hidden > 0.005
        ? t("; {share} on special tokens", { share: formatPercent(lit.hidden) })
        : "";
    const bars = lit.strongest.map((i) =>
      bar(quoteMark(lit.items[i].label), lit.items[i].weight, "look"),
    );
    return [
      el("h2", {}, title),
      bars.length
        ? el("ul", { class: "bars" }, bars)
        : el("p", {}, t("This head puts its weight on special tokens here, not on words.")),
      el("p", { class: "small who" }, `${who}${onSpecial}`),
      canTest && lit.isRow
        ? el("p", { class: "evidence" }, [
            t("Attention is evidence, not proof."),
            " ",
            test?.isRunning
              ? strong(testing ? t("Hiding “{word}” …", { word: testing }) : t("Computing …"))
              : button(t("Test it"), hooks.test, { class: "link test-it" }),
          ])
        : null,
    ];
  }

  function verdict({ lit, effects, result }) {
    const word = lit.label,
      { most, agrees, own } = result;
    if (most === null)
      return textParts(
        say("{verdict} Whichever is hidden, “{word}” stays likely.", {
          verdict: strong(t("No single word decides it.")),
          word,
        }),
      );
    const other = lit.items[most].label,
      values = { other },
      { p } = effects.all[most];
    const opening =
      agrees === "no"
        ? t("Not mainly: “{other}” matters more.", values)
        : agrees === "partly"
          ? t("Partly: “{other}” matters more.", values)
          : own === null
            ? t("“{other}” matters most.", values)
            : t("Yes: “{other}” matters most.", values);
    const drops = t("Without it, “{word}” drops from {before} to {after}.", {
      word,
      before: formatPercent(effects.p),
      after: formatPercent(p),
    });
    return [strong(opening), ` ${drops} `, insteadOf(effects.all[most])];
  }

  function tested(about) {
    const { lit, effects, result, heads } = about,
      word = lit.label,
      { most, own } = result,
      listed = effects.order.slice(0, LISTED);
    if (own !== null && effects.all[own] && !listed.includes(own)) listed.push(own);
    const without = (i) =>
      bar(
        t("without {word}", { word: quoteMark(lit.items[i].label) }),
        effects.all[i].p,
        "without",
      );
    const head = ([layer, number, weight]) =>
      button(`L${layer + 1}\u00a0H${number + 1}`, () => hooks.openHead(layer, number), {
        class: "link",
        title: t("Layer {layer} · Head {head}: {share}", {
          layer: layer + 1,
          head: number + 1,
          share: formatPercent(weight),
        }),
      });
    const { written } = effects;
    return [
      el(
        "h2",
        {},
        own === null
          ? t("What decides “{word}”?", { word })
          : t("Is “{other}” why it wrote “{word}”?", { other: lit.items[own].label, word }),
      ),
      el("p", { class: "verdict" }, verdict(about)),
      el("ul", { class: "bars tested" }, bar(t("as it is"), effects.p, "all"), listed.map(without)),
      heads.length && most !== null && most !== own
        ? el("p", { class: "small" }, [
            t("Heads that look at “{word}”:", { word: lit.items[most].label }),
            " ",
            heads.flatMap((place, i) => [i ? ", " : "", head(place)]),
          ])
        : null,
      written
        ? el(
            "p",
            { class: "small" },
            t("It also needs “{word}”, already written.", { word: written.text }),
          )
        : null,
    ];
  }

  return {
    root,
    /** Return the question and the verdict of the test that is shown, "" without one. */
    verdict: () =>
      [...body.querySelectorAll("h2:has(+ .verdict), .verdict")]
        .map(({ textContent }) => textContent)
        .join(" "),
    /** @param {any} about lit, who, isWriting, isSource, canTest, canPlay, test, testing, effects, result, heads, problem; see explorer.js */
    draw(about) {
      play.hidden = !about.canPlay;
      const { lit, who, isSource, canTest, test, testing, effects, problem } = about;
      const name = JSON.stringify([
        lit?.isRow,
        lit?.label,
        lit?.index,
        lit?.items,
        who,
        isSource,
        canTest,
        test?.isRunning,
        testing,
        Boolean(effects),
        problem,
      ]);
      if (name === shown) return;
      shown = name;
      why.hidden = !(lit && effects);
      const hadFocus = body.contains(document.activeElement);
      const content = !lit ? start(about) : effects ? tested(about) : attended(about);
      body.replaceChildren(
        ...content.filter(Boolean),
        ...(problem && lit ? [el("p", { class: "small", role: "alert" }, problem)] : []),
      );
      if (hadFocus) (body.querySelector("button") ?? play).focus({ preventScroll: true });
    },
  };
}
