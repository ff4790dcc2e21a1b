// The words of the page: which language they are in, and English -> text. The page's head has chosen the language and sent
// for its words by then (shell/early.js), so that they are on their way while the modules still load.
let words = null; // English -> text
let spoken = null; // a promise that the words are there or cannot be had, while they are on their way

// languages: an object by codes. What it holds for the visitor's language, or undefined.
const own = (languages) => languages[document.documentElement.dataset.language];

// Gradio says, too, which language the page is in, later, of its own labels.
function keep(language) {
  const page = document.documentElement,
    set = () => page.lang === language || (page.lang = language);
  set();
  new MutationObserver(set).observe(page, { attributeFilter: ["lang"] });
}

const fetched = (address) =>
  fetch(address, { signal: AbortSignal.timeout(10000) }).then((answer) =>
    answer.ok ? answer.json() : Promise.reject(answer.status),
  );

const learnt = (more) => Object.assign((words ??= Object.create(null)), more);

// languages: code -> a file of viz/web/words/, as its address or as what stands in it. Without the visitor's, or if it
// cannot be had, the page is in English.
export function speak(languages) {
  const given = own(languages);
  const settle = (found) => {
    learnt(found);
    keep(document.documentElement.dataset.language);
  };
  const english = () => keep("en");
  if (given === undefined) english();
  else if (typeof given === "object") settle(given);
  else {
    spoken = fetched(given)
      .then(settle)
      .catch(english)
      .finally(() => (spoken = null));
  }
}

// A promise that the words are there, or cannot be had; null where that is settled.
export const awaited = () => spoken;

// More words, of what few visitors open: languages as above. A promise that they are there, or cannot be had.
export const learn = (languages) =>
  own(languages) === undefined
    ? Promise.resolve()
    : fetched(own(languages))
        .then(learnt)
        .catch(() => {});

// Words of the page: English with {names} in braces, and their values, each of which may be words, too. Python says them
// alike (model/trace/language.py), and sends them like this.
export const say = (english, values = {}) => ({ say: english, with: values });

// Words in the page's language as a list of texts and values; a value may be a node, or a list of them, and drawn(value,
// name) what stands in its place. A component may use this once it is mounted: before, the words may still be on their way.
export const parts = ({ say: english, with: values }, drawn = (value) => value) =>
  (words?.[english] || english)
    .split(/\{(\w+)\}/)
    .flatMap((part, i) => (i % 2 ? drawn(written(values[part]), part) : part));

// A whole number in words has its thousands apart: by commas in English, elsewhere by a narrow space, which no language
// reads as a decimal point.
const written = (value) =>
  Number.isInteger(value)
    ? spaced.format(value).replaceAll(",", thousands())
    : typeof value === "string"
      ? numeral(value)
      : said(value);
const spaced = new Intl.NumberFormat("en"); // made once: that takes a hundred times as long as to use it
export const thousands = () => (words ? "\u202f" : ",");

// A number that Python wrote (viz/wire/blocks.py, compact), with the thousands of the page's language; any other text stays.
export const numeral = (text) =>
  /^[^\p{L}]*\d\u202f\d{3}[^\p{L}]*$/u.test(text) ? text.replaceAll("\u202f", thousands()) : text;

// Words as a text of the page's language; all else stays.
export const said = (given) => (given?.say === undefined ? given : parts(given).join(""));

// A text of the page's language, at once.
export const t = (english, values) => said(say(english, values));
