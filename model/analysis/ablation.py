"""Change the model or the order of the words, and compare: positions off or shifted, words shuffled, heads off.

`compare` translates under interventions, or the words in another order, and returns both translations and how much the
attention weights of each head changed. `shuffle_words` gives another order. `measure_order_blindness` shows which parts
of the model ignore the order of their inputs.

>>> from attention_atlas.model.trace.kinds import AttentionKind
>>> translator = Translator.load("checkpoints/de-en", device="cpu")
>>> trace = translator.translate("Der Hund schläft.")
>>> without_head = Interventions(heads_off=frozenset({(AttentionKind.CROSS, 2, 4)}))  # kind, layer and head, from 0
>>> comparison = compare(translator, trace, without_head)
>>> loss = trace.log_probability.sum() - comparison.forced_log_probability.sum()  # nats, of the whole translation
>>> bool(abs(loss) > 0), comparison.changes[AttentionKind.CROSS].shape == trace.cross.weights.shape[:2]
(True, True)
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import torch

from attention_atlas.model.analysis.rerun import check_rerun
from attention_atlas.model.nets.masks import causal_mask
from attention_atlas.model.trace.interventions import Interventions, positions_off
from attention_atlas.model.trace.kinds import AttentionKind
from attention_atlas.model.trace.language import Refusal
from attention_atlas.model.trace.maps import jensen_shannon_bits
from attention_atlas.model.trace.tokens import is_symbol
from attention_atlas.model.trace.translation import TranslationTrace
from attention_atlas.model.trace.words import STOPS, WIDE_STOPS, is_punctuation, spell_word, word_groups
from attention_atlas.model.translator import Translator

__all__ = ["Comparison", "OrderBlindness", "compare", "match_token_order", "measure_order_blindness", "shuffle_words"]


@dataclass(frozen=True, eq=False)  # arrays have no single truth value to compare by
class Comparison:
    """A trace, and what a change of the model or of the word order makes of it.

    original  the trace to compare with, which may have interventions of its own
    altered   the translation decoded anew, under further interventions or of the reordered words
    forced_log_probability  float32 [step], of the original's target tokens, which the altered model is made to read and
              write (teacher forcing)
    changes   kind -> float64 [layers, heads], the Jensen-Shannon divergence in bits between the original's attention
              weights [layers, heads, query, key] and the altered ones, both along the original's target tokens, as the
              mean over queries (0: equal, 1: no weight in common). Reordered source tokens are put back into their
              original order first.
    """

    original: TranslationTrace
    altered: TranslationTrace
    forced_log_probability: np.ndarray
    changes: dict[AttentionKind, np.ndarray]


def compare(
    translator: Translator, trace: TranslationTrace, interventions: Interventions, *, text: str | None = None
) -> Comparison:
    """Translate again under further interventions, and compare with the trace.

    Args:
        translator: has the weights that wrote the trace
        trace: the translation to compare with
        interventions: applied in addition to the trace's own
        text: the trace's words in another order (match_token_order); None for the original order

    Raises ValueError if an intervention names what does not exist, if `text` does not have the trace's words, or if the
    trace's own interventions cannot be run again.
    """
    check_rerun(translator, trace)
    all_interventions = trace.interventions | interventions
    if text is None:
        text, ids = trace.source_text, trace.source_ids
        order = np.arange(len(ids))
    else:
        # in_words numbers the words that tokens belong to; the trace's tokens are numbered already.
        tokens = translator.tokenizer.in_words(translator.tokenizer.tokens(translator.encode(text, trace.direction)))
        order = match_token_order(trace.source_tokens, tokens)
        ids = tuple(trace.source_ids[i] for i in order)
        text = translator.tokenizer.decode_source(ids)
    altered = translator.trace(text, trace.direction, source_ids=ids, interventions=all_interventions)
    forced = translator.trace(
        text, trace.direction, source_ids=ids, target=trace.target_ids, interventions=all_interventions
    )
    inverse = np.argsort(order)  # inverse[i] is the index in `ids` of the original source token i
    changes = {}
    for kind in trace.kinds:
        weights = forced.maps(kind).weights  # [layers, heads, query, key]
        # Source tokens are the queries and keys of the encoder's self-attention, and the keys of cross-attention.
        if kind is AttentionKind.ENCODER_SELF:
            weights = weights[:, :, inverse][..., inverse]
        elif kind is not AttentionKind.DECODER_SELF:
            weights = weights[..., inverse]
        changes[kind] = jensen_shannon_bits(trace.maps(kind).weights, weights).mean(-1)
    return Comparison(trace, altered, forced.log_probability, changes)


def shuffle_words(text: str, *, seed: int) -> str:
    """Return the words of a text in another order, joined by single spaces; the same seed gives the same order.

    The end mark stays at the end. Raises a Refusal, which is a ValueError, for fewer than two different words.
    """
    words, mark = text.split(), ""
    if words and words[-1] != (last := words[-1].rstrip("".join((*STOPS, *WIDE_STOPS)))) and last:
        mark, words[-1] = words[-1].removeprefix(last), last
    if len(set(words)) < 2:
        raise Refusal("{text} has fewer than two different words, so there is nothing to shuffle.", text=repr(text))
    generator = random.Random(seed)
    shuffled = list(words)
    while shuffled == words:
        generator.shuffle(shuffled)
    return " ".join(shuffled) + mark


def match_token_order(old: tuple[str, ...], new: tuple[str, ...]) -> np.ndarray:
    """Return the order, int [length], in which old[order[i]] has the words of `old` in their order in `new`.

    Capitals and punctuation of `new` are ignored: a mark follows the same word as in `old`, and the marks and symbols
    before the first and after the last word stay there. Equal words keep their order among themselves; where only
    capitals distinguish two words, they decide. Raises a Refusal, which is a ValueError, if the words differ.
    """
    before: list[int] = []
    words: list[tuple[tuple[int, ...], list[int]]] = []  # the tokens of each word, and of the marks after it
    for group in word_groups(old):
        if _is_word(old, group):
            words.append((group, []))
        else:
            (words[-1][1] if words else before).extend(group)
    after = words[-1][1] if words else []
    unused: dict[str, list[list[int]]] = {}  # the tokens of words that `new` has not used yet
    for group, marks in words:
        unused.setdefault(_spelling(old, group), []).append([*group, *(marks if marks is not after else ())])
    order = before
    for group in word_groups(new):
        if not _is_word(new, group):
            continue
        spelling = _spelling(new, group)
        # The messages are templates, which the page translates.
        if spelling not in unused:
            raise Refusal(
                "{word} is not a word of the sentence: type its words in another order, with the same spelling.",
                word=repr(spell_word(new, group)),
            )
        if not unused[spelling]:
            raise Refusal(
                "{word} occurs more often than in the sentence: use every word as often as the sentence does.",
                word=repr(spell_word(new, group)),
            )
        same = [tokens for tokens in unused[spelling] if spell_word(old, tokens).startswith(spell_word(new, group))]
        order += (chosen := (same or unused[spelling])[0])
        unused[spelling].remove(chosen)
    if left := list(chain(*unused.values())):
        word = repr(spell_word(old, left[0]))
        raise Refusal("{word} is missing: use every word as often as the sentence does.", word=word)
    return np.array(order + after)


def _is_word(tokens: Sequence[str], group: Iterable[int]) -> bool:
    """Whether a group of tokens is a word, not punctuation or a symbol."""
    return not all(is_punctuation(tokens[i]) or is_symbol(tokens[i]) for i in group)


def _spelling(tokens: Sequence[str], group: Iterable[int]) -> str:
    """Return a word's letters and digits in lower case, or all its characters if it has neither."""
    word = spell_word(tokens, group).casefold()
    return "".join(filter(str.isalnum, word)) or word


@dataclass(frozen=True)
class OrderBlindness:
    """Largest absolute differences between f(permuted input) and permuted f(input), where f is a part of the model.

    A part for which this is 0 is blind to order (permutation equivariant).

    encoder_off       of the encoder's output, without the positional encoding
    encoder_on        of the encoder's output, with it
    decoder_causal    of the decoder's output, without the positional encoding
    decoder_unmasked  of the decoder's output, without the positional encoding and the causal mask
    scale             the largest absolute value of these outputs, to judge the differences by
    """

    encoder_off: float
    encoder_on: float
    decoder_causal: float
    decoder_unmasked: float
    scale: float


@torch.inference_mode()
def measure_order_blindness(translator: Translator, trace: TranslationTrace, *, seed: int = 0) -> OrderBlindness:
    """Measure how far the encoder and the decoder are from permutation equivariance.

    Self-attention without positions is equivariant: permuting its input permutes its output. A causal mask breaks that,
    since each position then sees a different number of tokens (Haviv et al. 2022, "Transformer Language Models without
    Positional Encodings Still Learn Positional Information").

    Only the trace's token ids are used, not its interventions. Raises ValueError if the source has fewer than two
    different tokens or the translation is empty, since those have no other order.
    """
    model, device = translator.model, translator.device
    positions = positions_off()
    source, source_order = _with_permuted_row(trace.source_ids, 0, seed, device)
    output_off = model.encode(source, interventions=positions).memory  # [2, source, d_model]
    encoding_on = model.encode(source)

    inputs = trace.decoder_ids
    if len(set(inputs[1:])) < 2:  # such as a translation of one word: its end is a second token
        inputs = (*inputs[:2], translator.tokenizer.end_id)
    target, target_order = _with_permuted_row(inputs, 1, seed, device)  # the first token, `<s>`, stays
    embedded = model.embed(target, positions, decoder=True)  # [2, target, d_model]
    # Both rows read the same memory, so it does not matter that it has positions.
    memory = encoding_on.select(torch.zeros(2, dtype=torch.long, device=device))

    def decode(mask: torch.Tensor | None) -> torch.Tensor:
        return model.decoder(embedded, mask, memory, interventions=positions)[0]

    outputs = (
        (output_off, source_order),
        (encoding_on.memory, source_order),
        (decode(causal_mask(target.shape[1], device=device)), target_order),
        (decode(None), target_order),
    )
    differences = [float((output[0, order] - output[1]).abs().max()) for output, order in outputs]
    return OrderBlindness(*differences, scale=max(float(output.abs().max()) for output, _ in outputs))


def _with_permuted_row(
    ids: tuple[int, ...], first: int, seed: int, device: torch.device
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the ids in their own and in another order, [2, length], and that order, [length].

    The ids before the index `first` stay. Raises ValueError if there is no other order.
    """
    if len(set(ids[first:])) < 2:
        raise ValueError("fewer than two different tokens have no other order")
    generator = torch.Generator().manual_seed(seed)
    row = torch.tensor(ids)
    order = torch.arange(len(ids))
    while torch.equal(row[order], row):
        order[first:] = first + torch.randperm(len(ids) - first, generator=generator)
    return torch.stack((row, row[order])).to(device), order.to(device)
