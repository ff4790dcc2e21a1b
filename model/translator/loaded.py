"""A checkpoint's network on a device.

>>> from attention_atlas.model.translator import Translator
>>> Translator.load("checkpoints/de-en", device="cpu").weight_bytes
37687296
"""

from __future__ import annotations

import torch

from attention_atlas.model.checkpoint import Checkpoint
from attention_atlas.model.nets.transformer import Transformer
from attention_atlas.model.serve.limits import BatchLimits
from attention_atlas.model.translator.texts import Texts

__all__ = ["Loaded"]


class Loaded(Texts):
    """A checkpoint with its network, of any size that the device has room for. model: a Transformer, or another of
    model.nets.networks; copies of this translator share it. weight_bytes: of its parameters."""

    def __init__(self, checkpoint: Checkpoint, device: torch.device, limits: BatchLimits) -> None:
        super().__init__(checkpoint, limits)
        self.device: torch.device = device
        self.model: Transformer = checkpoint.model.to(device)
        self.weight_bytes: int = sum(parameter.nbytes for parameter in self.model.parameters())
