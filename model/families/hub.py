"""Find a model by name: a local folder, or a repository of the Hugging Face Hub, whose needed files are downloaded.

Only the user who starts a program names models. The hub's library handles the token for gated ones.

>>> locate("checkpoints/de-en")  # a local folder; "Helsinki-NLP/opus-mt-de-en" would be downloaded
PosixPath('checkpoints/de-en')
"""

from __future__ import annotations

import errno
from pathlib import Path

import huggingface_hub
from huggingface_hub.errors import (
    GatedRepoError,
    HfHubHTTPError,
    HFValidationError,
    LocalEntryNotFoundError,
    RepositoryNotFoundError,
)

from attention_atlas.model.families import registry
from attention_atlas.model.families.card import CARD
from attention_atlas.model.families.folder import CONFIG, PICKLE, SAFETENSORS, Folder
from attention_atlas.model.families.settings import Settings

__all__ = ["locate"]

TRANSPORT_ERROR = HfHubHTTPError.__bases__[0]  # of the HTTP library that the hub's library uses
SMALL_FILES = (".json", ".spm", ".model", "merges.txt", CARD)  # endings of the files beside the weights


def locate(name: str, *, endpoint: str | None = None, cache: Path | None = None) -> Path:
    """Return the folder `name`, or the folder of the hub's repository of that id, downloaded or cached.

    Progress appears on standard error, and an interrupted download resumes. endpoint, cache: another hub and another
    cache folder than the library's.

    Raises ValueError if there is no such folder or repository, the hub cannot be reached, the disk is full, or the
    model is of no supported family.
    """
    if Path(name).is_dir():
        return Path(name)
    if name.startswith((".", "/", "~")) or "\\" in name:
        raise ValueError(f"there is no folder {name!r}")
    try:
        return _download(name, endpoint, cache)
    except HFValidationError as error:
        raise ValueError(
            f"{name!r} is neither a folder nor the id of a model such as Helsinki-NLP/opus-mt-en-de"
        ) from error
    except GatedRepoError as error:
        raise ValueError(f"{name} is gated: ask for access on its page, and log in (hf auth login)") from error
    except RepositoryNotFoundError as error:
        raise ValueError(f"{name!r} is no folder here, and the hub has no model of that name") from error
    except (OSError, TRANSPORT_ERROR) as error:
        raise ValueError(_describe(name, error)) from error


def _describe(name: str, error: Exception) -> str:
    """Return what interrupted a download, as a sentence."""
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:
        return f"the disk is full: {name} could not be fetched whole. What has come is kept"
    if isinstance(error, HfHubHTTPError) and error.response is not None:
        return f"the hub answered {error.response.status_code} for {name}"
    if isinstance(error, LocalEntryNotFoundError):
        return f"there is no folder {name!r} here, no model of that name in the cache, and the hub cannot be reached"
    return f"the connection to the hub broke off while {name} was fetched: run this again, and it goes on"


def _download(name: str, endpoint: str | None, cache: Path | None) -> Path:
    try:
        info = huggingface_hub.HfApi(endpoint=endpoint).model_info(name)
    except (GatedRepoError, RepositoryNotFoundError):
        raise
    except (OSError, TRANSPORT_ERROR):  # offline: use the cache
        return Path(
            huggingface_hub.snapshot_download(name, local_files_only=True, cache_dir=cache, allow_patterns=[CONFIG])
        )
    present = [sibling.rfilename for sibling in info.siblings or ()]
    if CONFIG not in present:
        raise ValueError(f"{name} has no {CONFIG}: it is no model that can be opened")
    small = [file for file in present if file.endswith(SMALL_FILES) and "/" not in file]
    files = [*(file for file in small if not file.endswith(".index.json")), *_weights(name, present)]

    def fetch(files: list[str]) -> Path:
        # By branch instead of commit, so that the cache resolves the name offline.
        return Path(huggingface_hub.snapshot_download(name, allow_patterns=files, endpoint=endpoint, cache_dir=cache))

    registry.family_of(Settings.read(Folder(fetch([CONFIG]))))  # raises before the weights are downloaded
    return fetch(files)


def _weights(name: str, present: list[str]) -> list[str]:
    """Return the files of one form of the weights: repositories hold the same tensors in several."""
    for whole in (SAFETENSORS, PICKLE):
        stem, ending = whole.rsplit(".", 1)
        if whole in present:
            return [whole]
        if f"{whole}.index.json" in present:
            return [
                f"{whole}.index.json",
                *(file for file in present if file.startswith(f"{stem}-") and file.endswith(f".{ending}")),
            ]
    raise ValueError(f"{name} has no weights that can be opened: expected {SAFETENSORS} or {PICKLE}")
