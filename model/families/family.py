"""What a family is: how its folders become a network of ours, a tokenizer and directions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from attention_atlas.model.config import ModelConfig
from attention_atlas.model.families.folder import Folder, Weights
from attention_atlas.model.families.settings import Settings
from attention_atlas.model.families.tensors import Ours
from attention_atlas.model.text.pieces import PieceTokenizer
from attention_atlas.model.trace.directions import Languages


@dataclass(frozen=True, eq=False)
class Opened:
    """A folder in our terms. tensors: read one by one, while its Weights are open. directions: those that it offers,
    for many languages a choice, and languages has all of them; notes: what a person should know of how it was read."""

    config: ModelConfig
    tensors: Ours
    tokenizer: PieceTokenizer
    directions: tuple[str, ...]
    languages: Languages | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Family:
    """model_type and architectures: what config.json calls it. read: raises ValueError, with what was found, for what
    cannot be opened."""

    model_type: str
    architectures: tuple[str, ...]
    read: Callable[[Folder, Settings, Weights], Opened]
