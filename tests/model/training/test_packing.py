"""Packed rows hold every pair once, and the network reads each pair as if it stood alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from attention_atlas.model.config import PositionCode
from attention_atlas.model.nets.transformer import Transformer
from attention_atlas.model.train import Trainer
from attention_atlas.model.training.batches import Examples, make_batch
from attention_atlas.model.training.config import TrainConfig
from attention_atlas.model.training.loss import SummedLoss
from attention_atlas.model.training.packing import PackedPairs, PackedShape, can_pack, pack, packed_shape, plan_packed
from tests.conftest import build_tiny_model

CPU = torch.device("cpu")


@pytest.fixture
def examples() -> Examples:
    random = np.random.default_rng(5)
    lengths = random.integers(1, 30, (300, 2))
    return Examples.of(
        [(random.integers(4, 60, n + 2).tolist(), random.integers(4, 60, m).tolist()) for n, m in lengths]
    )


def test_a_plan_fills_rows_with_every_pair_once(examples):
    shape = packed_shape(examples, 200, 40)
    batches = plan_packed(examples, shape, seed=1, epoch=3)
    assert sorted(np.concatenate([batch.numbers for batch in batches]).tolist()) == list(range(300))
    rows = [row for batch in batches for row in np.split(batch.numbers, batch.counts.cumsum()[:-1])]
    for row in rows:
        assert examples.source.lengths[row].sum() <= shape.source
        assert (examples.target.lengths[row] + 1).sum() <= shape.target
    assert {len(batch.counts) for batch in batches[:-1]} == {shape.rows} == {5}
    filled = (examples.target.lengths + 1).sum() / (len(rows) * shape.target)
    assert filled > 0.85


def test_a_plan_depends_on_seed_and_epoch_only(examples):
    shape = packed_shape(examples, 200, 40)

    def plan(**changes) -> list:
        return [batch.numbers.tolist() for batch in plan_packed(examples, shape, **{"seed": 1, "epoch": 0, **changes})]

    assert plan() == plan()
    assert plan() != plan(epoch=1) and plan() != plan(seed=2)


def test_the_longer_language_gets_wider_rows():
    pairs = Examples.of([([4] * 15, [5] * 9), ([4] * 15, [5] * 9)])
    assert packed_shape(pairs, 100, 16) == (6, 24, 16)
    assert packed_shape(Examples.of([([4], [5] * 9)]), 10, 16) == (1, 16, 32)  # at most twice as wide
    with pytest.raises(ValueError, match="more than 14 tokens"):
        packed_shape(pairs, 100, 14)


def test_a_packed_batch_spells_out_its_pairs(tokenizer):
    examples = Examples.of([([4, 5, 2], [7, 8]), ([4, 2], [9]), ([4, 6, 2], [])])
    pairs, shape = PackedPairs(np.array([1, 0, 2]), np.array([2, 1])), PackedShape(3, 6, 6)
    batch = pack(examples, pairs, shape, tokenizer)
    assert batch.source.tolist() == [[4, 2, 4, 5, 2, 0], [4, 6, 2, 0, 0, 0], [0] * 6]
    assert batch.inputs.tolist() == [[1, 9, 1, 7, 8, 0], [1, 0, 0, 0, 0, 0], [0] * 6]
    assert batch.outputs.tolist() == [[9, 2, 7, 8, 2, 0], [2, 0, 0, 0, 0, 0], [0] * 6]
    assert batch.packing.target_pairs.tolist() == [[1, 1, 2, 2, 2, 0], [1, 0, 0, 0, 0, 0], [0] * 6]
    assert batch.packing.source_positions.tolist() == [[0, 1, 0, 1, 2, 0], [0, 1, 2, 0, 0, 0], [0] * 6]
    assert batch.tokens == 6
    shares = [pack(examples, pairs, shape, tokenizer, rank=rank, world_size=2) for rank in range(2)]
    assert [share.source.tolist() for share in shares] == [
        [[4, 2, 4, 5, 2, 0], [0] * 6],
        [[4, 6, 2, 0, 0, 0], [0] * 6],
    ]
    assert {share.tokens for share in shares} == {6}  # each knows the size of the whole


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"norm_first": False},
        {"look_ahead_mask": False},
        {"position_code": PositionCode.RELATIVE},
        {"position_code": PositionCode.LEARNED},
        {"position_code": PositionCode.NONE},
    ],
    ids=str,
)
def test_packing_changes_neither_loss_nor_gradients(tokenizer, examples, changes):
    """Compared with batches of one pair a row."""
    config = replace(build_tiny_model(tokenizer).config, dropout=0.0, **changes)
    torch.manual_seed(3)
    model, few = Transformer(config).train(), examples.take(np.arange(12))
    assert can_pack(config)
    loss, results = SummedLoss(model, 0.1), []
    shape = packed_shape(few, 1000, 40)
    (pairs,) = plan_packed(few, shape, seed=1, epoch=0)
    assert len(pairs.counts) < shape.rows  # the other rows are padding
    padded = [make_batch(few, np.array([row]), tokenizer) for row in range(12)]
    for batches in (padded, [pack(few, pairs, shape, tokenizer)]):
        model.zero_grad()
        total = sum(loss(b.source, b.inputs, b.outputs, b.packing, with_plain=True) for b in batches)
        total[0].backward()
        results.append((total.detach(), [p.grad.clone() for p in model.parameters() if p.grad is not None]))
    (alone, gradients), (packed, packed_gradients) = results
    torch.testing.assert_close(packed, alone, rtol=1e-5, atol=1e-4)
    for mine, theirs in zip(packed_gradients, gradients, strict=True):
        torch.testing.assert_close(mine, theirs, atol=1e-4, rtol=1e-4)


def test_a_network_whose_positions_depend_on_the_length_reads_one_pair_a_row(tokenizer, examples):
    model = Transformer(replace(build_tiny_model(tokenizer).config, position_code=PositionCode.NORMALISED))
    config = TrainConfig(tokens_per_batch=200, max_updates=9, cooldown_updates=0)
    assert Trainer(config, model, tokenizer, examples, CPU).next_batch().packing is None


@pytest.mark.long
def test_a_compiled_trainer_makes_the_same_updates(tokenizer, examples, monkeypatch):
    """The passes are captured as one graph each, here by a backend that does not write machine code."""

    def capture(module, mode, dynamic, compiled=torch.compile):
        return compiled(module, backend="aot_eager", fullgraph=True, dynamic=dynamic)

    monkeypatch.setattr(torch, "compile", capture)
    config = TrainConfig(
        tokens_per_batch=200,
        max_updates=9,
        warmup_updates=0,
        cooldown_updates=0,
        learning_rate=0.01,
        max_pair_length=40,
    )

    def changes(config: TrainConfig) -> list[torch.Tensor]:
        model = build_tiny_model(tokenizer, seed=3, dropout=0.0)
        before = [p.detach().clone() for p in model.parameters()]
        trainer = Trainer(config, model, tokenizer, examples, CPU)
        for _ in range(3):
            trainer.step()
        return [p.detach() - b for p, b in zip(model.parameters(), before)]

    compiled, plain = changes(replace(config, compile=True)), changes(config)
    assert max(change.abs().max() for change in plain) > 0.01
    for mine, theirs in zip(compiled, plain):
        torch.testing.assert_close(mine, theirs, rtol=1e-2, atol=1e-3)
