// The page's words in the visitor's language. early.js has chosen the language and begun to fetch its words before the modules
// load; loadWords() takes them over, and t() translates.

/**
 * @typedef {{say: string, one?: string, with: Record<string, any>}} Words an English sentence with {names}, and their values;
 *   one: the sentence for the number 1
 * @typedef {string | Record<string, string>} Template a text, or its plural forms by Intl.PluralRules' categories
 */

/** @type {Record<string, Template> | null} English -> translation; null: the page is in English */
let translations = null;

/** @type {Record<string, string>} language of the page -> address of its words, a file of viz/web/words/ */
export const wordFiles = JSON.parse(
  /** @type {any} */ (document.querySelector("script[data-languages]"))?.dataset.languages ?? "{}",
);

/** Keep <html lang>, which Gradio sets later to the language of its own labels. @param {string} language */
function keepPageLanguage(language) {
  const page = document.documentElement;
  const set = () => {
    if (page.lang !== language) page.lang = language;
  };
  set();
  new MutationObserver(set).observe(page, { attributeFilter: ["lang"] });
}

/** @param {string} address */
const fetchJson = (address) =>
  fetch(address, { signal: AbortSignal.timeout(10000) }).then((answer) =>
    answer.ok ? answer.json() : Promise.reject(answer.status),
  );

/**
 * Add words of the visitor's language. Where they are missing or cannot be fetched, the page stays English.
 * @param {Record<string, any>} languages code -> a file of viz/web/words/, as its address or its content
 */
export async function addWords(languages) {
  const words = languages[document.documentElement.dataset.language ?? ""];
  if (words === undefined) return;
  try {
    const added = typeof words === "object" ? words : await fetchJson(words);
    translations = Object.assign(translations ?? Object.create(null), added);
  } catch {
    // the page stays English
  }
}

/** Load the page's first words and set its language. @param {Record<string, any>} languages as for addWords() */
export const loadWords = (languages) =>
  addWords(languages).then(() =>
    keepPageLanguage((translations && document.documentElement.dataset.language) || "en"),
  );

/**
 * Return words to translate later: `say("{n} heads", { n: 8 })`. The server sends words in the same form
 * (model/trace/language.py). A value may be words, too.
 * @param {string} english @param {Record<string, any>} [values]
 * @returns {Words}
 */
export const say = (english, values = {}) => ({ say: english, with: values });

/**
 * Return words that depend on the number `values.n`: in English `one` for 1, else `other`; other languages have other forms.
 * @param {string} one @param {string} other @param {Record<string, any>} values
 * @returns {Words}
 */
export const sayPlural = (one, other, values) => ({ say: other, one, with: values });

/** @type {Map<string, string> | null} technical English -> plain English (wording.js); null: the page is technical */
let plainWords = null;

/** Replace technical sentences by plain ones from now on. @param {Map<string, string>} words */
export const usePlainWords = (words) => (plainWords = words);

/**
 * Translate words into a list of texts and values, so that a value can be a node or a list of nodes. Call it once a
 * component is mounted; before, the translations may still be loading.
 * @param {Words} words
 * @param {(value: any, name: string) => any} [draw] what to put in place of a value
 */
export const textParts = ({ say: technical, one, with: values }, draw = (value) => value) => {
  const english = plainWords?.get(technical) ?? technical;
  const template =
    translations?.[english] || (one === undefined ? english : { one, other: english });
  return pluralForm(template, values.n)
    .split(/\{(\w+)\}/)
    .flatMap((part, i) => (i % 2 ? draw(valueText(values[part]), part) : part));
};

/** @param {Template} template @param {any} n */
const pluralForm = (template, n) =>
  typeof template === "string" ? template : (template[pluralRules().select(n)] ?? template.other);
const pluralRules = () =>
  new Intl.PluralRules(translations ? document.documentElement.dataset.language : "en");

const groupedNumber = new Intl.NumberFormat("en"); // slow to create, so once

/** @param {any} value */
const valueText = (value) =>
  Number.isInteger(value)
    ? groupedNumber.format(value).replaceAll(",", thousandsSeparator())
    : typeof value === "string"
      ? localizeNumber(value)
      : toText(value);

/** A comma in English; elsewhere a narrow space, which no language reads as a decimal point. */
export const thousandsSeparator = () => (translations ? "\u202f" : ",");

/**
 * Give a number that the server wrote the page's thousands separator; return any other text unchanged.
 * @param {string} text
 */
export const localizeNumber = (text) =>
  /^[^\p{L}]*\d\u202f\d{3}[^\p{L}]*$/u.test(text)
    ? text.replaceAll("\u202f", thousandsSeparator())
    : text;

/** Translate words into a text; return anything else unchanged. @param {any} value @returns {any} */
export const toText = (value) => (value?.say === undefined ? value : textParts(value).join(""));

/** Translate an English sentence at once. @param {string} english @param {Record<string, any>} [values] @returns {string} */
export const t = (english, values) => toText(say(english, values));
