"""A small model trained to follow a known rule along known edges: those edges score highest."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

from attention_atlas.model.analysis import circuits
from attention_atlas.model.analysis.circuits.graph import Edge, build_graph
from attention_atlas.model.analysis.circuits.pairs import Pair
from attention_atlas.model.analysis.circuits.passes import GatedPass
from attention_atlas.model.config import ModelConfig
from attention_atlas.model.nets.transformer import Transformer
from attention_atlas.model.trace.interventions import NO_INTERVENTIONS
from tests.model.analysis.circuits.test_circuits import above

MARK, FIRST, WORDS, LENGTH = 5, 6, 12, 5
HEARS = Edge("encoder.embed", "encoder.0.self.v.1")  # is the word before this one the mark?
POINTS = Edge("encoder.0.self.1", "decoder.0.cross.k.2")  # attend to the word after the mark
READS = Edge("encoder.embed", "decoder.0.cross.v.2")  # read which word it is
SAYS = Edge("decoder.0.cross.2", "logits")


def sources(count: int, chance: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    """Return random sentences with a mark, and the word after the mark, which the model must write."""
    ids = torch.stack([torch.randperm(WORDS, generator=chance)[:LENGTH] + FIRST for _ in range(count)])
    rows, at = torch.arange(count), torch.randint(LENGTH - 1, (count,), generator=chance)
    ids[rows, at] = MARK
    return ids, ids[rows, at + 1]


@pytest.fixture(scope="module")
def toy():
    """A model trained to write that word with all edges, and also with four edges alone while the others carry another
    sentence's values, so that it needs no other edge (as in InterpBench, Gupta et al. 2024)."""
    torch.manual_seed(1)
    config = ModelConfig(
        FIRST + WORDS,
        d_model=32,
        num_encoder_layers=1,
        num_decoder_layers=1,
        num_heads=4,
        d_feedforward=32,
        dropout=0.0,
    )
    model, edges, chance = Transformer(config), build_graph(config), torch.Generator().manual_seed(1)
    needed = [edge in (HEARS, POINTS, READS, SAYS) or edge.sender == "decoder.embed" for edge in edges.edges]
    optimiser, target = torch.optim.Adam(model.parameters(), lr=5e-3), torch.ones(48, 1, dtype=torch.long)
    for _ in range(250):
        ids, right = sources(48, chance)
        whole = GatedPass(model, edges)
        ends = [whole.run(ids, target)]
        others = GatedPass(model, edges)
        others.parts = {side: [part.roll(1, 1) for part in parts] for side, parts in whole.parts.items()}
        ends.append(GatedPass(model, edges, torch.tensor(needed).float(), reference=others).run(ids, target))
        sum(cross_entropy(model.project(end[:, 0]), right) for end in ends).backward()
        optimiser.step()
        optimiser.zero_grad()
    return SimpleNamespace(model=model.eval(), config=config, device=torch.device("cpu"), changes=NO_INTERVENTIONS)


def moved(ids: list[int]) -> Pair:
    """Return the pair whose changed sentence has the mark at another place."""
    other, at = list(ids), ids.index(MARK)
    to = (at + 2) % (LENGTH - 1)
    other[at], other[to] = other[to], MARK
    return Pair(tuple(ids), tuple(other), (1,), ids[at + 1], other[to + 1])


def renamed(ids: list[int]) -> Pair:
    """Return the pair whose changed sentence has another word after the mark."""
    other, at = list(ids), ids.index(MARK) + 1
    other[at] = next(word for word in range(FIRST, FIRST + WORDS) if word not in ids)
    return Pair(tuple(ids), tuple(other), (1,), ids[at], other[at])


@pytest.mark.long
@pytest.mark.parametrize(("change", "true"), [(moved, (HEARS, POINTS, SAYS)), (renamed, (READS, SAYS))])
def test_the_edges_of_a_learned_rule_score_highest(toy, change, true):
    ids, _ = sources(24, torch.Generator().manual_seed(2))
    pairs = [change(row) for row in ids.tolist()]
    circuit = circuits.find_circuit(toy, pairs[:12])
    labels, values = np.array([edge in true for edge in circuit.graph.edges]), np.abs(circuit.scores)
    assert above(values[labels], values[~labels]) >= 0.95
    curves = circuit.measure_faithfulness(pairs[12:], shares=(0.1, 1.0))
    assert curves.best.faithfulness[0] > 0.8 > 0.2 > curves.random.faithfulness[0]
