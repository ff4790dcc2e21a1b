"""The tree of branches and the comparison of two branches."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.distance import jensenshannon

from attention_atlas.viz.maps.branches import MAX_BRANCHES, Origin, Tree, align_targets, compare

TEXT = "Der kleine Hund schläft unter dem Tisch."


@pytest.fixture(scope="module")
def trace(tiny_translator):
    return tiny_translator.translate(TEXT)


def forced(translator, trace, step: int, rank: int):
    return translator.trace(TEXT, prefix=[*trace.target_ids[:step], int(trace.top_ids[step, rank])])


def test_a_branch_forks_from_the_one_with_the_longest_prefix(tiny_translator, trace):
    tree = Tree.of(trace)
    other = forced(tiny_translator, trace, 3, 1)
    tree, second = tree.add(other, Origin.FORCED)
    tree, third = tree.add(forced(tiny_translator, other, 5, 2), Origin.FORCED)
    assert (second.parent, second.fork) == (1, 3)
    assert (third.parent, third.fork) == (2, 5)
    assert second.total == pytest.approx(float(other.log_probability.sum()), abs=1e-4)
    unchanged, existing = tree.add(other, Origin.BEAM)
    assert unchanged is tree and existing is second, "the same ids are the same branch"


def test_a_tree_holds_its_traces_and_their_prefixes(tiny_translator, trace):
    tree = Tree.of(trace)
    prefix = tiny_translator.trace(TEXT, target=trace.target_ids[:2])
    assert tree.holds(trace) and tree.holds(prefix)
    assert not tree.holds(forced(tiny_translator, trace, 1, 1))
    assert not tree.holds(tiny_translator.translate("Ein rotes Boot."))
    with pytest.raises(ValueError, match="Branch 7"):
        tree.find(7)


def test_the_oldest_leaf_is_dropped_first(tiny_translator, trace):
    tree = Tree.of(trace)
    tree, parent = tree.add(forced(tiny_translator, trace, 0, 1), Origin.FORCED)
    created = [1, parent.number]
    child = forced(tiny_translator, forced(tiny_translator, trace, 0, 1), 2, 1)
    tree, branch = tree.add(child, Origin.FORCED)
    created.append(branch.number)
    for i in range(MAX_BRANCHES):
        target = [20 + i, 30]
        tree, branch = tree.add(tiny_translator.trace(TEXT, target=target), Origin.TARGET)
        created.append(branch.number)
    numbers = [b.number for b in tree.branches]
    assert len(numbers) == MAX_BRANCHES and tree.dropped == len(created) - MAX_BRANCHES
    assert numbers[0] == 1, "the model's own translation is never dropped"
    assert numbers[-1] == created[-1], "nor is the newest branch"
    # The child was a leaf, so it was dropped before its parent, which then was the oldest leaf.
    assert created[2] not in numbers and parent.number not in numbers
    known = set(numbers)
    assert all(b.parent is None or b.parent in known for b in tree.branches)


def test_equal_branches_have_zero_divergence(tiny_translator, trace):
    equal = compare(trace, tiny_translator.trace(TEXT, target=trace.target_ids))
    same = compare(trace, trace)
    assert list(same.steps) == [(t, t) for t in range(len(trace.target_ids))]
    assert {values.shape for values in same.divergences.values()} == {(3, 4)}
    for comparison in (equal, same):
        assert comparison.shared == len(trace.target_ids)
        assert [kind.value for kind in comparison.divergences] == ["decoder_self", "cross"]
        assert not any(values.any() for values in comparison.divergences.values())


def test_differences_are_the_mean_divergence_after_the_fork(tiny_translator, trace):
    step = 3
    other = forced(tiny_translator, trace, step, 2)
    comparison = compare(trace, other)
    assert comparison.shared == step
    pairs = [pair for pair in align_targets(trace.target_ids, other.target_ids) if None not in pair]
    assert list(comparison.steps) == [pair for pair in pairs if max(pair) > step] != []
    assert [pair for pair in pairs if max(pair) < step] == [(t, t) for t in range(step)]
    for layer, head in ((0, 0), (2, 3), (1, 2)):
        rows = [(trace.cross.weights[layer, head, i], other.cross.weights[layer, head, j]) for i, j in comparison.steps]
        expected = np.mean([jensenshannon(p, q, base=2) ** 2 for p, q in rows])
        assert comparison.divergences["cross"][layer, head] == pytest.approx(expected, abs=1e-6)
        keys = slice(0, step + 1)  # <s> and the shared tokens
        selves = [trace.decoder_self.weights[layer, head].astype(np.float64) for trace in (trace, other)]
        rows = [(selves[0][i, keys], selves[1][j, keys]) for i, j in comparison.steps]
        # scipy renormalises, and takes the root of what rounding may have left just below zero
        with np.errstate(invalid="ignore"):
            expected = np.mean([np.nan_to_num(jensenshannon(p, q, base=2)) ** 2 for p, q in rows])
        assert comparison.divergences["decoder_self"][layer, head] == pytest.approx(expected, abs=1e-6)
    cross = comparison.divergences["cross"]
    assert (cross > 0).all() and (cross <= 1).all()
    np.testing.assert_allclose(compare(other, trace).divergences["cross"], cross)


def test_heads_are_compared_at_steps_that_write_the_same_token(tiny_translator, trace):
    """After an inserted token, equal words have different steps in the two branches."""
    ids = trace.target_ids[:5]
    longer = tiny_translator.trace(TEXT, target=[*ids[:2], 55, *ids[2:]])
    comparison = compare(tiny_translator.trace(TEXT, target=ids), longer)
    assert comparison.shared == 2 and comparison.steps == ((2, 3), (3, 4), (4, 5))


def test_a_fork_at_the_last_token_leaves_no_step_to_compare(tiny_translator, trace):
    other = tiny_translator.trace(TEXT, target=[*trace.target_ids[:4], 55])
    comparison = compare(tiny_translator.trace(TEXT, target=trace.target_ids[:5]), other)
    assert comparison.shared == 4 and not len(comparison.steps)
    assert all(np.isnan(values).all() for values in comparison.divergences.values())


def test_compare_refuses_other_sentences_and_models(trace):
    with pytest.raises(ValueError, match="same sentence"):
        compare(trace, replace(trace, digest="another"))


def test_align_targets_pairs_equal_tokens():
    assert align_targets([1, 2, 3, 9], [1, 5, 6, 3, 9]) == [(0, 0), (1, 1), (None, 2), (2, 3), (3, 4)]
    assert align_targets([], [4]) == [(None, 0)]
