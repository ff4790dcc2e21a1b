"""Questions of the tab Train: a toy in training, and the address of what it translates."""

from __future__ import annotations

from collections.abc import Generator, Mapping

from model.trace.address import Address
from model.trace.recipe import Recipe
from model.training.toy import settings
from model.training.toy.run import normalise, parse
from viz.questions.registry import Answer, Context, question
from viz.ui import direction
from viz.ui import fields as field
from viz.wire import training

LIMITS = {"updates": settings.MAX_UPDATES, "learnt": f"{settings.LEARNT:g}"}


@question(lane="page", on_cpu=True)
def page_train(context: Context, address: Address | None, fields: Mapping) -> Answer:
    """Train a toy, and yield {"turn"} after each turn; the first part has {"run"}, what stays the same.

    fields: corpus, settings, updates (at which the training ends), and from (0 where it is left out): the update at
    which the page's run is. Where that run is not kept here, {"training": {"update", "of"}} is yielded while it is
    trained again. Without a corpus: {} once the first run need not wait for PyTorch's optimisers.
    """
    if "corpus" not in fields:
        context.traces.toys.prepare()
        return {}
    recipe = normalise(Recipe.from_plain({name: fields.get(name) for name in ("corpus", "settings", "updates")}))
    since = field.whole(fields, "from", 0)
    if not 0 <= since <= recipe.updates:
        raise ValueError(f"from must be from 0 to {recipe.updates}, found {since}.")
    return _turns(context, recipe, since)


def _turns(context: Context, recipe: Recipe, since: int) -> Generator[dict]:
    begun = since > 0
    for run, turn in context.traces.toys.watch(recipe, since):
        if turn is None:
            yield {"training": {"update": run.update, "of": since}}
            continue
        part = {"turn": training.progress(run, turn.points, turn.frames, turn.done, LIMITS)}
        yield part if begun else {"run": training.beginning(run), **part}
        begun = True


@question(lane="translate", on_cpu=True)
def page_toy(context: Context, address: Address | None, fields: Mapping) -> Answer:
    """Return {opens, fill}: the address of a toy's translation, and what the controls are to show of it.

    fields: recipe; pair, the number of the sentence of the corpus.
    """
    recipe = direction.recipe_of(fields)
    pairs, _ = parse(recipe)
    text = pairs[field.whole(fields, "pair", 0) % len(pairs)][0]
    trace = context.trace(Address(text, recipe=recipe))
    return {"opens": Address.of(trace).to_plain(), "fill": {"text": text, **direction.chosen_toy(recipe)}}
