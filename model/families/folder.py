"""Read a model's folder from a hub or a stranger safely: with bounds, inside the folder, executing nothing."""

from __future__ import annotations

import hashlib
import pickletools
import zipfile
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from attention_atlas.model.files import (
    CONFIG,
    MAX_CONFIG_BYTES,
    MAX_VOCABULARY_BYTES,
    check_content,
    read_bytes,
    read_json,
    value_errors,
)

SAFETENSORS, PICKLE = "model.safetensors", "pytorch_model.bin"
GENERATION, TOKENIZER_CONFIG = "generation_config.json", "tokenizer_config.json"
FLOATS = (torch.float32, torch.float16, torch.bfloat16, torch.float64)
MAX_SHARDS = 200
MAX_OPERATIONS = 500_000  # of a pickle; a tensor takes about 25
LEGACY_PICKLES = 5  # at the start of a file that torch wrote before 1.6


@dataclass(frozen=True)
class Folder:
    """Reads files of a folder by their plain names, up to a limit of bytes."""

    path: Path

    def has(self, name: str) -> bool:
        return (self.path / name).is_file()

    def find(self, name: str) -> Path:
        """Return the path of a file.

        Raises ValueError if it is missing, its name is no plain one, or it is a link out of the folder. Links into the
        hub's cache are followed, and so are links to safetensors anywhere: many people keep weights on another disk,
        and such a file holds nothing but tensors.
        """
        if not name or Path(name).name != name or "\\" in name or name in (".", ".."):
            raise ValueError(f"{self.path}: a file of a model must be named plainly, found {name!r}")
        path = self.path / name
        if not path.is_file():
            raise ValueError(f"{path} is missing")
        home = self.path.resolve()
        # models--org--name/snapshots/<commit>/file -> ../../blobs/<digest>
        blobs = home.parent.parent / "blobs" if home.parent.name == "snapshots" else home
        if path.suffix != ".safetensors" and path.resolve().parent not in (home, blobs):
            raise ValueError(f"{path} is a link that leads out of the folder")
        return path

    def json(self, name: str, *, limit: int = MAX_CONFIG_BYTES) -> dict:
        """Return the JSON object of a file, {} if it is missing. Raises ValueError for anything else."""
        if not self.has(name):
            return {}
        value = read_json(self.find(name), limit=limit)
        if not isinstance(value, dict):
            raise ValueError(f"{self.path / name} must be a JSON object, found {type(value).__name__}")
        return value

    def bytes(self, name: str, limit: int = MAX_VOCABULARY_BYTES) -> bytes:
        """Return a file's content. Raises ValueError naming it if it is missing, empty or too large."""
        if not (content := read_bytes(self.find(name), limit)):
            raise ValueError(f"{self.path / name} is empty")
        return content

    @property
    def is_foreign(self) -> bool:
        """Whether its config.json is another library's."""
        return "model_type" in self.json(CONFIG)

    def weights(self) -> list[Path]:
        """Return the files of the tensors, one or several shards: safetensors if present, else pickled state dicts.

        Raises ValueError if there are none, or an index names anything but files of this folder.
        """
        for name in (SAFETENSORS, PICKLE):
            if self.has(name):
                return [self.find(name)]
            index = f"{name}.index.json"
            if self.has(index):
                shards = self.json(index, limit=MAX_VOCABULARY_BYTES).get("weight_map")
                if not isinstance(shards, dict) or not shards or not all(isinstance(s, str) for s in shards.values()):
                    raise ValueError(f'{self.path / index} has no "weight_map" of tensors to files')
                names = sorted(set(shards.values()))
                if len(names) > MAX_SHARDS:
                    raise ValueError(f"{self.path / index} names {len(names)} files, at most {MAX_SHARDS} are read")
                ending = Path(name).suffix
                for shard in names:
                    if not shard.endswith(ending):
                        raise ValueError(f"{self.path / index} names {shard!r}, expected files that end in {ending}")
                return [self.find(shard) for shard in names]
        raise ValueError(f"{self.path} holds no weights: expected {SAFETENSORS} or {PICKLE}, whole or with an index")


def model_name(path: Path) -> str:
    """Return the name of a folder's model: the hub's cache keeps org/name in models--org--name/snapshots/<commit>."""
    path = path.resolve()
    if path.parent.name == "snapshots" and path.parent.parent.name.startswith("models--"):
        return path.parent.parent.name.removeprefix("models--").replace("--", "/")
    return path.name


class Weights:
    """The tensors of a folder by name, each read on access. Call close() in the end.

    shapes    of the tensors, by name
    metadata  of the safetensors files
    """

    def __init__(self, folder: Folder) -> None:
        """Raises ValueError naming a file that is damaged, or a pickle of anything but tensors."""
        self.files = folder.weights()
        self.size = sum(path.stat().st_size for path in self.files)
        self.shapes: dict[str, tuple[int, ...]] = {}
        self.metadata: dict[str, str] = {}
        self._open = ExitStack()
        self._sources: dict[str, tuple[Path, Any]] = {}  # name -> the file, opened as safetensors or read from a pickle
        try:
            for path in self.files:
                self._add(path)
        except ValueError:
            self.close()
            raise

    def _add(self, path: Path) -> None:
        check_content(path)
        if path.suffix == ".safetensors":
            with _damage_named(path):
                source = self._open.enter_context(safe_open(path, framework="pt"))
                self.metadata |= source.metadata() or {}
                shapes = {name: tuple(source.get_slice(name).get_shape()) for name in source.keys()}
        else:
            source = _read_pickle(path)
            shapes = {name: tuple(tensor.shape) for name, tensor in source.items()}
        for name, shape in shapes.items():
            if name in self._sources:
                raise ValueError(f"{path}: {name} is in another of the files, too")
            self._sources[name], self.shapes[name] = (path, source), shape

    def __getitem__(self, name: str) -> Tensor:
        """Return a tensor. Raises ValueError unless it is of floating type and finite."""
        path, source = self._sources[name]
        with _damage_named(path):
            tensor = source[name] if isinstance(source, dict) else source.get_tensor(name)
        if tensor.dtype not in FLOATS or not is_finite(tensor):
            raise ValueError(f"{path}: {name} holds values that are not finite floating-point numbers")
        return tensor

    def are_equal(self, first: str, second: str) -> bool:
        """Return whether two tensors are equal."""
        return first == second or (self.shapes[first] == self.shapes[second] and torch.equal(self[first], self[second]))

    def digest(self) -> str:
        """Return the first 16 hex digits of the SHA-256 of all files."""
        return digest_of(self.files)

    def close(self) -> None:
        self._open.close()
        self._sources.clear()


def _damage_named(path: Path) -> AbstractContextManager[None]:
    """Turn errors of reading a safetensors file into a ValueError that names it."""
    return value_errors(f"{path} is not a whole safetensors file", SafetensorError, OSError)


def is_finite(tensor: Tensor) -> bool:
    """Return whether all values are finite, without a copy as large as the tensor, which torch.isfinite makes."""
    return bool(torch.isfinite(torch.stack(tensor.aminmax())).all())


def digest_of(files: list[Path]) -> str:
    """Return the first 16 hex digits of the SHA-256 of files, one after the other, without reading one into memory."""
    digest = hashlib.sha256()
    for path in files:
        with open(path, "rb") as file:
            hashlib.file_digest(file, lambda: digest)  # updates the digest by blocks
    return digest.hexdigest()[:16]


class _TooManyOperations(ValueError):
    """A pickle has more operations than any state dict."""


def _foreign_names(path: Path) -> list[str]:
    """Return the names in a pickle that torch does not allow; none if that cannot be determined."""
    try:
        return torch.serialization.get_unsafe_globals_in_checkpoint(path)
    except Exception:  # of hostile bytes, almost anything
        return []


def _check_operations(path: Path, zipped: bool) -> None:
    """Raise _TooManyOperations for more operations than any state dict has: 50 MB of them take 4 GB of memory."""
    with ExitStack() as opened:
        file = opened.enter_context(open(path, "rb"))
        if zipped:
            archive = opened.enter_context(zipfile.ZipFile(file))
            pickles = [entry for entry in archive.infolist() if entry.filename.endswith("data.pkl")]
            files = [opened.enter_context(archive.open(entry)) for entry in pickles]
        else:
            files = [file] * LEGACY_PICKLES
        for part in files:
            for number, _ in enumerate(pickletools.genops(part)):
                if number > MAX_OPERATIONS:
                    raise _TooManyOperations(f"it has more than {MAX_OPERATIONS:,} operations")


def _read_pickle(path: Path) -> dict[str, Tensor]:
    """Return a pickled state dict, read without executing anything that it names."""
    with open(path, "rb") as file:
        zipped = file.read(2) == b"PK"  # torch's format since 1.6, which it reads tensor by tensor
    try:
        _check_operations(path, zipped)
        values = torch.load(path, map_location="cpu", weights_only=True, mmap=zipped)
    except _TooManyOperations as error:
        raise ValueError(f"{path} is not a pickle of tensors alone: {error}") from error
    except Exception as error:  # of hostile bytes, pickletools and torch raise almost anything
        # torch's own message recommends weights_only=False, which would execute the file.
        names = _foreign_names(path)
        reason = f"it names {names[0]:.100}" if names else type(error).__name__
        raise ValueError(f"{path} is not a pickle of tensors alone: {reason}") from error
    if not isinstance(values, dict) or not values:
        raise ValueError(f"{path} must be a dict of tensors, found {type(values).__name__}")
    for name, value in values.items():
        if not isinstance(name, str) or not isinstance(value, Tensor):
            raise ValueError(f"{path} must be a dict of tensors, found {type(value).__name__} under {name!r:.80}")
    tensors = {name: value.detach() for name, value in values.items()}
    claimed = sum(t.nbytes for t in {(t.data_ptr(), t.shape): t for t in tensors.values()}.values())
    stored = sum({t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in tensors.values()}.values())
    if claimed > stored:
        raise ValueError(f"{path} holds {stored:,} bytes of numbers, its tensors claim {claimed:,}")
    return tensors
