"""A translation in which only a circuit's edges hear the sentence."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch

from attention_atlas.model.analysis.circuits.found import Circuit
from attention_atlas.model.analysis.circuits.pairs import Pair
from attention_atlas.model.analysis.circuits.passing import Passing
from attention_atlas.model.trace.kinds import Side


def translated(circuit: Circuit, kept: np.ndarray, pair: Pair, direction: str | None = None) -> list[int]:
    """Greedy ids with the complement cut: edges outside kept, bool [edge], carry what the changed sentence puts into
    them after the same prefix. With all edges it is the sentence's translation, with none the changed one's."""
    *_, last = steps(circuit, kept, pair, direction)
    return last


@torch.no_grad()
def steps(circuit: Circuit, kept: np.ndarray, pair: Pair, direction: str | None = None) -> Iterator[list[int]]:
    """translated() token by token: what is written so far."""
    translator, model = circuit.translator, circuit.translator.model
    source, other = (torch.tensor([ids], device=translator.device) for ids in (pair.source_ids, pair.other_ids))
    gates = torch.as_tensor(kept, dtype=torch.float32, device=translator.device)
    forced = [translator.tokenizer.begin_id, *translator.forced_prefix(direction)]
    found: list[int] = []
    for _ in range(translator.step_limit(len(pair.source_ids))):
        target = torch.tensor([[*forced, *found]], device=translator.device)
        changed = Passing(model, circuit.graph)
        changed.run(other, target)
        if not pair.aligned:
            changed.written.parts[Side.ENCODER].clear()
        passing = Passing(model, circuit.graph, gates, other=changed.written)
        found.append(int(model.project(passing.run(source, target)[:, -1]).argmax()))
        yield found
        if found[-1] == translator.tokenizer.end_id:
            return
