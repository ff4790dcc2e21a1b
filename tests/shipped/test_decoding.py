"""Steps, beams and branches of the shipped checkpoint agree with full passes, over sentences of a small grammar."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import torch

from attention_atlas.model.analysis.lenses.decoder import streams_of
from attention_atlas.model.decode.beam import BeamResult, Fate
from attention_atlas.model.decode.steps import StepDecoder
from attention_atlas.model.trace.kinds import TRANSFORMER_KINDS, Side
from attention_atlas.viz.maps.branches import compare

SUBJECTS = (
    "Ein kleiner Hund",
    "Die alte Frau",
    "Mein Bruder",
    "Der Lehrer",
    "Ein Mann mit Hut",
    "Das müde Kind",
    "Unsere Nachbarin",
    "Niemand",
)
VERBS = ("sieht", "sucht", "malt", "trägt", "vergisst")
OBJECTS = ("einen roten Ball", "das offene Fenster", "die Zeitung von gestern", "zwei Fahrräder", "seinen Schlüssel")
ENDINGS = (".", " am Morgen.", ", obwohl es regnet.", "?", " im Garten, und alle anderen warten auf den Bus.")
SENTENCES = tuple(
    f"{subject} {verb} {object_}{ENDINGS[i % len(ENDINGS)]}"
    for i, (subject, verb, object_) in enumerate(product(SUBJECTS, VERBS, OBJECTS))
)


@pytest.fixture(scope="module")
def translator(shipped_translators):
    return shipped_translators["de-en"]


@pytest.fixture(scope="module", params=[50, pytest.param(200, marks=pytest.mark.long)])
def sources(translator, request) -> list[list[int]]:
    return [translator.encode(text, "de-en") for text in SENTENCES[:: len(SENTENCES) // request.param]]


@pytest.fixture(scope="module")
def greedy_ids(translator, sources) -> list[list[int]]:
    return translator.generate(sources)


@pytest.fixture(scope="module")
def beams(translator, sources) -> list[BeamResult]:
    return [
        result
        for start in range(0, len(sources), 25)
        for result in translator.beam(sources[start : start + 25], width=5, n_best=5, keep_pruned=True)
    ]


@pytest.fixture(scope="module")
def forced(translator):
    """Four pairs of traces: a translation, and a branch of it whose fourth token is forced."""
    pairs = []
    for text in SENTENCES[:200:50]:
        own = translator.translate(text, "de-en")
        prefix = [*own.target_ids[:3], int(own.top_ids[3, 2])]
        pairs.append((own, translator.trace(text, "de-en", prefix=prefix)))
    return pairs


def test_a_beam_of_one_is_greedy_decoding(translator, sources, greedy_ids):
    results = [r for start in range(0, len(sources), 50) for r in translator.beam(sources[start : start + 50], width=1)]
    assert [list(r.hypotheses[0].ids) for r in results] == greedy_ids


def test_a_beam_of_five_scores_below_greedy_only_if_it_pruned_the_greedy_path(translator, sources, greedy_ids, beams):
    totals = [sum(row) for row in translator.log_probabilities(sources, greedy_ids)]
    better = lower = 0
    for ids, total, result in zip(greedy_ids, totals, beams):
        best = result.hypotheses[0]
        assert best.finished
        better += best.score > total + 1e-4
        if best.score < total - 1e-4:
            fates = {result.prefix(n): node.fate for n, node in enumerate(result.nodes)}
            assert Fate.PRUNED in [fates.get(tuple(ids[:k])) for k in range(1, len(ids) + 1)]
            lower += 1
    assert better > len(sources) / 10 and lower <= len(sources) / 50


def test_every_node_has_the_score_of_a_full_pass(translator, sources, beams):
    """Compare every node of every twentieth tree with one teacher-forced batch of the tree's leaves."""
    for source, result in list(zip(sources, beams))[::20]:
        prefixes = [list(result.prefix(n)) for n in range(len(result.nodes))]
        inner = {node.parent for node in result.nodes}
        leaves = [n for n in range(len(result.nodes)) if n not in inner]
        rescored = {
            tuple(prefixes[n]): row
            for n, row in zip(
                leaves, translator.log_probabilities([source] * len(leaves), [prefixes[n] for n in leaves])
            )
        }
        for n in leaves:
            at, row = n, rescored[tuple(prefixes[n])]
            while at is not None:
                node = result.nodes[at]
                assert node.log_probability == pytest.approx(row[node.depth - 1], abs=1e-4)
                assert node.total == node.score == pytest.approx(sum(row[: node.depth]), abs=1e-4)
                at = node.parent


def test_a_branch_decoded_with_the_cache_equals_a_full_pass(translator, forced):
    """At every step after the forced token, logits agree to 1e-4 and weights to 1e-5."""
    for _, branch in forced:
        with torch.inference_mode():
            source = translator.model.encode(torch.tensor([branch.source_ids]))
            full = translator.inspect(branch.source_ids, branch.target_ids)
            decoder = StepDecoder(translator.model, source, torch.tensor([branch.decoder_ids[:4]]), record=True)
            lean = StepDecoder(translator.model, source, torch.tensor([branch.decoder_ids[:4]]))
            for step in range(4, len(branch.decoder_ids)):
                for step_decoder in (decoder, lean):
                    step_decoder.append(torch.tensor([branch.decoder_ids[step]]))
                    torch.testing.assert_close(step_decoder.logits, full.logits[:, step], atol=1e-4, rtol=0)
                for stepped, whole in zip(decoder.records, full.decoder_records):
                    for name in ("self_attention", "cross_attention"):
                        ours, theirs = getattr(stepped, name).weights, getattr(whole, name).weights
                        torch.testing.assert_close(
                            ours[:, :, 0], theirs[:, :, step, : ours.shape[-1]], atol=1e-5, rtol=0
                        )


def test_the_last_row_of_the_lens_is_the_distribution_of_the_model(translator, forced):
    for pair in forced:
        for trace in pair:
            with torch.inference_mode():
                output = translator.inspect(trace.source_ids, trace.target_ids)
                last = translator.model.project(translator.model.decoder.norm(streams_of(output, Side.DECODER)[-1]))
            torch.testing.assert_close(last.softmax(-1), output.logits.softmax(-1), atol=1e-6, rtol=0)


def test_identical_branches_do_not_differ(translator, forced):
    for own, branch in forced:
        same = compare(branch, translator.trace(branch.source_text, "de-en", target=branch.target_ids))
        assert not same.cross.any() and not same.decoder_self.any()
        different = compare(own, branch)
        assert different.shared == 3 and (different.cross > 0).all()


def test_forcing_the_ids_of_a_trace_reproduces_it(translator):
    for text in SENTENCES[::10]:
        own = translator.translate(text, "de-en")
        forced = translator.trace(own.source_text, "de-en", target=own.target_ids)
        for kind in TRANSFORMER_KINDS:
            np.testing.assert_allclose(forced.maps(kind).weights, own.maps(kind).weights, atol=1e-5, rtol=0)
        for name in ("log_probability", "top_probabilities", "entropy"):
            np.testing.assert_allclose(getattr(forced, name), getattr(own, name), atol=1e-5, rtol=0)
