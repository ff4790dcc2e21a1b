"""Directions and routes: one place takes a direction apart, whatever its codes look like."""

from __future__ import annotations

import ast

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
from tests import ROOT

SERVED = (("big", ("eng_Latn-deu_Latn", "de-en")), ("small", ("de-en", "de-ROMANCE")), ("third", ("de-en",)))


def test_labels_are_unique_and_the_first_of_a_direction_has_the_plain_one() -> None:
    found = list_routes(SERVED)
    assert [route.label for route in found] == [
        "eng_Latn-deu_Latn",
        "de-en",
        "de-en (small)",
        "de-ROMANCE",
        "de-en (third)",
    ]
    assert [route.is_first for route in found] == [True, True, False, True, False]
    assert (found[0].source, found[0].target) == ("eng_Latn", "deu_Latn")
    assert (found[2].source, found[2].target, found[2].checkpoint) == ("de", "en", "small")
    with pytest.raises(ValueError, match="'same'"):
        list_routes((("other", ("de-en",)), ("same", ("de-en",)), ("same", ("de-en",))))


def test_a_link_finds_its_checkpoint_or_else_whoever_serves_its_direction() -> None:
    found = list_routes(SERVED)
    assert find_route(found, "de-en", "third").label == "de-en (third)"
    assert find_route(found, "de-en", "big").label == find_route(found, "de-en", "gone").label == "de-en"
    assert find_route(found, "de-ROMANCE", "") == Route("de-ROMANCE", "small", "de-ROMANCE")
    assert find_route(found, "sv-en", "big") is None and find_route(found, "", "") is None


@pytest.mark.parametrize("direction", ["de", "de-en-fr", "de-de", "-en", "de en", "de-en (tiny)"])
def test_what_is_no_direction_is_refused_with_what_was_found(direction) -> None:
    with pytest.raises(ValueError, match="found"):
        parse_direction(direction)


def test_no_one_else_takes_directions_or_labels_apart() -> None:
    """No .split, .partition or .replace on something called a direction, a label or codes, outside directions.py."""
    wrong, seen = [], 0
    for path in (
        *ROOT.glob("model/**/*.py"),
        *ROOT.glob("viz/**/*.py"),
        *ROOT.glob("bench/*.py"),
        ROOT / "attention_atlas" / "app.py",
    ):
        if path == ROOT / "model/trace/directions.py":
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
                continue
            seen += 1
            on = ast.unparse(node.func.value).split(".")[-1]
            if node.func.attr in ("split", "partition", "rpartition", "rsplit", "replace") and on in (
                "direction",
                "label",
                "codes",
                "default",
            ):
                wrong.append(f"{path.relative_to(ROOT)}:{node.lineno}")
    assert seen > 1000 and not wrong


def test_a_model_of_many_languages_has_every_pair_and_a_few_that_name_each() -> None:
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


def test_an_unlisted_pair_belongs_to_the_first_that_has_it_or_to_the_one_that_is_named() -> None:
    many = (("small", Languages(("en", "de"), ("en", "de"))), ("large", Languages(("en", "de", "zu"), ("en", "zu"))))
    assert multilingual_route("de-en", many) == Route("de-en", "small", "de-en")
    assert multilingual_route("de-en (large)", many) == Route("de-en", "large", "de-en (large)")
    assert multilingual_route("de-zu", many).checkpoint == "large"
    assert (
        multilingual_route("zu-de", many) is None
        and multilingual_route("de-en (other)", many) is None
        and multilingual_route("", many) is None
    )
    assert [language_of(code) for code in ("deu_Latn", "de_DE", "de", "zul_Latn")] == ["de", "de", "de", "zul"]
