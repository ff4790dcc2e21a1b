"""What the model makes of the order of words: shuffled sentences, and whether it is blind to order."""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np
import torch

from attention_atlas.model.nets.masks import causal_mask
from attention_atlas.model.trace.interventions import positions_off
from attention_atlas.model.trace.language import Refusal
from attention_atlas.model.trace.translation import TranslationTrace
from attention_atlas.model.trace.words import SPACE, word_groups
from attention_atlas.model.translator import Translator


def shuffled(text: str, *, seed: int) -> str:
    """The words of a text in another order (the same seed gives the same order). ValueError for fewer than two
    different words: they have no other order."""
    words = text.split()
    if len(set(words)) < 2:
        raise Refusal("{text} has fewer than two different words: there is nothing to shuffle.", text=repr(text))
    generator, mixed = random.Random(seed), list(words)
    while mixed == words:
        generator.shuffle(mixed)
    return " ".join(mixed)


def token_order(old: tuple[str, ...], new: tuple[str, ...]) -> np.ndarray:
    """Which old token each new one is, int [length], for two orders of the same words: int array with
    old[order[i]] = new[i]. A word that stands twice keeps its own order. ValueError if the words differ."""
    places: dict[tuple[str, ...], list[int]] = {}
    start = 0
    for word in _words(old):
        places.setdefault(word, []).append(start)
        start += len(word)
    order: list[int] = []
    for word in _words(new):
        if not places.get(word):
            raise Refusal(
                "{word} is not a word of the sentence: type its words in another order, with the same spelling.",
                word=repr("".join(word).replace(SPACE, "")),
            )
        first = places[word].pop(0)
        order.extend(range(first, first + len(word)))
    if len(order) != len(old):
        raise Refusal("the sentence has {n} tokens, its reordering {m}: use every word once.", n=len(old), m=len(order))
    return np.array(order)


def _words(tokens: tuple[str, ...]) -> list[tuple[str, ...]]:
    return [tuple(tokens[i] for i in group) for group in word_groups(tokens)]


@dataclass(frozen=True)
class OrderBlindness:
    """Largest absolute differences between f(permuted input) and permuted f(input).

    encoder_off, encoder_on   of the encoder's output, without and with the positional encoding
    decoder_off               of the causal decoder's output without it, its inputs after `<s>` reversed
    decoder_open              the same with the causal mask taken away: what remains is blind, too
    scale                     the largest absolute value of the encoder's output, to judge them by
    """

    encoder_off: float
    encoder_on: float
    decoder_off: float
    decoder_open: float
    scale: float


@torch.inference_mode()
def order_blindness(translator: Translator, trace: TranslationTrace, *, seed: int = 0) -> OrderBlindness:
    """Self-attention without positions is equivariant: permuting its input permutes its output. The causal mask
    breaks that, since it treats positions differently (Haviv et al. 2022 find that such decoders learn positions)."""
    model = translator.model
    source = torch.tensor([trace.source_ids], device=translator.device)
    order = torch.randperm(source.shape[1], generator=torch.Generator().manual_seed(seed)).to(source.device)
    off = positions_off()
    both = torch.cat((source, source[:, order]))  # [2, source]
    encoded, memory = model.encode(both, interventions=off).memory, model.encode(both)

    target = torch.tensor([trace.decoder_ids], device=translator.device)
    turned = torch.cat((torch.zeros(1, dtype=torch.long), torch.arange(target.shape[1] - 1, 0, -1))).to(source.device)
    inputs = torch.cat((target, target[:, turned]))
    x = model.embed(inputs, off, decoder=True)  # [2, target, d_model]
    twice = memory.select(torch.zeros(2, dtype=torch.long, device=source.device))  # both read the sentence as it is

    def decoded(mask: torch.Tensor | None) -> torch.Tensor:
        return model.decoder(x, mask, twice, interventions=off)[0]

    def difference(pair: torch.Tensor, rows: torch.Tensor) -> float:
        straight, permuted = pair
        return float((straight[rows] - permuted).abs().max())

    return OrderBlindness(
        difference(encoded, order),
        difference(memory.memory, order),
        difference(decoded(causal_mask(target.shape[1], device=source.device)), turned),
        difference(decoded(None), turned),
        float(encoded[0].abs().max()),
    )
