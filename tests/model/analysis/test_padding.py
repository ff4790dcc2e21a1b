"""Tests of the masks of a batch of two sentences, by hand, by numpy, and by the weights they lead to."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from torch.nn import Transformer as TorchTransformer

from attention_atlas.model.analysis import padding
from attention_atlas.model.trace.kinds import TRANSFORMER_KINDS, AttentionKind

LONG, SHORT = "Meine Schwester malt ein rotes Boot.", "Zwei Kinder"


@pytest.fixture(scope="module")
def masks(tiny_translator) -> padding.BatchMasks:
    return padding.make_batch_masks(tiny_translator, tiny_translator.translate(LONG), SHORT)


def test_padding_masks_the_shorter_sentence(tiny_translator, masks) -> None:
    long, short = (len(tiny_translator.encode(text)) for text in (LONG, SHORT))
    assert short < long and masks.lengths.tolist() == [long, short]
    np.testing.assert_array_equal(masks.padding, [[True] * long, [True] * short + [False] * (long - short)])
    np.testing.assert_array_equal(masks.from_lengths, masks.padding)
    assert masks.agree
    assert masks.tokens[0][-1] == "</s>" and masks.tokens[1][short - 1 :] == ("</s>", *["<pad>"] * (long - short))


def test_agree_is_false_for_different_masks(masks) -> None:
    wrong = masks.from_lengths.copy()
    wrong[1, -1] = True
    assert not replace(masks, from_lengths=wrong).agree


def test_without_a_second_sentence_it_is_the_first_words_of_the_first(tiny_translator) -> None:
    masks = padding.make_batch_masks(tiny_translator, tiny_translator.translate(LONG))
    assert masks.lengths[1] == len(tiny_translator.encode("Meine Schwester malt"))
    with pytest.raises(ValueError, match="limit is 64"):
        padding.make_batch_masks(tiny_translator, tiny_translator.translate(LONG), "Boot " * 100)


def test_the_squares_are_what_torch_would_be_given(masks) -> None:
    """torch: what is added or ignored, True = may NOT attend."""
    for i, (source, target) in enumerate(zip(masks.lengths, masks.target_lengths)):
        wide, high = masks.padding.shape[1], len(masks.causal)
        of_source, of_target = np.arange(wide) < source, np.arange(high) < target
        future = TorchTransformer.generate_square_subsequent_mask(high).numpy() == 0
        expected = {
            "encoder": np.ones((wide, 1), bool) & of_source,
            "padding": np.ones((high, 1), bool) & of_target,
            "future": future,
            "both": future & of_target,
            "cross": np.ones((high, 1), bool) & of_source,
        }
        squares = masks.squares(i)
        assert list(squares) == list(expected)
        for name, mask in squares.items():
            np.testing.assert_array_equal(mask, expected[name], err_msg=name)


def test_a_padded_pass_gives_each_sentence_the_weights_that_it_has_alone(tiny_translator, masks) -> None:
    output = padding.run_padded(tiny_translator, masks)
    assert padding.max_masked_weight(output, masks) == dict.fromkeys(TRANSFORMER_KINDS, 0.0)
    for i, text in enumerate((LONG, SHORT)):
        alone = tiny_translator.translate(text)
        for kind in TRANSFORMER_KINDS:
            expected = alone.maps(kind).weights
            rows, columns = expected.shape[2:]
            ours = output.weights(kind)[:, i, :, :rows, :columns].numpy()
            np.testing.assert_allclose(ours, expected, atol=1e-5)


def test_weight_on_a_closed_cell_would_be_seen(tiny_translator, masks) -> None:
    output = padding.run_padded(tiny_translator, masks)
    wrong = replace(masks, padding=masks.padding & (np.arange(masks.padding.shape[1]) != 1))
    assert padding.max_masked_weight(output, wrong)[AttentionKind.CROSS] > 0.01


def test_the_decoder_needs_no_padding_mask(tiny_translator, masks) -> None:
    assert masks.target_lengths[0] != masks.target_lengths[1]
    assert padding.measure_target_padding(tiny_translator, masks) < 1e-5
    # It would, if padding stood on the left: then real tokens would see it.
    turned = replace(masks, input_ids=masks.input_ids.flip(1), target_lengths=np.full(2, masks.input_ids.shape[1]))
    assert padding.measure_target_padding(tiny_translator, turned) > 1e-3


def test_a_row_that_is_wholly_closed() -> None:
    scores = np.array([1.5, -2.0, 0.25], np.float32)
    infinite, replaced, added = padding.mask_whole_row(scores)
    assert np.isnan(infinite).all()
    np.testing.assert_allclose(replaced, 1 / 3, atol=1e-7)
    # A float32 near 1e9 has steps of 64: no score is left of it.
    np.testing.assert_allclose(added, np.exp(np.float32(scores - np.float32(1e9)) + 1e9) / 3, atol=1e-6)
