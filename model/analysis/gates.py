"""The gated units of a recurrent network on one sentence: their gates, and the states that they pass on."""

from __future__ import annotations

import numpy as np
import torch

from attention_atlas.model.analysis.rerun import record_pass
from attention_atlas.model.nets.recurrent import Recurrent
from attention_atlas.model.trace.kinds import Side
from attention_atlas.model.trace.translation import TranslationTrace
from attention_atlas.model.translator import Translator


def decoder_states(translator: Translator, trace: TranslationTrace) -> np.ndarray | None:
    """Return the decoder's state before the first step and after each, float32 [step + 1, d_model].

    None for a network that is not recurrent. Raises what record_pass() raises.
    """
    if not isinstance(translator.model, Recurrent):
        return None
    (gates,) = record_pass(translator, trace).layers(Side.DECODER)[0].units
    return torch.cat((gates.before[0, :1], gates.after[0])).float().cpu().numpy()
