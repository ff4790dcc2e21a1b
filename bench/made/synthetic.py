"""Traces of any size with random attention, made without a model: for benchmarks and tests of size."""

from __future__ import annotations

import numpy as np

from attention_atlas.model.decode.long_text import torch_weights
from attention_atlas.model.trace.maps import AttentionMaps, ComputedWeights
from attention_atlas.model.trace.tokens import tokens_from_spelling
from attention_atlas.model.trace.translation import TranslationTrace

CANDIDATES = 10


def random_trace(
    source: int, target: int, *, layers: int = 6, heads: int = 8, seed: int = 0, is_long: bool = False
) -> TranslationTrace:
    """Return a trace of `source` and `target` tokens, special ones included, with random attention.

    Weights are the softmax of normal scores with a standard deviation of 2. is_long: keep queries and keys of width 64
    instead, from which maps are computed, as for a long text.
    """
    random = np.random.default_rng(seed)

    def maps(queries: tuple[str, ...], keys: tuple[str, ...], *, causal: bool = False) -> AttentionMaps:
        if is_long:
            sides = (random.standard_normal((layers, heads, len(side), 64), np.float32) for side in (queries, keys))
            return AttentionMaps(
                ComputedWeights(*(1.4 * side for side in sides), causal=causal, kernel=torch_weights), queries, keys
            )
        scores = 2 * random.standard_normal((layers, heads, len(queries), len(keys)))
        if causal:
            scores = np.where(np.tri(len(queries), len(keys), dtype=bool), scores, -np.inf)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        return AttentionMaps((weights / weights.sum(-1, keepdims=True)).astype(np.float32), queries, keys)

    source_tokens = tokens_from_spelling(("<2en>", *(f"▁wort{i}" for i in range(source - 2)), "</s>"))
    target_tokens = tokens_from_spelling((*(f"▁word{i}" for i in range(target - 1)), "</s>"))
    inputs = tokens_from_spelling(("<s>", *target_tokens[:-1]))
    probabilities = np.tile(np.linspace(0.5, 0.01, CANDIDATES, dtype=np.float32), (target, 1))
    return TranslationTrace(
        source_text=" ".join(t[1:] for t in source_tokens[1:-1]),
        direction="de-en",
        source_ids=tuple(range(source)),
        source_tokens=source_tokens,
        decoder_ids=tuple(range(target)),
        decoder_inputs=inputs,
        target_ids=tuple(range(target)),
        target_tokens=target_tokens,
        finished=True,
        translation=" ".join(t[1:] for t in target_tokens[:-1]),
        encoder_self=maps(source_tokens, source_tokens),
        decoder_self=maps(inputs, inputs, causal=True),
        cross=maps(inputs, source_tokens),
        top_ids=np.zeros((target, CANDIDATES), np.int32),
        top_tokens=(("▁word",) * CANDIDATES,) * target,
        top_probabilities=probabilities,
        chosen_rank=np.ones(target, np.int32),
        entropy=np.ones(target, np.float32),
        log_probability=np.log(probabilities[:, 0]),
        seconds=0.0,
        device="cpu",
        checkpoint="random",
        digest=f"{seed:016x}",
    )
