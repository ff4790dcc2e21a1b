// A teacher's own worksheet as a link and as a file. Anything at all may come from either: what is not as it should be is
// refused in words, and nothing of it is used.
import { t } from "../core/language.js";
import { base64ToBytes } from "../explorer/trace.js";

const MOST = 30, // questions of a link
  LONGEST = 65536; // and its characters
const KIND = "attention-atlas-worksheet",
  BYTES = 1000000, // of a file
  MANY = 300; // questions of a file
const LENGTHS = { title: 120, text: 1000, direction: 40, checkpoint: 120, ask: 40, word: 80 };

export const refuse = (words) => {
  throw new Error(words);
};

function readText(given, name, needed) {
  const found = given[name] ?? (needed ? undefined : "");
  if (typeof found !== "string")
    refuse(t("This worksheet’s field “{name}” is not text.", { name }));
  if (found.length > LENGTHS[name])
    refuse(
      t("This worksheet’s field “{name}” is longer than {limit} characters.", {
        name,
        limit: LENGTHS[name],
      }),
    );
  return found;
}

// What was kept, as a worksheet of known fields alone: {title, direction, checkpoint, items: [{text, ask, word}]}.
function readSheet(given, asks, most = MANY) {
  if (given?.kind !== KIND || given.version !== 1)
    refuse(t("This is not a worksheet from this page."));
  if (!Array.isArray(given.items)) refuse(t("This worksheet has no list of questions."));
  if (given.items.length > most)
    refuse(
      t("This worksheet has {n} questions; the limit is {limit}.", {
        n: given.items.length,
        limit: most,
      }),
    );
  const items = given.items.map((one, i) => {
    if (Object(one) !== one || Array.isArray(one))
      refuse(t("Question {n} of this worksheet is not a question.", { n: i + 1 }));
    const ask = readText(one, "ask", true);
    if (!asks.includes(ask))
      refuse(
        t("Question {n} asks something that this page does not know: {ask}", {
          n: i + 1,
          ask: ask.slice(0, 40),
        }),
      );
    return { text: readText(one, "text", true), ask, word: readText(one, "word") };
  });
  return {
    title: readText(given, "title"),
    direction: readText(given, "direction", true),
    checkpoint: readText(given, "checkpoint"),
    items,
  };
}

const sheetJson = (sheet) => JSON.stringify({ kind: KIND, version: 1, ...sheet });

// A field of a link; null where it is too much for one.
export function toLink(sheet, rest) {
  const binary = Array.from(new TextEncoder().encode(sheetJson(sheet)), (byte) =>
    String.fromCharCode(byte),
  ).join("");
  if (sheet.items.length > MOST || (binary.length * 4) / 3 + rest > LONGEST) return null;
  return btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

// What JSON says; null where it is none.
const parseJson = (text) => {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
};

export function fromLink(field, asks) {
  if (field.length > LONGEST)
    refuse(
      t("This link is longer than {limit} characters: save the worksheet as a file.", {
        limit: LONGEST,
      }),
    );
  let json = "";
  try {
    json = new TextDecoder().decode(base64ToBytes(field.replaceAll("-", "+").replaceAll("_", "/")));
  } catch {
    // refused below
  }
  return readSheet(parseJson(json), asks, MOST);
}

export const toFile = (sheet) => new Blob([sheetJson(sheet)], { type: "application/json" });

// What a file of JSON says, of an <input type=file>; it is read here, and goes nowhere.
export async function readJsonFile(file, most) {
  if (file.size > most)
    refuse(t("This file has {n} bytes; the limit is {limit}.", { n: file.size, limit: most }));
  return parseJson(await file.text());
}

export const fromFile = async (file, asks) => readSheet(await readJsonFile(file, BYTES), asks);
