"""Questions of the tab Train: a toy in training, and the address of what it translates."""

from __future__ import annotations

import base64
import math
from collections.abc import Generator, Mapping, Sequence

from attention_atlas.model.trace.address import Address
from attention_atlas.model.trace.recipe import ToyRecipe
from attention_atlas.model.training.toy import corpora, measure, settings
from attention_atlas.model.training.toy.frames import DECODED, MAPPED
from attention_atlas.model.training.toy.run import ToyRun, normalise, parse
from attention_atlas.viz import directions, theme
from attention_atlas.viz.maps import labels
from attention_atlas.viz.questions.registry import Answer, Context, question
from attention_atlas.viz.wire import fields as field
from attention_atlas.viz.words import Words, say

COMPARED = (20, max(measure.UPDATES))
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
    recipe = normalise(ToyRecipe.from_plain({name: fields.get(name) for name in ("corpus", "settings", "updates")}))
    since = field.whole(fields, "from", 0)
    if not 0 <= since <= recipe.updates:
        raise ValueError(f"from must be from 0 to {recipe.updates}, found {since}.")
    return _turns(context, recipe, since)


def _turns(context: Context, recipe: ToyRecipe, since: int) -> Generator[dict]:
    begun = since > 0
    for run, turn in context.traces.toys.watch(recipe, since):
        if turn is None:
            yield {"training": {"update": run.update, "of": since}}
            continue
        part = {"turn": progress(run, turn.points, turn.frames, turn.done)}
        yield part if begun else {"run": beginning(run), **part}
        begun = True


@question(lane="translate", on_cpu=True)
def page_toy(context: Context, address: Address | None, fields: Mapping) -> Answer:
    """Return {opens, fill}: the address of a toy's translation, and what the controls are to show of it.

    fields: recipe; pair, the number of the sentence of the corpus.
    """
    recipe = directions.recipe_of(fields)
    pairs, _ = parse(recipe)
    text = pairs[field.whole(fields, "pair", 0) % len(pairs)][0]
    trace = context.trace(Address(text, recipe=recipe))
    return {"opens": Address.of(trace).to_plain(), "fill": {"text": text, **directions.chosen_toy(recipe)}}


def beginning(run: ToyRun) -> dict:
    """Return what stays the same of a run, JSON-ready."""
    tokenizer = run.tokenizer
    tokens = [
        {
            "source": _labels(tokenizer, tokenizer.encode_source(source, "target")),
            "read": _labels(tokenizer, [tokenizer.begin_id, *tokenizer.encode(target)]),
            "written": _labels(tokenizer, [*tokenizer.encode(target), tokenizer.end_id]),
            "wanted": target,
            "text": source,
        }
        for source, target in run.pairs
    ]
    return {"pairs": tokens, "floor": run.floor, "guess": math.log(len(tokenizer)), "words": list(tokenizer.words)}


def progress(run: ToyRun, points: Sequence[object], frames: Sequence[object], done: str | None) -> dict:
    """Return what one turn of a run brought, JSON-ready. done: the name of its end."""
    return {
        "points": [[p.update, _finite(p.loss), _finite(p.minimised), _finite(p.gradient)] for p in points],
        "frames": [_frame(run, frame) for frame in frames],
        "update": run.update,
        "done": None if done is None else _end(done),
    }


def _end(done: str) -> Words:
    if done == "diverged":
        return say("The loss is no longer a number.")
    if done == "learnt":
        return say("Learnt by heart: the loss is within {n} nats of the least possible.", n=LIMITS[done])
    return say("The run has reached its {n} updates.", n=LIMITS[done])


def _frame(run: ToyRun, frame: object) -> dict:
    tokenizer = run.tokenizer
    return {
        "update": frame.update,
        "loss": _finite(frame.loss),
        "outputs": [
            {
                "text": tokenizer.decode(ids),
                "finished": ids[-1:] == (tokenizer.end_id,),
                "read": _labels(tokenizer, [tokenizer.begin_id, *ids[:-1]]),
                "written": _labels(tokenizer, ids),
            }
            for ids in frame.outputs
        ],
        "maps": [
            {
                kind: {"shape": list(weights.shape), "data": base64.b64encode(weights.tobytes()).decode("ascii")}
                for kind, weights in pair.items()
            }
            for pair in frame.maps
        ],
    }


def _labels(tokenizer: object, ids: Sequence[int]) -> list[str]:
    return [labels.display(token).removeprefix("\u2581") for token in tokenizer.tokens(ids)]


def _finite(value: float) -> float | None:
    return round(value, 6) if math.isfinite(value) else None


def options() -> dict:
    """Return the corpora, settings and limits that the page offers."""
    return {
        "corpora": [
            {"name": name, "title": corpus.title, "lesson": corpus.lesson, "text": corpus.text}
            for name, corpus in corpora.CORPORA.items()
        ],
        "choices": {name: list(values) for name, values in settings.CHOICES.items()},
        "settings": settings.ToySettings().to_plain(),
        "mapped": MAPPED,
        "decoded": DECODED,
        "updates": settings.MAX_UPDATES,
        "scale": theme.SCALES["viridis"],
        "measured": measured(),
    }


def measured() -> dict[str, list[dict]]:
    """Return what each switch was measured to do: {about, update, order, changed, default}, after the updates of
    COMPARED and, of codes for positions, on the text in which order is all there is. changed, default: the lowest and
    the highest loss with the switch and without it."""
    found, order = measure.read(), f"{measure.ORDER} "

    def compare(name: str, update: int) -> dict:
        default, changed = found[measure.default_of(name)][update], found[name][update]
        about, is_order = _sentence(update, default, changed), name.startswith(order)
        return {
            "about": say("Word order: {found}", found=about) if is_order else about,
            "update": update,
            "order": is_order,
            "changed": changed,
            "default": default,
        }

    switches = [name for name in found if name != "default" and not name.startswith(order)]
    return {
        switch: [compare(switch, update) for update in COMPARED]
        + [compare(name, COMPARED[-1]) for name in (order + switch,) if name in found]
        for switch in switches
    }


def _sentence(update: int, default: measure.Interval, changed: measure.Interval) -> Words:
    numbers = {name: f"{value:.3g}" for name, value in zip(("low", "high", "from_", "to"), (*changed, *default))}
    numbers["n"] = update
    if not measure.apart(default, changed):
        return say(
            "After {n} updates: loss {low} to {high}, the default's {from_} to {to}: no reliable difference", **numbers
        )
    if changed[1] < default[0]:
        return say(
            "After {n} updates: loss {low} to {high}, reliably lower than the default's {from_} to {to}", **numbers
        )
    return say("After {n} updates: loss {low} to {high}, reliably higher than the default's {from_} to {to}", **numbers)


def place() -> dict:
    """Return the description of the place of the tab Train that holds it (viz.panels.registry.describe_tab)."""
    return {"name": "toy", "title": say("Train your own"), "panels": [], "component": "train", "options": options()}
