// Questions of the page to its server (viz/server/ask.py), one request each.
import { notice } from "./dom.js";
import { t } from "./language.js";

const AGAIN = [250, 500, 1000, 2000, 4000, 8000]; // milliseconds before a failed request is sent again
const BUSY = 503; // the server asks to come back, and says why in words
const ON_CPU = ["page_train", "page_toy"]; // questions that ask for no GPU where one is lent
const UNREACHED = [502, 504]; // what a proxy says without a server
let last = 0;

// A number for what is asked now: an answer takes no place of one that was asked for later.
export const numbered = () => ++last;

const wait = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

// Ask a question {address, fields}, and return a promise of the answer. `part` is called with the answer, or with each part
// of an answer in parts; each part replaces the one before, and the promise holds the last. A refusal is {error: words},
// a file {file: {name, blob}}.
// signal: of an AbortController; a stopped question has the answer null. `working` is called with what is done of long work
// before the answer, {done, of}, and whether it began anew after a connection broke; with null once that is over.
// If the server does not answer, or stops in the middle, the question is sent again after increasing pauses. Any process can
// answer it.
export async function ask(
  name,
  question,
  { part = () => {}, signal = null, working = showWork } = {},
) {
  const send = await transport(name);
  let hasBegun = false,
    isAnew = false;
  const tell = (show) => (progress) => {
    hasBegun ||= progress !== null;
    show(progress, isAnew);
  };
  for (const pause of [...AGAIN, null]) {
    try {
      const { status, contents } = await send(name, question, signal);
      const isLast = pause === null || status !== BUSY;
      if (isLast && !UNREACHED.includes(status)) {
        const answer = await read(contents, part, {
          training: tell(showTraining),
          work: tell(working),
        });
        if (!answer?.retrained) return answer;
        question = retrained(name, question, answer.retrained);
        continue;
      }
    } catch {
      isAnew = hasBegun; // no connection, or none any more
    }
    if (signal?.aborted) return null;
    if (pause === null) break;
    await wait(pause * (0.75 + Math.random() / 2)); // not all of a server's pages at once
    if (signal?.aborted) return null;
  }
  const failed = { error: t("The server does not answer. Please try again in a moment.") };
  part(failed);
  return failed;
}

// The function that sends a question: (name, question, signal) => {status, contents}. contents: an iterable.
const transport = async (name) =>
  document.querySelector("script[data-lent]") && !ON_CPU.includes(name)
    ? (await import("./lent.js")).send
    : send;

async function send(name, question, signal) {
  const response = await post(`ask/${name}`, question, signal);
  const isStream = response.headers.get("content-type")?.includes("ndjson"),
    savedAs = response.headers.get("content-disposition")?.split("filename*=UTF-8''")[1];
  if (isStream) return { status: response.status, contents: parsed(response.body) };
  const answer = savedAs
    ? { file: { name: decodeURIComponent(savedAs), blob: await response.blob() } }
    : await response.json();
  return { status: response.status, contents: [answer] };
}

// A request with a JSON body, to an address below the page's own.
export const post = (path, content, signal, headers = {}) =>
  fetch(new URL(path, document.baseURI), {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify(content),
    signal,
  });

async function* parsed(stream) {
  for await (const line of lines(stream)) yield JSON.parse(line);
}

// shows: by the name of what is computed before an answer, what shows how far it is.
async function read(contents, part, shows) {
  let last = null,
    show = null;
  try {
    for await (const answer of contents) {
      const name = Object.keys(shows).find((name) => answer[name]);
      if (show && show !== shows[name]) show(null);
      show = shows[name];
      if (show) {
        show(answer[name]);
        continue;
      }
      if (answer.file?.data) answer.file = unpacked(answer.file);
      last = answer.status === "error" ? { error: answer.message } : answer;
      if (!last.retrained) part(last);
    }
  } finally {
    show?.(null);
  }
  return last;
}

// A file that came as JSON, its bytes in base64.
const unpacked = ({ name, type, data }) => ({
  name,
  blob: new Blob([Uint8Array.from(atob(data), (character) => character.charCodeAt(0))], { type }),
});

// The visitor's own network is being trained again for an answer: {update, of}.
const showTraining = (training, isAnew) =>
  notice(
    training
      ? anew(isAnew) + t("Training your network again: update {update} of {of}", training)
      : "",
  );

const showWork = (work, isAnew) =>
  notice(work ? anew(isAnew) + t("Computing: {done} of {of} parts", work) : "");

// What is said of work that began anew.
export const anew = (isAnew) =>
  isAnew ? `${t("The connection broke, so this started again.")} ` : "";

let reopen = () => {};
const reopened = new Set(); // addresses, as JSON

// Set what is called, once for each address, where the visitor's own network was trained again and has other weights, as on
// another kind of processor: with the address of the translation by these.
export const onRetrained = (callback) => (reopen = callback);

// The question about the weights that the server has.
function retrained(name, question, address) {
  const text = JSON.stringify(address);
  if (name !== "page_translate" && !reopened.has(text)) reopen(address);
  reopened.add(text);
  return { ...question, address: { ...address, digest: "" } };
}

// The lines of a stream of bytes.
export async function* lines(stream) {
  const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) break;
    const complete = (rest + value).split("\n");
    rest = complete.pop();
    yield* complete;
  }
  if (rest) yield rest;
}

// Create an asker {ask, stop, busy} of one question at a time. A new question stops the one before and drops its answer.
export function createAsker() {
  let current = null;
  return {
    // As ask() above; the answer is null if another question was asked meanwhile.
    async ask(name, question, { part = () => {}, working } = {}) {
      current?.abort();
      const mine = (current = new AbortController());
      const partIfCurrent = (content) => mine === current && part(content);
      const { signal } = mine,
        answer = await ask(name, question, { part: partIfCurrent, signal, working });
      if (mine !== current || mine.signal.aborted) return null;
      current = null;
      return answer;
    },
    stop() {
      current?.abort();
      current = null;
    },
    busy: () => current !== null,
  };
}
