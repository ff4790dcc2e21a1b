"""Write the tables of model/analysis/why/neighbours.py: python -m recipes.forms --help

The tables hold the grammatical forms of all words of the lexicon.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from attention_atlas.model.analysis.why.neighbours import TABLES, Form
from attention_atlas.model.program import CommandLine, run_program
from recipes.composed import german
from recipes.composed.lexicon import Lexicon


def main(argv: list[str] | None = None) -> None:
    CommandLine("python -m recipes.forms", __doc__).parse_args(argv)
    for language, path in TABLES.items():
        path.write_text(table(lexicon_forms(language)), encoding="utf-8")


def lexicon_forms(language: str) -> dict[str, frozenset[Form]]:
    """Return every word of the lexicon in lower case -> the forms that it can be. language: "de" or "en"."""
    forms: dict[str, set[Form]] = defaultdict(set)
    for word, *form in {"de": _german, "en": _english}[language](Lexicon()):
        if word and " " not in word:
            forms[word.lower()].add(tuple(form))
    return {word: frozenset(own) for word, own in forms.items()}


def table(found: dict[str, frozenset[Form]]) -> str:
    """Return the text of a table."""
    by_forms: dict[str, list[str]] = defaultdict(list)
    for word, own in found.items():
        by_forms[";".join(sorted(",".join(form) for form in own))].append(word)
    return "".join(f"{names}\t{' '.join(sorted(words))}\n" for names, words in sorted(by_forms.items()))


def _german(lexicon: Lexicon) -> Iterator[tuple[str, ...]]:
    for noun in lexicon.nouns:
        for case in german.ARTICLES:
            if noun.singular:
                yield german.noun(noun.singular, noun.plural, noun.weak, case, noun.gender), "noun", noun.gender, case
            if noun.plural:
                yield german.noun("", noun.plural, noun.weak, case, "p"), "noun", "p", case
    for adjective in lexicon.adjectives:
        yield adjective.base, "adjective"
        yield adjective.comparative, "adjective", "comparative"
        for end in ("e", "en", "em", "er", "es"):
            yield adjective.stem + end, "adjective", end
    for verb in (entry.german for entry in lexicon.verbs):
        yield verb.whole, "verb", "infinitive"
        yield verb.past_participle, "verb", "past participle"
        for person in german.PERSONS:
            yield verb.present(person), "verb", "present", person
            yield verb.simple_past(person), "verb", "past", person


def _english(lexicon: Lexicon) -> Iterator[tuple[str, ...]]:
    for noun in lexicon.nouns:
        yield noun.english, "noun", "singular"
        yield noun.english_plural, "noun", "plural"
    for adjective in lexicon.adjectives:
        yield adjective.english, "adjective"
        yield adjective.english_comparative, "adjective", "comparative"
    for verb in (entry.english for entry in lexicon.verbs):
        yield verb.base, "verb", "base"
        yield verb.present(2), "verb", "third person"
        yield verb.simple_past(0), "verb", "past"
        yield verb.participle, "verb", "past participle"
        yield verb.ing, "verb", "-ing"


if __name__ == "__main__":
    run_program(main)
