"""The line under a translation that says what not to trust: only signals that passed their measurement speak."""

from __future__ import annotations

from collections.abc import Sequence

from model.trace.translation import TranslationTrace
from model.trace.trust.measured import PROVOKED, Found
from model.trace.trust.signals import SIGNALS, Reading
from model.translator import Translator
from viz.maps.labels import word_label
from viz.ui.desk.scene import Scene
from viz.ui.lab.panel import TRANSFORMER
from viz.words import Words, say

LONGEST = 128  # tokens of both sides: of longer texts the reading takes too long for a line
SAYS = {
    "unsure": lambda words, other: say("unsure between “{words}” and “{other}” here", words=words, other=other),
    "unmoved": lambda words, _: say("“{words}” would be as probable without your sentence", words=words),
    "detached": lambda words, _: say("“{words}” came from nothing in your sentence", words=words),
    "unread": lambda words, _: say("the model hardly used “{words}”", words=words),
    "repeated": lambda words, _: say("“{words}” is repeated", words=words),
}
WHERE = {  # where one sees it, as a link's fields
    "unsure": {"tab": "stepper"},
    "unmoved": {"tab": "why", "panel": "why-tokens"},
    "detached": {"tab": "verify", "panel": "trust"},
    "unread": {"tab": "verify", "panel": "trust"},
    "repeated": {"tab": "explorer", "kind": "cross"},
}


def doubtful(trace: TranslationTrace, translator: Translator | None) -> bool:
    """Whether something can speak up: about a free translation by a plain model whose signals were measured."""
    scene = Scene(trace, made_by=translator)
    given = trace.interventions or (trace.decoding and trace.decoding.given)
    long = len(trace.source_ids) + len(trace.target_ids) > LONGEST
    return not (translator is None or given or long) and TRANSFORMER.met(scene) and bool(scene.trust.shown)


def doubts(trace: TranslationTrace, translator: Translator | None) -> list[dict]:
    """What speaks up about a translation: {text, right, about, step, link}. It takes a pass of the model."""
    if not doubtful(trace, translator):
        return []
    scene = Scene(trace, made_by=translator)
    return [_doubt(scene, name, scene.reading) for name in scene.trust.alarms(scene.reading)]


def _doubt(scene: Scene, name: str, reading: Reading) -> dict:
    signal, trace = SIGNALS[name], scene.trace
    place = signal.place(reading)
    tokens = trace.source_tokens if signal.in_source else trace.target_tokens
    step = None if signal.in_source or not place else place[0]
    other = ""
    if step is not None:
        other = next((t for t in trace.top_tokens[step] if t != trace.target_tokens[step]), "")
    return {
        "text": SAYS[name](spelled(tokens, place), spelled([other], (0,))),
        "right": say("right in {share}", share=share(scene.trust.best(name))),
        "about": how_often(scene.trust.best(name)),
        "step": step,
        "link": WHERE[name],
    }


def spelled(tokens: Sequence[str], place: Sequence[int]) -> str:
    """The text of some positions."""
    return word_label([tokens[i] for i in place])


def share(found: Found) -> str:
    """Of a signal's alarms, those that were right."""
    return f"{found.right / found.alarms:.0%}" if found.alarms else "–"


def how_often(found: Found) -> Words:
    """How often a signal was right where people or rules had labelled translations."""
    numbers = {
        "share": share(found),
        "n": found.alarms,
        "auroc": f"{found.auroc:.2f}",
        "other": f"{found.baseline_auroc:.2f}",
    }
    if found.on == PROVOKED:
        return say(
            "Right in {share} of its {n} alarms about this model's own translations of sources that lead it astray; "
            "AUROC {auroc}, without a model {other}.",
            **numbers,
        )
    return say(
        "Right in {share} of its {n} alarms about translations that people labelled; AUROC {auroc}, without a model "
        "{other}.",
        **numbers,
    )
