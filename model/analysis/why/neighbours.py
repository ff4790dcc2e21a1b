"""Words that could stand in a word's place: those whose embeddings lie nearest to its own."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from functools import lru_cache

import torch

from attention_atlas.model.analysis.sentences import sentences
from attention_atlas.model.analysis.why.forms import Form, forms
from attention_atlas.model.analysis.why.pinned import FUNCTION_WORDS
from attention_atlas.model.trace.directions import language_of, parse_direction
from attention_atlas.model.trace.language import Refusal
from attention_atlas.model.trace.tokens import is_symbol
from attention_atlas.model.trace.translation import TranslationTrace
from attention_atlas.model.trace.words import SPACE, is_punctuation, word_groups
from attention_atlas.model.translator import Translator

WORDS = 5  # for each other one
NEAR = 8000  # of the vocabulary's entries, the nearest that are looked at


def neighbours(
    translator: Translator, trace: TranslationTrace, position: int, *, count: int = WORDS
) -> tuple[str, ...]:
    """The sentence with the word that holds the source token at `position` changed, once for each of the `count`
    vocabulary entries nearest to it: whole words in the same case, by the cosine of source embeddings; a word of
    several pieces is their mean. In a language of which the project has a lexicon, words of that language alone, and of
    the word's own grammatical forms where there are such. Nearest first.

    A Refusal, in words, where the token belongs to no word of the sentence.
    """
    text = trace.source_text
    start, word, others = _near(translator, trace, position, count)
    if not others:
        raise Refusal("There is no other word near {word}: type the second sentence.", word=repr(word))
    return tuple(text[:start] + other + text[start + len(word) :] for other in others)


def fillings(translator: Translator, trace: TranslationTrace, kept: Collection[int]) -> dict[str, tuple[str, ...]]:
    """For each content word of the sentence the words nearest to it; not for those with a source token at a position
    of kept."""
    found, functions = {}, FUNCTION_WORDS.get(parse_direction(trace.direction)[0], frozenset())
    for group in word_groups(trace.source_tokens):
        if not {*group} & {*kept} and not (
            is_symbol(trace.source_tokens[group[0]]) or is_punctuation(trace.source_tokens[group[0]])
        ):
            _, word, others = _near(translator, trace, group[0], WORDS)
            if others and word.lower() not in functions:
                found[word] = tuple(others)
    return found


def _near(translator: Translator, trace: TranslationTrace, position: int, count: int) -> tuple[int, str, list[str]]:
    """Where the word begins in the text, the word, and those nearest to it."""
    tokens, text = trace.source_tokens, trace.source_text
    if not 0 <= position < len(tokens) or is_symbol(tokens[position]) or is_punctuation(tokens[position]):
        raise Refusal("That is not a word of the sentence: choose another one.")
    groups = word_groups(tokens)
    group = next(group for group in groups if position in group)
    start, word = _span(text, [_spelled(tokens, one) for one in groups], groups.index(group))
    with torch.inference_mode():
        matrix = translator.model.embedding.weight
        row = matrix[torch.tensor([trace.source_ids[i] for i in group], device=matrix.device)].mean(0)
        cosines = matrix @ row / matrix.norm(dim=-1).clamp_min(1e-8)  # times the row's length; no copy of the matrix
        near = cosines.topk(min(NEAR, len(matrix))).indices
    known = _known(parse_direction(trace.direction)[0])
    form = known.get(word.lower(), frozenset())
    found: list[str] = []
    of_language: list[str] = []  # of other forms, for a word whose form no other word has
    for token in translator.tokenizer.source_tokens(near.tolist(), ""):
        other = token.removeprefix(SPACE)
        fits = (
            token.startswith(SPACE)
            and other.isalpha()
            and other[:1].isupper() == word[:1].isupper()
            and len(other) > 1
            and other.lower() != word.lower()
            and (not known or other.lower() in known)
        )
        if fits:
            of_language.append(other)
            if not known or _alike(form, known[other.lower()]):
                found.append(other)
        if len(found) == count:
            break
    return start, word, found or of_language[:count]


@lru_cache(maxsize=8)
def _known(code: str) -> Mapping[str, frozenset[Form]]:
    """Words of a language in lower case -> their forms, none where the lexicon has only seen them; empty where the
    project has no lexicon of it."""
    language = language_of(code)
    if not (found := forms(language)):
        return {}
    seen = {word.lower() for line in sentences(language) for word in re.findall(r"\w+", line)}
    return {**dict.fromkeys(seen | FUNCTION_WORDS.get(language, frozenset()), frozenset()), **found}


def _alike(form: frozenset[Form], other: frozenset[Form]) -> bool:
    """Whether a word of other forms can stand wherever one of these forms does."""
    return form <= other if form else not other


def _spelled(tokens: tuple[str, ...], group: tuple[int, ...]) -> str:
    return "" if is_symbol(tokens[group[0]]) else "".join(tokens[i] for i in group).replace(SPACE, " ").strip()


def _span(text: str, words: list[str], index: int) -> tuple[int, str]:
    """Where a word begins in the text, and the word as the text spells it."""
    at = 0
    for number, word in enumerate(words):
        found = text.find(word, at)
        if found < 0:
            raise Refusal("{word} is spelled differently in the sentence: type the second sentence.", word=repr(word))
        if number == index:
            return found, word
        at = found + len(word)
    raise AssertionError("a word that is none of them")
