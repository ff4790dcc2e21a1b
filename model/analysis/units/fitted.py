"""A checkpoint's dictionary, in a file beside the weights that it is of."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from pathlib import Path

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from attention_atlas.model.analysis.units.measure import Quality
from attention_atlas.model.analysis.units.sparse import Dictionary
from attention_atlas.model.files import read_or_none, replace_file

FILE = "dictionary.safetensors"
ARRAYS = ("encoder", "bias", "directions", "centre")


@dataclass(frozen=True, eq=False)
class Fitted:
    """layer: of the encoder, from 0, behind which the stream is read; sentences: over how many; qualities: of it, of
    directions drawn by lot and of neurons (model.analysis.units.measure). digest: of the weights."""

    dictionary: Dictionary
    layer: int
    sentences: int
    digest: str
    qualities: dict[str, Quality] = field(default_factory=dict)


def save(path: Path, fitted: Fitted) -> None:
    """Write it, whole or not at all; in float16."""
    found = fitted.dictionary
    about = {"layer": fitted.layer, "sentences": fitted.sentences, "scale": found.scale, "k": found.k}
    qualities = {name: asdict(one) for name, one in fitted.qualities.items()}
    arrays = {name: getattr(found, name).half().contiguous() for name in ARRAYS}
    metadata = {"digest": fitted.digest, "about": json.dumps({**about, "qualities": qualities})}
    replace_file(path, lambda partial: save_file(arrays, partial, metadata))


def load(path: Path, digest: str, width: int) -> Fitted:
    """Read a file of save(). ValueError, naming the file, if it is damaged, of other weights or of another width."""
    try:
        with safe_open(path, framework="pt") as file:
            metadata, arrays = file.metadata() or {}, [file.get_tensor(name).float() for name in ARRAYS]
        about = json.loads(metadata["about"])
        dictionary = Dictionary(*arrays, scale=float(about["scale"]), k=int(about["k"]))
        qualities = {name: Quality(**one) for name, one in about["qualities"].items()}
        found = Fitted(dictionary, int(about["layer"]), int(about["sentences"]), metadata["digest"], qualities)
    except (SafetensorError, OSError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path} is not a file of a dictionary: {error}") from error
    if found.digest != digest:
        raise ValueError(f"{path} is of other weights ({found.digest}, here {digest}): run attention-atlas dictionary")
    units = len(dictionary.bias)
    shapes = [tuple(array.shape) for array in arrays]
    if shapes != [(units, width), (units,), (units, width), (width,)] or not all(a.isfinite().all() for a in arrays):
        raise ValueError(f"{path}: {shapes} are not the shapes of a dictionary of width {width}, or not finite")
    return found


@lru_cache(maxsize=8)
def stored(folder: Path | None, digest: str, width: int) -> Fitted | None:
    """That of a checkpoint's folder; a damaged file, or one of other weights, is none, and the log says so."""
    return folder and read_or_none(folder / FILE, lambda path: load(path, digest, width))
