"""Comparison of two sentences in the explorer: minimal pairs to choose from, and the words that both share."""

from __future__ import annotations

import numpy as np

from attention_atlas.model.analysis.alignment.links import glosses
from attention_atlas.model.analysis.sentence_pairs import compare_shared_words, minimal_pair_languages, minimal_pairs
from attention_atlas.model.trace.directions import language_of, parse_direction
from attention_atlas.model.trace.language import Refusal
from attention_atlas.model.trace.survey.survey import DirectionSurvey
from attention_atlas.model.trace.translation import TranslationTrace
from attention_atlas.viz.panels.scene import Scene
from attention_atlas.viz.wire.tiles import is_large
from attention_atlas.viz.words import Words, say

MOST = 40  # words in the table

# The difference within a pair -> (its name, what to look for).
KINDS: dict[str, tuple[Words, Words]] = {
    "order": (
        say("Word order"),
        say(
            "The same words in another order. Does the translation follow the order, or the endings that say who does "
            "what?"
        ),
    ),
    "sense": (
        say("One word, two senses"),
        say(
            "Does the marked word get two different translations? In the table: does its vector diverge "
            "more, layer by layer, than those of the words around it?"
        ),
    ),
    "negation": (
        say("Negation"),
        say("One short word reverses the meaning. Which translated word attends to it, and in which heads?"),
    ),
    "number": (
        say("One or many"),
        say("Nouns, articles and verbs change together. Does the translation keep them in step?"),
    ),
    "tense": (
        say("Tense"),
        say("Only the tense differs. Which translated word carries it, and what does that word attend to?"),
    ),
    "pronoun": (
        say("What a pronoun stands for"),
        say(
            "The last clause says who is meant. Does the translation choose the right pronoun? In "
            "encoder self-attention: which noun does the pronoun attend to?"
        ),
    ),
    "question": (
        say("Statement and question"),
        say(
            "The same words as a statement and as a question. What changes in the translation besides the punctuation?"
        ),
    ),
    "form": (
        say("Two forms, one meaning"),
        say("Different words, same meaning. Is the translation the same even though the maps differ?"),
    ),
    "particle": (
        say("A verb in two parts"),
        say("The last word decides what the verb means. Does the translated verb attend to both parts?"),
    ),
    "place": (
        say("Place and direction"),
        say("Being there or going there: one short word tells which. Does the translation distinguish them?"),
    ),
    "passive": (
        say("Active and passive"),
        say(
            "The one who acts comes first in one sentence and last in the other. Do both keep their "
            "roles in the translation?"
        ),
    ),
    "comma": (say("Commas"), say("Only the commas tell who is speaking. Does the translation notice?")),
}


def pair_menus() -> dict[str, list[dict]]:
    """Return the minimal pairs of the page's menu by language code."""
    named = {kind: {"title": title, "look": look} for kind, (title, look) in KINDS.items()}
    return {
        language: [
            {**named[pair.kind], "first": pair.first, "second": pair.second, "word": pair.word}
            for pair in minimal_pairs(language)
        ]
        for language in minimal_pair_languages()
    }


def language(trace: TranslationTrace) -> str:
    """Return the language code of a trace's sentence, as in pair_menus()."""
    return language_of(parse_direction(trace.direction)[0])


def gloss_words(trace: TranslationTrace, survey: DirectionSurvey | None) -> dict[str, list[str]] | None:
    """Return the linked word of the other side for every token, by side; None for a text too long to draw words.

    Words are linked by the heads that the survey chose.
    """
    if any(is_large(trace, kind) for kind in trace.kinds):
        return None
    source, target = glosses(trace, survey.linked_by if survey else ())
    return {"source": source, "target": target}


def compare_words(scene: Scene, first: TranslationTrace) -> dict:
    """Return the words that this sentence shares with the first one, the least similar ones first."""
    if first.digest != scene.trace.digest:
        raise Refusal("Different models read the two sentences, so their vectors cannot be compared.")
    shared = compare_shared_words(scene.translator, first, scene.trace)
    order = np.argsort(shared.cosine[:, -1], kind="stable")[:MOST]
    return {
        "words": [shared.words[i] for i in order],
        "cosine": np.round(shared.cosine[order], 3).tolist(),
        "others": np.round(shared.baseline.mean(0), 3).tolist(),
    }
