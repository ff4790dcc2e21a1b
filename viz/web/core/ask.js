// Questions of the page to its server (viz/ui/server/ask.py), one request each.
import { t } from "./language.js";

const AGAIN = [250, 500, 1000, 2000, 4000, 8000]; // milliseconds before a failed request is sent again
const BUSY = 503; // the server asks to come back, and says why in words
const UNREACHED = [502, 504]; // what a proxy says without a server
const wait = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

// Ask a question, {address, fields}; a promise of its answer, of which part(content) is told, too. An answer that comes in
// parts, each in place of the one before, is told part by part; the promise is of the last one. What cannot be answered is
// {error: words}. signal: of an AbortController that stops it; the promise is then of null.
// Where the server does not answer, or ends within an answer, it is asked again, after longer and longer waits: another
// process can answer, too.
export async function ask(
  name,
  question,
  { part = () => {}, signal = null, fetched = fetch } = {},
) {
  const send = await transport();
  for (const pause of [...AGAIN, null]) {
    try {
      const { status, contents } = await send(name, question, { signal, fetched });
      const isLast = pause === null || status !== BUSY;
      if (isLast && !UNREACHED.includes(status)) return await read(contents, part);
    } catch {
      // no connection, or none any more
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

// What sends a question: (name, question, {signal, fetched}) => {status, contents}, the latter to be iterated over.
const transport = async () =>
  document.querySelector("meta[name=atlas-asks]") ? (await import("./lent.js")).send : send;

async function send(name, question, { signal, fetched }) {
  const response = await post(`ask/${name}`, question, { signal, fetched });
  const isStream = response.headers.get("content-type")?.includes("ndjson");
  return {
    status: response.status,
    contents: isStream ? parsed(response.body) : [await response.json()],
  };
}

// A request with a JSON body, to an address below the page's own.
export const post = (path, content, { signal, fetched, headers = {} }) =>
  fetched(new URL(path, document.baseURI), {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify(content),
    signal,
  });

async function* parsed(stream) {
  for await (const line of lines(stream)) yield JSON.parse(line);
}

async function read(contents, part) {
  let last = null;
  for await (const found of contents) part((last = content(found)));
  return last;
}

const content = (found) => (found.status === "error" ? { error: found.message } : found);

// The lines of a stream of bytes.
export async function* lines(stream) {
  const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) break;
    const found = (rest + value).split("\n");
    rest = found.pop();
    yield* found;
  }
  if (rest) yield rest;
}

// Asks one question after another, of which the last counts: what was asked before is stopped, and its answer dropped.
// Returns {ask, stop, busy}.
export function createAsker(options = {}) {
  let current = null;
  return {
    // As ask(); null for a question after which another was asked.
    async ask(name, question, { part = () => {} } = {}) {
      current?.abort();
      const mine = (current = new AbortController());
      const told = (found) => mine === current && part(found);
      const found = await ask(name, question, { ...options, part: told, signal: mine.signal });
      if (mine !== current || mine.signal.aborted) return null;
      current = null;
      return found;
    },
    stop() {
      current?.abort();
      current = null;
    },
    busy: () => current !== null,
  };
}
