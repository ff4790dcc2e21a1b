"""Each step's distribution over the whole vocabulary: at other temperatures, and after each layer by the lenses."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from attention_atlas.model.analysis.lenses.fit import find_lenses
from attention_atlas.model.analysis.lenses.read import DecoderLens, decoder_lens
from attention_atlas.model.analysis.lenses.storage import Lens
from attention_atlas.model.nets.blocks import blocks
from attention_atlas.model.nets.transformer import Transformer
from attention_atlas.model.trace.interventions import NO_INTERVENTIONS, Interventions
from attention_atlas.model.translator import Translator

TEMPERATURES = tuple(round(0.1 * i, 1) for i in range(1, 21))  # 0.1 to 2.0


@dataclass(frozen=True, eq=False)
class Details:
    """Values of each step that need the whole vocabulary, and that a trace therefore lacks.

    lenses           the logit lens at each step, and the fitted lenses if this model has them; {} for a network that is
                     not a Transformer, which has no layers to read
    log_normalisers  float32 [temperature, step], log of the sum over the vocabulary of p^(1/T); the probability at
                     temperature T is p^(1/T) / exp(log_normaliser)
    entropies        float32 [temperature, step], bits
    """

    lenses: dict[Lens, DecoderLens]
    log_normalisers: np.ndarray
    entropies: np.ndarray


def compute_details(
    translator: Translator,
    source_ids: Sequence[int],
    target_ids: Sequence[int],
    interventions: Interventions = NO_INTERVENTIONS,
) -> Details:
    """Apply every lens, and every temperature to each step's distribution.

    Raises ValueError as Translator.check_target() does.
    """
    ids = translator.check_target(target_ids)
    output = translator.inspect(source_ids, ids, interventions=interventions)
    hidden, parts = output.hidden[0], blocks(len(ids), translator.config.num_target_tokens)
    with torch.inference_mode():
        columns = [
            _apply_temperatures(translator.model.project(hidden[part]).float().log_softmax(-1)) for part in parts
        ]
    fitted = find_lenses(translator)
    lenses = {}
    if isinstance(translator.model, Transformer):
        lenses[Lens.LOGIT] = decoder_lens(translator.model, output, ids)
    for lens in (Lens.TUNED, Lens.JACOBIAN) if fitted else ():
        lenses[lens] = decoder_lens(translator.model, output, ids, fitted.of_decoder(lens))
    return Details(lenses, *(np.concatenate(part, axis=1) for part in zip(*columns)))


def _apply_temperatures(log_p: torch.Tensor) -> tuple[np.ndarray, np.ndarray]:
    """Return log-normalisers and entropies in bits, each [temperature, step], of natural log_p [step, vocabulary]."""
    largest = log_p.max(-1, keepdim=True).values  # subtracted, so that exponents neither overflow nor all vanish
    normalisers, entropies = [], []
    for temperature in TEMPERATURES:
        scaled = (log_p - largest) / temperature
        powers = scaled.exp()
        total = powers.sum(-1)
        mean = (powers * scaled).sum(-1) / total  # of the exponents, under the new distribution
        normalisers.append(total.log() + largest[:, 0] / temperature)
        entropies.append((total.log() - mean) / math.log(2))
    return torch.stack(normalisers).cpu().numpy(), torch.stack(entropies).cpu().numpy()
