"""The test with typed sentences: no frame of it is trained on, and it counts whole tokens."""

from __future__ import annotations

import re

import pytest

from recipes.slots.fillers import Filler, held_out
from recipes.slots.frames import SLOT, read_frames
from recipes.slots.written import Date, Number, Time
from recipes.typed import Item, accepted, fill_typed, is_kept, read_typed_frames, tally


def item(kind: str, *forms: str) -> Item:
    return Item(kind, forms[0], forms)


@pytest.mark.parametrize(
    ("kind", "forms", "translation", "expected"),
    [
        ("town", ["Hamburg"], "I'm from hamburger.", False),
        ("town", ["Hamburg"], "I'm from hamburg.", False),
        ("town", ["Hamburg"], "I'm from Hamburg.", True),
        ("town", ["Köln"], "in Koln", False),
        ("name", ["Anna"], "That is Anna's house.", True),
        ("name", ["Anna"], "Hanna is here.", False),
        ("name", ["Anna"], "Anna-Lena is here.", False),
        ("town", ["New York"], "in New\u00a0York!", True),
        ("small", ["25"], "We bought 25 apples.", True),
        ("small", ["25"], "We bought 250 apples.", False),
        ("small", ["25"], "It costs 25.50 euros.", False),
        ("small", ["25"], "I am 25.", True),
        ("number", ["752"], "It has 3,752 seats.", False),
        ("number", ["752"], "3 752 places", False),
        ("number", ["3752", "3,752"], "It has 3,752 seats.", True),
        ("decimal", ["3.5"], "3.5 euros", True),
        ("date", ["May 3"], "on May 31", False),
        ("date", ["May 3", "3 May"], "on 3 May.", True),
        ("year", ["1984"], "in 1984.", True),
        ("year", ["1984"], "in 198.", False),
    ],
)
def test_only_whole_tokens_count(kind, forms, translation, expected):
    assert is_kept(item(kind, *forms), translation) == expected


def test_accepted_strings_are_in_the_target_language():
    assert accepted(Filler(("Vienna", "Wien", "Vienne")), "fr") == ("Vienne",)
    assert {"May 3, 2021", "May 3 2021", "3 May 2021", "the 3rd of May 2021"} <= set(accepted(Date(3, 5, 2021), "en"))
    assert accepted(Number(7), "de") == ("7", "sieben") and accepted(Number(70), "de") == ("70",)
    assert {"14:00", "2:00 p.m.", "2 p.m.", "2 o'clock"} <= set(accepted(Time(14, 0), "en"))
    assert "14 Uhr" in accepted(Time(14, 0), "de") and "14 heures" in accepted(Time(14, 0), "fr")


@pytest.mark.long
@pytest.mark.parametrize("direction", ["de-en", "en-de", "en-fr"])
@pytest.mark.parametrize("half", ["open", "sealed"])
def test_a_translation_made_of_accepted_strings_has_all_items(direction, half):
    frames = read_typed_frames(half, direction[:2])
    sentences = fill_typed(frames, direction, training=False, seed=1)
    texts = [" , ".join(item.accepted[0] for item in sentence.items) for sentence in sentences]
    counts = tally(sentences, texts)
    assert counts["all"]["kept"] == counts["all"]["of"] >= 300
    assert tally(sentences, [""] * len(sentences))["all"]["kept"] == 0


@pytest.mark.parametrize("language", ["de", "en"])
def test_there_are_sixty_open_and_forty_sealed_frames_and_none_is_trained_on(language):
    def folded(text: str) -> str:
        return re.sub(r"[^\w{}]+", " ", SLOT.sub(lambda match: "{" + match[1] + "}", text)).lower().strip()

    opened, sealed = ({*map(folded, read_typed_frames(half, language))} for half in ("open", "sealed"))
    trained = {folded(frame[language]) for frame in read_frames()}
    assert (len(opened), len(sealed)) == (60, 40)
    assert not opened & sealed and not (opened | sealed) & trained


def test_unseen_fillers_are_those_of_the_held_out_part():
    frames = ["{town}", "{name}", "{family}"]
    for training in (True, False):
        for sentence in fill_typed(frames, "en-de", training=training, seed=3):
            assert held_out(sentence.items[0].shown) != training


def test_unknown_frames_are_refused():
    with pytest.raises(ValueError, match="'fr'"):
        read_typed_frames("open", "fr")
