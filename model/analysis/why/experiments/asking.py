"""The experiments on a translation, a call each; attribution.attribute() asks about its words.

from attention_atlas.model.analysis import why
effects = why.heads(translator, trace, step=3, contrast="coffee")
effects.ranked()[0], effects.flips
"""

from __future__ import annotations

from attention_atlas.model.analysis.sentences import languages, sentences
from attention_atlas.model.analysis.why import split
from attention_atlas.model.analysis.why.case import Case, ask_case
from attention_atlas.model.analysis.why.experiments import smallest
from attention_atlas.model.analysis.why.experiments.heads import Voices, mean_voices, measured, other_voices, silence
from attention_atlas.model.trace.directions import parse_direction
from attention_atlas.model.trace.language import Refusal
from attention_atlas.model.trace.translation import TranslationTrace
from attention_atlas.model.trace.why.attribution import Against
from attention_atlas.model.trace.why.effects import HeadEffects, Replacement, SmallestSet
from attention_atlas.model.trace.why.parts import Parts
from attention_atlas.model.translator import Translator

DRAWS = 8  # other sentences of a resample ablation
APART = 37  # between two of them in the list of this project's own


def parts(
    translator: Translator,
    trace: TranslationTrace,
    *,
    step: int | None = None,
    contrast: str | int | Against = Against.RUNNER_UP,
) -> Parts:
    """Split the logits of one written token exactly over the decoder's parts (direct logit attribution). step,
    contrast: as in attribute(). ValueError, in words, for what cannot be asked."""
    return split.parts(ask_case(translator, trace, step, contrast))


def heads(
    translator: Translator,
    trace: TranslationTrace,
    *,
    step: int | None = None,
    contrast: str | int | Against = Against.RUNNER_UP,
    replacement: Replacement | str = Replacement.ZERO,
) -> HeadEffects:
    """Measure what one written token loses without each head alone, in nats. step, contrast: as in attribute().
    ValueError, in words, for what cannot be asked, and where there is nothing to be heard in a head's place."""
    case = ask_case(translator, trace, step, contrast)
    return measured(case, voices(case, translator, trace, Replacement(replacement)))


def smallest_set(
    translator: Translator,
    trace: TranslationTrace,
    *,
    replacement: Replacement | str = Replacement.ZERO,
    seed: int | None = None,
) -> SmallestSet:
    """Find heads with which alone every token of the translation is still written, removing them in one order. seed: of
    another order. ValueError, in words, if the plain model does not write this translation."""
    replacement = Replacement(replacement)
    found = smallest.whole(ask_case(translator, trace, 0, Against.NOTHING), translator, trace)
    if replacement is Replacement.RESAMPLE:
        raise Refusal("In the smallest set, heads are replaced by zero or by their average.")
    return smallest.smallest_set(found, voices(found.case, translator, trace, replacement).draws[0], seed=seed)


def voices(case: Case, translator: Translator, trace: TranslationTrace, replacement: Replacement) -> Voices:
    """What is heard of a head that is switched off. A Refusal where there are no means, or no sentences of this
    project's own in the source language, to take it from."""
    if replacement is Replacement.ZERO:
        return silence()
    if replacement is Replacement.MEAN:
        return mean_voices(case)
    return other_voices(case, translator, other_sentences(translator, trace), trace.direction)


def other_sentences(translator: Translator, trace: TranslationTrace) -> list[str]:
    """A few of this project's own, for a resample ablation. A Refusal where there are none in the source language."""
    language = parse_direction(trace.direction)[0]
    if language not in languages():
        raise Refusal("There are no sentences in this source language to take another output from.")
    return [
        text
        for text in sentences(language)[::APART]
        if text != trace.source_text and translator.fits(text, trace.direction)
    ][:DRAWS]
