// The question of the tab "Why": the pinned token and what to compare it with. The pinned token is a row of the decoder, so
// pinning a row of the decoder's maps pins the token, and the other way round.
import { createAsker } from "../core/ask.js";
import { debounce } from "../core/dom.js";
import { store } from "./store.js";

const SETTLED = 150; // milliseconds without another selection
const asker = createAsker();

/** Whether the rows of the selected kind are steps of the decoder. @param {any} selection */
const hasSteps = (selection) => selection && selection.kind !== "encoder_self";

/**
 * Ask about a token. It is pinned at once, before the server answers.
 * @param {{step?: number, token?: number, alone?: boolean}} data the step, and the id of the token to compare with, or alone:
 *   true to compare with none
 * @returns {Promise<any>} {asked}, {error}, or null if another question was asked meanwhile
 */
export async function askAbout(data) {
  const { address, asked } = store.state;
  if (!address) return null;
  if (Number.isInteger(data.step)) store.set(pinnedState(Number(data.step)));
  const answer = await asker.ask("page_ask", { address, fields: { ...data, asked } });
  if (!answer?.asked || store.state.address !== address) return answer;
  store.set({ asked: answer.asked, ...pinnedState(answer.asked.step) });
  return answer;
}

/** Pin a written token. @param {number} step */
export const pin = (step) => askAbout({ step });

/** @param {number} step */
function pinnedState(step) {
  const { selection } = store.state;
  return {
    pinned: step,
    selection: hasSteps(selection) ? { ...selection, query: step } : selection,
  };
}

function followSelection() {
  const { selection, pinned } = store.state;
  if (hasSteps(selection) && Number.isInteger(selection.query) && selection.query !== pinned)
    askAbout({ step: selection.query });
}
store.follow(["selection"], debounce(followSelection, SETTLED));
