"""The interface of a family: a function that opens a folder as our network, tokenizer and directions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from attention_atlas.model.config import ModelConfig
from attention_atlas.model.families.folder import Folder, Weights
from attention_atlas.model.families.settings import Settings
from attention_atlas.model.families.tensors import ConvertedTensors
from attention_atlas.model.text.pieces import PieceTokenizer
from attention_atlas.model.trace.directions import Languages


@dataclass(frozen=True, eq=False)
class OpenedModel:
    """A folder in our terms.

    tensors     converted one by one, while the folder's Weights are open
    directions  those that are listed
    languages   of a model of many languages all of them: any pair is a direction
    notes       what a user should know about how the folder was read
    """

    config: ModelConfig
    tensors: ConvertedTensors
    tokenizer: PieceTokenizer
    directions: tuple[str, ...]
    languages: Languages | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Family:
    """A family by its model_type and architectures in config.json.

    read: opens a folder, or raises ValueError with the value that cannot be read.
    """

    model_type: str
    architectures: tuple[str, ...]
    read: Callable[[Folder, Settings, Weights], OpenedModel]
