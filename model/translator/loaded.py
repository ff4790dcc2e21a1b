"""A checkpoint's network on a device.

>>> from attention_atlas.model.translator import Translator
>>> Translator.load("checkpoints/de-en", device="cpu").weight_bytes
37687296
"""

from __future__ import annotations

import torch

from attention_atlas.model.checkpoint import Checkpoint
from attention_atlas.model.nets.lean.halves import trust
from attention_atlas.model.serve.limits import BatchLimits
from attention_atlas.model.translator.texts import Texts


class Loaded(Texts):
    """A checkpoint with its network, of any size that the device has room for. model: a Transformer, or another of
    model.nets.networks; copies of this translator share it. weight_bytes: of its parameters."""

    def __init__(self, checkpoint: Checkpoint, device: torch.device, limits: BatchLimits) -> None:
        super().__init__(checkpoint, limits)
        self.device, self.model = device, checkpoint.model.to(device)
        self.weight_bytes = sum(parameter.nbytes for parameter in self.model.parameters())

    def serve_alone(self) -> None:
        """From now on nobody else changes the network: its packed copies are not compared with it."""
        trust(self.model)
