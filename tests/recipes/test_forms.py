"""The tables of words' forms that the package has."""

from __future__ import annotations

import pytest

from attention_atlas.model.analysis.why.forms import TABLES, forms
from recipes.forms import lexicon_forms, table


@pytest.mark.parametrize("language", TABLES)
def test_the_packages_table_is_of_the_lexicon_as_it_is(language):
    """`python -m recipes.forms` writes it."""
    found = lexicon_forms(language)
    assert len(found) > 3000 and forms(language) == found
    assert TABLES[language].read_text(encoding="utf-8") == table(found)


def test_the_forms_of_words():
    assert ("noun", "n", "nom") in forms("de")["haus"] and ("verb", "past participle") in forms("en")["broken"]
    assert forms("fr") == {}
