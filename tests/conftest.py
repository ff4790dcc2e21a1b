"""Fixtures of all tests: tiny seeded models, a hand-made trace with hostile tokens, the shipped models, pages."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import settings

from attention_atlas.model import checkpoint
from attention_atlas.model.checkpoint import Checkpoint
from attention_atlas.model.config import ModelConfig
from attention_atlas.model.nets.recurrent import Recurrent, RecurrentConfig
from attention_atlas.model.nets.transformer import Transformer
from attention_atlas.model.serve.limits import BatchLimits
from attention_atlas.model.text.tokenizer import Tokenizer
from attention_atlas.model.trace.maps import AttentionMaps
from attention_atlas.model.trace.scores import ScoreMap
from attention_atlas.model.trace.tokens import tokens_from_spelling
from attention_atlas.model.trace.translation import TranslationTrace
from attention_atlas.model.translator import Translator
from attention_atlas.model.translators import Translators
from bench.ports import free_port, is_free
from tests import ROOT

settings.register_profile("here", deadline=None)  # speed is measured by benchmarks
settings.load_profile("here")

SENTENCES = (
    "Der kleine Hund schläft unter dem Tisch.",
    "The small dog sleeps under the table.",
    "Meine Schwester malt ein rotes Boot.",
    "My sister paints a red boat.",
    "Zwei Kinder bauen eine Burg aus Sand.",
    "Two children build a castle of sand.",
    "Heute scheint die Sonne über der Stadt.",
    "Today the sun shines over the town.",
    "Ich trinke morgens gern schwarzen Tee.",
    "I like to drink black tea in the morning.",
    "Le petit chien dort sous la table.",
    "Ma sœur peint un bateau rouge.",
)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Exclude imported objects from garbage collection, and collect less often: tests run faster."""
    gc.disable()
    result = yield
    gc.freeze()
    gc.enable()
    gc.set_threshold(20_000)
    return result


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of the whole page, which another version of Gradio may break.

    The tests of single modules do not use Gradio. Those of the explorer alone add it to a page in the same way as the
    whole page does, whose tests are marked.
    """
    for item in items:
        fixtures = set(getattr(item, "fixturenames", ()))
        if fixtures & {"app_url", "tiny_url", "serve"} and "serve_traces" not in fixtures:
            item.add_marker("gradio")


@pytest.fixture(scope="session")
def tokenizer() -> Tokenizer:
    """A tokenizer trained on SENTENCES, with symbols for three target languages."""
    return Tokenizer.train(SENTENCES * 5, vocabulary_size=350, languages=("de", "en", "fr"))


# The tiny models have max_length=64; tests of long texts set their own limits.
TINY_LIMITS = BatchLimits(tokens=64)


def build_tiny_model(tokenizer: Tokenizer, *, seed: int = 7, **changes) -> Transformer:
    """Return a seeded model of 2 encoder layers, 3 decoder layers and 4 heads.

    The sizes differ, so that a swapped axis or stack fails a test. `changes` are fields of ModelConfig.
    """
    sizes = {
        "d_model": 32,
        "num_heads": 4,
        "num_encoder_layers": 2,
        "num_decoder_layers": 3,
        "d_feedforward": 48,
        "max_length": 64,
        "pad_id": tokenizer.pad_id,
    }
    torch.manual_seed(seed)
    model = Transformer(ModelConfig(len(tokenizer), **{**sizes, **changes}))
    with torch.no_grad():  # larger weights: attention is far from uniform, biases and norms have an effect
        for name, parameter in model.named_parameters():
            if parameter.ndim == 1:
                parameter.add_(0.1 * torch.randn_like(parameter))
            elif "projection" in name:
                parameter.mul_(2.0)
    return model.eval()


def make_translator(
    model: Transformer, tokenizer: Tokenizer, *, directions: tuple[str, ...] = ("de-en",), **options
) -> Translator:
    """Return a translator of a model on the CPU, without a folder. `options` are those of Translator."""
    return Translator(Checkpoint("made", model, tokenizer, directions, {}, "5" * 16), torch.device("cpu"), **options)


@pytest.fixture(scope="session")
def tiny_model(tokenizer: Tokenizer) -> Transformer:
    return build_tiny_model(tokenizer)


@pytest.fixture(scope="session")
def tiny_checkpoint(tmp_path_factory: pytest.TempPathFactory, tiny_model: Transformer, tokenizer: Tokenizer):
    """A checkpoint folder `tiny` with two directions; its parent folder holds nothing else."""
    folder = tmp_path_factory.mktemp("checkpoints") / "tiny"
    checkpoint.save(folder, tiny_model, tokenizer, ("de-en", "en-fr"), half=False)
    checkpoint.write_json(folder / checkpoint.METRICS, {"scores": []})
    checkpoint.write_json(
        folder / checkpoint.EXAMPLES,
        {"de-en": [{"text": SENTENCES[0], "reference": SENTENCES[1]}, {"text": "Ich möchte ein Bier, bitte."}]},
    )
    return folder


@pytest.fixture(scope="session")
def tiny_translator(tiny_checkpoint) -> Translator:
    return Translator.load(tiny_checkpoint, device="cpu", limits=TINY_LIMITS)


HOSTILE_SOURCE = tokens_from_spelling(
    ("<2en>", "▁der", "▁der", "<img src=x onerror=alert(1)>", "${alert(1)}", "&amp;", "▁😀", "</s>")
)
HOSTILE_TARGET = tokens_from_spelling(("▁the", "▁the", "</b>", "▁שלום", "{{value}}", "</s>"))


@pytest.fixture()
def hand_made_trace() -> TranslationTrace:
    """A trace of random weights over repeated and hostile tokens (markup, templates, right-to-left text).

    2 encoder and 3 decoder layers, 4 heads, 8 source and 6 target tokens. Pictures are compared with its arrays.
    """
    random = np.random.default_rng(11)

    def maps(layers: int, queries: tuple[str, ...], keys: tuple[str, ...], *, causal: bool = False) -> AttentionMaps:
        weights = random.dirichlet(np.full(len(keys), 0.4), size=(layers, 4, len(queries)))
        if causal:
            weights = np.tril(weights) + 1e-6 * np.eye(len(keys))
            weights /= weights.sum(-1, keepdims=True)
        return AttentionMaps(weights.astype(np.float32), queries, keys)

    inputs = tokens_from_spelling(("<s>", *HOSTILE_TARGET[:-1]))
    steps, k = len(inputs), 10
    probabilities = -np.sort(-random.dirichlet(np.full(k + 5, 0.3), size=steps))[:, :k].astype(np.float32)
    return TranslationTrace(
        source_text="der der …",
        direction="de-en",
        source_ids=tuple(range(4, 12)),
        source_tokens=HOSTILE_SOURCE,
        decoder_ids=(1, 20, 20, 21, 22, 23),
        decoder_inputs=inputs,
        target_ids=(20, 20, 21, 22, 23, 2),
        target_tokens=HOSTILE_TARGET,
        finished=True,
        translation="the the</b> שלום{{value}}",
        encoder_self=maps(2, HOSTILE_SOURCE, HOSTILE_SOURCE),
        decoder_self=maps(3, inputs, inputs, causal=True),
        cross=maps(3, inputs, HOSTILE_SOURCE),
        top_ids=np.tile(np.arange(20, 20 + k, dtype=np.int32), (steps, 1)),
        top_tokens=tuple(tuple(f"▁candidate{i}" for i in range(k)) for _ in range(steps)),
        top_probabilities=probabilities,
        chosen_rank=np.ones(steps, np.int32),
        entropy=random.uniform(0, 5, steps).astype(np.float32),
        log_probability=np.log(probabilities[:, 0]),
        seconds=0.01,
        device="cpu",
        checkpoint="hand-made",
        digest="0" * 16,
    )


class Malicious:
    """Creates a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)

    def __reduce__(self) -> tuple:
        return (Path.touch, (Path(self.path),))


def refused(folder: Path, *words: str) -> str:
    """Assert that opening a folder fails with these words. Returns the message."""
    with pytest.raises(ValueError) as caught:
        checkpoint.load(folder)
    assert all(word in str(caught.value) for word in words), str(caught.value)
    return str(caught.value)


@pytest.fixture(scope="session")
def recurrent_checkpoint(tokenizer: Tokenizer, tmp_path_factory) -> Path:
    """A checkpoint folder of a tiny seeded recurrent network, from German into English."""
    torch.manual_seed(5)
    config = RecurrentConfig(len(tokenizer), d_model=16, pad_id=tokenizer.pad_id, max_length=64)
    folder = tmp_path_factory.mktemp("recurrent") / "gru"
    checkpoint.save(folder, Recurrent(config).eval(), tokenizer, ("de-en",), half=False)
    return folder


@pytest.fixture(scope="session")
def shipped_checkpoints() -> Path:
    """The folder of trained checkpoints. Fails if it has none."""
    folder = Path(os.environ.get("ATTENTION_ATLAS_CHECKPOINTS", ROOT / "checkpoints"))
    assert list(folder.glob("*/config.json")), f"no trained checkpoint in {folder}"
    return folder


@pytest.fixture(scope="session")
def shipped_translators(shipped_checkpoints: Path) -> Translators:
    return Translators.load(shipped_checkpoints, device="cpu")


@pytest.fixture(scope="session")
def shipped_transformers(shipped_translators: Translators) -> tuple[Translator, ...]:
    """The shipped translators whose model is a Transformer."""
    return tuple(translator for translator in shipped_translators.all if isinstance(translator.model, Transformer))


@contextmanager
def serving(ports: list[int]) -> Iterator[Callable[..., str]]:
    """Yield a function that launches a page as app.py does and returns its address; close all pages at the end.

    ports: the ports to reuse, each for one page at a time. A new port is appended if all are in use.
    """
    running = []

    def start(page) -> str:
        if (port := next(filter(is_free, ports), None)) is None:
            ports.append(port := free_port())
        url = page.launch(server_name="127.0.0.1", server_port=port)
        running.append(page)
        return url

    yield start
    for page in running:
        page.demo.server.force_exit = True  # do not wait for browsers that are still connected
        page.demo.close(verbose=False)


@pytest.fixture(scope="session")
def stages() -> list[int]:
    """Ports that pages are served on one after another.

    At an address that it has visited, a browser has the scripts in its cache and opens a page in a quarter of the time.
    """
    return []


@pytest.fixture(scope="module")
def serve(stages: list[int]) -> Iterator[Callable[..., str]]:
    """A function that launches a page for the tests of a module and returns its address."""
    with serving(stages) as start:
        yield start


@pytest.fixture(scope="session")
def app_url(shipped_translators: Translators) -> Iterator[str]:
    """The address of the whole app with the trained checkpoints."""
    from attention_atlas.viz import shell

    with serving([]) as start:
        yield start(shell.build(shipped_translators))


@pytest.fixture(scope="session")
def tiny_url(tiny_translator: Translator) -> Iterator[str]:
    """The address of the whole app with the tiny seeded model."""
    from attention_atlas.viz import shell

    with serving([]) as start:
        yield start(shell.build(Translators([tiny_translator])))


def score_map_of(labels: tuple[str, ...], value: float) -> ScoreMap:
    """Return a square map with these labels, whose cells all have the same value."""
    positions = tuple((i,) for i in range(len(labels)))
    values = np.full((len(labels), len(labels)), value, np.float32)
    return ScoreMap(values, labels, labels, positions, positions, "", False, "query", "key")
