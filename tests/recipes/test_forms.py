"""The package's tables of word forms match the lexicon."""

from __future__ import annotations

import pytest

from attention_atlas.model.analysis.why.neighbours import TABLES, load_forms
from recipes.forms import lexicon_forms, table


@pytest.mark.parametrize("language", TABLES)
def test_the_packages_table_matches_the_lexicon(language):
    """`python -m recipes.forms` writes it."""
    forms_by_word = lexicon_forms(language)
    assert len(forms_by_word) > 3000 and load_forms(language) == forms_by_word
    assert TABLES[language].read_text(encoding="utf-8") == table(forms_by_word)


def test_the_forms_of_words():
    assert ("noun", "n", "nom") in load_forms("de")["haus"]
    assert ("verb", "past participle") in load_forms("en")["broken"]
    assert load_forms("fr") == {}
