"""Passes over long texts: of every attention queries and keys are held, of which its maps follow."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from attention_atlas.model.config import PositionCode
from attention_atlas.model.nets.attention import attention_weights
from attention_atlas.model.nets.places.visit import At, visited
from attention_atlas.model.nets.sweep import Changes, Sweep, attention_edit, joined
from attention_atlas.model.nets.transformer import Transformer
from attention_atlas.model.trace.kinds import TRANSFORMER_KINDS, AttentionKind
from attention_atlas.model.trace.language import Refusal
from attention_atlas.model.trace.maps import ComputedWeights, by_distance


@dataclass(eq=False)
class Held:
    """What passes of one sentence leave behind that run with `watched`: encode() and read() of the same changes.

    >>> held = Held(model, changes)
    >>> model.forward(source, target, interventions=held.watched)
    >>> held.maps(AttentionKind.CROSS)[2, 5]  # [query, key], bit for bit what the third layer's sixth head had
    """

    model: Transformer
    changes: Changes
    _found: dict[str, np.ndarray] = field(default_factory=dict)  # "encoder.self.q": of all layers
    _last: tuple[Tensor | None, np.ndarray | None] = (None, None)

    def __post_init__(self) -> None:
        """A Refusal for changes to the scores: queries and keys do not give those."""
        if any(place.name.endswith(".scores") for place in visited(self.changes, self.model.config)):
            raise Refusal("In so long a text no scores can be edited: its maps are computed from queries and keys.")

    @property
    def watched(self) -> Changes:
        """The changes, and what is held of a pass that is made with them."""
        parts = ["self.q", "self.k", "cross.q", "cross.k"]
        parts += ["self.bias"] if self.model.config.position_code is PositionCode.RELATIVE else []
        return joined(self.changes, Sweep(edits=tuple((f"*.{part}", self._hold) for part in parts)))

    def _hold(self, x: Tensor, at: At) -> Tensor:
        assert len(x) == 1, "a long text goes through alone"
        side, layer, part = at.name.split(".", 2)
        if part == "self.bias":
            if self._last[0] is not x:  # one table serves all layers of most stacks
                self._last = x, by_distance(x[0].float().cpu().numpy())
            if self._last[1] is None:
                raise Refusal("In so long a text only what depends on the distance alone can be added to the scores.")
            self._found[f"{side}.{part}.{layer}"] = self._last[1]
            return x
        name = f"{side}.{part}"
        if name not in self._found:
            layers = len(getattr(self.model, side).layers)
            self._found[name] = np.empty((layers, *x.shape[1:]), np.float32)
        torch.from_numpy(self._found[name])[int(layer)] = x[0]
        return x

    @property
    def kinds(self) -> tuple[AttentionKind, ...]:
        return TRANSFORMER_KINDS

    def maps(self, kind: AttentionKind, row: int = 0) -> ComputedWeights:
        """Every map of a kind."""
        at = f"{kind.side.value}.{'cross' if kind is AttentionKind.CROSS else 'self'}"
        layers = range(self.model.num_layers[kind])
        edits = [attention_edit(self.changes, kind, layer) for layer in layers]
        bias = [self._found[f"{at}.bias.{layer}"] for layer in layers if f"{at}.bias.{layer}" in self._found]
        return ComputedWeights(
            self._found[f"{at}.q"],
            self._found[f"{at}.k"],
            bias=np.stack(bias[:1] if all(one is bias[0] for one in bias) else bias) if bias else None,
            causal=kind is AttentionKind.DECODER_SELF and self.model.config.look_ahead_mask,
            scaled=self.model.attention(kind, 0).scaled,
            cut=tuple(edit.plain.cut if edit else () for edit in edits) if any(edits) else (),
            kernel=in_torch,
        )


def in_torch(
    queries: np.ndarray, keys: np.ndarray, allowed: np.ndarray | None, bias: np.ndarray | None, scaled: bool
) -> np.ndarray:
    """The kernel of model.trace.maps that computes as a pass on the CPU does, to the last bit."""
    queries, keys, mask, bias = (None if x is None else torch.from_numpy(x) for x in (queries, keys, allowed, bias))
    with torch.inference_mode():
        found = attention_weights(queries[None, None], keys[None, None], mask, bias=bias, scaled=scaled)
    return found[0, 0].numpy()
