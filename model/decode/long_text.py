"""Attention of long texts: a pass stores queries and keys, and each map is computed when it is read."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from attention_atlas.model.config import PositionCode
from attention_atlas.model.nets.attention import attention_weights
from attention_atlas.model.nets.places.visit import At, visited_places
from attention_atlas.model.nets.sweep import Changes, Sweep, attention_edit, combine
from attention_atlas.model.nets.transformer import Transformer
from attention_atlas.model.trace.kinds import TRANSFORMER_KINDS, AttentionKind
from attention_atlas.model.trace.language import Refusal
from attention_atlas.model.trace.maps import ComputedWeights, bias_by_distance


@dataclass(eq=False)
class LongTextCache:
    """The queries and keys of one sentence's passes that run with the interventions `storing`.

    >>> cache = LongTextCache(model, changes)
    >>> model.forward(source, target, interventions=cache.storing)
    >>> cache.maps(AttentionKind.CROSS)[2, 5]  # layer 2, head 5: [query, key], equal to the pass's own to the last bit
    """

    kinds: ClassVar[tuple[AttentionKind, ...]] = TRANSFORMER_KINDS

    model: Transformer
    changes: Changes
    _arrays: dict[str, np.ndarray] = field(default_factory=dict)  # "encoder.self.q": of all layers
    _last_bias: tuple[Tensor | None, np.ndarray | None] = (None, None)

    def __post_init__(self) -> None:
        """Raise a Refusal for edits of scores, which do not follow from queries and keys."""
        if any(place.name.endswith(".scores") for place in visited_places(self.changes, self.model.config)):
            raise Refusal("Scores cannot be edited in a text this long: its maps are computed from queries and keys.")

    @property
    def storing(self) -> Changes:
        """The changes, plus edits that store queries, keys and biases and leave them as they are."""
        parts = ["self.q", "self.k", "cross.q", "cross.k"]
        parts += ["self.bias"] if self.model.config.position_code is PositionCode.RELATIVE else []
        return combine(self.changes, Sweep(edits=tuple((f"*.{part}", self._store) for part in parts)))

    def _store(self, x: Tensor, at: At) -> Tensor:
        assert len(x) == 1, "a long text is read in a batch of its own"
        side, layer, part = at.name.split(".", 2)
        if part == "self.bias":
            if self._last_bias[0] is not x:  # most stacks have one table for all layers
                self._last_bias = x, bias_by_distance(x[0].float().cpu().numpy())
            if self._last_bias[1] is None:
                raise Refusal(
                    "In a text this long, only a term that depends on the distance can be added to the scores."
                )
            self._arrays[f"{side}.{part}.{layer}"] = self._last_bias[1]
            return x
        name = f"{side}.{part}"
        if name not in self._arrays:
            layers = len(getattr(self.model, side).layers)
            self._arrays[name] = np.empty((layers, *x.shape[1:]), np.float32)
        torch.from_numpy(self._arrays[name])[int(layer)] = x[0]
        return x

    def maps(self, kind: AttentionKind, row: int = 0) -> ComputedWeights:
        """Return every map of a kind, to be indexed like an array [layers, heads, query, key]."""
        prefix = f"{kind.side.value}.{'cross' if kind is AttentionKind.CROSS else 'self'}"
        layers = range(self.model.num_layers[kind])
        edits = [attention_edit(self.changes, kind, layer) for layer in layers]
        names = [f"{prefix}.bias.{layer}" for layer in layers]
        biases = [self._arrays[name] for name in names if name in self._arrays]
        if all(bias is biases[0] for bias in biases):
            biases = biases[:1]
        return ComputedWeights(
            self._arrays[f"{prefix}.q"],
            self._arrays[f"{prefix}.k"],
            bias=np.stack(biases) if biases else None,
            causal=kind is AttentionKind.DECODER_SELF and self.model.config.look_ahead_mask,
            scaled=self.model.attention(kind, 0).scaled,
            cut=tuple(edit.plain.cut if edit else () for edit in edits) if any(edits) else (),
            kernel=torch_weights,
        )


def torch_weights(
    queries: np.ndarray, keys: np.ndarray, allowed: np.ndarray | None, bias: np.ndarray | None, scaled: bool
) -> np.ndarray:
    """Compute one map exactly as a pass on the CPU does: the kernel of model.trace.maps.ComputedWeights."""
    queries, keys, mask, bias = (None if x is None else torch.from_numpy(x) for x in (queries, keys, allowed, bias))
    with torch.inference_mode():
        weights = attention_weights(queries[None, None], keys[None, None], mask, bias=bias, scaled=scaled)
    return weights[0, 0].numpy()
