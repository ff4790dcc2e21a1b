"""Questions whose answer is tried: something is changed, and the model runs again."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from model.analysis.again import check_again, translated
from model.analysis.why.methods import occlusion
from model.nets.networks import check_transformer
from model.trace.directions import parse_direction
from model.trace.interventions import Interventions, positions_off
from model.trace.language import Refusal, Words
from model.trace.translation import TranslationTrace
from model.trace.words import is_punctuation
from viz.ui.tours.asks.task import MOST, Ask, Task, about, bars, largest, reader, seen, words_of
from viz.ui.tours.scene import StopScene
from viz.wire.question import chance
from viz.words import say

SAME, TURNED, OTHER = say("It stays the same"), say("The same words in another order"), say("Other words")
ARTICLES = {*["der", "die", "das", "den", "dem", "des", "ein", "eine", "einen", "einem", "einer", "eines"]}
MARKS = ".,;:!?"
NEAR = 0.01  # nats: losses nearer than this are both right


def costs_most(scene: StopScene) -> Task:
    """Which word of the source, hidden from every head, takes most from the word asked about."""
    scene = about(scene)
    case = scene.case
    found = occlusion.losses(case)
    shown = words_of(scene.trace.source_tokens)
    at = [case.columns.source.index(group) for _, group in shown]
    words, lost = [word for word, _ in shown], found.of_metric[at]
    worst = int(lost.argmax())
    if lost[worst] <= NEAR:
        raise Refusal(
            "This cannot be asked here: “{word}” stays as probable whichever word is hidden.", word=scene.written
        )
    told = say(
        "Without “{hidden}”, “{word}” begins with a probability of {after} and not of {before}.",
        hidden=words[worst],
        word=scene.written,
        before=chance(found.metric),
        after=chance(found.metric - float(lost[worst])),
    )
    prompt = say(
        "One word of the sentence is hidden from every head. Hiding which one makes “{word}” least probable?",
        word=scene.written,
    )
    picture = bars(words, np.maximum(lost, 0), "nats")
    return Task(prompt, words, largest(lost, NEAR), told, picture, seen(scene, "why", panel="why-tokens"))


def head_off(scene: StopScene) -> Task:
    """What becomes of the translation without the head that reads most."""
    check_transformer(scene.translator.model)
    scene, words, given = reader(scene)
    _, layer, head = scene.head
    changed = _again(scene, Interventions(heads_off=frozenset({scene.head})))
    prompt = say(
        "Head {head} of layer {layer} reads “{source}” when “{word}” is about to be written. It is switched off. "
        "What becomes of the translation?",
        head=head + 1,
        layer=layer + 1,
        source=words[int(given.argmax())],
        word=scene.written,
    )
    return _outcome(scene, changed, prompt, seen(scene))


def unordered(scene: StopScene) -> Task:
    """What becomes of the translation where nobody says which position a word has."""
    check_transformer(scene.translator.model)
    changed = _again(scene, positions_off())
    prompt = say("The model is no longer told at which position a word stands. What becomes of the translation?")
    return _outcome(scene, changed, prompt, seen(scene, "positions", panel="break"))


def reordered(scene: StopScene) -> Task:
    """What becomes of the translation of the same words in another order: the one that the scene names, else with two
    nouns exchanged."""
    trace = scene.trace
    if not scene.other and parse_direction(trace.direction)[0] != "de":
        raise Refusal("This cannot be asked here: its words have no other order that could be written down.")
    other = scene.other or exchanged(trace.source_text)
    changed = scene.translator.translate(other, trace.direction, interventions=trace.interventions)
    prompt = say("The words change places: “{other}”. What becomes of the translation?", other=other.rstrip(MARKS))
    return _outcome(scene, changed, prompt, {**seen(scene), "text": other})


def exchanged(text: str) -> str:
    """A German sentence with its first two nouns, and what stands between each and its article, in each other's place.

    Nouns are known by their capital letters. A Refusal where there are not two with articles.
    """
    words = text.split()
    spans, start = [], None
    for at, word in enumerate(words):
        if word.lower() in ARTICLES:
            start = at
        elif start is not None and word[0].isupper():
            spans.append((start, at + 1))
            start = None
    if len(spans) < 2 or len(words) > MOST:
        raise Refusal("This cannot be asked here: its words have no other order that could be written down.")
    (a, b), (c, d) = spans[:2]
    first, second = words[a:b], words[c:d]
    marks = [phrase[-1][len(phrase[-1].rstrip(MARKS)) :] for phrase in (first, second)]
    for phrase, mark in ((first, marks[0]), (second, marks[1])):
        phrase[-1] = phrase[-1].removesuffix(mark)
    if a == 0:
        first[0], second[0] = first[0].lower(), second[0].capitalize()
    first[-1], second[-1] = first[-1] + marks[1], second[-1] + marks[0]
    return " ".join([*words[:a], *second, *words[b:c], *first, *words[d:]])


def _again(scene: StopScene, changes: Interventions) -> TranslationTrace:
    check_again(scene.translator, scene.trace)
    return translated(scene.translator, scene.trace, scene.trace.interventions | changes)


def _outcome(scene: StopScene, changed: TranslationTrace, prompt: Words, view: Mapping[str, str]) -> Task:
    before, after = (_plain(one.translation) for one in (scene.trace, changed))
    right = 0 if before == after else 1 if sorted(before) == sorted(after) else 2
    told = say(
        "“{before}” becomes “{after}”.",
        before=scene.trace.translation,
        after=changed.translation if len(changed.translation) <= 160 else changed.translation[:159] + "…",
    )
    return Task(prompt, (SAME, TURNED, OTHER), (right,), told if right else say("Nothing changes."), view=view)


def _plain(text: str) -> list[str]:
    """Its words, without capitals and punctuation."""
    return "".join(" " if is_punctuation(c) else c for c in text.casefold()).split()


ASKS: Mapping[str, Ask] = {
    "costs_most": Ask(say("Which word does another one depend on?"), costs_most),
    "reordered": Ask(say("What if the words change places?"), reordered),
    "unordered": Ask(say("What if no positions are told?"), unordered),
    "head_off": Ask(say("What if a head is switched off?"), head_off),
}
