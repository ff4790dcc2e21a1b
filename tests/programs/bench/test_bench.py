"""python -m bench.compare: the peers compute the same as ours, and a section can be run alone."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from attention_atlas.model import checkpoint
from attention_atlas.model.checks.oracle import torch_layer
from attention_atlas.model.train import Trainer
from attention_atlas.model.training.batches import Examples, make_batch
from attention_atlas.model.training.config import TrainConfig
from bench import compare
from bench.made import peers
from bench.made.growth import TensorMemory, exponent
from tests.conftest import SENTENCES, build_tiny_model

SMALL = (
    "--device cpu --lengths 4 6 --repeats 1 --rounds 1 --sentences 6 --updates 2 --starts 1 "
    "--growth-lengths 4 8 --growth-batches 1 2 --threads 1"
)


def copy_weights(model, config) -> peers.Tutorial:
    """Return the tutorial's model with our weights."""
    theirs = peers.Tutorial(config).eval()
    with torch.no_grad():
        theirs.embedding.weight.copy_(model.embedding.weight)
    for ours, stack in ((model.encoder, theirs.transformer.encoder), (model.decoder, theirs.transformer.decoder)):
        stack.norm.load_state_dict(ours.norm.state_dict())
        for layer, target in zip(ours.layers, stack.layers):
            target.load_state_dict(torch_layer(layer, config).state_dict())
    return theirs


def test_the_tutorials_model_computes_what_ours_does(tiny_translator):
    """Same architecture, same number of parameters, padding ignored: with our weights it gives our logits and ids."""
    model, config, tokenizer = tiny_translator.model, tiny_translator.config, tiny_translator.tokenizer
    theirs = copy_weights(model, config)
    assert sum(p.numel() for p in theirs.parameters()) == sum(p.numel() for p in model.parameters())
    sources = [tokenizer.encode_source(text, "en") for text in SENTENCES[0:6:2]]
    source = tiny_translator.pad(sources)
    inputs = torch.tensor([[1, 40, 41, 42]] * 3)
    with torch.inference_mode():
        torch.testing.assert_close(theirs(source, inputs), model(source, inputs).logits, atol=1e-4, rtol=1e-4)
        ours = compare.speed.decode_cached(tiny_translator, [sources[0]], 9)[0]
    assert theirs.greedy(sources[0], length=9, begin_id=tokenizer.begin_id) == ours


def test_a_step_of_the_tutorials_training_has_our_loss_and_gradient(tiny_translator):
    """One step of each from the same weights, without dropout: the first batch moves them alike."""
    tokenizer, config = tiny_translator.tokenizer, TrainConfig(learning_rate=1e-4, warmup_updates=1, average_decay=0.0)
    model = build_tiny_model(tokenizer, dropout=0.0)
    theirs = copy_weights(model, model.config)
    examples = Examples.encode([*zip(SENTENCES[0:10:2], SENTENCES[1:10:2])], tokenizer, "en", max_length=64)
    batch = make_batch(examples, np.arange(5), tokenizer)
    for module in theirs.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0  # copied layers or not
    compare.tutorial_step(theirs, config, half=False)(batch)
    trainer = Trainer(config, model.train(), tokenizer, examples, torch.device("cpu"))
    trainer.step_on(batch)
    moved = (theirs.embedding.weight - tiny_translator.model.embedding.weight).abs().max()
    assert moved > 5e-5
    torch.testing.assert_close(theirs.embedding.weight, model.embedding.weight, atol=2e-5, rtol=1e-4)


def test_marian_is_of_our_sizes_and_decodes_to_the_forced_length(tiny_translator):
    pytest.importorskip("transformers")
    config, tokenizer = tiny_translator.config, tiny_translator.tokenizer
    marian = peers.Marian(config, tokenizer, tiny_translator.device, maps=True)
    names = {name: p for name, p in marian.model.named_parameters() if "embed_positions" not in name}
    final_norms = 4 * config.d_model  # ours has pre-norm's closing norms besides
    assert sum(p.numel() for p in names.values()) + final_norms == sum(
        p.numel() for p in tiny_translator.model.parameters()
    )
    source = tiny_translator.pad([tokenizer.encode_source(text, "en") for text in SENTENCES[0:4:2]])
    output = marian(source, 7)
    assert output.sequences.shape == (2, 8) and len(output.cross_attentions) == 7
    assert output.cross_attentions[3][0].shape == (2, config.num_heads, 1, source.shape[1])
    plain = peers.Marian(config, tokenizer, tiny_translator.device, maps=False)(source, 7)
    assert plain.sequences.shape == (2, 8) and plain.cross_attentions is None


@pytest.fixture(scope="module")
def roomy_checkpoint(tokenizer, tmp_path_factory):
    """The tiny model with room for captions in its tiny vocabulary."""
    folder = tmp_path_factory.mktemp("roomy") / "tiny"
    checkpoint.save(folder, build_tiny_model(tokenizer, max_length=256), tokenizer, ("de-en",), half=False)
    return folder


def report(folder, tmp_path, *options: str) -> dict[str, float]:
    out = tmp_path / "report.json"
    compare.main(["--checkpoint", str(folder), *SMALL.split(), "--json", str(out), *options])
    return {m["name"]: m["value"] for m in json.loads(out.read_text())}


@pytest.mark.long
def test_a_section_can_be_run_alone(roomy_checkpoint, tmp_path):
    """Training and growth need neither peer package."""
    values = report(roomy_checkpoint, tmp_path, "--sections", "train", "growth")
    assert "torch_nn_train" in values and "growth_maps_seconds_length_8" in values and "ours_batch" not in values


def test_the_memory_of_tensors_is_counted_while_they_are_held():
    with TensorMemory() as memory:
        kept = torch.zeros(1000)  # 4,000 bytes
        for _ in range(3):
            torch.ones(2000)  # 8,000, gone at once
        kept.view(10, 100).t()  # a view is no memory
        kept.add_(1)
    assert memory.peak == 12_000
    with TensorMemory() as memory:
        held = [torch.zeros(500) for _ in range(4)]
    assert memory.peak == 8_000 and len(held) == 4


@pytest.mark.parametrize("power", [0.0, 1.0, 2.0])
def test_the_exponent_is_the_slope_where_the_sizes_are_large(power):
    points = [(n, 3 * n**power) for n in (8, 16, 32, 64)]
    assert exponent(points) == pytest.approx(power, abs=1e-9)
    with_overhead = [(n, 500 + n**2) for n in (8, 16, 32, 64, 128, 256, 512)]
    assert 1.8 < exponent(with_overhead) < 2
