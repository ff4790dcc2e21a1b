// A short message at the foot of the page while an answer takes unusually long.
import { el } from "./dom.js";

let node = null;

// words: "" hides the message.
export function notice(words) {
  if (!node) document.body.append((node = el("p", { id: "atlas-notice", role: "status" })));
  node.hidden = !words;
  node.replaceChildren(words);
}
