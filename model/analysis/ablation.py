"""Break the model and compare: positions off or shifted, words shuffled, heads switched off.

`compare` runs a model under interventions, or on shuffled words, and returns both translations and how much each map
changed. `measure_order_blindness` shows which parts of the model ignore the order of words.

>>> from attention_atlas.model.trace.kinds import AttentionKind
>>> translator = Translator.load("checkpoints/de-en", device="cpu")
>>> trace = translator.translate("Der Hund schläft.")
>>> comparison = compare(translator, trace, Interventions(heads_off=frozenset({(AttentionKind.CROSS, 2, 4)})))
>>> loss = trace.log_probability.sum() - comparison.forced_log_probability.sum()  # nats, of the whole translation
>>> loss.shape, comparison.changes[AttentionKind.CROSS].shape == trace.cross.weights.shape[:2]
((), True)
"""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np
import torch

from attention_atlas.model.analysis.rerun import check_rerun
from attention_atlas.model.nets.masks import causal_mask
from attention_atlas.model.trace.interventions import Interventions, positions_off
from attention_atlas.model.trace.kinds import AttentionKind
from attention_atlas.model.trace.language import Refusal
from attention_atlas.model.trace.maps import jensen_shannon_bits
from attention_atlas.model.trace.translation import TranslationTrace
from attention_atlas.model.trace.words import SPACE, word_groups
from attention_atlas.model.translator import Translator

__all__ = ["Comparison", "compare"]


@dataclass(frozen=True, eq=False)
class Comparison:
    """A trace and a broken model on the same sentence.

    plain    the trace, with its own interventions
    broken   the free translation under further interventions
    forced_log_probability  float32 [step], of the trace's tokens under the broken model
    changes  kind -> float64 [layers, heads], mean over rows of the Jensen-Shannon divergence in bits between the plain
             and the broken map, both of the plain translation (0: equal, 1: no weight in common). Keys and rows of
             shuffled words are put back into the plain order first.
    """

    plain: TranslationTrace
    broken: TranslationTrace
    forced_log_probability: np.ndarray
    changes: dict[AttentionKind, np.ndarray]


def compare(
    translator: Translator, trace: TranslationTrace, interventions: Interventions, *, text: str | None = None
) -> Comparison:
    """Translate again under further interventions, and compare with the trace.

    text: the same words in another order; None for the sentence itself. Raises ValueError if an intervention names what
    does not exist, if text does not have the trace's words, or if the trace's own interventions cannot be run again.
    """
    check_rerun(translator, trace)
    interventions = trace.interventions | interventions
    ids = trace.source_ids if text is None else tuple(translator.encode(text, trace.direction))
    order = (
        np.arange(len(ids))
        if text is None
        else match_token_order(trace.source_tokens, translator.tokenizer.in_words(translator.tokenizer.tokens(ids)))
    )
    text = text or trace.source_text
    broken = translator.trace(text, trace.direction, source_ids=ids, interventions=interventions)
    forced = translator.trace(
        text, trace.direction, source_ids=ids, target=trace.target_ids, interventions=interventions
    )
    positions = np.argsort(order)  # of the plain sentence's tokens in the new order
    changes = {}
    for kind in trace.kinds:
        weights = forced.maps(kind).weights  # [layers, heads, query, key]
        weights = weights if kind is AttentionKind.DECODER_SELF else weights[..., positions]
        weights = weights[:, :, positions] if kind is AttentionKind.ENCODER_SELF else weights
        changes[kind] = jensen_shannon_bits(trace.maps(kind).weights, weights).mean(-1)
    return Comparison(trace, broken, forced.log_probability, changes)


def shuffle_words(text: str, *, seed: int) -> str:
    """Return the words of a text in another order; the same seed gives the same order.

    Raises a Refusal for fewer than two different words.
    """
    words = text.split()
    if len(set(words)) < 2:
        raise Refusal("{text} has fewer than two different words: there is nothing to shuffle.", text=repr(text))
    generator, shuffled = random.Random(seed), list(words)
    while shuffled == words:
        generator.shuffle(shuffled)
    return " ".join(shuffled)


def match_token_order(old: tuple[str, ...], new: tuple[str, ...]) -> np.ndarray:
    """Return an order, int [length], with old[order[i]] = new[i], for the same words in two orders.

    Equal words keep their own order. Raises a Refusal if the words differ.
    """
    starts: dict[tuple[str, ...], list[int]] = {}
    start = 0
    for word in _split_words(old):
        starts.setdefault(word, []).append(start)
        start += len(word)
    order: list[int] = []
    for word in _split_words(new):
        if not starts.get(word):
            raise Refusal(
                "{word} is not a word of the sentence: type its words in another order, with the same spelling.",
                word=repr("".join(word).replace(SPACE, "")),
            )
        first = starts[word].pop(0)
        order.extend(range(first, first + len(word)))
    if len(order) != len(old):
        raise Refusal("the sentence has {n} tokens, its reordering {m}: use every word once.", n=len(old), m=len(order))
    return np.array(order)


def _split_words(tokens: tuple[str, ...]) -> list[tuple[str, ...]]:
    return [tuple(tokens[i] for i in group) for group in word_groups(tokens)]


@dataclass(frozen=True)
class OrderBlindness:
    """Largest absolute differences between f(permuted input) and permuted f(input).

    encoder_off, encoder_on  of the encoder's output, without and with the positional encoding
    decoder_off              of the causal decoder's output without it, its inputs after `<s>` reversed
    decoder_open             the same without the causal mask
    scale                    the largest absolute value of the encoder's output, to compare with
    """

    encoder_off: float
    encoder_on: float
    decoder_off: float
    decoder_open: float
    scale: float


@torch.inference_mode()
def measure_order_blindness(translator: Translator, trace: TranslationTrace, *, seed: int = 0) -> OrderBlindness:
    """Measure whether permuting the input only permutes the output, as in self-attention without positions.

    The causal mask breaks this, since it treats positions differently (Haviv et al. 2022 find that such decoders learn
    positions).
    """
    model = translator.model
    source = torch.tensor([trace.source_ids], device=translator.device)
    order = torch.randperm(source.shape[1], generator=torch.Generator().manual_seed(seed)).to(source.device)
    off = positions_off()
    both = torch.cat((source, source[:, order]))  # [2, source]
    encoded, memory = model.encode(both, interventions=off).memory, model.encode(both)

    target = torch.tensor([trace.decoder_ids], device=translator.device)
    reverse = torch.cat((torch.zeros(1, dtype=torch.long), torch.arange(target.shape[1] - 1, 0, -1))).to(source.device)
    inputs = torch.cat((target, target[:, reverse]))
    x = model.embed(inputs, off, decoder=True)  # [2, target, d_model]
    # Both rows read the sentence in its plain order.
    plain_memory = memory.select(torch.zeros(2, dtype=torch.long, device=source.device))

    def decode(mask: torch.Tensor | None) -> torch.Tensor:
        return model.decoder(x, mask, plain_memory, interventions=off)[0]

    def difference(pair: torch.Tensor, rows: torch.Tensor) -> float:
        plain, permuted = pair
        return float((plain[rows] - permuted).abs().max())

    return OrderBlindness(
        difference(encoded, order),
        difference(memory.memory, order),
        difference(decode(causal_mask(target.shape[1], device=source.device)), reverse),
        difference(decode(None), reverse),
        float(encoded[0].abs().max()),
    )
