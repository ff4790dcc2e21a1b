"""Steering: a direction from two sentences, added to every pass (activation addition: Turner et al. 2023; Subramani et
al. 2022).

>>> from attention_atlas.model.translator import Translator
>>> translator = Translator.load("checkpoints/de-en", device="cpu")
>>> drinks = direction(translator, "Ich trinke einen Tee.", "Ich trinke ein Bier.", place="encoder.final")
>>> with translator.edit({"encoder.final": Add(drinks, strength=3)}) as steered:
...     steered.translate("Ich möchte ein Bier, bitte.").direction
'de-en'
"""

from __future__ import annotations

import numpy as np

from attention_atlas.model.analysis.again import translated
from attention_atlas.model.decode.steering import check_differ, check_place, difference, token_means
from attention_atlas.model.nets.networks import check_transformer
from attention_atlas.model.trace.edits import Add
from attention_atlas.model.trace.interventions import Interventions
from attention_atlas.model.trace.translation import TranslationTrace
from attention_atlas.model.translator import Translator

__all__ = ["direction", "steered"]


def direction(
    translator: Translator, towards: str, away: str, *, place: str, languages: str | None = None
) -> np.ndarray:
    """What a place holds of the one sentence less what it holds of the other, each averaged over its tokens: float32
    [width]. At a place of the decoder the model's own translations are read. languages: such as "de-en"; None: the
    checkpoint's first. ValueError for a text or a place that cannot be used; a Refusal for two texts that are one."""
    check_transformer(translator.model)
    check_place(place, translator.config)
    run = translator.run([towards, away], names=[place], direction=languages)
    check_differ(*run.source_ids)
    return difference(*token_means(run, place))


def steered(translator: Translator, trace: TranslationTrace, place: str, added: Add) -> TranslationTrace:
    """The trace's sentence translated anew with this added at a place, beside whatever the trace was made with."""
    return translated(translator, trace, trace.interventions | Interventions(edits=((place, added),)))
