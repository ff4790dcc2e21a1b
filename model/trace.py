"""What a translation left behind, as numpy arrays: the one type that crosses from the model to the pictures.

Importable without torch.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np

ROW_SUM_TOLERANCE = 1e-4  # float32 softmax over at most a few hundred keys stays well inside


class AttentionKind(str, Enum):
    """The three attentions of an encoder-decoder Transformer (Vaswani et al. 2017, section 3.2.3)."""

    ENCODER_SELF = "encoder_self"
    DECODER_SELF = "decoder_self"
    CROSS = "cross"


@dataclass(frozen=True, eq=False)  # eq=False: hashed by identity, since arrays cannot be hashed
class AttentionMaps:
    """Every attention map of one kind.

    weights       float32 [layers, heads, query, key]: the softmax's output, before any dropout; rows sum to 1
    query_tokens  the tokens whose rows these are: for the decoder the tokens READ, `<s> y1 .. yT`
    key_tokens    the tokens attended to

    Raises ValueError if shapes disagree or a row does not sum to 1 within 1e-4.
    """

    weights: np.ndarray
    query_tokens: tuple[str, ...]
    key_tokens: tuple[str, ...]

    def __post_init__(self) -> None:
        if self.weights.dtype != np.float32 or self.weights.ndim != 4:
            raise ValueError(f"weights must be float32 [layers, heads, query, key], found {self.weights.dtype} "
                             f"{list(self.weights.shape)}")
        expected = (len(self.query_tokens), len(self.key_tokens))
        if self.weights.shape[2:] != expected:
            raise ValueError(f"weights are {self.weights.shape[2:]} (query, key), tokens {expected}")
        if not np.isfinite(self.weights).all() or (self.weights < 0).any():
            raise ValueError("weights must be finite and not negative")
        error = np.abs(self.weights.sum(-1, dtype=np.float64) - 1.0)
        if error.size and error.max() > ROW_SUM_TOLERANCE:
            layer, head, query = (int(i) for i in np.unravel_index(error.argmax(), error.shape))
            raise ValueError(f"row {query} of layer {layer}, head {head} sums to 1 only within {error.max():.2e}")

    @property
    def num_layers(self) -> int:
        return self.weights.shape[0]

    @property
    def num_heads(self) -> int:
        return self.weights.shape[1]


@dataclass(frozen=True, eq=False)
class TranslationTrace:
    """One sentence's way through the model.

    Row t of decoder_self and cross READ decoder_inputs[t] and PREDICTED target_tokens[t]; both tuples have the
    same length. `finished` is False when decoding was stopped by its length limit (then target_tokens does not end
    in `</s>`). log_probability is natural, entropy in bits, both of the model's full next-token distribution;
    chosen_rank counts from 1. `interventions` says in words what was switched off or cut; empty for the plain model.
    """

    source_text: str
    direction: str  # such as "de-en"
    source_ids: tuple[int, ...]
    source_tokens: tuple[str, ...]  # <2en> x1 .. xS </s>
    decoder_ids: tuple[int, ...]
    decoder_inputs: tuple[str, ...]  # <s> y1 .. yT
    target_ids: tuple[int, ...]
    target_tokens: tuple[str, ...]  # y1 .. yT </s>
    finished: bool
    translation: str
    encoder_self: AttentionMaps
    decoder_self: AttentionMaps
    cross: AttentionMaps
    top_ids: np.ndarray  # int32 [step, k], most probable first
    top_tokens: tuple[tuple[str, ...], ...]  # [step][k]
    top_probabilities: np.ndarray  # float32 [step, k]
    chosen_rank: np.ndarray  # int32 [step]
    entropy: np.ndarray  # float32 [step], bits
    log_probability: np.ndarray  # float32 [step], of target_ids
    seconds: float  # wall-clock time of the batch it was translated in
    device: str
    checkpoint: str
    digest: str  # first 16 hex digits of the weights file's SHA-256
    interventions: str = ""

    def __post_init__(self) -> None:
        steps = len(self.target_ids)
        lengths = {
            "source_tokens": (len(self.source_tokens), len(self.source_ids)),
            "decoder_ids": (len(self.decoder_ids), steps),
            "decoder_inputs": (len(self.decoder_inputs), steps),
            "target_tokens": (len(self.target_tokens), steps),
            "top_ids": (len(self.top_ids), steps),
            "top_tokens": (len(self.top_tokens), steps),
            "top_probabilities": (len(self.top_probabilities), steps),
            "chosen_rank": (len(self.chosen_rank), steps),
            "entropy": (len(self.entropy), steps),
            "log_probability": (len(self.log_probability), steps),
        }
        for name, (found, expected) in lengths.items():
            if found != expected:
                raise ValueError(f"{name} has {found} entries, expected {expected}")
        for kind, queries, keys in (
            (AttentionKind.ENCODER_SELF, self.source_tokens, self.source_tokens),
            (AttentionKind.DECODER_SELF, self.decoder_inputs, self.decoder_inputs),
            (AttentionKind.CROSS, self.decoder_inputs, self.source_tokens),
        ):
            maps = self.maps(kind)
            if maps.query_tokens != queries or maps.key_tokens != keys:
                raise ValueError(f"the tokens of the {kind.value} maps are not the trace's own")

    def maps(self, kind: AttentionKind) -> AttentionMaps:
        """The maps of one kind."""
        return getattr(self, AttentionKind(kind).value)
