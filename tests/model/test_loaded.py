"""A network that leaves memory while nobody uses it, and is read again."""

from __future__ import annotations

import shutil
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from safetensors.torch import load_file, save_file

from model import checkpoint as checkpoints
from model.trace.language import Refusal
from model.translator import Translator, loaded

TEXT = "Der Hund sieht die Katze."


@pytest.fixture
def folder(tiny_checkpoint, tmp_path):
    return shutil.copytree(tiny_checkpoint, tmp_path / tiny_checkpoint.name)


@pytest.fixture
def translator(folder) -> Translator:
    """One that serves alone."""
    found = Translator.load(folder, "cpu")
    found.serve_alone()
    return found


def test_what_rested_translates_as_before(translator) -> None:
    before, network = translator.translate(TEXT), weakref.ref(translator.model)
    edited = translator.edit({"logits": lambda values, at: -values})
    changed = edited.translate(TEXT)
    assert translator.rest() and translator.rest()
    assert network() is None, "its memory is free, without a collection of garbage that would hold everybody up"
    again = translator.translate(TEXT)
    assert again.target_ids == before.target_ids and network() is None
    np.testing.assert_array_equal(again.cross.weights, before.cross.weights)
    np.testing.assert_array_equal(edited.translate(TEXT).cross.weights, changed.cross.weights)
    assert edited.model is translator.model, "copies share it"


def test_whoever_has_it_keeps_it(translator) -> None:
    network = translator.model
    weight = next(network.parameters()).detach().clone()
    assert translator.rest() and translator.model is not network
    assert bool((next(network.parameters()) == weight).all())


def test_it_rests_only_when_nobody_asked_for_a_while(translator, monkeypatch) -> None:
    now = 1_000.0
    monkeypatch.setattr(loaded.time, "monotonic", lambda: now)
    network = translator.model
    now += 599
    assert not translator.rest(600)
    now += 1
    assert translator.rest(600)
    assert translator.model is not network


def test_of_many_who_ask_at_once_one_reads_it(translator, monkeypatch) -> None:
    read, load = [], checkpoints.load
    monkeypatch.setattr(loaded.checkpoints, "load", lambda folder: read.append(folder) or load(folder))
    assert translator.rest()
    with ThreadPoolExecutor(20) as many:
        found = set(many.map(lambda _: translator.model, range(100)))
    assert len(found) == len(read) == 1


def test_what_others_may_hold_or_is_slow_to_read_stays(folder, translator, tiny_translator, monkeypatch) -> None:
    other = Translator.load(folder, "cpu")  # whose weights somebody may change
    network = other.model
    assert not other.rest() and other.model is network
    assert not tiny_translator.rest()
    monkeypatch.setattr(loaded, "LARGEST", translator.weight_bytes - 1)
    assert not translator.rest()


def test_files_that_changed_meanwhile_are_not_taken_for_it(folder, translator, tmp_path) -> None:
    translation = translator.translate(TEXT).translation
    weights, aside = folder / checkpoints.WEIGHTS, tmp_path / "aside"
    assert translator.rest()
    weights.rename(aside)
    with pytest.raises(Refusal, match="started again"):
        translator.translate(TEXT)
    save_file({name: tensor + 1 for name, tensor in load_file(aside).items()}, weights)
    with pytest.raises(Refusal, match="started again"):
        translator.translate(TEXT)
    aside.replace(weights)
    assert translator.translate(TEXT).translation == translation
