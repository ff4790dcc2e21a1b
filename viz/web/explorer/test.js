// The test of a written word: each source word is hidden in turn, and the probability of the word is measured without it. The
// numbers arrive at once; the page plays them one after another.
import { effectsOf, litWeights, verdictOf } from "./lit.js";

const STEP = 280; // milliseconds that a word stays hidden
const isStill = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

/**
 * Create the tests.
 * @param {object} setup
 * @param {(name: string, trace: any, fields: any) => Promise<any>} setup.ask asks the server about a translation
 * @param {boolean} setup.able whether there is a server to ask
 * @param {() => void} setup.draw draws the lit word
 */
export function createTest({ ask, able, draw }) {
  const answers = new Map(); // "key step" -> {removals} or {error}
  const played = new Set(); // names of the tests that a person has seen
  let running = null; // {name, step: of words that were hidden so far}

  const nameOf = (trace, map, row) => `${trace.key} ${map.rows[row].positions[0]}`;
  const pause = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));

  function stop() {
    running = null;
  }

  async function measure(trace, map, row) {
    const name = nameOf(trace, map, row);
    if (!answers.get(name)?.removals)
      answers.set(name, await ask("removals", trace, { step: map.rows[row].positions[0] }));
    return answers.get(name);
  }

  /** @type {(trace: any, map: any, row: number) => any} */
  function effects(trace, map, row) {
    const answer = answers.get(nameOf(trace, map, row));
    return answer?.removals ? effectsOf(answer.removals, map.columns) : null;
  }

  return {
    able,
    stop,
    measure,
    effects,
    /**
     * Return what is known of a row: {effects, step, isRunning, verdict, error}, or null if it was not tested. effects: of
     * effectsOf(); step: how many source words were hidden so far.
     */
    of(trace, map, row) {
      const name = nameOf(trace, map, row),
        isRunning = running?.name === name,
        answer = played.has(name) ? answers.get(name) : null;
      if (!answer || answer.error) return isRunning || answer ? { isRunning, ...answer } : null;
      const found = effectsOf(answer.removals, map.columns),
        step = isRunning ? running.step : Infinity;
      return {
        effects: found,
        step,
        isRunning,
        verdict: verdictOf(found, litWeights(map, { row, column: null })),
      };
    },
    /** Test a row, and play it. */
    async run(trace, map, row) {
      const name = nameOf(trace, map, row),
        own = (running = { name, step: 0 });
      draw();
      const { error } = await measure(trace, map, row);
      played.add(name);
      for (let step = 1; step <= map.columns.length && !error && !isStill(); step++) {
        if (running !== own) return;
        own.step = step;
        draw();
        await pause(STEP);
      }
      if (running !== own) return;
      running = null;
      draw();
    },
  };
}
