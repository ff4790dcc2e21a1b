"""Which grammatical forms a word can be, by the lexicon: for words that may stand in another one's place."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import lru_cache

from attention_atlas.model.text.composed import german
from attention_atlas.model.text.composed.lexicon import Lexicon

Form = tuple[str, ...]  # such as ("noun", "n", "nom") or ("verb", "past participle")


@lru_cache(maxsize=2)
def forms(language: str) -> Mapping[str, frozenset[Form]]:
    """Every word of the lexicon in lower case -> the forms that it can be. language: "de" or "en"; empty for others."""
    found: dict[str, set[Form]] = defaultdict(set)
    for word, *form in {"de": _german, "en": _english}.get(language, lambda lexicon: iter(()))(Lexicon()):
        if word and " " not in word:
            found[word.lower()].add(tuple(form))
    return {word: frozenset(own) for word, own in found.items()}


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
