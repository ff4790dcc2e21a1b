// The words of the page: which language they are in, and English -> text. The page's head has chosen the language and sent
// for its words by then (page/early.js), so that they are on their way while the modules still load.
let words = null; // English -> text

// Gradio says, too, which language the page is in, later, of its own labels.
function keepPageLanguage(language) {
  const page = document.documentElement,
    set = () => page.lang === language || (page.lang = language);
  set();
  new MutationObserver(set).observe(page, { attributeFilter: ["lang"] });
}

const fetchJson = (address) =>
  fetch(address, { signal: AbortSignal.timeout(10000) }).then((answer) =>
    answer.ok ? answer.json() : Promise.reject(answer.status),
  );

// Take on the words of the visitor's language. languages: code -> a file of viz/web/words/, as its address or as what stands in
// it. A promise that the words are there; without the visitor's language, or if it cannot be had, what they say stays English.
export async function addWords(languages) {
  const given = languages[document.documentElement.dataset.language];
  if (given === undefined) return;
  try {
    const more = typeof given === "object" ? given : await fetchJson(given);
    words = Object.assign(words ?? Object.create(null), more);
  } catch {
    // then the page is in English
  }
}

// Take on the page's first words, and say which language the page is in.
export const loadWords = (languages) =>
  addWords(languages).then(() =>
    keepPageLanguage(words ? document.documentElement.dataset.language : "en"),
  );

// Words of the page: English with {names} in braces, and their values, each of which may be words, too. Python says them
// alike (model/trace/language.py), and sends them like this.
export const say = (english, values = {}) => ({ say: english, with: values });

// A sentence that depends on the number values.n: `one` for 1, else `other`; other languages may have more forms.
export const sayPlural = (one, other, values) => ({ say: other, one, with: values });

// Words in the page's language as a list of texts and values; a value may be a node, or a list of them, and drawn(value,
// name) what stands in its place. A component may use this once it is mounted: before, the words may still be on their way.
export const textParts = ({ say: english, one, with: values }, drawn = (value) => value) =>
  template(words?.[english] || { one: one ?? english, other: english }, values.n)
    .split(/\{(\w+)\}/)
    .flatMap((part, i) => (i % 2 ? drawn(valueText(values[part]), part) : part));

// The text for the number n; a text that does not depend on it is a string.
const template = (text, n) =>
  typeof text === "string" ? text : (text[pluralRules().select(n)] ?? text.other);
const pluralRules = () =>
  new Intl.PluralRules(words ? document.documentElement.dataset.language : "en");

// A whole number in words has its thousands apart: by commas in English, elsewhere by a narrow space, which no language
// reads as a decimal point.
const valueText = (value) =>
  Number.isInteger(value)
    ? groupedNumber.format(value).replaceAll(",", thousandsSeparator())
    : typeof value === "string"
      ? localizeNumber(value)
      : toText(value);
const groupedNumber = new Intl.NumberFormat("en"); // made once: that takes a hundred times as long as to use it
export const thousandsSeparator = () => (words ? "\u202f" : ",");

// A number that Python wrote (viz/wire/blocks.py, compact), with the thousands of the page's language; any other text stays.
export const localizeNumber = (text) =>
  /^[^\p{L}]*\d\u202f\d{3}[^\p{L}]*$/u.test(text)
    ? text.replaceAll("\u202f", thousandsSeparator())
    : text;

// Words as a text of the page's language; all else stays.
export const toText = (given) => (given?.say === undefined ? given : textParts(given).join(""));

// A text of the page's language, at once.
export const t = (english, values) => toText(say(english, values));
