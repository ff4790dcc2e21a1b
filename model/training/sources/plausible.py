"""Whether two sentences may be translations of each other, by what can be seen without a model."""

from __future__ import annotations

import re

# Words that only one of the languages has, and most of its sentences.
_FUNCTION_WORDS = {
    "en": "the and of to is that it you for was with have this be are not what from they would there your",
    "de": "der und das ist nicht ein ich sie zu den mit wir eine auf für es dass auch sich dem bei wie wird oder",
    "fr": "le les des est pas une vous que qui dans pour je il elle nous avec sur ce cette sont mais au du et",
}
FUNCTION_WORDS = {language: frozenset(words.split()) for language, words in _FUNCTION_WORDS.items()}
MARKUP = re.compile(r"[<>{}\[\]|\\_@#%$=~^*]|https?:|www\.|\.(?:com|org|png|exe)\b|&\w+;|\w+\.\w+\.\w+\.")
LONGEST_RATIO, FREE = 2.2, 8  # characters of the longer side to the shorter one's, after as many more on both
_WORD = re.compile(r"[^\W\d_]+")


def plausible(pair: tuple[str, str], languages: tuple[str, str]) -> bool:
    """Whether a pair is of like length, of letters, without markup, of two texts, and in its languages."""
    first, second = (len(side) + FREE for side in pair)
    if max(first, second) > LONGEST_RATIO * min(first, second) or any(map(MARKUP.search, pair)):
        return False
    words = [_WORD.findall(side.lower()) for side in pair]
    if not all(words) or (len(words[0]) > 3 and words[0] == words[1]):
        return False
    return all(_in(found, language) for found, language in zip(words, languages))


def _in(words: list[str], language: str) -> bool:
    """Whether no other language has more of its function words there; two are no proof."""
    counts = {code: sum(word in known for word in words) for code, known in FUNCTION_WORDS.items()}
    own = counts.pop(language, len(words))
    return max(counts.values()) <= max(own, 1)
