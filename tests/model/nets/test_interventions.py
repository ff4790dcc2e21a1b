"""Interventions: cached decoding equals full passes with every kind, and empty interventions change no bit."""

from __future__ import annotations

import numpy
import pytest
import torch

from attention_atlas.model.nets.masks import pad
from attention_atlas.model.trace.edits import Ablate, Add, Scale
from attention_atlas.model.trace.interventions import Edge, Interventions, Positions
from attention_atlas.model.trace.kinds import AttentionKind, SubLayerName
from tests.conftest import build_tiny_model

ENCODER, DECODER, CROSS = AttentionKind.ENCODER_SELF, AttentionKind.DECODER_SELF, AttentionKind.CROSS
SOURCE, TARGET = torch.tensor([[4, 20, 31, 45, 20, 2]]), torch.tensor([[1, 30, 41, 52, 30]])
EVERY_KIND = {
    "nothing": Interventions(),
    "encoder head off": Interventions(heads_off={(ENCODER, 1, 2)}),
    "decoder heads off": Interventions(heads_off={(DECODER, 2, 0), (DECODER, 0, 3)}),
    "cross head off": Interventions(heads_off={(CROSS, 1, 1)}),
    "encoder edge cut": Interventions(cut_edges={Edge(ENCODER, 2, 0)}),
    "decoder edge cut": Interventions(cut_edges={Edge(DECODER, 3, 1, layer=1), Edge(DECODER, 4, 0)}),
    "cross edge cut": Interventions(cut_edges={Edge(CROSS, 2, 3, head=1), Edge(CROSS, 0, 5, 2, 3)}),
    "edges zeroed": Interventions(zeroed_edges={Edge(DECODER, 2, 2), Edge(CROSS, 3, 1, 0, 0)}),
    "positions off": Interventions(source_positions=Positions(enabled=False)),
    "target positions off": Interventions(target_positions=Positions(enabled=False)),
    "positions shifted": Interventions(source_positions=Positions(shift=3), target_positions=Positions(shift=-2)),
    "far positions": Interventions(target_positions=Positions(shift=62)),
    "an edit": Interventions(edits={"decoder.1.resid_mid": Add(numpy.linspace(-1, 2, 32), positions=(1, 3))}),
    "an edit of a pattern": Interventions(edits={"decoder.*.cross.pattern": Scale(0.5, heads=(1,))}),
    "an edit of keys": Interventions(edits={"decoder.1.cross.k": Ablate(heads=(2, 3)), "*.self.v": Scale(1.5)}),
    "everything": Interventions(
        heads_off={(CROSS, 0, 0)},
        cut_edges={Edge(DECODER, 3, 1)},
        zeroed_edges={Edge(ENCODER, 1, 1)},
        target_positions=Positions(shift=1),
    ),
}


@pytest.mark.parametrize(
    ("name", "code"),
    [
        (name, code)
        for name, changes in EVERY_KIND.items()
        for code in ("interleaved", "relative")
        if code == "interleaved" or changes.target_positions == changes.source_positions  # none to shift
    ],
)
def test_last_rows_and_single_layers_equal_those_of_the_whole_stack(tokenizer, name, code):
    tiny_model = build_tiny_model(tokenizer, position_code=code)
    changes, decoder = EVERY_KIND[name], tiny_model.decoder
    memory = tiny_model.encode(SOURCE, interventions=changes)
    rows, mask = tiny_model.embed(TARGET, changes, decoder=True), tiny_model.target_mask(TARGET)
    whole, _ = decoder(rows, mask, memory, interventions=changes)
    for last in (1, 3):
        found, _ = decoder(rows, mask, memory, interventions=changes, last=last)
        torch.testing.assert_close(found, whole[:, -last:], atol=1e-5, rtol=0)
    cache = tiny_model.new_cache()
    decoder(rows[:, :2], mask[..., :2, :2], memory, interventions=changes, cache=cache)
    found, _ = decoder(rows[:, 2:], mask[..., 2:, :], memory, interventions=changes, cache=cache, last=2)
    torch.testing.assert_close(found, whole[:, -2:], atol=1e-5, rtol=0)
    assert cache.length == TARGET.shape[1]
    stream = rows
    for layer in range(len(decoder.layers)):
        stream, _ = decoder(stream, mask, memory, interventions=changes, start=layer, stop=layer + 1)
    assert torch.equal(stream, whole)


@pytest.mark.parametrize("name", [name for name in EVERY_KIND if name != "nothing"])
def test_each_kind_changes_the_output(tiny_model, name):
    plain, changed = tiny_model(SOURCE, TARGET), tiny_model(SOURCE, TARGET, interventions=EVERY_KIND[name])
    assert not torch.allclose(plain.logits, changed.logits, atol=1e-5)
    assert EVERY_KIND[name] and EVERY_KIND[name].describe()


def test_an_empty_intervention_changes_no_bit(tiny_model):
    plain = tiny_model(SOURCE, TARGET, record=True)
    nothing = Interventions(heads_off=frozenset(), source_positions=Positions(True, 0))
    empty = tiny_model(SOURCE, TARGET, record=True, interventions=nothing)
    assert torch.equal(plain.logits, empty.logits)
    for one, other in zip(plain.decoder_records, empty.decoder_records):
        assert torch.equal(one.cross_attention.weights, other.cross_attention.weights)
        assert torch.equal(one.after, other.after)
    assert not Interventions() and Interventions().describe() == ""


@pytest.mark.parametrize("kind", [ENCODER, DECODER, CROSS])
def test_heads_off_equals_zeroing_their_slice_of_the_output_matrix(model, kind):
    off = Interventions(heads_off={(kind, 1, 2), (kind, 0, 0)})
    changed = model(SOURCE, TARGET, interventions=off).logits
    with torch.no_grad():
        for layer, head in ((1, 2), (0, 0)):
            model.attention(kind, layer).output.weight[:, 8 * head : 8 * head + 8] = 0
    torch.testing.assert_close(changed, model(SOURCE, TARGET).logits, atol=1e-5, rtol=0)


def test_a_cut_edge_is_zero_in_the_map_and_the_row_renormalises(tiny_model):
    edge = Edge(CROSS, 2, 3, layer=0, head=1)
    plain = tiny_model(SOURCE, TARGET, record=True).decoder_records[0].cross_attention.weights[0]
    cut = tiny_model(SOURCE, TARGET, record=True, interventions=Interventions(cut_edges={edge}))
    weights = cut.decoder_records[0].cross_attention.weights[0]
    expected = plain.clone()
    expected[1, 2, 3] = 0
    torch.testing.assert_close(weights, expected / expected.sum(-1, keepdim=True), atol=1e-6, rtol=1e-5)
    assert (cut.decoder_records[1].cross_attention.weights[0, :, 2, 3] > 0).all(), "only layer 0 has a cut edge"


def test_a_zeroed_edge_leaves_the_recorded_weights(tiny_model):
    edge = Edge(CROSS, 2, 3, layer=0, head=1)
    plain = tiny_model(SOURCE, TARGET, record=True)
    zeroed = tiny_model(SOURCE, TARGET, record=True, interventions=Interventions(zeroed_edges={edge}))
    record, expected = zeroed.decoder_records[0], plain.decoder_records[0]
    assert torch.equal(record.cross_attention.weights, expected.cross_attention.weights)
    # The output loses exactly weight x value through this head's slice of W_O.
    lost = expected.cross_attention.weights[0, 1, 2, 3] * expected.cross_attention.values[0, 1, 3]
    through = tiny_model.decoder.layers[0].cross_attention.output.weight[:, 8:16] @ lost
    ours, theirs = (layer.sublayer(SubLayerName.CROSS_ATTENTION).after[0, 2] for layer in (record, expected))
    torch.testing.assert_close(ours, theirs - through, atol=1e-5, rtol=0)


def test_positions_off_make_the_encoder_independent_of_order(tiny_model):
    off = Interventions(source_positions=Positions(enabled=False))
    order = torch.tensor([0, 3, 1, 2, 4, 5])
    plain, shuffled = (tiny_model.encode(ids, interventions=off).memory for ids in (SOURCE, SOURCE[:, order]))
    torch.testing.assert_close(plain[:, order], shuffled, atol=1e-5, rtol=0)
    assert not torch.allclose(tiny_model.encode(SOURCE).memory[:, order], shuffled, atol=1e-3)


def test_cut_edges_do_not_change_padding(tiny_model):
    cut = Interventions(cut_edges={Edge(CROSS, 1, 2)})
    source = pad([SOURCE[0].tolist(), SOURCE[0, :3].tolist()], 0)
    together = tiny_model(source, TARGET.expand(2, -1), interventions=cut).logits
    torch.testing.assert_close(together[:1], tiny_model(SOURCE, TARGET, interventions=cut).logits, atol=1e-4, rtol=0)


def test_a_row_without_any_edge_raises_an_error(tiny_model, tiny_translator):
    bare = Interventions(cut_edges={Edge(DECODER, 0, 0)})
    for call, arguments in ((tiny_model, (SOURCE, TARGET)), (tiny_translator.translate, ("Der Hund",))):
        with pytest.raises(ValueError, match="query position 0 nothing to attend to"):
            call(*arguments, interventions=bare)


@pytest.mark.parametrize(
    "changes, message",
    [
        (Interventions(heads_off={(ENCODER, 2, 0)}), "encoder_self has layers 0 to 1, found 2"),
        (Interventions(heads_off={(CROSS, 0, 4)}), "heads are 0 to 3, found 4"),
        (Interventions(heads_off={(CROSS, -1, 0)}), "found -1"),
        (Interventions(cut_edges={Edge(DECODER, 0, 0, layer=3)}), "layers 0 to 2, found 3"),
        (Interventions(zeroed_edges={Edge(CROSS, -1, 0)}), "count from 0"),
        (Interventions(in_words="head 3 off"), "known in words only and cannot be run again: head 3 off"),
    ],
)
def test_interventions_that_cannot_be_applied_are_refused(tiny_translator, changes, message):
    with pytest.raises(ValueError, match=message):
        tiny_translator.translate("Der Hund", interventions=changes)
