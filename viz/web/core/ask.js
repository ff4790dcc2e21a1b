// Requests to the page's server (viz/server/ask.py): ask() sends a question {address, fields} and repeats it while the
// server cannot be reached; createAsker() drops a question when the next one is asked.
import { showNotice } from "./dom.js";
import { t } from "./language.js";

const RETRY_PAUSES = [250, 500, 1000, 2000, 4000, 8000]; // milliseconds
const BUSY = 503; // the server is full; its body says so in words
const UNREACHABLE = [502, 504]; // a proxy's answer when there is no server behind it
const ON_CPU = ["page_train", "page_toy"]; // questions that need no GPU on a ZeroGPU Space
const SPACES = "https://huggingface.co";

/**
 * @typedef {{address?: any, fields?: any}} Question
 * @typedef {{status: number, contents: Iterable<any> | AsyncIterable<any>}} Reply
 * @typedef {(progress: any, isAnew: boolean) => void} ShowProgress
 */

let lastNumber = 0;

/** Return a number higher than all before, so that a late answer can be told from a newer one. */
export const nextRequestNumber = () => ++lastNumber;

/** @param {number} milliseconds */
const wait = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

/**
 * Ask the server a question and return its answer: JSON, `{error: words}` for a refusal, or `{file: {name, blob}}`.
 *
 * An answer may come in parts; each replaces the one before, and the last is returned. If the server does not answer or
 * the connection breaks, the same question is sent again after growing pauses, seven times in all. Servers hold no state
 * of a visitor, so any of them can answer it.
 *
 * @param {string} name of the question
 * @param {Question} question
 * @param {object} options
 * @param {(answer: any) => void} [options.part] called with the answer, or with each part of it
 * @param {AbortSignal | null} [options.signal] once aborted, the answer is null
 * @param {ShowProgress} [options.working] called with `{done, of}` while the server computes, and with null afterwards
 */
export async function ask(
  name,
  question,
  { part = () => {}, signal = null, working = showWork } = {},
) {
  // The attribute marks a ZeroGPU Space, which lends a GPU for each question in Gradio's queue.
  const usesQueue = document.querySelector("script[data-lent]") && !ON_CPU.includes(name);
  const send = usesQueue ? sendToQueue : sendToServer;
  let hasBegun = false,
    isAnew = false;
  /** @param {ShowProgress} show */
  const report = (show) => (/** @type {any} */ progress) => {
    hasBegun ||= progress !== null;
    show(progress, isAnew);
  };
  for (const pause of [...RETRY_PAUSES, null]) {
    try {
      const { status, contents } = await send(name, question, signal);
      const waitsForRoom = status === BUSY && pause !== null; // the last try shows what the server says instead
      if (!waitsForRoom && !UNREACHABLE.includes(status)) {
        const answer = await readAnswer(contents, part, {
          training: report(showTraining),
          work: report(working),
        });
        if (!answer?.retrained) return answer;
        question = withNewWeights(name, question, answer.retrained);
        continue;
      }
    } catch {
      isAnew = hasBegun; // the connection failed or broke
    }
    if (signal?.aborted) return null;
    if (pause === null) break;
    await wait(pause * (0.75 + Math.random() / 2)); // spreads the retries of a server's many pages
    if (signal?.aborted) return null;
  }
  const failure = { error: t("The server is not responding. Please try again in a moment.") };
  part(failure);
  return failure;
}

/**
 * Send a question to its own route.
 * @param {string} name @param {Question} question @param {AbortSignal | null} signal @returns {Promise<Reply>}
 */
async function sendToServer(name, question, signal) {
  const response = await postJson(`ask/${name}`, question, signal);
  const isStream = response.headers.get("content-type")?.includes("ndjson"),
    fileName = response.headers.get("content-disposition")?.split("filename*=UTF-8''")[1];
  if (isStream) return { status: response.status, contents: parseLines(response.body) };
  const answer = fileName
    ? { file: { name: decodeURIComponent(fileName), blob: await response.blob() } }
    : await response.json();
  return { status: response.status, contents: [answer] };
}

/**
 * Send a question through Gradio's queue, which is how a ZeroGPU Space gets a GPU.
 * @param {string} name @param {Question} question @param {AbortSignal | null} signal @returns {Promise<Reply>}
 */
async function sendToQueue(name, question, signal) {
  const path = `gradio_api/call/${name}`,
    call = await postJson(path, { data: [question] }, signal, await visitorHeaders());
  const answer = await call.json();
  if (!answer.event_id) return { status: call.status, contents: [answer] };
  const response = await fetch(new URL(`${path}/${answer.event_id}`, document.baseURI), { signal });
  return { status: response.status, contents: parseEvents(response.body) };
}

/**
 * Return the headers that charge a GPU to the visitor. The page around the Space knows them; elsewhere there are none.
 * @returns {Promise<Record<string, string>>}
 */
function visitorHeaders() {
  if (window.parent === window || !(/** @type {any} */ (window).supports_zerogpu_headers))
    return Promise.resolve({});
  const { port1, port2 } = new MessageChannel();
  return new Promise((resolve) => {
    port1.onmessage = ({ data }) => resolve(data ?? {});
    window.parent.postMessage("zerogpu-headers", SPACES, [port2]);
  });
}

/**
 * Send JSON to an address below the page's own.
 * @param {string} path @param {any} content @param {AbortSignal | null} [signal] @param {Record<string, string>} [headers]
 */
const postJson = (path, content, signal, headers = {}) =>
  fetch(new URL(path, document.baseURI), {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify(content),
    signal,
  });

/** @param {any} stream of bytes: one JSON value a line */
async function* parseLines(stream) {
  for await (const line of readLines(stream)) yield JSON.parse(line);
}

/**
 * Read the events of a call of Gradio's queue. Each "generating" event holds a value; "complete" repeats the last.
 * @param {any} stream
 */
async function* parseEvents(stream) {
  let event = null;
  for await (const line of readLines(stream)) {
    if (line.startsWith("event: ")) event = line.slice("event: ".length);
    else if (line.startsWith("data: ") && event === "generating")
      yield JSON.parse(line.slice("data: ".length))[0];
    else if (event === "complete") return;
    else if (event === "error") throw new TypeError("the call failed"); // ask() retries, as after a broken connection
  }
}

/**
 * Read a reply to its end: show progress while the server computes, and pass on each part of the answer.
 * @param {Iterable<any> | AsyncIterable<any>} contents
 * @param {(answer: any) => void} part
 * @param {Record<string, (progress: any) => void>} shows functions that show progress, by the field that holds it
 */
async function readAnswer(contents, part, shows) {
  let last = null,
    show = null;
  try {
    for await (const answer of contents) {
      const field = Object.keys(shows).find((name) => answer[name]);
      const next = shows[field];
      if (show !== next) show?.(null);
      show = next;
      if (show) {
        show(answer[field]);
        continue;
      }
      if (answer.file?.data) answer.file = decodeFile(answer.file);
      last = answer.status === "error" ? { error: answer.message } : answer;
      if (!last.retrained) part(last);
    }
  } finally {
    show?.(null);
  }
  return last;
}

/** @param {{name: string, type: string, data: string}} file whose bytes are in base64 */
const decodeFile = ({ name, type, data }) => ({
  name,
  blob: new Blob([Uint8Array.from(atob(data), (character) => character.charCodeAt(0))], { type }),
});

/** Say that the visitor's own network is trained again before it can answer, or waits for another one. @type {ShowProgress} */
const showTraining = (training, isAnew) =>
  showNotice(
    !training
      ? ""
      : training.waits
        ? t("Another large network is being trained. Yours begins when that is done.")
        : restartNotice(isAnew) +
          t("Training your network again: update {update} of {of}", training),
  );

/** @type {ShowProgress} */
const showWork = (work, isAnew) =>
  showNotice(work ? restartNotice(isAnew) + t("Computing: {done} of {of} parts", work) : "");

/** Return the words that precede the progress of work which began again. @param {boolean} isAnew */
export const restartNotice = (isAnew) =>
  isAnew ? `${t("The connection broke, so the computation restarted.")} ` : "";

/** @type {(address: any) => void} */
let reopen = () => {};
const reopened = new Set(); // addresses, as JSON

/**
 * Set the function that is called, once per address, when the server has retrained the visitor's own network and got
 * other weights (as happens on another kind of processor).
 * @param {(address: any) => void} callback
 */
export const onRetrained = (callback) => (reopen = callback);

/**
 * Return the question about the weights that the server has now: an address without a digest means any weights. A
 * translation opens its new address itself.
 * @param {string} name @param {Question} question @param {any} address
 */
function withNewWeights(name, question, address) {
  const text = JSON.stringify(address);
  if (name !== "page_translate" && !reopened.has(text)) reopen(address);
  reopened.add(text);
  return { ...question, address: { ...address, digest: "" } };
}

/**
 * Yield the lines of a stream of bytes.
 * @param {any} stream
 * @returns {AsyncGenerator<string>}
 */
async function* readLines(stream) {
  const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) break;
    const complete = (rest + value).split("\n");
    rest = complete.pop() ?? "";
    yield* complete;
  }
  if (rest) yield rest;
}

/** Return `{ask, stop, busy}` for one question at a time: a new question aborts the one before, whose answer is dropped. */
export function createAsker() {
  /** @type {AbortController | null} */
  let current = null;
  return {
    /**
     * As ask() above; the answer is null if another question was asked meanwhile.
     * @param {string} name @param {Question} question
     * @param {{part?: (answer: any) => void, working?: ShowProgress}} options
     */
    async ask(name, question, { part = () => {}, working } = {}) {
      current?.abort();
      const controller = (current = new AbortController());
      const partIfCurrent = (/** @type {any} */ content) => controller === current && part(content);
      const { signal } = controller,
        answer = await ask(name, question, { part: partIfCurrent, signal, working });
      if (controller !== current || controller.signal.aborted) return null;
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
