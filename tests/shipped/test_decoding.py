"""Steps, beams and branches of the shipped checkpoint agree with full passes, over sentences of a small grammar."""

from __future__ import annotations

from itertools import product

import pytest

from attention_atlas.model.decode.beam import BeamResult, Fate

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


@pytest.fixture(scope="module", params=[50, pytest.param(200, marks=pytest.mark.endure)])
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
