"""Folders of the families open with every form of their tensors; test_hostile.py has those that are refused."""

from __future__ import annotations

import collections
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from attention_atlas.model import checkpoint
from attention_atlas.model.config import PositionCode
from attention_atlas.model.families import tensors
from tests.model.families import theirs
from tests.model.families.theirs import PICKLE, WEIGHTS, edit

SOURCE = torch.tensor([[12, 20, 31, 45, 20, 61, 33, 8, 0]])
E, ENCODER, DECODER, HEAD = tensors.embedding_names("model.")


def logits_of(model, encoder_ids: torch.Tensor = SOURCE) -> torch.Tensor:
    """Return the logits of a model of ours or of `transformers`."""
    pad = model.config.pad_token_id if hasattr(model.config, "pad_token_id") else model.config.pad_id
    target = torch.tensor([[pad, 14, 15, 16, 30]])
    with torch.no_grad():
        if hasattr(model, "lm_head"):
            return model(input_ids=encoder_ids, decoder_input_ids=target).logits
        return model(encoder_ids, target).logits


def equal_to(model, folder: Path) -> checkpoint.Checkpoint:
    opened = checkpoint.load(folder)
    torch.testing.assert_close(logits_of(opened.model), logits_of(model), atol=1e-4, rtol=0)
    return opened


def matrix(seed: int, like: torch.Tensor) -> torch.Tensor:
    return 0.15 * torch.randn(like.shape, generator=torch.Generator().manual_seed(seed))


def set_matrices(model, *, decoder: torch.Tensor | None = None, head: torch.Tensor | None = None):
    """Untie the decoder's embedding or the output matrix of a model of `transformers`."""
    if decoder is not None:
        model.model.decoder.embed_tokens = torch.nn.Embedding.from_pretrained(decoder)
    if head is not None:
        model.lm_head = torch.nn.Linear(head.shape[1], head.shape[0], bias=False)
        model.lm_head.weight = torch.nn.Parameter(head)
    return model


@pytest.mark.parametrize(
    "names", [(E,), (ENCODER,), (DECODER,), (HEAD,), (ENCODER, DECODER), (E, HEAD), (E, ENCODER, DECODER, HEAD)]
)
def test_one_matrix_under_any_of_its_names(folder, names, tmp_path):
    """Which name of a shared storage remains depends on the library that saved it."""
    state = load_file(folder / WEIGHTS)
    matrix = state.pop(E)
    save_file({**state, **{name: matrix.clone() for name in names}}, folder / WEIGHTS)
    opened = equal_to(theirs.marian(tmp_path / "again"), folder)
    assert opened.model.config.shared_embeddings and opened.model.config.tied_output
    assert opened.metrics["notes"] == []


def test_an_output_matrix_that_differs_though_it_is_tied_is_ignored_and_noted(folder, tmp_path):
    state = load_file(folder / WEIGHTS)
    save_file({**state, HEAD: matrix(1, state[E])}, folder / WEIGHTS)
    opened = equal_to(theirs.marian(tmp_path / "again"), folder)
    assert "lm_head.weight differs" in opened.metrics["notes"][0]


@pytest.mark.parametrize("tied", [True, False])
def test_a_decoder_with_its_own_embedding(folder, tmp_path, tied):
    state = load_file(folder / WEIGHTS)
    own, head = matrix(1, state[E]), matrix(2, state[E])
    state[ENCODER] = state.pop(E)
    save_file({**state, DECODER: own, HEAD: own.clone() if tied else head}, folder / WEIGHTS)
    edit(folder, tie_word_embeddings=tied)
    model = set_matrices(theirs.marian(tmp_path / "again"), decoder=own, head=own if tied else head)
    opened = equal_to(model, folder)
    assert not opened.model.config.shared_embeddings and opened.model.config.tied_output is tied


@pytest.mark.parametrize("names", [(E,), (E, ENCODER, DECODER)])
def test_an_untied_output_matrix(folder, tmp_path, names):
    state = load_file(folder / WEIGHTS)
    shared = state.pop(E)
    head = matrix(3, shared)
    save_file({**state, **{name: shared.clone() for name in names}, HEAD: head}, folder / WEIGHTS)
    edit(folder, tie_word_embeddings=False)
    equal_to(set_matrices(theirs.marian(tmp_path / "again"), head=head), folder)


def test_a_shared_matrix_beside_separate_vocabularies_is_ignored(tmp_path):
    model = theirs.marian(tmp_path / "model", separate=True)
    model.save_pretrained(tmp_path / "model")
    state = load_file(tmp_path / "model" / WEIGHTS)
    assert E not in state and state[ENCODER].shape != state[DECODER].shape
    save_file({**state, E: matrix(5, state[ENCODER])}, tmp_path / "model" / WEIGHTS)
    opened = equal_to(model, tmp_path / "model")
    assert not opened.model.config.shared_embeddings


def test_an_absent_bias_is_none(folder, tmp_path):
    state = load_file(folder / WEIGHTS)
    del state[tensors.BIAS]
    save_file(state, folder / WEIGHTS)
    model = theirs.marian(tmp_path / "again")
    model.final_logits_bias.zero_()
    assert not equal_to(model, folder).model.config.logits_bias


@pytest.mark.parametrize(
    ("family", "form"),
    [
        ("marian", "before 1.6"),
        ("marian", "OrderedDict of parameters"),
        *((family, form) for family in ("marian", "m2m100", "nllb", "mbart") for form in ("zip", "pickles", "shards")),
    ],
)
def test_every_form_of_the_weights_gives_the_same_model(family, form, tmp_path):
    whole, folder = tmp_path / "whole", tmp_path / "folder"
    theirs.FAMILIES[family](whole).save_pretrained(whole)
    state, model = load_file(whole / WEIGHTS), theirs.FAMILIES[family](folder)
    if form == "shards":
        model.save_pretrained(folder, max_shard_size="100KB")
        assert len(list(folder.glob("model-*.safetensors"))) > 3 and not (folder / WEIGHTS).exists()
    else:
        model.config.save_pretrained(folder)
        model.generation_config.save_pretrained(folder)
        if form == "pickles":
            theirs.save_shards(state, folder)
        elif form.startswith("OrderedDict"):
            parameters = collections.OrderedDict((name, torch.nn.Parameter(t)) for name, t in state.items())
            torch.save(parameters, folder / PICKLE)
        else:
            aliases = {ENCODER: state[E], HEAD: state[E]} if family == "marian" else {}  # one storage, three names
            torch.save({**state, **aliases}, folder / PICKLE, _use_new_zipfile_serialization=form == "zip")
    expected, loaded = (checkpoint.load(path).model.state_dict() for path in (whole, folder))
    assert loaded.keys() == expected.keys() and all(torch.equal(loaded[name], expected[name]) for name in expected)


def test_half_precision_is_read_exactly(saved, folder):
    state = {name: t.half() for name, t in load_file(folder / WEIGHTS).items()}
    save_file(state, folder / WEIGHTS)
    loaded = checkpoint.load(folder).model.state_dict()
    for name, tensor in checkpoint.load(saved).model.state_dict().items():
        assert loaded[name].dtype == torch.float32 and torch.equal(loaded[name], tensor.half().float())


@pytest.mark.parametrize("changed", [False, True])
def test_stored_tables_of_sines_are_used_if_they_differ_from_the_formula(folder, tmp_path, changed):
    model = theirs.marian(tmp_path / "again")
    table = model.model.encoder.embed_positions.weight.detach().clone()
    if changed:
        table += 0.1 * matrix(4, table)
    state = load_file(folder / WEIGHTS)
    save_file({**state, **{name: table.clone() for name in tensors.POSITIONS.values()}}, folder / WEIGHTS)
    for stack in (model.model.encoder, model.model.decoder):
        stack.embed_positions.weight.data.copy_(table)
    opened = equal_to(model, folder)
    assert opened.model.config.position_code is (PositionCode.LEARNED if changed else PositionCode.HALVES)
    assert any("position tables" in note for note in opened.metrics["notes"]) is changed
