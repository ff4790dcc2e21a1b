// The runs of one or two settings. The page asks for one turn of training after the other: whoever stops asking has stopped.
import { said, t } from "../core/language.js";

// hooks: ask(question, answered): of the server; sides(): whose runs are shown; begun(run): the first side's; changed();
// say(words): how it stands; fail(words); rested(): nothing is asked for any more.
export function createRuns(hooks) {
  const runs = new Map(); // side -> {side, name, pairs, floor, guess, words, points, frames, update, done, going}
  let asking = false;

  const shown = () => [...runs.values()].filter((run) => hooks.sides().includes(run.side));
  const going = () => shown().filter((run) => run.going);
  const newest = () => Math.max(0, ...shown().map((run) => run.update));

  function goOn() {
    for (const run of shown()) run.going = !run.done;
    if (!asking) loop();
  }

  // One question at a time, the runs taking turns, as long as one goes on and the page shows it.
  async function loop() {
    asking = true;
    while (going().length) {
      for (const run of going()) await ask({ action: "go", side: run.side });
      if (going().length) hooks.say(t("Training: update {n}", { n: newest() }));
    }
    asking = false;
    hooks.rested();
  }

  const ask = (question) =>
    new Promise((resolve) =>
      hooks.ask(question, (answer) => {
        take(answer);
        resolve();
      }),
    );

  function take({ error, side, run: begun, turn }) {
    if (error) return hooks.fail(said(error));
    if (!turn) return;
    if (begun) {
      const name = side === "a" ? t("first") : t("second");
      runs.set(side, { ...begun, side, name, points: [], frames: [], going: false });
      if (side === "a") hooks.begun(runs.get(side));
    }
    const run = runs.get(side);
    if (!run) return;
    run.points.push(...turn.points);
    run.frames.push(...turn.frames);
    Object.assign(run, { update: turn.update, done: turn.done });
    if (turn.done) {
      run.going = false;
      hooks.say(said(turn.done));
    }
    hooks.changed();
  }

  return {
    shown,
    going,
    newest,
    goOn,
    ask,
    first: () => runs.get("a"),
    stop() {
      for (const run of runs.values()) run.going = false;
    },
    forget: (...sides) => sides.forEach((side) => runs.delete(side)),
    // The updates of which there is a frame, in order.
    updates: () =>
      [...new Set(shown().flatMap((run) => run.frames.map((frame) => frame.update)))].sort(
        (a, b) => a - b,
      ),
  };
}

// A run's frame of an update, or the last before it; null: of the latest.
export const frameOf = (run, at) =>
  run.frames.findLast((frame) => at === null || frame.update <= at) ?? run.frames[0];
