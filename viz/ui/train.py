"""What the tab "Train" begins with: a small network that learns while one watches, a second setting beside it, and the
first one opened in the other tabs. The page asks for one turn after the other; who stops asking has stopped training.
"""

from __future__ import annotations

import gradio as gr

from model.config import from_json
from model.trace.address import Address
from model.training.toy import corpora, frames, measure, settings
from model.training.toy.run import DIRECTION, ToyRun
from model.training.toy.settings import ToySettings
from model.training.toy.store import SIDES, ToyStore, Visit
from model.translators import Translators
from viz import theme
from viz.questions.registry import Context
from viz.ui import direction
from viz.ui.component import Component
from viz.ui.desk import fields
from viz.ui.desk.desk import Desk, turns_for
from viz.ui.header import Header
from viz.ui.lab.lab import Beside
from viz.ui.language import label
from viz.ui.rpc import Message, told
from viz.wire import training
from viz.words import Words, say

LIMITS = {"updates": settings.MAX_UPDATES, "seconds": int(settings.MAX_SECONDS), "learnt": f"{settings.LEARNT:g}"}
YOURS = say("Your toy")  # in the menu of directions
COMPARED = (20, max(measure.UPDATES))


def build(context: Context, header: Header) -> None:
    """Lay out and wire the tab."""
    store, translators = ToyStore(), context.translators
    component = Component("train", told(), plotly=True, events=("act", "open"), options=options(), elem_id="train")
    visit = gr.State(None)

    def act(message: Message, visit: Visit | None):
        visit = visit or Visit()
        return fields.entry(message.data, "action", ACTIONS)(store, visit, message.data), visit

    def open_toy(message: Message, visit: Visit | None):
        run = (visit or Visit()).run(message.data.get("side"))
        text = run.pairs[fields.whole(message.data, "pair", 0) % len(run.pairs)][0]
        name = opened(translators, visit, run)
        trace = visit.opened.trace_batch([text], DIRECTION)[0]
        context.traces.add(trace)
        return (
            {
                "opens": Address.of(trace).to_plain(),
                "fill": {"text": text, **direction.chosen(translators, translators.route(name))},
            },
            gr.Dropdown([*direction.entries(translators), (label(YOURS), name)]),
        )

    desk = Desk(component, turns_for(translators))
    # Outside the queue, whose own work for an event takes as long as a turn; on the CPU also where handlers are lent a
    # GPU: nobody's share of it pays for a toy.
    desk.answers("act", act, [visit], [visit], queue=False)
    # Through the queue, which sets off what listens to the states.
    desk.answers(
        "open",
        open_toy,
        [visit],
        [header.menu],
        turn=True,
    )


def opened(translators: Translators, visit: Visit, run: ToyRun) -> str:
    """Serve a run's network as it is now, in the place of what the visitor opened before; by which label."""
    visit.opened = run.opened()
    return translators.lend(visit.opened)


def prepare(store: ToyStore, visit: Visit, data: dict) -> dict:
    """What can be done before a visitor presses anything."""
    store.prepare()
    return {}


def start(store: ToyStore, visit: Visit, data: dict) -> dict:
    """Begin a run."""
    side = data.get("side")
    if side not in SIDES:
        raise ValueError(f"there are the runs {' and '.join(SIDES)}, found {side!r}")
    pairs = corpora.read(fields.text(data, "corpus", ""))
    run = store.start(visit, side, pairs, from_json(ToySettings, data.get("settings")))
    return {"side": side, "run": training.beginning(run), "turn": training.progress(run, (), run.frames, None, LIMITS)}


def go(store: ToyStore, visit: Visit, data: dict) -> dict:
    """One turn more."""
    side = data.get("side")
    turn, run = store.go(visit, side), visit.run(side)
    return {"side": side, "turn": training.progress(run, turn.points, turn.frames, turn.done, LIMITS)}


ACTIONS = {"prepare": prepare, "start": start, "go": go}


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


TOY = Beside(say("Train your own"), "toy", "train", build)
