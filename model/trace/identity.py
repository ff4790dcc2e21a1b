"""What a trace follows from, as one value: traces of equal identity show the same. Importable without torch.

>>> from attention_atlas.model.trace.edits import Scale
>>> made = dict(checkpoint="de-en", digest="0", direction="de-en", source_ids=(5, 2), target_ids=(7, 2))
>>> one = TraceIdentity(**made, interventions=Interventions(edits={"decoder.0.ffn.out": Scale(1)}))
>>> other = TraceIdentity(**made, interventions=Interventions(edits={"decoder.0.ffn.out": Scale(1.0)}))
>>> one == other, one.key == other.key
(True, True)
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any

from attention_atlas.model.trace import decoding, interventions_file
from attention_atlas.model.trace.decoding import Decoding
from attention_atlas.model.trace.interventions import NO_INTERVENTIONS, Interventions


@dataclass(frozen=True)
class TraceIdentity:
    """The model, what it read and wrote, and every change to it. Hashable, and JSON-ready as to_plain().

    decoding       with the number of forced tokens (`given`); None: not known
    interventions  sets have no order, edits do; numbers are float64, so that 1 and 1.0 are equal, and 0.0 and -0.0
    unique         of a trace whose interventions cannot be run again (functions, tensors, words): different each
                   time. Otherwise empty
    """

    checkpoint: str
    digest: str
    direction: str
    source_ids: tuple[int, ...]
    target_ids: tuple[int, ...]
    decoding: Decoding | None = None
    interventions: Interventions = NO_INTERVENTIONS
    unique: str = ""

    def to_plain(self) -> dict[str, Any]:
        """JSON-ready. Equal identities give the same JSON text."""
        return {
            "checkpoint": self.checkpoint,
            "digest": self.digest,
            "direction": self.direction,
            "source_ids": list(self.source_ids),
            "target_ids": list(self.target_ids),
            "decoding": decoding.to_plain(self.decoding),
            "interventions": interventions_file.to_plain(self.interventions),
            "unique": self.unique,
        }

    @property
    def key(self) -> str:
        """A short name: 32 hex digits of the SHA-256 of its JSON text."""
        text = json.dumps(self.to_plain(), ensure_ascii=True, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:32]
