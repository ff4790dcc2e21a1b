"""The loss agrees with torch's cross-entropy over real tokens; a model memorizes a batch."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from attention_atlas.model.nets.masks import pad
from attention_atlas.model.nets.transformer import Transformer
from attention_atlas.model.train import SummedLoss, Trainer
from attention_atlas.model.training.batches import Examples, make_batch
from attention_atlas.model.training.config import TrainConfig
from tests.conftest import SENTENCES, build_tiny_model, make_translator
from tests.programs.train.runs import CPU


def loss_of(model: Transformer, source: list[list[int]], target: list[list[int]], *, padding: int = 0) -> torch.Tensor:
    def padded(rows: list[list[int]]) -> torch.Tensor:
        return F.pad(pad(rows, 0), (0, padding))

    return SummedLoss(model, 0.1)(padded(source), padded([[1, *t] for t in target]), padded([[*t, 2] for t in target]))


def test_the_loss_agrees_with_torch_over_real_tokens(tokenizer):
    model = build_tiny_model(tokenizer)
    source, target = [[4, 20, 31, 2], [4, 9, 2]], [[30, 41, 52], [77]]
    logits = model(pad(source, 0), pad([[1, *t] for t in target], 0)).logits
    expected = F.cross_entropy(
        logits.flatten(0, 1),
        pad([[*t, 2] for t in target], 0).flatten(),
        ignore_index=0,
        label_smoothing=0.1,
        reduction="sum",
    )
    torch.testing.assert_close(loss_of(model, source, target), expected, rtol=1e-5, atol=1e-4)


def test_the_unsmoothed_loss_is_torchs_cross_entropy_and_has_no_gradient(tokenizer):
    model = build_tiny_model(tokenizer)
    source, inputs, outputs = pad([[4, 20, 2]], 0), pad([[1, 30, 41]], 0), pad([[30, 41, 2]], 0)
    logits = model(source, inputs).logits[0]
    losses = SummedLoss(model, 0.1)(source, inputs, outputs, with_plain=True)
    expected = [F.cross_entropy(logits, outputs[0], label_smoothing=s, reduction="sum") for s in (0.1, 0.0)]
    torch.testing.assert_close(losses, torch.stack(expected), rtol=1e-5, atol=1e-4)
    assert losses[0] != losses[1]
    losses[1].backward()
    assert all((p.grad == 0).all() for p in model.parameters() if p.grad is not None)


def test_padding_changes_neither_loss_nor_gradient(tokenizer):
    model = build_tiny_model(tokenizer)
    source, target = [[4, 20, 31, 45, 2], [4, 9, 2]], [[30, 41, 52], [77]]
    results = []
    for losses_of_batch in (
        [loss_of(model, [s], [t]) for s, t in zip(source, target)],
        [loss_of(model, source, target)],
        [loss_of(model, source, target, padding=5)],
    ):
        model.zero_grad()
        total = sum(losses_of_batch)
        total.backward()
        results.append((total.item(), {name: p.grad.clone() for name, p in model.named_parameters()}))
    expected_loss, expected_gradients = results[0]
    for loss, gradients in results[1:]:
        assert loss == pytest.approx(expected_loss, rel=1e-5)
        for name, gradient in gradients.items():
            torch.testing.assert_close(gradient, expected_gradients[name], atol=1e-4, rtol=1e-4, msg=name)


def test_a_trainer_memorizes_a_batch(tokenizer):
    model = build_tiny_model(tokenizer, dropout=0.0)
    pairs = list(zip(SENTENCES[0:6:2], SENTENCES[1:6:2]))
    examples = Examples.encode(pairs, tokenizer, "en", max_length=64)
    config = TrainConfig(
        max_updates=60,
        warmup_updates=10,
        cooldown_updates=10,
        learning_rate=0.02,
        tokens_per_batch=1000,
        label_smoothing=0.0,
        average_decay=0.0,
    )
    trainer = Trainer(config, model, tokenizer, examples, CPU)
    trainer.model.train()
    for _ in range(config.max_updates):
        trainer.state.start_window()
        trainer.step()
    assert (trainer.state.loss_sum / trainer.state.tokens).max() < 0.01
    translator = make_translator(model.eval(), tokenizer)
    assert translator.translate_batch([s for s, _ in pairs]) == [t for _, t in pairs]


def test_a_process_without_a_row_has_zero_loss_and_gradients(tokenizer):
    examples, model = Examples.of([([4, 9, 2], [9, 10])]), build_tiny_model(tokenizer)
    batch = make_batch(examples, np.array([0]), tokenizer, rank=1, world_size=2)
    loss = SummedLoss(model, 0.1)(batch.source, batch.inputs, batch.outputs)
    loss.backward()
    assert loss.item() == 0 and batch.tokens == 3
    assert all(
        (p.grad == 0).all() for p in model.parameters()
    )  # none is None: all processes must have the same gradients
