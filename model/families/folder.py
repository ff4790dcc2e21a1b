"""A folder as a hub or a stranger left it: hostile until read."""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import pickletools
import zipfile
from collections.abc import Collection
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from attention_atlas.model.files import CONFIG, MAX_VOCABULARY_BYTES, check_content, read_bytes, read_json

SAFETENSORS, PICKLE = "model.safetensors", "pytorch_model.bin"
GENERATION, TOKENIZER_CONFIG = "generation_config.json", "tokenizer_config.json"
FLOATS = (torch.float32, torch.float16, torch.bfloat16, torch.float64)
MAX_SHARDS = 200
MAX_OPERATIONS = 500_000  # of a pickle; some 25 a tensor
LEGACY_PICKLES = 5  # that torch wrote one after the other before 1.6; then come the numbers
BLOCK = 1 << 22  # numbers that are summed at once
POPULATE_READ, PAGE = 22, 4096  # of madvise, since Linux 5.14; bytes


@dataclass(frozen=True)
class Folder:
    """Bounded reading of the files of a folder by their plain names."""

    path: Path

    def has(self, name: str) -> bool:
        return (self.path / name).is_file()

    def find(self, name: str) -> Path:
        """The file of a plain name. ValueError if it is missing, lies elsewhere, or leads out of the folder. A link may
        lead into the hub's cache, whose folders of links stand beside the files that they name; one to safetensors
        may lead anywhere: many people keep their weights on another disk, and such a file holds tensors alone."""
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

    def json(self, name: str, *, limit: int | None = None) -> dict:
        """A JSON object; {} for a file that is not there. ValueError for anything else."""
        if not self.has(name):
            return {}
        found = read_json(self.find(name), **({} if limit is None else {"limit": limit}))
        if not isinstance(found, dict):
            raise ValueError(f"{self.path / name} must be a JSON object, found {type(found).__name__}")
        return found

    def bytes(self, name: str, limit: int = MAX_VOCABULARY_BYTES) -> bytes:
        """A file's content. ValueError naming it if it is missing, empty or too large."""
        if not (found := read_bytes(self.find(name), limit)):
            raise ValueError(f"{self.path / name} is empty")
        return found

    @property
    def is_foreign(self) -> bool:
        """Whether it holds another library's config.json."""
        return "model_type" in self.json(CONFIG)

    def weights(self) -> list[Path]:
        """The files that hold the tensors: safetensors where there are any, else pickled state dicts; whole or in
        shards. ValueError if there are none, or an index names something else than files of this folder."""
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


def name_of(path: Path) -> str:
    """What a folder's model is called: the hub's cache keeps org/name in models--org--name/snapshots/<commit>."""
    path = path.resolve()
    if path.parent.name == "snapshots" and path.parent.parent.name.startswith("models--"):
        return path.parent.parent.name.removeprefix("models--").replace("--", "/")
    return path.name


class Weights:
    """The tensors of a folder by name, each read when it is asked for. Use as a context manager."""

    def __init__(self, folder: Folder) -> None:
        """ValueError naming the file that is damaged, or that is a pickle of something else than tensors."""
        self.files = folder.weights()
        self.size = sum(path.stat().st_size for path in self.files)
        self.shapes: dict[str, tuple[int, ...]] = {}
        self._open = ExitStack()
        self._of: dict[str, object] = {}  # name -> the safetensors file, or the tensors of a pickle
        try:
            for path in self.files:
                self._enter(path)
        except ValueError:
            self.close()
            raise

    def _enter(self, path: Path) -> None:
        check_content(path)
        source = self._safetensors(path) if path.suffix == ".safetensors" else _unpickled(path)
        for name in source.keys():
            if name in self._of:
                raise ValueError(f"{path}: {name} is in another of the files, too")
            self._of[name] = source
            self.shapes[name] = tuple(
                source[name].shape if isinstance(source, dict) else source.get_slice(name).get_shape()
            )

    def _safetensors(self, path: Path):
        try:
            return self._open.enter_context(safe_open(path, framework="pt"))
        except (SafetensorError, OSError) as error:
            raise ValueError(f"{path} is not a whole safetensors file: {error}") from error

    def __getitem__(self, name: str) -> Tensor:
        """One tensor. ValueError unless it is of floating type and finite."""
        source = self._of[name]
        tensor = source[name] if isinstance(source, dict) else source.get_tensor(name)
        if tensor.dtype not in FLOATS or not is_finite(tensor):
            raise ValueError(f"{name} holds values that are not finite floating-point numbers")
        return tensor

    def same(self, first: str, second: str) -> bool:
        """Whether two names stand for equal tensors."""
        return first == second or (self.shapes[first] == self.shapes[second] and torch.equal(self[first], self[second]))

    def digest(self) -> str:
        """The first 16 hex digits of the SHA-256 of all files, in blocks: no file is ever whole in memory."""
        return digest_of(self.files)

    def close(self) -> None:
        self._open.close()
        self._of.clear()

    def __enter__(self) -> Weights:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def touch(tensors: Collection[Tensor]) -> None:
    """Have all pages of a mapped file's tensors mapped at once, where the system can: one by one, as they are read,
    that takes longer than reading them."""
    first = min(tensor.data_ptr() for tensor in tensors) // PAGE * PAGE
    size = max(tensor.data_ptr() + tensor.nbytes for tensor in tensors) - first
    if size - PAGE > sum(tensor.nbytes for tensor in tensors):
        return  # they do not lie side by side: no file of theirs is mapped
    with contextlib.suppress(AttributeError, OSError, TypeError):  # another C library, or another system
        ctypes.CDLL(None).madvise(ctypes.c_void_p(first), ctypes.c_size_t(size), POPULATE_READ)


def is_finite(tensor: Tensor) -> bool:
    """Whether all values are. By sums of blocks, in little memory: torch.isfinite takes more than the tensor."""
    if tensor.dtype == torch.float64:
        return bool(torch.isfinite(tensor).all())
    sums = [block.sum(dtype=torch.float32) for block in tensor.flatten().split(BLOCK)]
    if torch.isfinite(torch.stack(sums)).all():
        return True
    return bool(torch.isfinite(tensor).all())  # finite values may have a sum that is not: one by one, then


def digest_of(files: list[Path]) -> str:
    """The first 16 hex digits of the SHA-256 of files one after the other."""
    found = hashlib.sha256()
    for path in files:
        with open(path, "rb") as file:
            hashlib.file_digest(file, lambda: found)  # which updates what it is given, 256 kB at a time
    return found.hexdigest()[:16]


class _TooManyOperations(ValueError):
    """A pickle that would take more memory than any state dict needs."""


def _foreign_names(path: Path) -> list[str]:
    """What a pickle names that torch does not allow; none where that cannot be told."""
    try:
        return torch.serialization.get_unsafe_globals_in_checkpoint(path)
    except Exception:  # of hostile bytes, almost anything
        return []


def _check_operations(path: Path, zipped: bool) -> None:
    """ValueError for a pickle of more operations than any state dict has: 50 MB of them take 4 GB."""
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


def _unpickled(path: Path) -> dict[str, Tensor]:
    """A pickled state dict, which is read without running anything that it names."""
    with open(path, "rb") as file:
        zipped = file.read(2) == b"PK"  # what torch has written since 1.6, and can read tensor by tensor
    try:
        _check_operations(path, zipped)
        found = torch.load(path, map_location="cpu", weights_only=True, mmap=zipped)
    except _TooManyOperations as error:
        raise ValueError(f"{path} is not a pickle of tensors alone: {error}") from error
    except Exception as error:  # of hostile bytes, pickletools and torch raise almost anything
        # torch's own words advise to read the file with weights_only=False, which would run it.
        names = _foreign_names(path)
        said = f"it names {names[0]:.100}" if names else type(error).__name__
        raise ValueError(f"{path} is not a pickle of tensors alone: {said}") from error
    if not isinstance(found, dict) or not found:
        raise ValueError(f"{path} must be a dict of tensors, found {type(found).__name__}")
    for name, value in found.items():
        if not isinstance(name, str) or not isinstance(value, Tensor):
            raise ValueError(f"{path} must be a dict of tensors, found {type(value).__name__} under {name!r:.80}")
    tensors = {name: value.detach() for name, value in found.items()}
    claimed = sum(t.nbytes for t in {(t.data_ptr(), t.shape): t for t in tensors.values()}.values())
    held = sum({t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in tensors.values()}.values())
    if claimed > held:
        raise ValueError(f"{path} holds {held:,} bytes of numbers, its tensors claim {claimed:,}")
    return tensors
