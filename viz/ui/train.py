"""The first part of the tab "Train": a small network that learns while one watches, and a second setting beside it.

The page asks page_train, and page_toy for the address of what a toy translates (viz/questions/train.py).
"""

from __future__ import annotations

from model.training.toy import corpora, frames, measure, settings
from viz import theme
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
        "measured": {
            switch: [{"about": words, **ranges} for words, ranges in zip(sentences, measured_ranges(switch))]
            for switch, sentences in measured().items()
        },
    }


def measured() -> dict[str, list[Words]]:
    """What each switch was measured to do, a sentence for each number of updates and, of codes for positions, one more
    for the corpus in which order is all there is."""
    found = measure.read()

    def said(switch: str, update: int) -> Words:
        return _sentence(update, found[measure.default_of(switch)][update], found[switch][update])

    order = f"{measure.ORDER} "
    return {
        switch: [said(switch, update) for update in COMPARED]
        + (
            [say("Word order: {found}", found=said(f"{order}{switch}", COMPARED[-1]))]
            if f"{order}{switch}" in found
            else []
        )
        for switch in found
        if switch != "default" and not switch.startswith(order)
    }


def measured_ranges(switch: str) -> list[dict]:
    """What measured() says of a switch, to be drawn: after how many updates, whether on the corpus in which order is
    all there is, the lowest and highest loss with it, and those of the default."""
    found, order = measure.read(), f"{measure.ORDER} {switch}"
    asked = [(switch, update) for update in COMPARED] + [(order, COMPARED[-1])] * (order in found)
    return [
        {
            "update": update,
            "order": name == order,
            "changed": found[name][update],
            "default": found[measure.default_of(name)][update],
        }
        for name, update in asked
    ]


def _sentence(update: int, default: measure.Interval, changed: measure.Interval) -> Words:
    numbers = {name: f"{value:.3g}" for name, value in zip(("low", "high", "from_", "to"), (*changed, *default))}
    if not measure.apart(default, changed):
        return say(
            "After {n} updates: loss {low} to {high}, the default's {from_} to {to}: no reliable difference",
            n=update,
            **numbers,
        )
    if changed[1] < default[0]:
        return say(
            "After {n} updates: loss {low} to {high}, reliably lower than the default's {from_} to {to}",
            n=update,
            **numbers,
        )
    return say(
        "After {n} updates: loss {low} to {high}, reliably higher than the default's {from_} to {to}",
        n=update,
        **numbers,
    )


def place() -> dict:
    """The inner tab of the lab (viz.ui.lab.lab.build) that holds it."""
    return {"name": "toy", "title": say("Train your own"), "panels": [], "component": "train", "options": options()}
