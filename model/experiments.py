"""Break the model and compare: positions off or shifted, words shuffled, heads switched off.

Every run goes down the model's one path with Interventions as arguments. Two traces stand side by side: the free
translation of each, and, so that maps have equal shapes, the broken model forced through the plain translation.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np
import torch

from model.attention import causal_mask
from model.divergence import jensen_shannon_bits
from model.intervention import Interventions, Positions
from model.trace import AttentionKind, TranslationTrace
from model.translator import Translator

WORD_START = "▁"


@dataclass(frozen=True, eq=False)
class Comparison:
    """The plain model and a broken one on the same sentence.

    plain, broken     their own free translations
    forced_log_probability  float32 [step]: of the plain translation's tokens, under the broken model
    changes           per kind: float64 [layers, heads], mean over rows of the Jensen-Shannon divergence in bits between
                      the plain map and the broken one, both reading the plain translation (0: the same map; 1: no
                      weight in common). Where words were shuffled, keys and rows are put back in the plain order first.
    """

    plain: TranslationTrace
    broken: TranslationTrace
    forced_log_probability: np.ndarray
    changes: dict[AttentionKind, np.ndarray]


def compare(translator: Translator, trace: TranslationTrace, interventions: Interventions, *,
            text: str | None = None) -> Comparison:
    """Translate again with something broken. text: another order of the same words, None for the sentence itself.

    ValueError if an intervention names what does not exist, or if text is not the trace's words in another order.
    """
    ids = trace.source_ids if text is None else tuple(translator.encode(text, trace.direction))
    order = np.arange(len(ids)) if text is None else token_order(
        trace.source_tokens, translator.tokenizer.tokens(ids))
    broken = translator.translate(trace.source_text if text is None else text, trace.direction,
                                  interventions=interventions)
    output = translator.inspect(ids, trace.target_ids, interventions=interventions)
    log_p = output.logits[0].float().log_softmax(-1)
    forced = log_p.gather(1, torch.tensor(trace.target_ids, device=log_p.device)[:, None])[:, 0]
    maps = {
        AttentionKind.ENCODER_SELF: _stack([r.self_attention.weights for r in output.encoder_records]),
        AttentionKind.DECODER_SELF: _stack([r.self_attention.weights for r in output.decoder_records]),
        AttentionKind.CROSS: _stack([r.cross_attention.weights for r in output.decoder_records])}
    back = np.argsort(order)  # the place in the new sentence of each token of the old one
    maps[AttentionKind.ENCODER_SELF] = maps[AttentionKind.ENCODER_SELF][:, :, back][..., back]
    maps[AttentionKind.CROSS] = maps[AttentionKind.CROSS][..., back]
    changes = {kind: jensen_shannon_bits(trace.maps(kind).weights, maps[kind]).mean(-1) for kind in AttentionKind}
    return Comparison(trace, broken, forced.cpu().numpy(), changes)


def positions_off() -> Interventions:
    """No positional encoding on either side."""
    return Interventions(source_positions=Positions(enabled=False), target_positions=Positions(enabled=False))


def positions_shifted(shift: int) -> Interventions:
    """Every position, on both sides, moved by `shift`."""
    return Interventions(source_positions=Positions(shift=shift), target_positions=Positions(shift=shift))


def heads_off(kind: AttentionKind, layer: int, heads: tuple[int, ...]) -> Interventions:
    """These heads of one attention say nothing."""
    return Interventions(heads_off=frozenset((kind, layer, head) for head in heads))


def shuffled(text: str, *, seed: int) -> str:
    """The words of a text in another order (the same seed gives the same order). ValueError for fewer than two
    different words: they have no other order."""
    words = text.split()
    if len(set(words)) < 2:
        raise ValueError(f"{text!r} has fewer than two different words: there is nothing to shuffle.")
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
            raise ValueError(f"{''.join(word).replace(WORD_START, '')!r} is not a word of the sentence: type its words "
                             "in another order, with the same spelling.")
        first = places[word].pop(0)
        order.extend(range(first, first + len(word)))
    if len(order) != len(old):
        raise ValueError(f"the sentence has {len(old)} tokens, its reordering {len(order)}: use every word once.")
    return np.array(order)


def _words(tokens: tuple[str, ...]) -> list[tuple[str, ...]]:
    words: list[list[str]] = []
    for index, token in enumerate(tokens):
        symbol = index in (0, len(tokens) - 1)  # <2xx> and </s> stand alone
        if symbol or index == 1 or token.startswith(WORD_START):
            words.append([])
        words[-1].append(token)
    return [tuple(word) for word in words]


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
    x = model.embed(torch.cat((target, target[:, turned])), off.target_positions)  # [2, target, d_model]
    twice = memory.select(torch.zeros(2, dtype=torch.long, device=source.device))  # both read the sentence as it is

    def decoded(mask: torch.Tensor | None) -> torch.Tensor:
        return model.decoder(x, mask, twice, interventions=off)[0]

    def difference(pair: torch.Tensor, rows: torch.Tensor) -> float:
        straight, permuted = pair
        return float((straight[rows] - permuted).abs().max())

    return OrderBlindness(
        difference(encoded, order), difference(memory.memory, order),
        difference(decoded(causal_mask(target.shape[1], device=source.device)), turned),
        difference(decoded(None), turned), float(encoded[0].abs().max()))


def _stack(weights: list[torch.Tensor]) -> np.ndarray:
    return torch.stack([w[0] for w in weights]).float().cpu().numpy()  # [layers, heads, query, key]

