"""Pairs of sentences that differ in a word, and the two tokens between which that difference decides.

`make_pair` takes two sentences; `make_pairs` fills a template with many words, for a claim about more than one
sentence; `make_batch` pads pairs into tensors.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import torch
from torch import Tensor

from attention_atlas.model.nets.masks import pad
from attention_atlas.model.trace import check_sequence
from attention_atlas.model.trace.language import Refusal
from attention_atlas.model.translator import Translator

MAX_FILLINGS = 64


@dataclass(frozen=True)
class Pair:
    """A sentence, the same sentence with a word changed, and the decision after a common prefix.

    source_ids, changed_ids  of the sentence and of the changed sentence
    target_ids               the decoder's input: `<s>` and the tokens written so far
    token_id, contrast_id    the right next token for the sentence, and for the changed one
    sentences                both as they were typed

    If the sentences differ in their number of tokens, their positions do not correspond. Then only the decoder's
    senders can carry the changed sentence's values: after a common prefix their outputs have one shape.
    """

    source_ids: tuple[int, ...]
    changed_ids: tuple[int, ...]
    target_ids: tuple[int, ...]
    token_id: int
    contrast_id: int
    sentences: tuple[str, str] = ("", "")

    @property
    def is_aligned(self) -> bool:
        """Whether both sentences have the same number of tokens."""
        return len(self.source_ids) == len(self.changed_ids)


def make_pair(
    translator: Translator,
    sentence: str,
    changed: str,
    words: Sequence[str],
    *,
    prefix: str = "",
    direction: str | None = None,
) -> Pair:
    """Return the pair of two sentences that differ in a word.

    words: the token after `prefix` that is right for the first sentence, and the one that is right for the changed
    sentence. Raises a Refusal if the sentences are the same or a word is more than one token.
    """
    source_ids, changed_ids = (tuple(translator.encode(text, direction)) for text in (sentence, changed))
    if source_ids == changed_ids:
        raise Refusal("The second sentence is the same: change a word.")
    tokens = _encode_words(translator, words)
    before = [*translator.forced_prefix(direction), *(translator.encode_typed(prefix) if prefix else ())]
    target = (translator.tokenizer.begin_id, *(translator.check_target(before) if before else ()))
    return Pair(source_ids, changed_ids, target, *tokens, (sentence, changed))


def make_pairs(
    translator: Translator,
    sentence: str,
    changed: str,
    fillings: Mapping[str, Sequence[str]],
    words: Sequence[str],
    *,
    direction: str | None = None,
) -> list[Pair]:
    """Return the pairs of a template: two sentences that differ in a word, filled with many other words.

    fillings: alternatives for words that both sentences have, such as {"Hund": ("Vogel", "Fisch")}; at most 64 filled
    sentences are drawn. words: as in make_pair(). The prefix is the model's own translation of each sentence up to the
    first of `words`. Sentences are left out if their translation lacks that word, or if they are aligned where the
    template is not, or the reverse. Raises ValueError for a filling of a word that neither sentence has.
    """
    for word in fillings:
        if not any(re.search(_whole_word(word), text) for text in (sentence, changed)):
            raise ValueError(f"cannot fill in for {word!r:.80}: no sentence has this word")
    tokens = _encode_words(translator, words)
    texts = list(zip(fill_template(sentence, fillings), fill_template(changed, fillings)))
    return pair_sentences(translator, texts, tokens, direction)


def pair_sentences(
    translator: Translator, texts: Sequence[tuple[str, str]], tokens: tuple[int, int], direction: str | None
) -> list[Pair]:
    """Return the pairs of many (sentence, changed sentence), the template's first, as in make_pairs()."""
    ids = {
        both: tuple(tuple(translator.encode(text, direction)) for text in both)
        for both in texts
        if both[0] != both[1] and all(text.strip() and translator.fits(text, direction) for text in both)
    }
    translations = translator.generate([source for source, _ in ids.values()], direction)
    start = (translator.tokenizer.begin_id, *translator.forced_prefix(direction))
    pairs = [
        Pair(source, changed, (*start, *target[: target.index(tokens[0])]), *tokens, sentences)
        for (sentences, (source, changed)), target in zip(ids.items(), translations)
        if tokens[0] in target and source != changed
    ]
    return [pair for pair in pairs if pair.is_aligned == pairs[0].is_aligned]


def _encode_words(translator: Translator, words: Sequence[str]) -> tuple[int, int]:
    if len(check_sequence("words", words)) != 2 or words[0] == words[1]:
        raise ValueError(f"words must be two different words, found {words!r:.80}")
    ids = [translator.tokenizer.encode(word) for word in words]
    for word, pieces in zip(words, ids):
        if len(pieces) != 1:
            raise Refusal("{word} is {n} tokens: a circuit decides between single ones.", word=word, n=len(pieces))
    return ids[0][0], ids[1][0]


def fill_template(
    sentence: str, fillings: Mapping[str, Sequence[str]], limit: int = MAX_FILLINGS, seed: int = 0
) -> list[str]:
    """Return the sentence itself, then the sentence with words replaced by every combination of their alternatives.

    Of more than `limit` combinations that many are drawn at random; the same seed draws the same combinations for
    every sentence.
    """
    sizes = [1 + len(check_sequence("fillings", alternatives)) for alternatives in fillings.values()]
    if math.prod(sizes) <= limit:
        choices = list(product(*map(range, sizes)))
    else:
        chance, drawn = random.Random(seed), {(0,) * len(sizes): None}
        while len(drawn) < limit:
            drawn[tuple(map(chance.randrange, sizes))] = None
        choices = list(drawn)
    return [_fill(sentence, fillings, choice) for choice in choices]


def _fill(sentence: str, fillings: Mapping[str, Sequence[str]], choice: Sequence[int]) -> str:
    """Replace each word by its alternative of this number, counted from 1; 0 leaves the word."""
    for (word, alternatives), number in zip(fillings.items(), choice):
        if number:
            filling = alternatives[number - 1]
            sentence = re.sub(_whole_word(word), lambda _, filling=filling: filling, sentence, count=1)
    return sentence


def _whole_word(word: str) -> str:
    """Return a pattern that matches the word, but not inside a longer one."""
    return rf"(?<!\w){re.escape(word)}(?!\w)"


@dataclass(frozen=True, eq=False)
class Batch:
    """Pairs as padded tensors.

    source, changed  int64 [batch, source]
    target           int64 [batch, target]
    last             int64 [batch], the row of the decoder that decides
    tokens           int64 [batch, 2], the right token and its contrast
    is_aligned       whether source positions correspond in all pairs
    """

    source: Tensor
    changed: Tensor
    target: Tensor
    last: Tensor
    tokens: Tensor
    is_aligned: bool

    def last_rows(self, hidden: Tensor) -> Tensor:
        """Select the deciding row of hidden [batch, target, d_model]: [batch, d_model]."""
        return hidden[torch.arange(len(hidden), device=hidden.device), self.last]


def make_batch(pairs: Sequence[Pair], pad_id: int, device: torch.device) -> Batch:
    """Pad pairs into tensors. Raises ValueError if there are none."""
    if not pairs:
        raise ValueError("there are no pairs")
    source, changed, target = (
        pad(side, pad_id).to(device) for side in zip(*((p.source_ids, p.changed_ids, p.target_ids) for p in pairs))
    )
    last = torch.tensor([len(p.target_ids) - 1 for p in pairs], device=device)
    tokens = torch.tensor([[p.token_id, p.contrast_id] for p in pairs], device=device)
    return Batch(source, changed, target, last, tokens, all(p.is_aligned for p in pairs))
