"""Scoring functions of attention: without weights, divided by sqrt(d_k) or not, additive, and others compared.

attend() lets tokens attend by their own vectors; sharpness() and measure_growth() show why the scores are divided by
sqrt(d_k); compare_scorings() applies six scoring functions to one query; additive_stages() takes the additive attention
of a recurrent network apart.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from attention_atlas.model.analysis.formulas.stages import Dissection, attention, in_numpy, softmax
from attention_atlas.model.nets.records import ForwardOutput
from attention_atlas.model.nets.recurrent import Recurrent
from attention_atlas.model.trace.kinds import AttentionKind, Side
from attention_atlas.model.trace.language import say


def attend(x: np.ndarray, *, scaled: bool = False) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Let vectors x [token, d] attend to each other without weights: softmax(x x^T) x, in float64.

    Return the scores x x^T [token, token], their softmax row by row, and the output [token, d]. scaled: divide the
    scores by sqrt(d).
    """
    x = np.asarray(x, np.float64)
    scores, _, weights = attention(x, x, scaled=scaled)
    return scores, weights, weights @ x


def self_weight(weights: np.ndarray) -> float:
    """Return the mean weight of a token on itself, of weights [token, token]."""
    return float(np.diagonal(weights).mean())


def asymmetry(scores: np.ndarray) -> float:
    """Return the largest |s_ij - s_ji| of scores [token, token], in standard deviations of the scores."""
    deviation = float(scores.std())
    return float(np.abs(scores - scores.T).max()) / deviation if deviation else 0.0


@dataclass(frozen=True, eq=False)
class Sharpness:
    """How sharp the softmax of scores is.

    variance  of the scores that no mask closes
    largest   the largest weight, a mean over rows
    gradient  the Frobenius norm of d weights / d scores, a mean over rows; at 0, no gradient passes
    """

    variance: float
    largest: float
    gradient: float


def sharpness(scores: np.ndarray) -> Sharpness:
    """Measure the softmax of scores [.., key], -inf where a mask closes."""
    scores = np.asarray(scores, np.float64)
    weights = softmax(scores)
    # The squared entries of the Jacobian diag(w) - w w^T sum to |w|^2 - 2 sum w^3 + |w|^4.
    squares, cubes = (weights**2).sum(-1), (weights**3).sum(-1)
    norms = np.sqrt(np.maximum(0.0, squares - 2 * cubes + squares**2))
    return Sharpness(float(scores[np.isfinite(scores)].var()), float(weights.max(-1).mean()), float(norms.mean()))


def random_scores(widths: tuple[int, ...], *, keys: int = 16, draws: int = 128, seed: int = 0) -> np.ndarray:
    """Return q.k of vectors with independent components of mean 0 and variance 1: float64 [width, draw, key].

    A wider vector begins with the components of a narrower one (Vaswani et al. 2017, section 3.2.1, footnote 4).
    """
    random, max_width = np.random.default_rng(seed), max(widths)
    queries = random.standard_normal((draws, 1, max_width), dtype=np.float32)
    products = queries * random.standard_normal((draws, keys, max_width), dtype=np.float32)
    sums = products.cumsum(-1, dtype=np.float64)  # [draw, key, width]
    return np.moveaxis(sums[..., np.asarray(widths) - 1], -1, 0)


def measure_growth(
    widths: tuple[int, ...], *, keys: int = 16, draws: int = 128
) -> tuple[list[Sharpness], list[Sharpness]]:
    """Measure the sharpness of random_scores() by width, without the division by sqrt(d_k) and with it.

    "We suspect that for large values of d_k, the dot products grow large in magnitude, pushing the softmax function
    into regions where it has extremely small gradients" (Vaswani et al. 2017, section 3.2.1).
    """
    scores = dict(zip(widths, random_scores(widths, keys=keys, draws=draws)))
    return [*map(sharpness, scores.values())], [sharpness(row / math.sqrt(width)) for width, row in scores.items()]


@dataclass(frozen=True, eq=False)
class Scoring:
    """A scoring function, its scores and weights [key] for one query, and whether the model was trained with it."""

    name: str
    formula: str
    source: str
    trained: bool
    scores: np.ndarray
    weights: np.ndarray


def compare_scorings(dissection: Dissection, *, seed: int = 0) -> tuple[Scoring, ...]:
    """Apply six scoring functions to the same query and keys.

    Scaled dot product (the trained one), dot product, general (Luong et al. 2015, equation 8) and additive (Bahdanau et
    al. 2015, section 3.1), both with random weights, cosine (Graves et al. 2014, equation 6, strength 1) and the
    Gaussian kernel with width^2 = sqrt(d_k). With that width, the Gaussian's exponent is the scaled dot product minus
    |k|^2 / (2 sqrt(d_k)), up to a constant of the query: it differs only by favouring short keys.
    """
    query, keys, width = dissection.query, dissection.keys, len(dissection.query)
    random = np.random.default_rng(seed)
    # The initialisation of an untrained attention (Glorot and Bengio 2010).
    w_query, w_key, w_general = (random.normal(0, math.sqrt(1 / width), (width, width)) for _ in range(3))
    score_vector = random.normal(0, math.sqrt(2 / (width + 1)), width)
    lengths = np.linalg.norm(keys, axis=-1) * np.linalg.norm(query)
    rows = (
        (say("scaled dot product"), "q·k / √d_k", say("Vaswani et al. 2017, equation 1"), True, dissection.scaled),
        (say("dot product"), "q·k", say("Luong et al. 2015, section 3.1"), False, dissection.dots),
        (say("general"), "qᵀ W k", say("Luong et al. 2015, section 3.1"), False, keys @ w_general.T @ query),
        (
            say("cosine"),
            "q·k / (|q| |k|)",
            say("Graves et al. 2014, equation 6"),
            False,
            np.divide(dissection.dots, lengths, out=np.zeros_like(lengths), where=lengths > 0),
        ),
        (
            say("additive"),
            "vᵀ tanh(W q + U k)",
            say("Bahdanau et al. 2015, section 3.1"),
            False,
            np.tanh(query @ w_query.T + keys @ w_key.T) @ score_vector,
        ),
        (
            say("Gaussian kernel"),
            "−|q − k|² / (2 √d_k)",
            "Nadaraya 1964; Watson 1964",
            False,
            -((keys - query) ** 2).sum(-1) / (2 * math.sqrt(width)),
        ),
    )
    return tuple(Scoring(*row, softmax(np.where(dissection.allowed, row[-1], -np.inf))) for row in rows)


@dataclass(frozen=True, eq=False)
class AdditiveStages:
    """One row of a recurrent network's additive attention (Bahdanau et al. 2015, appendix A.1.2).

    float64 unless said otherwise; d is the width of the attention.

    state [state]      the decoder's state s before the row: the query
    token [d_model]    the embedding of the token that the row reads; the decoder's unit reads it with the context
    query [d]          W s
    keys [key, d]      U h + b, of the encoder's state h of each source token
    sums [key, d]      query + keys
    active [key, d]    tanh of the sums
    score_vector [d]   v
    scores [key]       v · tanh(..)
    weights [key]      softmax of the scores
    context [memory]   the sum of weight * h, which the decoder receives
    recorded float32 [key]  the weights that the model itself computed
    """

    state: np.ndarray
    token: np.ndarray
    query: np.ndarray
    keys: np.ndarray
    sums: np.ndarray
    active: np.ndarray
    score_vector: np.ndarray
    scores: np.ndarray
    weights: np.ndarray
    context: np.ndarray
    recorded: np.ndarray

    @property
    def error(self) -> float:
        """The largest difference from the model's own weights."""
        return float(np.abs(self.weights - self.recorded).max())


def additive_stages(model: Recurrent, output: ForwardOutput, row: int, decoder_ids: Sequence[int]) -> AdditiveStages:
    """Compute the stages of one row of a recorded pass of one sentence, whose decoder reads these ids. The network must
    have attention."""
    record = output.attention(AttentionKind.ALIGNMENT, 0)
    assert model.attention is not None and 0 <= row < record.queries.shape[2]
    query, keys, memory, recorded = (
        in_numpy(tensor)
        for tensor in (record.queries[0, 0, row], record.keys[0, 0], record.values[0, 0], record.weights[0, 0, row])
    )
    vector = in_numpy(model.attention.score.weight[0])
    sums = query + keys
    active = np.tanh(sums)
    scores = active @ vector
    weights = softmax(scores)
    (unit,) = output.layers(Side.DECODER)[0].units
    with torch.inference_mode():
        token = in_numpy(model.token_rows(torch.tensor([[decoder_ids[row]]], device=output.memory.device))[0, 0])
    return AdditiveStages(
        in_numpy(unit.before[0, row]),
        token,
        query,
        keys,
        sums,
        active,
        vector,
        scores,
        weights,
        weights @ memory,
        recorded.astype(np.float32),
    )
