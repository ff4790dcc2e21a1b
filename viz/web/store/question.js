// The token that the tab "Why" is asked about. It is a row of the decoder, so it is the pinned row of the decoder's maps, too.
import { createAsker } from "../core/ask.js";
import { debounce } from "../core/dom.js";
import { store } from "./store.js";

const SETTLED = 150; // milliseconds without another selection
const asker = createAsker();
const hasSteps = (selection) => selection && selection.kind !== "encoder_self"; // whether its rows are the decoder's steps

// Ask about a token: {step, and what to compare it with: token (an id), text, or alone: true}. It is marked at once. Returns a
// promise of {asked}, of {error} where it cannot be asked, or of null if something else was asked meanwhile.
export async function askAbout(data) {
  const { address, asked } = store.state;
  if (!address) return null;
  if (Number.isInteger(data.step)) store.set(pinnedState(data.step));
  const answer = await asker.ask("page_ask", { address, fields: { ...data, asked } });
  if (!answer?.asked || store.state.address !== address) return answer;
  store.set({ asked: answer.asked, ...pinnedState(answer.asked.step) });
  return answer;
}

export const pin = (step) => askAbout({ step });

function pinnedState(step) {
  const { selection } = store.state;
  return {
    pinned: step,
    selection: hasSteps(selection) ? { ...selection, query: step } : selection,
  };
}

function followSelection() {
  const { selection, pinned: step } = store.state;
  if (hasSteps(selection) && Number.isInteger(selection.query) && selection.query !== step)
    askAbout({ step: selection.query });
}
store.follow(["selection"], debounce(followSelection, SETTLED));
