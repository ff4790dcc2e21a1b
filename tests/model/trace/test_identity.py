"""Keys are equal for equal translations, and differ with the model, a token or an intervention."""

from __future__ import annotations

import copy
import json
import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from attention_atlas.model.trace import interventions_file, storage
from attention_atlas.model.trace.decoding import Decoding
from attention_atlas.model.trace.edits import Ablate, Add, Replace, Scale, SteeringVector
from attention_atlas.model.trace.interventions import Edge, Interventions, Patch, Positions, Stream, SubLayerOutput
from attention_atlas.model.trace.kinds import AttentionKind

few = st.integers(0, 1)
several = st.none() | st.lists(few, unique=True, max_size=2).map(tuple)
numbers = st.sampled_from([0, 0.0, -0.0, 1, 1.0, np.float32(1), 0.5])
where = {"positions": several, "heads": several}
vectors = st.sampled_from([[0.0, 1.0], [-0.0, 1], np.ones(2), [1, 1]])
changes = st.one_of(
    st.builds(Scale, numbers, **where),
    st.builds(Ablate, **where),
    st.builds(Add, vectors | st.just(SteeringVector("warm", "cold")), numbers, several),
    st.builds(Replace, vectors, several),
)
edges = st.builds(
    Edge, st.sampled_from([*AttentionKind, "cross"]), few, few, layer=st.none() | few, head=st.none() | few
)
positions = st.builds(Positions, st.booleans(), st.sampled_from([0, 1]))
plain = st.builds(
    Interventions,
    heads_off=st.lists(st.tuples(st.sampled_from(AttentionKind), few, few), max_size=2),
    cut_edges=st.lists(edges, max_size=2),
    zeroed_edges=st.lists(edges, max_size=2),
    source_positions=positions,
    target_positions=positions,
    edits=st.lists(st.tuples(st.sampled_from(["decoder.0.ffn.out", "logits"]), changes), max_size=2),
)


@pytest.fixture()
def key_of(hand_made_trace):
    return lambda interventions: replace(hand_made_trace, digest="0f", interventions=interventions).key


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(first=plain, second=plain)
def test_keys_are_equal_if_and_only_if_interventions_are(key_of, first, second):
    assert (key_of(first) == key_of(second)) == (first == second)
    copy = interventions_file.from_plain(json.loads(json.dumps(interventions_file.to_plain(first))))
    assert copy == first and key_of(copy) == key_of(first)


@pytest.mark.parametrize("change", ["positions", "by", "order", "edge", "vector", "recipe"])
def test_one_difference_changes_the_key(key_of, change):
    def edits(*found):
        return Interventions(edits=tuple(("decoder.0.z", edit) for edit in found))

    a, b = {
        "positions": (edits(Scale(0.5, positions=(1,))), edits(Scale(0.5, positions=(2,)))),
        "by": (edits(Scale(1 / 3)), edits(Scale(0.333333))),
        "order": (edits(Scale(2), Ablate()), edits(Ablate(), Scale(2))),
        "edge": (Interventions(zeroed_edges=[Edge("cross", 1, 1)]), Interventions(zeroed_edges=[Edge("cross", 1, 2)])),
        "vector": (edits(Add([0, 1])), edits(Add([0, 2]))),
        "recipe": (edits(Add(SteeringVector("a", "b"))), edits(Add(SteeringVector("a", "c")))),
    }[change]
    assert key_of(a) != key_of(b)


def test_equal_numbers_give_equal_keys(key_of):
    for same in ((1, 1.0, np.float32(1)), (0, 0.0, -0.0)):
        assert len({key_of(Interventions(edits={"logits": Scale(by)})) for by in same}) == 1
    assert Add([0.0]) == Add([-0.0]) and Decoding(5, 0) == Decoding(5, -0.0)
    assert json.dumps(interventions_file.to_plain(Interventions(edits={"logits": Scale(-0.0)}))).count("-") == 0


def test_every_field_changes_the_key(hand_made_trace):
    trace = replace(hand_made_trace, digest="0f")
    changes = [
        {},
        {"checkpoint": "other"},
        {"digest": "10"},
        {"direction": "en-de"},
        {"source_ids": (9, *trace.source_ids[1:])},
        {"target_ids": (9, *trace.target_ids[1:])},
        *({"decoding": other} for other in (Decoding(), Decoding(2), Decoding(2, 1.0), Decoding(given=1))),
    ]
    assert len({replace(trace, **change).key for change in changes}) == len(changes)
    assert replace(trace, seconds=9.0).key == trace.key
    assert storage.from_json(storage.to_json(trace)).key == trace.key


def test_traces_that_cannot_be_repeated_are_unique(hand_made_trace):
    place = Patch(Stream("decoder", 0)), Patch(SubLayerOutput("decoder", 0, "feed_forward"))
    for interventions in (Interventions(in_words="by a function"), Interventions(patches=place)):
        a, b = (replace(hand_made_trace, digest="0f", interventions=interventions) for _ in range(2))
        assert a.key != b.key
        assert a.key == copy.deepcopy(a).key == pickle.loads(pickle.dumps(a)).key
    assert replace(hand_made_trace, digest="").key != replace(hand_made_trace, digest="").key


def test_a_patch_and_edits_take_lists_of_positions_and_heads():
    place = Stream("decoder", 0)
    assert {Patch(place, [0, 3])} == {Patch(place, (0, 3))}
    assert Ablate([0], heads=range(2)) == Ablate((0,), (0, 1)) and hash(Ablate(heads=[1]))
