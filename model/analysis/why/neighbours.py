"""Words that could stand in a word's place: those whose embeddings are nearest, in a grammatical form that fits.

`make_neighbour_sentences` changes one word of a sentence, `find_fillings` lists alternatives for all content words.
The tables forms.de.tsv and forms.en.tsv beside this file hold the forms of the lexicon in recipes/composed; `python -m
recipes.forms` writes them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from functools import lru_cache
from pathlib import Path

import torch

from attention_atlas.model.analysis.sentences import sentences
from attention_atlas.model.analysis.why.questions import FUNCTION_WORDS
from attention_atlas.model.trace.directions import language_of, parse_direction
from attention_atlas.model.trace.language import Refusal
from attention_atlas.model.trace.tokens import is_symbol
from attention_atlas.model.trace.translation import TranslationTrace
from attention_atlas.model.trace.words import SPACE, is_punctuation, word_groups
from attention_atlas.model.translator import Translator

Form = tuple[str, ...]  # such as ("noun", "n", "nom") or ("verb", "past participle")
TABLES = {language: Path(__file__).with_name(f"forms.{language}.tsv") for language in ("de", "en")}
NUM_NEIGHBOURS = 5
MAX_CANDIDATES = 8000  # nearest vocabulary entries that are considered


def make_neighbour_sentences(
    translator: Translator, trace: TranslationTrace, position: int, *, count: int = NUM_NEIGHBOURS
) -> tuple[str, ...]:
    """Return the sentence with the word at a source position replaced by each of its `count` nearest words.

    Neighbours are whole words of the vocabulary in the same case, nearest by the cosine of source embeddings first; a
    word of several pieces is their mean. In a language with a lexicon they are words of that language, and of the same
    grammatical forms if there are any. Raises a Refusal if the token belongs to no word of the sentence, or there are
    no neighbours.
    """
    text = trace.source_text
    start, word, nearest = _find_neighbours(translator, trace, position, count)
    if not nearest:
        raise Refusal("There is no other word near {word}: type the second sentence.", word=repr(word))
    return tuple(text[:start] + neighbour + text[start + len(word) :] for neighbour in nearest)


def find_fillings(
    translator: Translator, trace: TranslationTrace, excluded: Collection[int]
) -> dict[str, tuple[str, ...]]:
    """Return the nearest words of each content word of the sentence.

    excluded: source positions whose words are left out.
    """
    fillings, functions = {}, FUNCTION_WORDS.get(parse_direction(trace.direction)[0], frozenset())
    for group in word_groups(trace.source_tokens):
        first = trace.source_tokens[group[0]]
        if {*group} & {*excluded} or is_symbol(first) or is_punctuation(first):
            continue
        _, word, nearest = _find_neighbours(translator, trace, group[0], NUM_NEIGHBOURS)
        if nearest and word.lower() not in functions:
            fillings[word] = tuple(nearest)
    return fillings


def _find_neighbours(
    translator: Translator, trace: TranslationTrace, position: int, count: int
) -> tuple[int, str, list[str]]:
    """Return where the word begins in the text, the word, and its nearest words."""
    tokens = trace.source_tokens
    if not 0 <= position < len(tokens) or is_symbol(tokens[position]) or is_punctuation(tokens[position]):
        raise Refusal("That is not a word of the sentence: choose another one.")
    groups = word_groups(tokens)
    group = next(group for group in groups if position in group)
    start, word = _locate_word(trace.source_text, [_spell(tokens, g) for g in groups], groups.index(group))
    with torch.inference_mode():
        matrix = translator.model.embedding.weight
        row = matrix[torch.tensor([trace.source_ids[i] for i in group], device=matrix.device)].mean(0)
        # Not divided by the row's length, which leaves the order as it is.
        cosines = matrix @ row / matrix.norm(dim=-1).clamp_min(1e-8)
        candidates = cosines.topk(min(MAX_CANDIDATES, len(matrix))).indices
    lexicon = _load_lexicon(parse_direction(trace.direction)[0])
    forms = lexicon.get(word.lower(), frozenset())
    same_form: list[str] = []
    same_language: list[str] = []  # used if no word has the same forms
    for token in translator.tokenizer.source_tokens(candidates.tolist(), ""):
        candidate = token.removeprefix(SPACE)
        if (
            token.startswith(SPACE)
            and candidate.isalpha()
            and candidate[:1].isupper() == word[:1].isupper()
            and len(candidate) > 1
            and candidate.lower() != word.lower()
            and (not lexicon or candidate.lower() in lexicon)
        ):
            same_language.append(candidate)
            if not lexicon or _can_replace(forms, lexicon[candidate.lower()]):
                same_form.append(candidate)
        if len(same_form) == count:
            break
    return start, word, same_form or same_language[:count]


@lru_cache(maxsize=2)
def load_forms(language: str) -> Mapping[str, frozenset[Form]]:
    """Return the forms of every word in the language's table, in lower case; empty without a table.

    A line of a table has forms separated by ";", each of words separated by ",", then a tab and the words that can be
    all of these forms.
    """
    if language not in TABLES:
        return {}
    forms = {}
    for line in TABLES[language].read_text(encoding="utf-8").splitlines():
        names, words = line.split("\t")
        forms.update(dict.fromkeys(words.split(), frozenset(tuple(name.split(",")) for name in names.split(";"))))
    return forms


@lru_cache(maxsize=8)
def _load_lexicon(code: str) -> Mapping[str, frozenset[Form]]:
    """Return the known words of a language with their forms; empty if the project has no lexicon of it.

    Words of the project's sentences and function words that the table lacks have no forms.
    """
    language = language_of(code)
    if not (forms := load_forms(language)):
        return {}
    seen = {word.lower() for line in sentences(language) for word in re.findall(r"\w+", line)}
    return {**dict.fromkeys(seen | FUNCTION_WORDS.get(language, frozenset()), frozenset()), **forms}


def _can_replace(forms: frozenset[Form], candidate: frozenset[Form]) -> bool:
    """Whether a candidate's forms include all forms of the word."""
    return forms <= candidate if forms else not candidate


def _spell(tokens: tuple[str, ...], group: tuple[int, ...]) -> str:
    return "" if is_symbol(tokens[group[0]]) else "".join(tokens[i] for i in group).replace(SPACE, " ").strip()


def _locate_word(text: str, words: list[str], number: int) -> tuple[int, str]:
    """Return where the word of this number begins in the text, and the word."""
    end = 0
    for word in words[: number + 1]:
        start = text.find(word, end)
        if start < 0:
            raise Refusal("{word} is spelled differently in the sentence: type the second sentence.", word=repr(word))
        end = start + len(word)
    return start, words[number]
