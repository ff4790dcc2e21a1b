// The runs of one or two settings. Each is one question (page_train), which the server answers turn by turn; a question that is
// stopped ends the training.
import { createAsker } from "../core/ask.js";
import { said, t } from "../core/language.js";

// hooks: updates: how many a run has; sides(): whose runs are shown; begun(run): the first side's; changed(); say(words): the
// state of the training; fail(words); rested(): no run is trained any more.
export function createRuns(hooks) {
  const runs = new Map(); // side -> {side, name, recipe: {corpus, settings}, pairs, floor, guess, words, points, frames, update, done}
  const askers = { a: createAsker(), b: createAsker() };

  const shown = () => [...runs.values()].filter((run) => hooks.sides().includes(run.side));
  const isTraining = () => hooks.sides().some((side) => askers[side].busy());
  const newest = () => Math.max(0, ...shown().map((run) => run.update));

  async function train(side, recipe, from = 0) {
    const fields = { ...recipe, from, updates: hooks.updates };
    await askers[side].ask(
      "page_train",
      { fields },
      { part: (content) => take(side, recipe, content) },
    );
    if (!isTraining()) hooks.rested();
  }

  function take(side, recipe, { error, run: begun, turn }) {
    if (error) return hooks.fail(said(error));
    if (begun && !runs.has(side)) {
      const name = side === "a" ? t("first") : t("second");
      runs.set(side, { ...begun, side, name, recipe, points: [], frames: [], update: 0 });
      if (side === "a") hooks.begun(runs.get(side));
    }
    const run = runs.get(side);
    // A question that was sent again, after a broken connection, repeats turns.
    run.points.push(...turn.points.filter(([update]) => update > (run.points.at(-1)?.[0] ?? 0)));
    run.frames.push(
      ...turn.frames.filter(({ update }) => update > (run.frames.at(-1)?.update ?? -1)),
    );
    Object.assign(run, { update: Math.max(run.update, turn.update), done: turn.done });
    hooks.say(turn.done ? said(turn.done) : t("Training: update {n}", { n: newest() }));
    hooks.changed();
  }

  return {
    shown,
    isTraining,
    newest,
    first: () => runs.get("a"),
    // Begin the run of each side that is shown. recipeOf(side): {corpus, settings}.
    begin(recipeOf) {
      runs.clear();
      for (const side of hooks.sides()) train(side, recipeOf(side));
    },
    goOn() {
      for (const run of shown()) if (!run.done) train(run.side, run.recipe, run.update);
    },
    stop() {
      for (const asker of Object.values(askers)) asker.stop();
    },
    forget(side) {
      askers[side].stop();
      runs.delete(side);
    },
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
