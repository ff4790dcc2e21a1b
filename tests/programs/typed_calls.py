"""Documented calls and the types of their results. test_package.py checks them with `mypy --strict`, and runs them.

Both use the installed package, outside the checkout.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, assert_type

import numpy as np
from torch import Tensor

from attention_atlas import Interventions, Translator, circuits, edits, lenses, viz, why
from attention_atlas.model.analysis.ablation import Comparison, compare
from attention_atlas.model.analysis.sentences import sentences
from attention_atlas.model.analysis.steering import compute_steering_vector
from attention_atlas.model.decode.runs import Run
from attention_atlas.model.nets.places import At, Place
from attention_atlas.model.nets.records import ForwardOutput
from attention_atlas.model.trace.kinds import AttentionKind
from attention_atlas.model.trace.maps import AttentionMaps
from attention_atlas.model.trace.result import Result
from attention_atlas.model.trace.translation import TranslationTrace

TEXT, OTHER = "Ich möchte ein Bier, bitte.", "Ich möchte einen Tee, bitte."


def traces(translator: Translator) -> TranslationTrace:
    trace = translator.translate(TEXT)
    assert_type(trace, TranslationTrace)
    assert_type(trace.translation, str)
    assert_type(trace.target_tokens, tuple[str, ...])
    assert_type(trace.log_probability, np.ndarray)
    assert_type(trace.maps(AttentionKind.CROSS), AttentionMaps)
    assert_type(trace.maps("cross").weights, np.ndarray)
    assert_type(trace.cross, AttentionMaps | Any)  # Any: None for a network without this attention
    assert_type(trace.cross.weights, np.ndarray | Any)
    assert_type(translator.trace(TEXT, target="I would like a beer, please."), TranslationTrace)
    assert_type(translator.trace(source_ids=trace.source_ids, target=trace.target_ids), TranslationTrace)
    assert_type(translator.translate_batch([TEXT, OTHER]), list[str])
    assert_type(translator.traces(sentences("de")[:2]), Iterator[TranslationTrace])
    assert_type(translator.log_probabilities([trace]), list[list[float]])
    assert_type(translator.inspect(trace), ForwardOutput)
    return trace


def changes(translator: Translator, trace: TranslationTrace) -> None:
    off = Interventions(heads_off=[("cross", 2, 4), ("cross", 1, 0)])
    assert_type(translator.translate(TEXT, interventions=off), TranslationTrace)
    assert_type(compare(translator, trace, off), Comparison)
    assert_type(translator.places(), tuple[Place, ...])
    run = translator.run([TEXT, OTHER], names=["encoder.final", "*.resid_post"])
    assert_type(run, Run)
    assert_type(run["encoder.final"], Tensor)
    drinks = compute_steering_vector(translator, OTHER, TEXT, place="encoder.final")
    assert_type(drinks, np.ndarray)
    with translator.edit({"encoder.final": edits.Add(drinks, strength=3)}) as steered:
        assert_type(steered, Translator)
        assert_type(steered.translate(TEXT).translation, str)
    for edit in (edits.Ablate(heads=[1]), edits.Ablate(positions=(0, 1)), edits.Scale(0.5, positions=range(2))):
        translator.edit({"decoder.2.cross.pattern" if edit.heads else "encoder.0.resid_post": edit}).translate(TEXT)

    def twice(values: Tensor, at: At) -> Tensor:
        return 2 * values

    assert_type(translator.edit({"logits": twice}), Translator)


def reasons(translator: Translator, trace: TranslationTrace) -> None:
    step = trace.target_tokens.index("▁beer")
    answer = why.attribute(translator, trace, step=step, contrast="tea", methods=["occlusion_by_mask", "alti"])
    assert_type(answer, why.Why)
    assert isinstance(answer, Result)
    assert_type(answer.row("alti").values, np.ndarray)
    assert_type(why.attribute_batch(translator, [TEXT], methods=("alti",)), Iterator[why.Why])
    assert_type(why.split_logit(translator, trace, step=step).sum.holds, bool)
    assert_type(why.measure_heads(translator, trace, step=step), why.HeadEffects)
    assert_type(why.patch(translator, trace, OTHER, step=step).recovered, np.ndarray | None)
    assert_type(why.find_smallest_set(translator, trace).verified, bool)


def paths(translator: Translator) -> None:
    fillings = {"lesen": ("warten", "singen", "spielen", "schlafen")}
    pairs = circuits.make_pairs(translator, "Er will lesen.", "Sie will lesen.", fillings, ["He", "She"])
    assert_type(pairs, list[circuits.Pair])
    circuit = circuits.find_circuit(translator, pairs[:2])
    assert_type(circuit, circuits.Circuit)
    assert_type(circuit.top_edges(20), list[tuple[circuits.Edge, float]])
    assert_type(circuit.measure_faithfulness(pairs[2:], shares=[0.05, 1.0]), circuits.FaithfulnessCurves)
    assert_type(circuit.to_mib(20), dict[str, Any])
    edge, _ = circuit.top_edges(20)[0]
    assert_type(circuit.path_effect(edge.sender, edge.reader), float)


def streams(translator: Translator, trace: TranslationTrace) -> None:
    output = translator.inspect(trace)
    read = lenses.decoder_lens(translator.model, output, trace.target_ids)
    assert_type(read, lenses.DecoderLens)
    assert_type(read.top_ids, np.ndarray)
    fitted = lenses.load_stored(translator.folder, translator.config, translator.digest)
    assert_type(fitted, lenses.Lenses | None)
    if fitted is not None:
        assert_type(lenses.encoder_lens(translator.model, output, fitted).shares, np.ndarray)
    assert_type(lenses.layer_translations(translator, trace.source_ids), list[list[int]])


def pictures(trace: TranslationTrace) -> None:
    view = viz.View("cross", layer=2, head=4, words=True, predicted=True)
    # Plotly's figures have no types.
    viz.plot_heatmap(trace, view).update_layout(height=420)
    viz.plot_grid(trace, "encoder_self")
    viz.plot_lines(trace, viz.View("cross", heads=[(2, 4), (1, 0)]), coverage=0.7)
    assert_type(viz.score_map(trace, view), viz.ScoreMap)
    assert_type(viz.explore(trace), viz.Explorer)
    assert_type(viz.link(trace, "http://127.0.0.1:7860/"), str)


def main() -> None:
    translator = Translator.load("de-en", device="cpu")
    assert_type(translator, Translator)
    trace = traces(translator)
    changes(translator, trace)
    reasons(translator, trace)
    paths(translator)
    streams(translator, trace)
    pictures(trace)


if __name__ == "__main__":
    main()
