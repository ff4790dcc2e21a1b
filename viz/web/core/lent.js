// Questions on a ZeroGPU Space: each is a call of Gradio's queue, which is lent a GPU. The page around the Space knows whose
// share of GPUs that is, and tells it in headers.
import { lines, post } from "./ask.js";

const FRAME = "https://huggingface.co";

// The headers of a visitor; none where the page around this one does not know of them.
function headers() {
  if (window.parent === window || !window.supports_zerogpu_headers) return Promise.resolve({});
  const { port1, port2 } = new MessageChannel();
  return new Promise((resolve) => {
    port1.onmessage = ({ data }) => resolve(data ?? {});
    window.parent.postMessage("zerogpu-headers", FRAME, [port2]);
  });
}

// As the transport of core/ask.js.
export async function send(name, question, signal) {
  const path = `gradio_api/call/${name}`,
    asked = await post(path, { data: [question] }, signal, await headers());
  const answer = await asked.json();
  if (!answer.event_id) return { status: asked.status, contents: [answer] };
  const response = await fetch(new URL(`${path}/${answer.event_id}`, document.baseURI), { signal });
  return { status: response.status, contents: events(response.body) };
}

// Read the events of a call: each "generating" holds one value of the generator, "complete" repeats the last one.
async function* events(stream) {
  let event = null;
  for await (const line of lines(stream)) {
    if (line.startsWith("event: ")) event = line.slice("event: ".length);
    else if (line.startsWith("data: ") && event === "generating")
      yield JSON.parse(line.slice("data: ".length))[0];
    else if (event === "complete") return;
    else if (event === "error") throw new TypeError(); // as of a connection that was cut
  }
}
