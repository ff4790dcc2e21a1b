"""Directions and routes."""

from __future__ import annotations

import pytest

from attention_atlas.model.trace.directions import (
    Languages,
    Route,
    find_route,
    language_of,
    list_routes,
    multilingual_route,
    parse_direction,
)

SERVED = (("big", ("eng_Latn-deu_Latn", "de-en")), ("small", ("de-en", "de-ROMANCE")), ("third", ("de-en",)))


def test_route_labels_are_unique() -> None:
    served = list_routes(SERVED)
    labels = ["eng_Latn-deu_Latn", "de-en", "de-en (small)", "de-ROMANCE", "de-en (third)"]
    assert [route.label for route in served] == labels
    assert [route.is_first for route in served] == [True, True, False, True, False]
    assert (served[0].source, served[0].target) == ("eng_Latn", "deu_Latn")
    assert (served[2].source, served[2].target, served[2].checkpoint) == ("de", "en", "small")
    with pytest.raises(ValueError, match="'same'"):
        list_routes((("other", ("de-en",)), ("same", ("de-en",)), ("same", ("de-en",))))


def test_find_route_falls_back_to_the_first_checkpoint() -> None:
    served = list_routes(SERVED)
    assert find_route(served, "de-en", "third").label == "de-en (third)"
    assert find_route(served, "de-en", "big").label == find_route(served, "de-en", "gone").label == "de-en"
    assert find_route(served, "de-ROMANCE", "") == Route("de-ROMANCE", "small", "de-ROMANCE")
    assert find_route(served, "sv-en", "big") is None and find_route(served, "", "") is None


@pytest.mark.parametrize("direction", ["de", "de-en-fr", "de-de", "-en", "de en", "de-en (tiny)"])
def test_parse_direction_refuses_invalid_directions(direction) -> None:
    with pytest.raises(ValueError, match="found"):
        parse_direction(direction)


def test_languages_contain_every_pair() -> None:
    many = Languages(["eng_Latn", "deu_Latn", "zul_Latn"], ["deu_Latn", "eng_Latn"])
    assert "zul_Latn-eng_Latn" in many and len(many) == 3
    for wrong in ("eng_Latn-zul_Latn", "deu_Latn-deu_Latn", "eng_Latn", "eng_Latn-deu_Latn-eng_Latn", None):
        assert wrong not in many
    covering = [direction.split("-") for direction in many.covering()]
    assert {s for s, _ in covering} == set(many.sources) and {t for _, t in covering} == set(many.targets)
    assert all("-".join(pair) in many for pair in covering)
    for wrong in ((), "eng", ["<b>"]):
        with pytest.raises(ValueError, match="sources"):
            Languages(wrong, ("eng",))


def test_multilingual_route_prefers_the_named_checkpoint() -> None:
    many = (("small", Languages(("en", "de"), ("en", "de"))), ("large", Languages(("en", "de", "zu"), ("en", "zu"))))
    assert multilingual_route("de-en", many) == Route("de-en", "small", "de-en")
    assert multilingual_route("de-en (large)", many) == Route("de-en", "large", "de-en (large)")
    assert multilingual_route("de-zu", many).checkpoint == "large"
    assert [multilingual_route(label, many) for label in ("zu-de", "de-en (other)", "")] == [None] * 3
    assert [language_of(code) for code in ("deu_Latn", "de_DE", "de", "zul_Latn")] == ["de", "de", "de", "zul"]
