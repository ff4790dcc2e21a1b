"""The lenses of a checkpoint, and their file beside the weights."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, fields
from enum import Enum
from functools import lru_cache
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from attention_atlas.model.config import ModelConfig
from attention_atlas.model.files import read_or_none, replace_file

FILE = "lenses.safetensors"


class Lens(str, Enum):
    """The kind of a lens; LOGIT needs no file."""

    LOGIT = "logit"
    TUNED = "tuned"
    JACOBIAN = "jacobian"


@dataclass(frozen=True)
class HitRates:
    """How often the Jacobian lens finds words of a reference translation, over a number of sentences.

    After each encoder layer (the embeddings first), the share of source tokens whose ten best pieces include one of the
    sentence's own reference (own) or of another sentence's reference (other).
    """

    sentences: int
    own: tuple[float, ...]
    other: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class Lenses:
    """The fitted lenses of one checkpoint; float32 tensors, float16 in the file.

    digest     of the weights
    sentences  the number of sentences they were fitted to
    encoder    [encoder layers + 1, d_model, d_model], J of the encoder's streams
    decoder    [decoder layers + 1, d_model, d_model], J of the decoder's streams; the last is the identity
    weight     [decoder layers, d_model, d_model], W of the tuned lens
    bias       [decoder layers, d_model], b of the tuned lens
    hit_rates  by the name of a set of sentences
    """

    digest: str
    sentences: int
    encoder: Tensor
    decoder: Tensor
    weight: Tensor
    bias: Tensor
    hit_rates: dict[str, HitRates] = field(default_factory=dict)

    def of_decoder(self, lens: Lens) -> Callable[[Tensor], Tensor]:
        """Return a lens as a function of the decoder's streams [layers + 1, .., d_model] before the last norm."""
        if Lens(lens) is Lens.LOGIT:
            return lambda streams: streams

        def tuned(streams: Tensor) -> Tensor:
            bias = self.bias.to(streams)
            bias = bias.view(len(bias), *[1] * (streams.ndim - 2), -1)
            return streams[:-1] + torch.einsum("l...d,led->l...e", streams[:-1], self.weight.to(streams)) + bias

        def jacobian(streams: Tensor) -> Tensor:
            return torch.einsum("l...d,led->l...e", streams[:-1], self.decoder[:-1].to(streams))

        read = tuned if Lens(lens) is Lens.TUNED else jacobian
        return lambda streams: torch.cat([read(streams), streams[-1:]])


def tensors(lenses: Lenses) -> dict[str, Tensor]:
    """Return the tensors by name."""
    return {f.name: getattr(lenses, f.name) for f in fields(Lenses) if isinstance(getattr(lenses, f.name), Tensor)}


def save(path: Path, lenses: Lenses) -> None:
    """Write lenses to a file atomically."""
    half = {name: tensor.half().contiguous() for name, tensor in tensors(lenses).items()}
    hit_rates = json.dumps({name: asdict(rates) for name, rates in lenses.hit_rates.items()})
    metadata = {"digest": lenses.digest, "sentences": str(lenses.sentences), "found": hit_rates}
    replace_file(path, lambda partial: save_file(half, partial, metadata))


def load(path: Path, config: ModelConfig, digest: str) -> Lenses:
    """Read a file written by save(). Raises ValueError if it is damaged, of other weights or of another shape."""
    try:
        with safe_open(path, framework="pt") as file:
            metadata, arrays = file.metadata() or {}, {name: file.get_tensor(name).float() for name in file.keys()}
        hit_rates = {name: HitRates(**rates) for name, rates in json.loads(metadata["found"]).items()}
        lenses = Lenses(metadata["digest"], int(metadata["sentences"]), **arrays, hit_rates=hit_rates)
    except (SafetensorError, OSError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path} is not a file of lenses: {error}") from error
    if lenses.digest != digest:
        raise ValueError(
            f"{path} holds lenses of other weights ({lenses.digest}, here {digest}): run attention-atlas lenses again"
        )
    encoder, decoder, width = config.num_encoder_layers, config.num_decoder_layers, config.d_model
    expected = {
        "encoder": (encoder + 1, width, width),
        "decoder": (decoder + 1, width, width),
        "weight": (decoder, width, width),
        "bias": (decoder, width),
    }
    for name, tensor in tensors(lenses).items():
        if tensor.shape != expected[name] or not tensor.isfinite().all():
            raise ValueError(
                f"{path}: {name} must be {list(expected[name])} finite numbers, found {list(tensor.shape)}"
            )
    return lenses


@lru_cache(maxsize=8)
def load_stored(folder: Path | None, config: ModelConfig, digest: str) -> Lenses | None:
    """Load the lenses of a checkpoint's folder. Returns None if there are none, or, with a log entry, if the file is
    damaged or of other weights."""
    return folder and read_or_none(folder / FILE, lambda path: load(path, config, digest))
