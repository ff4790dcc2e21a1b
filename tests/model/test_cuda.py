"""A CUDA or Apple device gives the CPU's ids, and its maps to 1e-3, for 200 generated sentences: pytest -m cuda"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from attention_atlas.model.nets.transformer import Transformer
from attention_atlas.model.trace.kinds import TRANSFORMER_KINDS
from attention_atlas.model.train import SummedLoss, Trainer
from attention_atlas.model.training.batches import Examples
from attention_atlas.model.training.config import TrainConfig
from attention_atlas.model.translator import Translator
from tests.conftest import SENTENCES, build_tiny_model

GPU = "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else None
pytestmark = [
    pytest.mark.cuda,
    pytest.mark.skipif(GPU is None, reason="this machine has neither a CUDA device nor Apple's (torch finds none)"),
]

ARTICLES, NOUNS = ("Ein", "Der kleine", "Kein", "Ein alter"), ("Hund", "Mann", "Vogel", "Zug", "Baum")
VERBS, ENDINGS = ("schläft", "steht", "wartet", "singt"), (".", " am Bahnhof.", " im roten Haus.", " heute nicht.", "?")


@pytest.fixture(scope="module")
def sentences() -> list[str]:
    random = np.random.default_rng(9)
    parts = (ARTICLES, NOUNS, VERBS)
    return [" ".join(str(random.choice(p)) for p in parts) + str(random.choice(ENDINGS)) for _ in range(200)]


@pytest.fixture(scope="module", params=["tiny", "shipped"])
def pair(request, tiny_checkpoint) -> tuple[Translator, Translator]:
    """The same checkpoint on the CPU and on the GPU."""
    folder = tiny_checkpoint if request.param == "tiny" else request.getfixturevalue("shipped_checkpoints") / "de-en"
    return Translator.load(folder, device="cpu"), Translator.load(folder, device=GPU)


def test_ids_agree_with_the_cpu(pair, sentences):
    cpu, cuda = pair
    sources = [cpu.encode(sentence) for sentence in sentences]
    assert cuda.generate(sources) == cpu.generate(sources)


def test_maps_agree_with_the_cpu(pair, sentences):
    cpu, cuda = pair
    for start in range(0, len(sentences), 50):
        batch = sentences[start : start + 50]
        for a, b in zip(cpu.trace_batch(batch), cuda.trace_batch(batch)):
            assert a.target_ids == b.target_ids and b.device.startswith(GPU)
            for kind in TRANSFORMER_KINDS:
                np.testing.assert_allclose(b.maps(kind).weights, a.maps(kind).weights, atol=1e-3)
            np.testing.assert_allclose(b.log_probability, a.log_probability, atol=1e-2)


def test_a_wider_beam_agrees(pair, sentences):
    cpu, cuda = pair
    sources = [cpu.encode(sentence) for sentence in sentences[:20]]
    assert cuda.generate(sources, beam=4) == cpu.generate(sources, beam=4)


def test_compiled_training_agrees(tokenizer):
    examples = Examples.encode([*zip(SENTENCES[::2], SENTENCES[1::2])], tokenizer, "en", max_length=64)
    config = TrainConfig(max_updates=9, warmup_updates=0, cooldown_updates=0, tokens_per_batch=256)
    losses = []
    for compiled in (False, True):
        model = build_tiny_model(tokenizer, dropout=0.0)
        trainer = Trainer(replace(config, compile=compiled), model, tokenizer, examples, torch.device(GPU))
        trainer.model.train()
        for _ in range(6):
            trainer.step()
        losses.append(trainer.state.loss_sum.cpu())
    torch.testing.assert_close(losses[1], losses[0], atol=1e-2, rtol=1e-3)


def test_loss_and_gradient_agree(tiny_model):
    source, inputs, outputs = (torch.tensor([ids]) for ids in ([4, 20, 31, 2], [1, 30, 41], [30, 41, 2]))
    gradients = []
    for device in ("cpu", GPU):
        model = Transformer(tiny_model.config).to(device).eval()
        model.load_state_dict(tiny_model.state_dict())
        SummedLoss(model, 0.1)(source.to(device), inputs.to(device), outputs.to(device)).backward()
        gradients.append([p.grad.cpu() for p in model.parameters()])
    for a, b in zip(*gradients):
        torch.testing.assert_close(a, b, atol=1e-3, rtol=1e-3)
