"""Following any target, going on from any prefix, the logit lens, and temperature over the whole vocabulary."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from model.analysis import paths
from model.analysis.lenses.decoder import decoder_lens, lens_streams
from model.decode.steps import StepDecoder
from model.trace.kinds import TRANSFORMER_KINDS
from tests.conftest import build_tiny_model
from tests.model.nets.test_interventions import EVERY_KIND

TEXT = "Zwei Kinder bauen eine Burg aus Sand."


@pytest.fixture(scope="module")
def own(tiny_translator):
    return tiny_translator.translate(TEXT)


def test_following_the_models_own_ids_reproduces_its_trace(tiny_translator, own):
    found = paths.follow(tiny_translator, TEXT, own.target_ids)
    for kind in TRANSFORMER_KINDS:
        np.testing.assert_allclose(found.maps(kind).weights, own.maps(kind).weights, atol=1e-5, rtol=0)
    np.testing.assert_allclose(found.log_probability, own.log_probability, atol=1e-5, rtol=0)
    np.testing.assert_allclose(found.top_probabilities, own.top_probabilities, atol=1e-5, rtol=0)
    np.testing.assert_allclose(found.entropy, own.entropy, atol=1e-5, rtol=0)
    for name in (
        "source_ids",
        "source_tokens",
        "decoder_ids",
        "target_ids",
        "target_tokens",
        "finished",
        "translation",
        "direction",
        "digest",
    ):
        assert getattr(found, name) == getattr(own, name)


@pytest.mark.parametrize("name", EVERY_KIND)
def test_a_translation_under_interventions_is_followed_and_completed_under_them(tiny_translator, own, name):
    """With a trace's own interventions, its ids give it again, and its prefix goes on to it."""
    broken = tiny_translator.translate(TEXT, interventions=EVERY_KIND[name])
    again = paths.follow(tiny_translator, TEXT, broken.target_ids, interventions=broken.interventions)
    assert again.interventions == EVERY_KIND[name]
    for kind in broken.kinds:
        np.testing.assert_allclose(again.maps(kind).weights, broken.maps(kind).weights, atol=1e-5, rtol=0)
    np.testing.assert_allclose(again.log_probability, broken.log_probability, atol=1e-5, rtol=0)
    completed = paths.complete(tiny_translator, TEXT, broken.target_ids[:2], interventions=broken.interventions)
    assert completed.target_ids == broken.target_ids and completed.interventions == broken.interventions
    if name != "nothing":
        plain = paths.follow(tiny_translator, TEXT, broken.target_ids)
        assert not np.allclose(plain.log_probability, again.log_probability, atol=1e-4)


@pytest.mark.parametrize("length", [1, 4])
def test_a_prefix_is_the_beginning_of_its_trace_and_unfinished(tiny_translator, own, length):
    found = paths.follow(tiny_translator, TEXT, own.target_ids[:length])
    assert not found.finished
    assert found.cross.weights.shape[2] == length
    np.testing.assert_allclose(found.cross.weights, own.cross.weights[:, :, :length], atol=1e-5, rtol=0)


def test_a_followed_target_may_be_improbable_and_finished(tiny_translator):
    end = tiny_translator.tokenizer.end_id
    ids = [*paths.typed_ids(tiny_translator, "Two children", joined=False), end]
    found = paths.follow(tiny_translator, TEXT, ids)
    assert found.finished and found.translation == "Two children"
    assert (found.chosen_rank > 1).any()


@pytest.mark.parametrize("length", [0, 1, 5])
def test_completing_a_greedy_prefix_gives_the_greedy_translation(tiny_translator, own, length):
    assert paths.complete(tiny_translator, TEXT, own.target_ids[:length]).target_ids == own.target_ids


def test_completing_keeps_what_was_given(tiny_translator, own):
    other = int(own.top_ids[2, 3])
    given = [*own.target_ids[:2], other]
    found = paths.complete(tiny_translator, TEXT, given)
    assert list(found.target_ids[:3]) == given and len(found.target_ids) > 3
    assert (found.chosen_rank[3:] == 1).all(), "what follows is greedy"
    again = paths.follow(tiny_translator, TEXT, found.target_ids)
    np.testing.assert_allclose(found.cross.weights, again.cross.weights, atol=1e-5, rtol=0)
    ended = (7, tiny_translator.tokenizer.end_id)
    assert paths.complete(tiny_translator, TEXT, ended).target_ids == ended


def test_a_prefix_up_to_the_limit_is_completed_as_far_as_the_model_reaches(tiny_translator):
    limit = tiny_translator.config.max_length - 1
    assert len(paths.complete(tiny_translator, TEXT, [9] * (limit - 2)).target_ids) <= limit
    assert paths.complete(tiny_translator, TEXT, [9] * limit).target_ids == (9,) * limit


@pytest.mark.parametrize(
    ("ids", "words"),
    [
        ([], "empty"),
        ([9] * 64, "64 tokens long; the limit is 63"),
        ([9999], "no token 9999"),
        ([-1], "no token -1"),
        ([2, 9], "Nothing can follow the end"),
    ],
)
def test_targets_that_cannot_be_followed(tiny_translator, ids, words):
    with pytest.raises(ValueError, match=words):
        paths.follow(tiny_translator, TEXT, ids)


def test_typed_text_with_and_without_a_space(tiny_translator):
    tokenizer = tiny_translator.tokenizer
    apart, joined = (paths.typed_ids(tiny_translator, "boat", joined=j) for j in (False, True))
    assert tokenizer.tokens(apart)[0].startswith("\u2581")
    assert "".join(tokenizer.tokens(joined)) == "boat"
    dog = tokenizer.encode("dog")
    assert tokenizer.decode([*dog, *joined]) == "dogboat"
    assert tokenizer.decode([*dog, *apart]) == "dog boat"
    assert tokenizer.decode([*dog, *tokenizer.encode_joined("\u2581 ß😀")]) == "dog\u2581 ß😀"
    with pytest.raises(ValueError, match="no text"):
        paths.typed_ids(tiny_translator, "  ", joined=False)


def test_a_branch_stepped_with_the_cache_is_a_full_pass(tiny_translator, own):
    """Logits to 1e-4, and the weights that the cached steps record to 1e-5, after going back and choosing otherwise."""
    model = tiny_translator.model
    with torch.inference_mode():
        source = model.encode(torch.tensor([own.source_ids]))
        decoder = StepDecoder(model, source, torch.tensor([own.decoder_ids]), record=True)
        decoder.rewind(3)
        ids = [*own.decoder_ids[:3], int(own.top_ids[2, 4])]
        decoder.append(torch.tensor(ids[-1:]))
        full = model(torch.tensor([own.source_ids]), torch.tensor([ids]), record=True)
    torch.testing.assert_close(decoder.logits, full.logits[:, -1], atol=1e-4, rtol=0)
    for stepped, whole in zip(decoder.records, full.decoder_records):
        for name in ("self_attention", "cross_attention"):
            torch.testing.assert_close(
                getattr(stepped, name).weights, getattr(whole, name).weights[:, :, -1:], atol=1e-5, rtol=0
            )


@pytest.mark.parametrize("changes", [{}, {"norm_first": False}])
def test_the_last_row_of_the_lens_is_the_models_own_distribution(tokenizer, changes):
    model = build_tiny_model(tokenizer, **changes)
    target = [30, 41, 52, 60]
    with torch.inference_mode():
        output = model(torch.tensor([[4, 20, 31, 2]]), torch.tensor([[1, *target[:-1]]]), record=True)
        logits = model.project(lens_streams(model, output))
        assert logits.shape == (4, 1, 4, len(tokenizer))
        torch.testing.assert_close(logits[-1].softmax(-1), output.logits.softmax(-1), atol=1e-6, rtol=0)
        own = output.logits[0].softmax(-1)
    lens = decoder_lens(model, output, target)
    assert lens.top_ids.shape == lens.chosen_ranks.shape == (4, 4)
    for step, token in enumerate(target):
        assert lens.top_ids[-1, step] == int(own[step].argmax())
        assert lens.chosen_probabilities[-1, step] == pytest.approx(float(own[step, token]), abs=1e-6)
        assert lens.chosen_ranks[-1, step] == 1 + int((own[step] > own[step, token]).sum())
    assert (lens.top_probabilities >= lens.chosen_probabilities).all()


def test_the_first_row_of_the_lens_reads_the_input(tokenizer):
    model = build_tiny_model(tokenizer)
    ids = torch.tensor([[1, 30, 41]])
    with torch.inference_mode():
        output = model(torch.tensor([[4, 20, 2]]), ids, record=True)
        expected = model.decoder.norm(model.embed(ids, decoder=True))
    torch.testing.assert_close(lens_streams(model, output)[0], expected, atol=1e-5, rtol=0)


def test_a_lens_needs_records(tiny_model):
    with torch.inference_mode():
        output = tiny_model(torch.tensor([[4, 20, 2]]), torch.tensor([[1, 30]]))
    with pytest.raises(ValueError, match="record=True"):
        lens_streams(tiny_model, output)


def test_temperature_is_over_the_whole_vocabulary(tiny_translator, own):
    details = paths.details(tiny_translator, own.source_ids, own.target_ids)
    logits = tiny_translator.inspect(own.source_ids, own.target_ids).logits[0].double()
    for at, temperature in enumerate(paths.TEMPERATURES):
        p = (logits / temperature).softmax(-1).numpy()
        np.testing.assert_allclose(
            np.exp(np.log(own.top_probabilities.astype(float)) / temperature - details.log_normalisers[at][:, None]),
            np.take_along_axis(p, own.top_ids.astype(int), -1),
            atol=1e-5,
            rtol=1e-3,
        )
        np.testing.assert_allclose(details.entropies[at], -(p * np.log2(p.clip(1e-300))).sum(-1), atol=1e-4)
    one = paths.TEMPERATURES.index(1.0)
    np.testing.assert_allclose(details.log_normalisers[one], 0.0, atol=1e-5)
    np.testing.assert_allclose(details.entropies[one], own.entropy, atol=1e-4)
