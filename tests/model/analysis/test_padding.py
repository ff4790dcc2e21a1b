"""The masks of a batch of two: their numbers, written out by hand and by numpy, and what they do to the weights."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn import Transformer as TorchTransformer

from model.analysis import padding
from model.nets.masks import pad

LONG, SHORT = "Meine Schwester malt ein rotes Boot.", "Zwei Kinder"


@pytest.fixture(scope="module")
def found(tiny_translator) -> padding.BatchMasks:
    return padding.of_two(tiny_translator, tiny_translator.translate(LONG), SHORT)


def test_padding_closes_what_the_shorter_sentence_does_not_have(tiny_translator, found) -> None:
    long, short = (len(tiny_translator.encode(text)) for text in (LONG, SHORT))
    assert short < long and found.lengths.tolist() == [long, short]
    np.testing.assert_array_equal(found.padding, [[True] * long, [True] * short + [False] * (long - short)])
    np.testing.assert_array_equal(found.from_lengths, found.padding)
    assert found.agree
    assert found.tokens[0][-1] == "</s>" and found.tokens[1][short - 1:] == ("</s>", *["<pad>"] * (long - short))


def test_causality_closes_the_future(tiny_translator, found) -> None:
    length = len(tiny_translator.translate(LONG).target_ids)
    np.testing.assert_array_equal(found.causal, np.tril(np.ones((length, length), bool)))
    closed = TorchTransformer.generate_square_subsequent_mask(length)  # torch: what is added, -inf where closed
    np.testing.assert_array_equal(found.causal, (closed == 0).numpy())


def test_masks_that_differ_do_not_agree(found) -> None:
    wrong = found.from_lengths.copy()
    wrong[1, -1] = True
    assert not padding.BatchMasks(found.tokens, found.lengths, found.padding, wrong, found.causal).agree


def test_the_model_gives_no_weight_to_what_the_mask_closes(tiny_translator, found) -> None:
    batch = pad([tiny_translator.encode(text) for text in (LONG, SHORT)], tiny_translator.tokenizer.pad_id)
    with torch.inference_mode():
        records = tiny_translator.model.encode(batch, record=True).records
    for record in records:
        largest = record.self_attention.weights.amax(dim=(1, 2)).numpy()  # [batch, key], over heads and queries
        assert (largest[~found.padding] == 0).all() and (largest[found.padding] > 0).all()


def test_without_a_second_sentence_it_is_the_first_words_of_the_first(tiny_translator) -> None:
    found = padding.of_two(tiny_translator, tiny_translator.translate(LONG))
    assert found.lengths[1] == len(tiny_translator.encode("Meine Schwester malt"))
    with pytest.raises(ValueError, match="limit is 64"):
        padding.of_two(tiny_translator, tiny_translator.translate(LONG), "Boot " * 100)
