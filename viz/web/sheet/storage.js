// A teacher's own worksheet as a link and as a file. Both are validated: errors name the field, and
// a bad worksheet is not used at all.
import { t } from "../core/language.js";
import { base64ToBytes } from "../explorer/trace.js";

// The message in sheet.js names both limits of a link.
const MAX_LINK_QUESTIONS = 30,
  MAX_LINK_LENGTH = 65536; // characters of the whole address
const KIND = "attention-atlas-worksheet",
  MAX_FILE_BYTES = 1000000,
  MAX_FILE_QUESTIONS = 300;
const LENGTHS = { title: 120, text: 1000, direction: 40, checkpoint: 120, ask: 40, word: 80 };

/** Throw an error whose message the page shows. @param {string} message @returns {never} */
export const refuse = (message) => {
  throw new Error(message);
};

function readText(sheet, name, needed) {
  const value = sheet[name] ?? (needed ? undefined : "");
  if (typeof value !== "string")
    refuse(t("This worksheet’s field “{name}” is not text.", { name }));
  if (value.length > LENGTHS[name])
    refuse(
      t("This worksheet’s field “{name}” is longer than {limit} characters.", {
        name,
        limit: LENGTHS[name],
      }),
    );
  return value;
}

// Validate a worksheet and return its known fields: {title, direction, checkpoint, items: [{text,
// ask, word}]}.
function readSheet(stored, asks, limit = MAX_FILE_QUESTIONS) {
  if (stored?.kind !== KIND || stored.version !== 1)
    refuse(t("This is not a worksheet of this page."));
  if (!Array.isArray(stored.items)) refuse(t("This worksheet has no list of questions."));
  if (stored.items.length > limit)
    refuse(
      t("This worksheet has {n} questions; the limit is {limit}.", {
        n: stored.items.length,
        limit: limit,
      }),
    );
  const items = stored.items.map((item, i) => {
    if (Object(item) !== item || Array.isArray(item))
      refuse(t("Question {n} of this worksheet is not a question.", { n: i + 1 }));
    const ask = readText(item, "ask", true);
    if (!asks.includes(ask))
      refuse(
        t("Question {n} is of a kind that this page does not know: {ask}", {
          n: i + 1,
          ask: ask.slice(0, 40),
        }),
      );
    return { text: readText(item, "text", true), ask, word: readText(item, "word") };
  });
  return {
    title: readText(stored, "title"),
    direction: readText(stored, "direction", true),
    checkpoint: readText(stored, "checkpoint"),
    items,
  };
}

const sheetJson = (sheet) => JSON.stringify({ kind: KIND, version: 1, ...sheet });

/**
 * Return a worksheet as a link's field, or null if it is too long for a link.
 * @param {any} sheet @param {number} addressLength characters of the page's address without the field
 */
export function toLink(sheet, addressLength) {
  const bytes = new TextEncoder().encode(sheetJson(sheet)),
    length = (bytes.length * 4) / 3 + addressLength;
  if (sheet.items.length > MAX_LINK_QUESTIONS || length > MAX_LINK_LENGTH) return null;
  return btoa(String.fromCharCode(...bytes))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replace(/=+$/, "");
}

export function fromLink(field, asks) {
  if (field.length > MAX_LINK_LENGTH)
    refuse(
      t("This link is longer than {limit} characters: save the worksheet as a file.", {
        limit: MAX_LINK_LENGTH,
      }),
    );
  let stored = null;
  try {
    const bytes = base64ToBytes(field.replaceAll("-", "+").replaceAll("_", "/"));
    stored = JSON.parse(new TextDecoder().decode(bytes));
  } catch {
    // refused below
  }
  return readSheet(stored, asks, MAX_LINK_QUESTIONS);
}

export const toFile = (sheet) => new Blob([sheetJson(sheet)], { type: "application/json" });

/** Read a file of JSON, of an <input type=file>; null if it is not JSON. The file is read in the browser only. @param {File} file @param {number} limit bytes */
export async function readJsonFile(file, limit) {
  if (file.size > limit)
    refuse(t("This file has {n} bytes; the limit is {limit}.", { n: file.size, limit }));
  try {
    return JSON.parse(await file.text());
  } catch {
    return null;
  }
}

export const fromFile = async (file, asks) =>
  readSheet(await readJsonFile(file, MAX_FILE_BYTES), asks);
