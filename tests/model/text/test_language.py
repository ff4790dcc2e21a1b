"""A text in an unexpected language is detected; one in the expected language, or too short, is not."""

from __future__ import annotations

import pytest

from attention_atlas.model.text.language import common_words, other_language

TEXTS = {
    "de": (
        "Die Katze schläft seit Stunden auf dem Sofa.",
        "Kannst du mir bitte sagen, wo der Bahnhof ist?",
        "Wir waren gestern mit Freunden im Kino.",
        "Wegen des Regens fiel das Konzert leider aus.",
        "Ein Mann in blauem Hemd repariert sein Fahrrad.",
        "Das Meeting mit dem Software Team war cool.",  # with words that both languages have
    ),
    "en": (
        "Hello, how are you today?",
        "The cat has been sleeping on the sofa for hours.",
        "Could you please tell me where the station is?",
        "Yesterday we went to the cinema with friends.",
        "A man in a blue shirt is repairing his bicycle.",
        "My kindergarten teacher loved strudel and wanderlust.",
    ),
    "fr": (
        "Bonjour, comment vas-tu aujourd'hui ?",
        "Le chat dort depuis des heures sur le canapé.",
        "Pourriez-vous me dire où se trouve la gare ?",
        "Un homme en chemise bleue répare son vélo.",
    ),
}


@pytest.mark.parametrize("expected", common_words())
def test_only_a_text_in_another_language_is_detected(expected) -> None:
    for language, texts in TEXTS.items():
        for text in texts:
            assert other_language(text, expected) == (None if language == expected else language), text


@pytest.mark.parametrize("text", ["", "Berlin", "OK", "in", "123 456", "Hola, ¿cómo estás hoy?", "Привет, как дела?"])
def test_a_text_in_none_of_the_languages_or_too_short_is_not_detected(text) -> None:
    assert all(other_language(text, expected) is None for expected in common_words())


def test_a_language_without_a_list_expects_anything() -> None:
    assert other_language("How are you today?", "tr") is None


def test_no_word_is_common_in_two_languages() -> None:
    assert sum(map(len, common_words().values())) == len(frozenset.union(*common_words().values()))
