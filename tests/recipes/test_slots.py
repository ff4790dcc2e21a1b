"""Slots of frames: fillers and their parts, the written forms of values, and filled frames."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recipes.slots import written
from recipes.slots.fillers import LANGUAGES, Filler, Fillers, held_out, part_of, read_towns
from recipes.slots.frames import SLOT, draw, elided, fill, put, read_frames, slots_of, usual_form
from recipes.slots.written import Date, Number, Time, Year

DIRECTIONS = (("de", "en"), ("en", "de"), ("en", "fr"))


def test_the_part_of_a_filler_is_a_hash_of_its_case_folded_text():
    assert part_of("  Köln ") == part_of("köln") == int(hashlib.sha1("köln".encode()).hexdigest(), 16) % 10


@pytest.mark.parametrize("training", [True, False])
def test_fillers_are_drawn_from_the_requested_part_only(training):
    fillers, random = Fillers(training=training), np.random.default_rng(1)
    for kind in Fillers.kinds:
        for _ in range(100):
            assert held_out(draw(kind, fillers, random)["en"]) != training
    for kind in written.DRAWN:
        for _ in range(50):
            assert held_out(written.draw(kind, random, training=training).key) != training


def test_draws_depend_on_the_random_generator_only():
    def forms(random: np.random.Generator) -> list:
        return [draw("name", Fillers(), random).forms for _ in range(20)]

    assert forms(np.random.default_rng(3)) == forms(np.random.default_rng(3))


def test_an_unknown_kind_is_refused():
    with pytest.raises(ValueError, match="'planet'"):
        draw("planet", Fillers(), np.random.default_rng(0))


def test_a_list_of_towns_needs_three_columns(tmp_path):
    (tmp_path / "towns.tsv").write_text("Rome\tRom\n")
    with pytest.raises(ValueError, match="three names"):
        read_towns(tmp_path / "towns.tsv")


@given(st.integers(0, 10**8), st.sampled_from(["", "5", "05"]), st.sampled_from(LANGUAGES))
def test_every_form_of_a_number_has_its_digits(whole, decimals, language):
    for form in Number(whole, decimals).forms(language):
        assert "".join(c for c in form if c.isdigit()) == f"{whole}{decimals}"
    marked = {"en": "3,752", "de": "3.752", "fr": "3 752"}[language]
    assert Number(3752).forms(language)[0] == "3752" and marked in Number(3752).forms(language)


@pytest.mark.parametrize(
    ("value", "language", "usual"),
    [
        (Date(3, 5, 2021), "en", "May 3, 2021"),
        (Date(3, 5, 2021), "de", "3. Mai 2021"),
        (Date(1, 5, 2021), "fr", "1er mai 2021"),
        (Date(22, 8), "fr", "22 août"),
        (Time(14, 5), "de", "14:05 Uhr"),
        (Time(14, 5), "fr", "14 h 05"),
        (Time(14, 5), "en", "14:05"),
        (Number(12345), "en", "12,345"),
        (Number(12345, "5"), "de", "12.345,5"),
        (Year(1984), "fr", "1984"),
    ],
)
def test_the_usual_form_follows_the_language(value, language, usual):
    assert value.forms(language)[0] == usual


def test_english_has_other_forms_of_dates_and_times():
    assert {"3 May 2021", "May 3rd, 2021", "the 3rd of May 2021"} <= set(Date(3, 5, 2021).forms("en"))
    endings = {1: "st", 2: "nd", 3: "rd", 4: "th", 11: "th", 12: "th", 13: "th", 21: "st", 31: "st"}
    assert {day: written.ordinal_ending(day) for day in endings} == endings
    assert "2:05 p.m." in Time(14, 5).forms("en") and "12:00 a.m." in Time(0, 0).forms("en")


def test_filled_frames_have_no_slot_left():
    random, fillers = np.random.default_rng(5), Fillers()
    for frame in read_frames():
        for languages in DIRECTIONS:
            for text in fill(frame, languages, fillers, random):
                assert "{" not in text and "}" not in text and ".." not in text and text


def test_two_slots_of_one_kind_differ():
    random, fillers = np.random.default_rng(5), Fillers()
    frame = next(frame for frame in read_frames() if frame.slots == ("town", "town2"))
    fixed = SLOT.split(frame["en"])
    for _ in range(50):
        text, _ = fill(frame, ("en", "de"), fillers, random)
        first, second = text.removeprefix(fixed[0]).removesuffix(fixed[-1]).split(fixed[3])[:2]
        assert first != second


def test_frames_whose_slots_differ_are_refused(tmp_path):
    (tmp_path / "frames.tsv").write_text("I am {name}.\tIch bin {town}.\tJe suis {name}.\n")
    with pytest.raises(ValueError, match="same slots"):
        read_frames(tmp_path / "frames.tsv")


@pytest.mark.parametrize(
    ("before", "word", "after"),
    [
        ("la maison de ", "Anna", "la maison d'"),
        ("Je crois que ", "Élodie", "Je crois qu'"),
        ("la maison de ", "Thomas", "la maison de "),
        ("une ", "Anna", "une "),
        ("le grade ", "Anna", "le grade "),
    ],
)
def test_french_elides_before_a_vowel(before, word, after):
    assert elided(before, word) == after


def test_put_fills_slots_by_name():
    assert put("{town}, {town2}!", {"town": "A", "town2": "B"}, "en") == "A, B!"
    assert slots_of("{town2} {name} {town2}") == ("town2", "name")
    assert usual_form(Filler(("Vienna", "Wien", "Vienne")), "de") == "Wien"
