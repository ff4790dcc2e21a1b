"""Steer translations by adding a vector, the difference of two sentences' activations, to every pass.

This is activation addition (Turner et al. 2023; Subramani et al. 2022).

>>> from attention_atlas.model.translator import Translator
>>> translator = Translator.load("checkpoints/de-en", device="cpu")
>>> drinks = compute_steering_vector(translator, "Ich trinke einen Tee.", "Ich trinke ein Bier.", place="encoder.final")
>>> with translator.edit({"encoder.final": Add(drinks, strength=3)}) as steered:
...     steered.translate("Ich möchte ein Bier, bitte.").direction
'de-en'
"""

from __future__ import annotations

import numpy as np

from attention_atlas.model.analysis.rerun import retranslate
from attention_atlas.model.trace.edits import Add, SteeringVector
from attention_atlas.model.trace.interventions import Interventions
from attention_atlas.model.trace.translation import TranslationTrace
from attention_atlas.model.translator import Translator
from attention_atlas.model.translator.steering import compute_vectors

__all__ = ["compute_steering_vector", "translate_with_vector"]


def compute_steering_vector(
    translator: Translator, towards: str, away: str, *, place: str, languages: str | None = None
) -> np.ndarray:
    """Return the mean activation of one sentence at a place less that of the other: float32 [width].

    Means are over tokens; at a place of the decoder the model's own translations are read. languages: the language
    pair, such as "de-en"; None: the checkpoint's first. Raises ValueError for a text or a place that cannot be used,
    and a Refusal if both texts are the same.
    """
    (vector,) = compute_vectors(translator, [(place, SteeringVector(towards, away, languages))])
    return vector


def translate_with_vector(translator: Translator, trace: TranslationTrace, place: str, added: Add) -> TranslationTrace:
    """Translate the trace's sentence again with a vector added at a place, besides the trace's own interventions."""
    return retranslate(translator, trace, trace.interventions | Interventions(edits=((place, added),)))
