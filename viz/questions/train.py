"""Questions of the tab Train: train a toy (a small network of the visitor's own), and translate with it."""

from __future__ import annotations

import base64
import math
import statistics
from collections.abc import Generator, Mapping, Sequence

from attention_atlas.model.trace.address import Address
from attention_atlas.model.trace.recipe import ToyRecipe
from attention_atlas.model.trace.tokens import Token
from attention_atlas.model.training.toy import corpora, measure, settings
from attention_atlas.model.training.toy.frames import MAPPED
from attention_atlas.model.training.toy.run import ToyRun, normalise, parse
from attention_atlas.viz import directions, theme
from attention_atlas.viz.maps import labels
from attention_atlas.viz.questions.registry import Answer, Context, question
from attention_atlas.viz.wire import fields as field
from attention_atlas.viz.words import Words, say

COMPARED_UPDATES = (20, max(measure.UPDATES))
PLACES = {  # place of measure.PLACES -> the update, and its name
    "order": (COMPARED_UPDATES[-1], say("Word order")),
    "post": (COMPARED_UPDATES[-1], say("Word order, norm after the sum")),
    "wide": (measure.UPDATES[1], say("d_k = {n}, {m} updates", n=128, m=measure.UPDATES[1])),
}


@question(lane="page", on_cpu=True)
def page_train(context: Context, address: Address | None, fields: Mapping) -> Answer:
    """Train a toy, and yield {"turn"} after each turn; the first part also has {"run"}, the constant facts of the run.

    The fields are corpus, settings, updates (the update at which training ends), and from (default 0), the update that
    the page's run has reached. If that run is not in the cache, it is trained again, and {"training": {"update", "of"}}
    is yielded meanwhile, with "waits" while another visitor trains a large network. Without a corpus, PyTorch's
    optimisers are loaded in advance and the answer is {}.
    """
    if "corpus" not in fields:
        context.traces.toys.prepare()
        return {}
    recipe = normalise(ToyRecipe.from_plain({name: fields.get(name) for name in ("corpus", "settings", "updates")}))
    since = field.read_integer(fields, "from", 0)
    if not 0 <= since <= recipe.updates:
        raise ValueError(f"from must be from 0 to {recipe.updates}, found {since}.")
    return _turns(context, recipe, since)


def _turns(context: Context, recipe: ToyRecipe, since: int) -> Generator[dict]:
    has_run = since > 0
    for run, turn in context.traces.toys.watch(recipe, since):
        if run is None:
            yield {"training": {"update": 0, "of": since, "waits": True}}
            continue
        if turn is None:
            yield {"training": {"update": run.update, "of": since}}
            continue
        part = {"turn": progress(run, turn.points, turn.frames, turn.done)}
        yield part if has_run else {"run": describe_run(run), **part}
        has_run = True


@question(lane="translate", on_cpu=True)
def page_toy(context: Context, address: Address | None, fields: Mapping) -> Answer:
    """Return {opens, fill}: the address of a toy's translation, and the values that the controls are to show.

    The fields are recipe, and pair, the number of a sentence of the corpus.
    """
    recipe = context.traces.toys.latest(directions.read_recipe(fields))
    pairs, _ = parse(recipe)
    text = pairs[field.read_integer(fields, "pair", 0) % len(pairs)][0]
    trace = context.trace(Address(text, recipe=recipe))
    return {"opens": Address.of(trace).to_plain(), "fill": {"text": text, **directions.describe_toy(recipe)}}


def describe_run(run: ToyRun) -> dict:
    """Return the constant facts of a run, JSON-ready."""
    tokenizer = run.tokenizer
    corpus = run.corpus
    tokens = []
    for row, (source, target) in enumerate(run.pairs):
        is_token = corpus.outputs[row] != tokenizer.pad_id
        source_ids = [i for i in corpus.source[row].tolist() if i != tokenizer.pad_id]
        tokens.append(
            {
                "source": _spell(tokenizer.source_tokens(source_ids, source)),
                "read": _labels(tokenizer, corpus.inputs[row][is_token].tolist()),
                "written": _labels(tokenizer, corpus.outputs[row][is_token].tolist()),
                "wanted": target,
                "text": source,
            }
        )
    return {"pairs": tokens, "floor": run.floor, "guess": run.task.guess, "words": list(tokenizer.words)}


def progress(run: ToyRun, points: Sequence[object], frames: Sequence[object], done: str | None) -> dict:
    """Return the results of one turn of a run, JSON-ready. done: why the run ended; None if it goes on."""
    return {
        "points": [[p.update, _finite(p.loss), _finite(p.minimised), _finite(p.gradient)] for p in points],
        "frames": [_frame(run, frame) for frame in frames],
        "update": run.update,
        "done": None if done is None else _end(run, done),
    }


def _end(run: ToyRun, done: str) -> Words:
    if done == "diverged":
        return say("The loss is no longer a number.")
    if done == "learnt":
        return say("Learned by heart: the loss is within {n} nats of the minimum.", n=f"{settings.LEARNT:g}")
    return say("The run has reached its {n} updates.", n=run.settings.max_updates)


def _frame(run: ToyRun, frame: object) -> dict:
    tokenizer = run.tokenizer
    return {
        "update": frame.update,
        "loss": _finite(frame.loss),
        "outputs": [
            {
                "text": tokenizer.decode(ids[len(prefix) :]),
                "finished": ids[-1:] == (tokenizer.end_id,) or len(ids) == run.task.max_steps,
                "read": _labels(tokenizer, [tokenizer.begin_id, *ids[:-1]]),
                "written": _labels(tokenizer, ids),
            }
            for ids, prefix in zip(frame.outputs, run.task.prefixes)
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
    return _spell(tokenizer.tokens(ids))


def _spell(tokens: Sequence[Token]) -> list[str]:
    return [labels.display(token).removeprefix("\u2581") for token in tokens]


def _finite(value: float) -> float | None:
    return round(value, 6) if math.isfinite(value) else None


def options() -> dict:
    """Return the corpora, settings and limits that the page offers."""
    return {
        "corpora": [
            {
                "title": corpus.title,
                "lesson": corpus.lesson,
                "text": corpus.text,
                "settings": dict(corpus.settings),
                "measured": head_effects() if name == measure.LOOKS else [],
            }
            for name, corpus in corpora.CORPORA.items()
        ],
        "choices": {name: list(values) for name, values in settings.CHOICES.items()},
        "settings": settings.ToySettings().to_plain(),
        "mapped": MAPPED,
        "updates": settings.MAX_UPDATES,
        "scale": theme.SCALES["viridis"],
        "measured": switch_effects(),
    }


def head_effects() -> list[dict]:
    """Return the measured losses by the number of heads: {heads, losses}, where losses are {update, mean, deviation}
    over the seeds."""
    return [
        {
            "heads": heads,
            "losses": [
                {"update": update, "mean": statistics.mean(losses), "deviation": statistics.stdev(losses)}
                for update, losses in rows.items()
            ],
        }
        for heads, rows in measure.read_heads().items()
    ]


def switch_effects() -> dict[str, list[dict]]:
    """Return the measured effect of each switch: {about, where, changed, default} after COMPARED_UPDATES, and for some
    also on another corpus or with other sizes (PLACES). changed and default are the lowest and highest loss with and
    without the switch; where labels them."""
    losses = measure.read()

    def compare(name: str, update: int, where: Words) -> dict:
        default, changed = losses[measure.default_of(name)][update], losses[name][update]
        sentence = _sentence(update, default, changed)
        return {
            "about": say("{place}: {found}", place=where, found=sentence) if measure.place_of(name) else sentence,
            "where": where,
            "changed": changed,
            "default": default,
        }

    return {
        switch: [compare(switch, update, say("{n} updates", n=update)) for update in COMPARED_UPDATES]
        + [compare(f"{place} {switch}", *PLACES[place]) for place in PLACES if f"{place} {switch}" in losses]
        for switch in losses
        if switch != "default" and not measure.place_of(switch)
    }


def _sentence(update: int, default: measure.Interval, changed: measure.Interval) -> Words:
    numbers = {name: f"{value:.3g}" for name, value in zip(("low", "high", "from_", "to"), (*changed, *default))}
    numbers["n"] = update
    if not measure.is_reliable(default, changed):
        return say(
            "After {n} updates: loss {low} to {high}, the default's {from_} to {to}: no reliable difference", **numbers
        )
    if changed[1] < default[0]:
        return say(
            "After {n} updates: loss {low} to {high}, reliably lower than the default's {from_} to {to}", **numbers
        )
    return say("After {n} updates: loss {low} to {high}, reliably higher than the default's {from_} to {to}", **numbers)


def group() -> dict:
    """Return the description of this component's group in the tab Train (see viz.panels.registry.describe_tab)."""
    component = {"name": "toy", "title": say("Train your own"), "component": "train", "options": options()}
    return {"name": "own", "title": say("Your model"), "panels": [component]}
