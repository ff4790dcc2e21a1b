"""A checkpoint's lenses, in a file beside the weights that they are of."""

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
    """How a stream is read before its time; LOGIT needs no file."""

    LOGIT = "logit"
    TUNED = "tuned"
    JACOBIAN = "jacobian"


@dataclass(frozen=True)
class Found:
    """Over so many sentences, after each encoder layer (the embeddings first): the share of source tokens among whose
    ten pieces stands one of the sentence's own reference, and one of another sentence's."""

    sentences: int
    own: tuple[float, ...]
    other: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class Lenses:
    """digest: of the weights; sentences: over how many; found: by a name of the sentences, how often the encoder's lens
    finds words of their translation (model.analysis.lenses.measure). Float32, in the file float16:

    encoder  [encoder layers + 1, d_model, d_model], J of the encoder's streams
    decoder  [decoder layers + 1, d_model, d_model], J of the decoder's; its last is 1
    weight, bias  [decoder layers, d_model, d_model] and [decoder layers, d_model], the tuned lens's W and b
    """

    digest: str
    sentences: int
    encoder: Tensor
    decoder: Tensor
    weight: Tensor
    bias: Tensor
    found: dict[str, Found] = field(default_factory=dict)

    def of_decoder(self, lens: Lens) -> Callable[[Tensor], Tensor]:
        """What a lens makes of the decoder's streams [layers + 1, .., d_model] before the last norm."""
        return {Lens.LOGIT: lambda streams: streams, Lens.TUNED: self._tuned, Lens.JACOBIAN: self._jacobian}[Lens(lens)]

    def _tuned(self, streams: Tensor) -> Tensor:
        weight, bias = self.weight.to(streams), self.bias.to(streams)
        moved = torch.einsum("l...d,led->l...e", streams[:-1], weight)
        bias = bias.view(len(bias), *[1] * (streams.ndim - 2), -1)
        return torch.cat([streams[:-1] + moved + bias, streams[-1:]])

    def _jacobian(self, streams: Tensor) -> Tensor:
        read = torch.einsum("l...d,led->l...e", streams[:-1], self.decoder[:-1].to(streams))
        return torch.cat([read, streams[-1:]])


def tensors(lenses: Lenses) -> dict[str, Tensor]:
    """Its arrays by name."""
    return {f.name: getattr(lenses, f.name) for f in fields(Lenses) if isinstance(getattr(lenses, f.name), Tensor)}


def save(path: Path, lenses: Lenses) -> None:
    """Write them, whole or not at all."""
    half = {name: tensor.half().contiguous() for name, tensor in tensors(lenses).items()}
    found = json.dumps({name: asdict(one) for name, one in lenses.found.items()})
    metadata = {"digest": lenses.digest, "sentences": str(lenses.sentences), "found": found}
    replace_file(path, lambda partial: save_file(half, partial, metadata))


def load(path: Path, config: ModelConfig, digest: str) -> Lenses:
    """Read a file of save(). ValueError, naming the file, if it is damaged, of other weights or of another shape."""
    try:
        with safe_open(path, framework="pt") as file:
            about, arrays = file.metadata() or {}, {name: file.get_tensor(name).float() for name in file.keys()}
        found = {name: Found(**one) for name, one in json.loads(about["found"]).items()}
        lenses = Lenses(about["digest"], int(about["sentences"]), **arrays, found=found)
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
def stored(folder: Path | None, config: ModelConfig, digest: str) -> Lenses | None:
    """Those of a checkpoint's folder; a damaged file, or one of other weights, is none, and the log says so."""
    return folder and read_or_none(folder / FILE, lambda path: load(path, config, digest))
