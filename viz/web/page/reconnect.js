// A page whose server has ended, or whose connection was cut, goes on with the next one.
// Its session is gone then, and Gradio notices only when it is asked for something: its heartbeat, a stream that lasts as
// long as the page, ends without a word. As soon as a server answers that makes the same page, this one says there what it
// shows ("atlas-again"), and once the server knows ("atlas-known"), nothing has to be drawn anew. Where something was under
// way, the server's page is not the same, or it finds another translation, the page loads itself anew.
// So does a page whose answers are asked of the wrong one of several servers. Such a server, asked a question, says that it
// does not know the page ("atlas-unknown", core/rpc.js), which goes on there, too, and asks once more.
import { asking } from "../core/rpc.js";

const HEARTBEAT = /heartbeat\/[^/]+$/,
  ANSWERS = /queue\/data\?[^/]+$/,
  UNKNOWN = 404,
  FIRST = 250, // milliseconds before a server is asked whether it is there; then ever longer
  LAST = 4000,
  SETTLED = 5000, // that a page lasts at least: the next one may come to another server again
  LEAVING = 30_000,
  TOGETHER = 100, // milliseconds within which streams end that were cut off at once
  ANSWERED = 20_000; // by then the server knows what is shown here, or never will
const made = (name) => document.querySelector(`meta[name=atlas-${name}]`); // as viz/ui/gradio6/preloads.py says it

// Gradio ends it, too, when the page is about to be left: what comes next may be slow to answer, and is not cut short.
// A page that is still here after that was not left.
let leaving = 0,
  lost = false,
  heartbeat = null, // the address of the last one
  lostAt = Infinity, // when it ended, in the page's milliseconds
  stream = null, // of answers: the last that was not closed by the page
  anew = false; // whether there is an answer that will not come
addEventListener("beforeunload", () => {
  clearTimeout(leaving);
  leaving = setTimeout(() => (leaving = 0), LEAVING);
});
addEventListener("pageshow", () => (leaving = 0)); // out of the browser's cache, too
new PerformanceObserver((list) => {
  for (const entry of list.getEntriesByType("resource")) {
    const { name, responseStatus, responseEnd } = entry;
    if (HEARTBEAT.test(name)) {
      [heartbeat, lostAt] = [name, responseEnd];
      lose(FIRST);
    } else if (ANSWERS.test(name)) {
      if (responseStatus) stream = entry;
      if (responseStatus === UNKNOWN || cutOff()) loadAnew();
    }
  }
}).observe({ type: "resource" });
document.addEventListener("atlas-unknown", () => lose(FIRST));

// Whether answers were still to come when the server was lost. Gradio does not see that their stream has ended, and would
// wait for all later ones on it.
const cutOff = () => stream?.responseEnd > lostAt - TOGETHER && stream.startTime < lostAt;

function loadAnew() {
  anew = true;
  lose(Math.max(FIRST, SETTLED - performance.now()));
}

function lose(wait) {
  if (!lost) reconnect(wait);
  lost = true;
}

async function reconnect(wait) {
  await new Promise((resolve) => setTimeout(resolve, wait * (1 + Math.random()))); // not all of a server's pages at once
  const address = new URL("readyz", document.baseURI),
    found = await fetch(address, { cache: "no-store" }).catch(() => null);
  if (!found || found.status >= 500 || document.hidden || leaving)
    return reconnect(Math.min(LAST, 1.5 * wait));
  const { process, page } = await found.json().catch(() => ({}));
  if (anew || asking() || cutOff() || !process || page !== made("page")?.content)
    return location.reload();
  lost = false;
  if (heartbeat)
    fetch(heartbeat)
      .then((stream) => stream.text())
      .catch(() => {}); // which ends as the one before did
  const late = setTimeout(() => location.reload(), ANSWERED);
  document.addEventListener(
    "atlas-known",
    () => {
      clearTimeout(late);
      made("process").content = process; // from now on: what is asked before that is refused there
    },
    { once: true },
  );
  document.dispatchEvent(new CustomEvent("atlas-again", { detail: { process } }));
}
