"""What each word became, by the model's own links: a guess, from the heads that linked words for the survey."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from attention_atlas.model.analysis.alignment.linker import links
from attention_atlas.model.trace.alignment.between import words_of
from attention_atlas.model.trace.alignment.voters import RowToken, Voter
from attention_atlas.model.trace.kinds import AttentionKind
from attention_atlas.model.trace.translation import TranslationTrace
from attention_atlas.model.trace.words import SPACE


def glosses(trace: TranslationTrace, chosen: Sequence[Voter] = ()) -> tuple[list[str], list[str]]:
    """Of every source token and every target token y1 .. the words that its word is linked to, "" where there are none:
    those on which rows and columns of the chosen heads agree. chosen: of the survey; without one every head of the
    cross-attention, a row standing for the token it reads, or the alignment of a recurrent network, whose rows stand
    for the token they write."""
    kind = AttentionKind.CROSS if AttentionKind.CROSS in trace.kinds else AttentionKind.ALIGNMENT
    weights, source, target = trace.maps(kind).weights, trace.source_tokens, trace.target_tokens
    row = RowToken.READ if kind is AttentionKind.CROSS else RowToken.PREDICTED
    every = [Voter(layer, head, row, False) for layer, head in np.ndindex(*weights.shape[:2])]
    found = links(source, target, weights, chosen or every)
    return _words(source, target, found.T), _words(target, source, found)


def _words(own: Sequence[str], other: Sequence[str], found: np.ndarray) -> list[str]:
    """found: bool [own token, other token]."""
    groups = words_of(other)
    texts = ["".join(other[i] for i in group).replace(SPACE, "") for group in groups]
    return [" ".join(text for text, group in zip(texts, groups) if found[at, group[0]]) for at in range(len(own))]
