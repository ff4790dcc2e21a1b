"""A checkpoint's network on a device, which may leave memory while nobody uses it.

>>> from model.translator import Translator
>>> translator = Translator.load("checkpoints/de-en", device="cpu")
>>> translator.serve_alone()  # as a server does: nobody else has it
>>> translator.rest(), translator.translate("Guten Morgen.").translation  # which has it read again
(True, 'Good morning.')
"""

from __future__ import annotations

import logging
import threading
import time

import torch

from model import checkpoint as checkpoints
from model.checkpoint import Checkpoint
from model.nets.lean.halves import trust
from model.nets.transformer import Transformer
from model.serve.device import give_memory_back
from model.serve.limits import BatchLimits
from model.trace.language import Refusal
from model.translator.texts import Texts

LARGEST = 128_000_000  # bytes of weights: what is larger takes too long to be read again

log = logging.getLogger(__name__)


class _Kept:
    """A network in memory, or None while it rests. used: when somebody asked for it last, in time.monotonic()'s
    seconds. is_lone: nobody holds or changes it but those who ask here."""

    def __init__(self, network: Transformer) -> None:
        self.network: Transformer | None = network
        self.used, self.is_lone = time.monotonic(), False
        self.lock = threading.Lock()


class Loaded(Texts):
    """A checkpoint with its network, of any size that the device has room for."""

    def __init__(self, checkpoint: Checkpoint, device: torch.device, limits: BatchLimits) -> None:
        super().__init__(checkpoint, limits)
        self.device, self.model = device, checkpoint.model.to(device)

    @property
    def model(self) -> Transformer:
        """A Transformer, or another of model.nets.networks. A Refusal where it rested and its files are gone."""
        kept = self._kept  # which copies of this translator share
        kept.used, network = time.monotonic(), kept.network
        return self._read_again() if network is None else network

    @model.setter
    def model(self, network: Transformer) -> None:
        self._kept = _Kept(network)
        self.weight_bytes = sum(parameter.nbytes for parameter in network.parameters())

    def serve_alone(self) -> None:
        """From now on nobody else changes the network: its packed copies are not compared with it, and it may rest."""
        self._kept.is_lone = True
        trust(self.model)

    def rest(self, seconds: float = 0.0) -> bool:
        """Let go of a network that nobody asked for in so many seconds; whoever asks next has it read again, which
        takes a tenth of a second for a shipped one. Whether it rests now. One that does not serve alone, lies on an
        accelerator, is large or was made in memory stays."""
        kept = self._kept
        if not kept.is_lone or self.device.type != "cpu" or self.folder is None or self.weight_bytes > LARGEST:
            return False
        with kept.lock:
            if kept.network is not None and time.monotonic() - kept.used >= seconds:
                kept.network = None
                give_memory_back()
            return kept.network is None

    def _read_again(self) -> Transformer:
        kept = self._kept
        with kept.lock:
            if kept.network is None:
                kept.network = self._of_files()
            return kept.network

    def _of_files(self) -> Transformer:
        assert self.folder is not None  # or it would not rest
        try:
            found = checkpoints.load(self.folder)
        except (ValueError, OSError):
            log.exception("%s cannot be read again", self.name)
            found = None
        if found is None or found.digest != self.digest:
            raise Refusal("The model's files have changed: the server has to be started again.")
        trust(found.model)
        return found.model
