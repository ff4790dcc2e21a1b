"""Two sources of one length, what is written so far, and the two tokens between which their difference decides."""

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

MOST = 64  # fillings


@dataclass(frozen=True)
class Pair:
    """source_ids and other_ids: of the sentence and of the changed one; target_ids: `<s>` and what is written; token:
    what is right for the sentence; instead: for the changed one. sentences: as they were typed. Where the sentences
    have different numbers of tokens, which of one would stand for which of the other? Then only what the decoder's
    parts write can be put into the other run: behind the same prefix it is of one shape."""

    source_ids: tuple[int, ...]
    other_ids: tuple[int, ...]
    target_ids: tuple[int, ...]
    token: int
    instead: int
    sentences: tuple[str, str] = ("", "")

    @property
    def aligned(self) -> bool:
        """Whether both sentences have as many tokens."""
        return len(self.source_ids) == len(self.other_ids)


def pair(
    translator: Translator,
    sentence: str,
    changed: str,
    words: Sequence[str],
    *,
    prefix: str = "",
    direction: str | None = None,
) -> Pair:
    """Of two sentences that differ in a word. words: the token after `prefix` that is right for the first sentence, and
    the one for the changed sentence. A Refusal, in words, where a word is more than one token."""
    first, second = (tuple(translator.encode(text, direction)) for text in (sentence, changed))
    if first == second:
        raise Refusal("The second sentence is the same: change a word.")
    tokens = _tokens(translator, words)
    before = [*translator.forced_prefix(direction), *(translator.encode_typed(prefix) if prefix else ())]
    target = (translator.tokenizer.begin_id, *(translator.check_target(before) if before else ()))
    return Pair(first, second, target, *tokens, (sentence, changed))


def _tokens(translator: Translator, words: Sequence[str]) -> tuple[int, int]:
    """Their ids. A Refusal for a word of several tokens; ValueError for what are not two words."""
    if len(check_sequence("words", words)) != 2 or words[0] == words[1]:
        raise ValueError(f"the words are two, and not the same: found {words!r:.80}")
    ids = [translator.tokenizer.encode(word) for word in words]
    for word, pieces in zip(words, ids):
        _single(word, pieces)
    return ids[0][0], ids[1][0]


def filled(sentence: str, fillings: Mapping[str, Sequence[str]], most: int = MOST, seed: int = 0) -> list[str]:
    """The sentence as it is, then with words of it replaced: by every choice of what fillings have for them, or by
    `most` of these drawn by lot; the same seed draws the same for every sentence."""
    sizes = [1 + len(check_sequence("fillings", others)) for others in fillings.values()]
    if math.prod(sizes) <= most:
        choices = list(product(*map(range, sizes)))
    else:
        chance, drawn = random.Random(seed), {(0,) * len(sizes): None}
        while len(drawn) < most:
            drawn[tuple(map(chance.randrange, sizes))] = None
        choices = list(drawn)
    return [_with(sentence, fillings, choice) for choice in choices]


def _with(sentence: str, fillings: Mapping[str, Sequence[str]], choice: Sequence[int]) -> str:
    for (word, others), which in zip(fillings.items(), choice):
        if which:
            sentence = re.sub(_whole(word), lambda _, other=others[which - 1]: other, sentence, count=1)
    return sentence


def _whole(word: str) -> str:
    """A pattern of the word, and not of a part of a longer one."""
    return rf"(?<!\w){re.escape(word)}(?!\w)"


def pairs(
    translator: Translator,
    sentence: str,
    changed: str,
    fillings: Mapping[str, Sequence[str]],
    words: Sequence[str],
    *,
    direction: str | None = None,
) -> list[Pair]:
    """A template with many fillings, for a claim about more than one sentence: two sentences that differ in a word, and
    others for further words of both, {"Hund": ("Vogel", "Fisch")}. What is written so far is the model's own
    translation of the sentence up to the first of `words`; fillings whose translation lacks it are left out, and those
    whose sentences have as many tokens where the template's have not, or the other way round. ValueError for a filling
    of a word that neither sentence has."""
    for word in fillings:
        if not any(re.search(_whole(word), text) for text in (sentence, changed)):
            raise ValueError(f"there is nothing to fill in for {word!r:.80}: no sentence has this word")
    tokens = _tokens(translator, words)
    return comparable(translator, list(zip(filled(sentence, fillings), filled(changed, fillings))), tokens, direction)


def comparable(
    translator: Translator, texts: Sequence[tuple[str, str]], tokens: tuple[int, int], direction: str | None
) -> list[Pair]:
    """pairs() of sentences with their changed ones, the template's first, and of two tokens' ids."""
    found = {
        both: tuple(tuple(translator.encode(text, direction)) for text in both)
        for both in texts
        if both[0] != both[1] and all(text.strip() and translator.fits(text, direction) for text in both)
    }
    written = translator.generate([list(ids) for ids, _ in found.values()], direction) if found else []
    start = (translator.tokenizer.begin_id, *translator.forced_prefix(direction))
    all_of_them = [
        Pair(*ids, (*start, *target[: target.index(tokens[0])]), *tokens, sentences)
        for (sentences, ids), target in zip(found.items(), written)
        if tokens[0] in target and ids[0] != ids[1]
    ]
    return [one for one in all_of_them if one.aligned == all_of_them[0].aligned]


def _single(word: str, pieces: Sequence[int]) -> None:
    if len(pieces) != 1:
        raise Refusal("{word} is {n} tokens: a circuit decides between single ones.", word=word, n=len(pieces))


@dataclass(frozen=True, eq=False)
class Batch:
    """source, other [batch, source]; target [batch, target], all padded; last int64 [batch], the row that decides;
    tokens int64 [batch, 2]; aligned: whether a position of the source is the same in both."""

    source: Tensor
    other: Tensor
    target: Tensor
    last: Tensor
    tokens: Tensor
    aligned: bool

    def at_last(self, hidden: Tensor) -> Tensor:
        """hidden [batch, target, d_model] at the row that decides, [batch, d_model]."""
        return hidden[torch.arange(len(hidden), device=hidden.device), self.last]


def batch(pairs: Sequence[Pair], pad_id: int, device: torch.device) -> Batch:
    """Of pairs, as tensors. ValueError for none."""
    if not pairs:
        raise ValueError("there are no pairs")
    source, other, target = (
        pad([list(ids) for ids in side], pad_id).to(device)
        for side in zip(*((p.source_ids, p.other_ids, p.target_ids) for p in pairs))
    )
    last = torch.tensor([len(p.target_ids) - 1 for p in pairs], device=device)
    tokens = torch.tensor([[p.token, p.instead] for p in pairs], device=device)
    return Batch(source, other, target, last, tokens, all(p.aligned for p in pairs))
