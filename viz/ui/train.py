"""The first part of the tab "Train": a small network that learns while one watches (viz/questions/train.py)."""

from __future__ import annotations

from model.training.toy import corpora, frames, measure, settings
from viz import theme
from viz.ui.lab.lab import Beside
from viz.words import Words, say

COMPARED = (20, max(measure.UPDATES))


def options() -> dict:
    """What the page is told once."""
    return {
        "corpora": [
            {"name": name, "title": corpus.title, "lesson": corpus.lesson, "text": corpus.text}
            for name, corpus in corpora.CORPORA.items()
        ],
        "choices": {name: list(values) for name, values in settings.CHOICES.items()},
        "mapped": frames.MAPPED,
        "decoded": frames.DECODED,
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


TOY = Beside(say("Train your own"), "toy", "train", options)
