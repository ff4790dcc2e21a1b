"""Symmetrised links, their files and scores, against their published definitions."""

from __future__ import annotations

import numpy as np
import pytest

from attention_atlas.model.trace.alignment import (
    SYMMETRISATIONS,
    Gold,
    Links,
    parse_links,
    pool_scores,
    score_links,
    to_pharaoh,
    transpose_links,
)


def of_matrix(linked: np.ndarray) -> Links:
    """Of bool [target, source]."""
    return frozenset((int(source), int(target)) for target, source in np.argwhere(linked))


def drawn(seed: int):
    random = np.random.default_rng(seed)
    return tuple(of_matrix(random.random((6, 7)) < share) for share in (0.2, 0.25))


def by_the_book(forward, backward, *, final: bool, both: bool):
    """The pseudo-code of Koehn's thesis and Moses' manual, on a grid."""
    accepted, either = forward & backward, forward | backward
    while True:
        rows, columns = ({link[side] for link in accepted} for side in (0, 1))
        near = [
            p
            for p in either - accepted
            if any(max(abs(p[0] - a[0]), abs(p[1] - a[1])) == 1 for a in accepted)
            and (p[0] not in rows or p[1] not in columns)
        ]
        if not near:
            break
        accepted = accepted | {min(near)}
    for links in (forward, backward) if final else ():
        for p in sorted(links):
            free = [p[0] not in {a[0] for a in accepted}, p[1] not in {a[1] for a in accepted}]
            if all(free) if both else any(free):
                accepted = accepted | {p}
    return accepted


def test_symmetrised_links_lie_between_intersection_and_union():
    for seed in range(40):
        forward, backward = drawn(seed)
        links = {name: symmetrise(forward, backward) for name, symmetrise in SYMMETRISATIONS.items()}
        assert links["intersection"] == forward & backward and links["union"] == forward | backward
        assert links["intersection"] <= links["grow-diag"] <= links["grow-diag-final-and"] <= links["union"]
        assert links["grow-diag"] <= links["grow-diag-final"] <= links["union"]


def test_grow_diagonal_matches_the_published_pseudocode():
    """A point is left out where the rule leaves it out: both its words are linked already, or it touches nothing."""
    for seed in range(40):
        forward, backward = drawn(seed)
        grown = SYMMETRISATIONS["grow-diag"](forward, backward)
        rows, columns = ({link[side] for link in grown} for side in (0, 1))
        for p in (forward | backward) - grown:
            touches = any(max(abs(p[0] - a[0]), abs(p[1] - a[1])) == 1 for a in grown)
            assert not touches or (p[0] in rows and p[1] in columns)
        book = by_the_book(forward, backward, final=False, both=False)
        assert {a[0] for a in book} == rows and {a[1] for a in book} == columns
    one_way = frozenset({(0, 0), (1, 1), (2, 1)}), frozenset({(0, 0), (3, 3)})
    assert SYMMETRISATIONS["grow-diag"](*one_way) == {(0, 0), (1, 1), (2, 1)}
    assert SYMMETRISATIONS["grow-diag-final-and"](*one_way) == by_the_book(*one_way, final=True, both=True)
    either = frozenset({(0, 0), (4, 0)}), frozenset({(0, 0)})
    assert SYMMETRISATIONS["grow-diag-final"](*either) == {(0, 0), (4, 0)}
    assert SYMMETRISATIONS["grow-diag-final-and"](*either) == {(0, 0)}


def test_error_rate_of_equal_and_of_shifted_links():
    links = frozenset((i, i) for i in range(30))
    assert score_links(links, Gold(links, links)).error_rate == 0
    shifted = frozenset((i, j + 1) for i, j in links if j < 29)
    assert score_links(shifted, Gold(links, links)).error_rate > 0.8
    assert score_links(transpose_links(frozenset({(0, 5)})), Gold(frozenset({(5, 0)}), frozenset())).error_rate == 0


def test_pooled_scores_match_their_definition():
    """Och and Ney 2003, written out over sets of both sentences at once."""
    random, parts = np.random.default_rng(4), []
    everything = {"A": set(), "S": set(), "P": set()}
    for sentence in range(8):
        sure = of_matrix(random.random((5, 6)) < 0.2)
        possible, predicted = sure | of_matrix(random.random((5, 6)) < 0.1), of_matrix(random.random((5, 6)) < 0.2)
        parts.append(score_links(predicted, Gold(sure, possible)))
        for name, links in (("A", predicted), ("S", sure), ("P", possible)):
            everything[name] |= {(sentence, *link) for link in links}
    a, s, p = everything["A"], everything["S"], everything["P"]
    total = pool_scores(parts)
    assert total.precision == len(a & p) / len(a) and total.recall == len(a & s) / len(s)
    assert total.error_rate == pytest.approx(1 - (len(a & s) + len(a & p)) / (len(a) + len(s)))
    assert score_links(frozenset(), Gold(frozenset({(0, 0)}), frozenset())).error_rate == 1
    assert pool_scores([]).error_rate == 0


def test_links_read_back_and_invalid_links_are_refused():
    gold = Gold(frozenset({(0, 1), (10, 3)}), frozenset({(0, 1), (10, 3), (2, 2)}))
    assert parse_links("1-2 3p3 11-4", first=1) == gold
    assert to_pharaoh(gold.sure) == "0-1 10-3" and parse_links("0-1 10-3\n").sure == gold.sure
    assert parse_links("") == Gold(frozenset(), frozenset())
    for wrong in ("1", "a-b", "1–2", "-1-2", "1-2-3"):
        with pytest.raises(ValueError, match="no link"):
            parse_links(wrong)
    with pytest.raises(ValueError, match="counted from 1"):
        parse_links("0-1", first=1)
