"""Invalid arguments are refused by name, and strings and NumPy numbers are accepted for enums and integers."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch

from attention_atlas.model.analysis import circuits, why
from attention_atlas.model.analysis.why.experiments.patching import StreamGrid
from attention_atlas.model.trace.edits import Ablate, Add, Scale
from attention_atlas.model.trace.interventions import (
    Edge,
    HeadOutput,
    Interventions,
    Patch,
    Positions,
    Stream,
    SubLayerOutput,
)
from attention_atlas.model.trace.kinds import AttentionKind, Side, SubLayerName
from attention_atlas.model.trace.why.effects import Replacement
from attention_atlas.viz import View, compare, explore, link, plot_grid, plot_heatmap, plot_lines

TEXT = "Der kleine Hund schläft."


def test_strings_are_accepted_for_enums():
    assert Interventions(heads_off=[("cross", 2, 1)]).heads_off == {(AttentionKind.CROSS, 2, 1)}
    assert Interventions(cut_edges=[Edge("cross", 0, 1)]).cut_edges == {Edge(AttentionKind.CROSS, 0, 1)}
    assert HeadOutput("cross", 0, 1) == HeadOutput(AttentionKind.CROSS, 0, 1)
    assert Stream("decoder", 0) == Stream(Side.DECODER, 0)
    assert SubLayerOutput("decoder", 0, "feed_forward") == SubLayerOutput(Side.DECODER, 0, SubLayerName.FEED_FORWARD)


@pytest.mark.parametrize("found", [("crss", 1, 1), ("cross", 1), ("cross", 1.0, 1), "cross", 7])
def test_an_invalid_head_is_named(found):
    with pytest.raises(ValueError, match=re.escape(repr(found[0] if found == ("crss", 1, 1) else found))):
        Interventions(heads_off=[found])


def test_an_unknown_kind_is_refused_with_the_known_ones():
    with pytest.raises(ValueError, match="'sideways' is none of encoder, decoder"):
        Stream("sideways", 0)


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (Interventions(cut_edges=[Edge("cross", 0, 60)]), "an edge's key is at position 60 of the encoder"),
        (Interventions(zeroed_edges=[Edge("encoder_self", 60, 0)]), "an edge's query is at position 60"),
        (Interventions(cut_edges=[Edge("decoder_self", 5, 64)]), "position 64 of the decoder, which has 0 to 63"),
    ],
)
def test_a_position_beyond_the_sentence_is_refused(tiny_translator, found, words):
    with pytest.raises(ValueError, match=words):
        tiny_translator.translate(TEXT, interventions=found)


def test_a_patch_beyond_the_sentence_is_refused():
    interventions = Interventions(patches=[Patch(Stream("encoder", 1), (3, 9))])
    interventions.check_positions(10, 1)
    with pytest.raises(ValueError, match="a patch is at position 9 of the encoder, which has 0 to 8"):
        interventions.check_positions(9, 64)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Edge("cross", 0.5, 1), "query must be a whole number, found 0.5"),
        (lambda: Edge("cross", 0, 1, layer="1"), "layer must be a whole number, found '1'"),
        (lambda: Stream("decoder", 1.5), "layer must be a whole number"),
        (lambda: HeadOutput("cross", 0, 1.0), "head must be a whole number"),
        (lambda: Interventions(cut_edges=[("cross", 0, 1)]), "an edge is written Edge"),
        (lambda: Interventions(patches=[Stream("decoder", 1)]), "a patch is written Patch"),
        (lambda: View(layer=1.5), "layer must be a whole number"),
        (lambda: View(heads=((0, 1.5),)), "head must be a whole number"),
    ],
)
def test_layers_heads_and_positions_are_whole_numbers(make, words):
    with pytest.raises(ValueError, match=words):
        make()


def test_numpy_integers_are_accepted():
    number = np.int64(1)
    assert Interventions(heads_off=[("cross", number, number)]) == Interventions(heads_off=[("cross", 1, 1)])
    assert Edge("cross", number, number, number) == Edge("cross", 1, 1, 1) and View(layer=number) == View(layer=1)


def test_questions_with_invalid_fields_are_refused(tiny_translator, trace):
    for asked, words in (
        ({"step": 1.5}, "step must be a whole number, found 1.5"),
        ({"contrast": 1.5}, "token must be a whole number"),
        ({"cross_layer": 0.5}, "layer must be a whole number"),
    ):
        with pytest.raises(ValueError, match=words):
            why.attribute(tiny_translator, trace, methods=["cross_attention"], **asked)
    for call in (
        lambda: why.measure_heads(tiny_translator, trace, replacement="nothing"),
        lambda: why.find_smallest_set(tiny_translator, trace, replacement="nothing"),
        lambda: why.patch(tiny_translator, trace, "Ein Hund.", direction="nothing"),
    ):
        with pytest.raises(ValueError, match="'nothing' is none of"):
            call()
    effects = why.measure_heads(tiny_translator, trace, step=np.int64(0), replacement="zero")
    assert effects.replacement is Replacement.ZERO


def test_texts_need_targets_of_the_same_number(tiny_translator):
    for texts, targets, words in (
        ([], None, "there is no text to read"),
        ([TEXT, TEXT], ["A dog."], "one side ended after 1"),
        ([TEXT], ["A dog.", "A cat."], "one side ended after 1"),
    ):
        with pytest.raises(ValueError, match=words):
            tiny_translator.run(texts, targets, names=["logits"])
    with pytest.raises(ValueError, match="The text is empty"):
        tiny_translator.inspect([], [2])


def test_iterators_of_texts_are_accepted(tiny_translator):
    texts = [TEXT, "", "Hund."]
    assert tiny_translator.translate_batch(iter(texts)) == tiny_translator.translate_batch(texts)
    assert len(tiny_translator.trace_batch(text for text in texts if text)) == 2


def test_one_run_reads_all_of_its_texts(tiny_translator, monkeypatch):
    monkeypatch.setattr("attention_atlas.model.translator.translator.AT_ONCE", 2)
    assert len(tiny_translator.run(["Hund."] * 5, ["Dog."] * 5, names=["decoder.final"])) == 5
    assert [len(run) for run in tiny_translator.runs(["Hund."] * 5, names=["decoder.final"])] == [2, 2, 1]


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ([5, 6.0], "token ids must be whole numbers, found"),
        ([5, 6.5], "token ids must be whole numbers, found"),
        (["5"], "token ids must be whole numbers, found"),
        ([5, None], "token ids must be whole numbers, found"),
        ([5, -1], "There is no token -1: the vocabulary has tokens 0 to 349"),
        ([5, 350], "There is no token 350: the vocabulary has tokens 0 to 349"),
    ],
)
def test_ids_are_tokens_of_the_vocabulary(tiny_translator, wrong, words):
    good = tiny_translator.encode(TEXT)
    for call in (
        lambda: tiny_translator.generate([wrong]),
        lambda: tiny_translator.inspect(good, wrong),
        lambda: tiny_translator.inspect(wrong, good),
        lambda: tiny_translator.beam([wrong]),
        lambda: tiny_translator.log_probabilities([good], [wrong]),
        lambda: tiny_translator.log_probabilities([wrong], [good]),
        lambda: tiny_translator.trace(TEXT, target=wrong),
    ):
        with pytest.raises(ValueError, match=words):
            call()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda t: t.translate_batch([TEXT], batch_size=0), "batch size must be at least 1, found 0"),
        (lambda t: t.translate_batch([TEXT], batch_size=-1), "batch size must be at least 1, found -1"),
        (lambda t: list(t.traces([TEXT], batch_size=0)), "batch size must be at least 1"),
        (lambda t: list(why.attribute_batch(t, [TEXT], batch_size=0)), "batch size must be at least 1"),
        (lambda t: t.log_probabilities([[4, 5]], [[5]], batch_size=-1), "batch size must be at least 1"),
        (lambda t: t.log_probabilities([[4, 5]], []), "each source has its target: found 1 and 0"),
        (lambda t: t.generate([[]]), "The text is empty"),
        (lambda t: t.translate_batch(TEXT), "texts must be a list, found the text"),
        (lambda t: t.trace_batch(TEXT), "texts must be a list"),
        (lambda t: t.run(TEXT), "texts must be a list"),
        (lambda t: t.run([TEXT], names="encoder.final"), "names must be a list"),
        (lambda t: t.run([TEXT], names=[]), "there is no place to read"),
        (lambda t: why.attribute(t, TEXT), "expected a trace, as returned by translate"),
        (lambda t: why.attribute(t, t.translate(TEXT), methods="alti"), "methods must be a list"),
        (lambda t: why.attribute(t, t.translate(TEXT), baseline=(np.full(32, np.nan),) * 2), "must be finite"),
        (lambda t: why.patch(t, t.translate(TEXT), "Ein Hund.", grid="nowhere"), "Unknown place 'nowhere'"),
        (lambda t: t.translate(TEXT, interventions={"heads_off": []}), "changed by Interventions or a Sweep"),
        (lambda t: t.edit(None), "edits are a dict"),
        (lambda t: t.edit({"encoder.final": lambda x, at: x.double()}).translate(TEXT), "it gave .*torch.float64"),
        (lambda t: Positions(shift="a"), "shift must be a whole number"),
        (lambda t: Positions(shift=10**30), "shifted by at most 1,000,000"),
        (lambda t: Ablate(heads=4), "an edit's heads are a list of numbers"),
        (lambda t: Ablate(positions=(1, 1)), "positions count from 0, each once"),
        (lambda t: View(heads=(2, 4)), "heads are pairs"),
        (lambda t: t.translate(3), "a text is a string, found 3"),
        (lambda t: list(t.traces([1, 2])), "a text is a string, found 1"),
        (lambda t: t.translate([TEXT]), "a text is a string"),
        (lambda t: t.run([3]), "token ids must be a list, found 3"),
        (lambda t: t.run(3), "texts must be a list, found 3"),
        (lambda t: t.run([TEXT], "ab"), "targets must be a list, found the text 'ab'"),
        (lambda t: t.run([TEXT], [3]), "token ids must be a list, found 3"),
        (lambda t: t.translate_batch(None), "texts must be a list, found None"),
        (lambda t: t.trace(target=3, text=TEXT), "token ids must be a list, found 3"),
        (lambda t: t.trace(TEXT, target=b"ab"), "token ids must be a list, found the text"),
        (lambda t: t.trace(TEXT, prefix=3), "token ids must be a list, found 3"),
        (lambda t: t.generate(3), "sources must be a list"),
        (lambda t: type(t).load(None), "told by its folder or its name, found None"),
        (lambda t: type(t).load("org/name"), "attention-atlas convert fetches a model of the Hugging Face Hub"),
        (lambda t: t.edit({"encoder.final": Ablate}), "or a function of a tensor, found <class"),
        (lambda t: why.patch(t, t.translate(TEXT), None), "a text is a string, found None"),
        (lambda t: why.attribute(t, t.translate(TEXT), methods=[]), "name one or more of occlusion"),
        (
            lambda t: circuits.make_pairs(t, TEXT, "Der Hund.", {"klein": ["gross"]}, ("a", "b")),
            "no sentence has this word",
        ),
        (lambda t: t.translate(TEXT).save("x.foo"), r"NAME.json or NAME.npz, found 'x.foo'"),
        (lambda t: explore(TEXT), "expected a trace"),
        (lambda t: compare(TEXT, t.translate(TEXT)), "expected a trace"),
        (lambda t: plot_heatmap(3), "expected a trace"),
        (lambda t: plot_lines(None), "expected a trace"),
        (lambda t: plot_grid(3), "expected a trace"),
        (lambda t: link(3), "expected a trace"),
        (lambda t: plot_heatmap(t.translate(TEXT), scale=3), "a colour scale is one of viridis"),
    ],
)
def test_ambiguous_arguments_are_refused(tiny_translator, call, words):
    with pytest.raises(ValueError, match=words):
        call(tiny_translator)


def test_a_kind_stands_for_a_view_of_its_first_head(trace):
    for draw in (plot_heatmap, plot_lines):
        assert draw(trace, "decoder_self").to_json() == draw(trace, View("decoder_self")).to_json()
    assert explore(trace, "encoder_self").view == View("encoder_self")
    with pytest.raises(ValueError, match="'sideways' is none of"):
        plot_heatmap(trace, "sideways")


def test_edits_accept_arrays_and_tensors_of_any_dtype():
    assert Ablate(heads=np.array([1, 2])) == Ablate(heads=(1, 2)) and Ablate(positions=np.arange(2)).positions == (0, 1)
    assert Scale(np.float32(0.5)) == Scale(0.5) and type(Scale(np.int64(2)).by) is float
    assert Add(torch.ones(2, dtype=torch.bfloat16)) == Add([1.0, 1.0])


@pytest.mark.parametrize("edits", ["encoder.final", "*.resid_post", "decoder.*.cross.k"])
def test_an_edit_beyond_a_sentence_is_refused_by_every_method(tiny_translator, edits):
    ids = tiny_translator.encode(TEXT)
    beyond = tiny_translator.edit({edits: Ablate(positions=(60,))})
    for call in (
        lambda: beyond.translate(TEXT),
        lambda: beyond.translate_batch([TEXT]),
        lambda: beyond.beam([ids]),
        lambda: beyond.inspect(ids, [5, 2]),
        lambda: beyond.run([TEXT]),
        lambda: beyond.log_probabilities([ids], [[5, 2]]),
    ):
        with pytest.raises(ValueError, match=f"at position 60 of the encoder, which has 0 to {len(ids) - 1}"):
            call()


def test_grids_are_accepted_by_name(tiny_translator, trace):
    by_name = why.patch(tiny_translator, trace, "Ein Hund schläft.", grid="encoder stream")
    for grid in (StreamGrid("encoder"), StreamGrid(Side.ENCODER)):
        effects = why.patch(tiny_translator, trace, "Ein Hund schläft.", grid=grid)
        np.testing.assert_array_equal(effects.metrics, by_name.metrics)
        assert effects.columns == by_name.columns and effects.metrics.shape[1] == len(effects.columns)
