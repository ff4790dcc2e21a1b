"""What the glossary's pictures show of a translation, as JSON-ready data (viz/web/glossary/entries.js)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from attention_atlas.model.trace.kinds import AttentionKind, Side
from attention_atlas.model.trace.tokens import is_symbol
from attention_atlas.model.trace.translation import TranslationTrace
from attention_atlas.viz.maps import labels

MAX_TOKENS = 12  # of each side: the pictures are small
NUM_CANDIDATES = 5
NUM_HEADS = 3


def glossary_payload(trace: TranslationTrace, kind: AttentionKind, layer: int, head: int, row: int | None) -> dict:
    """Return the first tokens of both sides, a step of the decoder, and some rows and maps.

    kind, layer, head: whose map, rows and neighbours are sent. row: of that map; None for a word in the middle.
    """
    maps = {name.value: _map(trace, name, *_head_in(trace, name, kind, layer, head)) for name in trace.kinds}
    if row is None:
        row = _middle_word(labels.row_tokens(trace, kind, predicted=True)[:MAX_TOKENS])
    weights = trace.maps(kind).weights[:, :, row, :MAX_TOKENS]
    heads = sorted(range(weights.shape[1]), key=lambda other: (other != head, other))[:NUM_HEADS]
    step = _middle_word(trace.target_tokens[:MAX_TOKENS]) if kind.side is Side.ENCODER else row
    return {
        "source": list(map(labels.text_of, trace.source_tokens[:MAX_TOKENS])),
        "target": list(map(labels.text_of, trace.target_tokens[:MAX_TOKENS])),
        "step": {
            "index": step,
            "candidates": [
                {"text": labels.display(token), "probability": float(probability)}
                for token, probability in zip(
                    trace.top_tokens[step][:NUM_CANDIDATES], trace.top_probabilities[step], strict=False
                )
            ],
            "entropy": float(trace.entropy[step]),
        },
        "surprisals": _rounded(-trace.log_probability[:MAX_TOKENS]),
        "maps": maps,
        "kind": kind.value,
        "heads": [[f"{layer + 1}·{other + 1}", _rounded(weights[layer, other])] for other in heads],
        "layers": [[f"{other + 1}·{head + 1}", _rounded(weights[other, head])] for other in range(len(weights))],
    }


def _middle_word(tokens: Sequence[str]) -> int:
    """Return the position of a word in the middle, which is no symbol or punctuation if there is one."""
    words = [i for i, token in enumerate(tokens) if not is_symbol(token) and any(map(str.isalpha, token))]
    return words[len(words) // 2] if words else len(tokens) // 2


def _head_in(
    trace: TranslationTrace, kind: AttentionKind, selected: AttentionKind, layer: int, head: int
) -> tuple[int, int]:
    """Return the selected head for its own kind, and the first head of the middle layer for others."""
    return (layer, head) if kind == selected else (trace.maps(kind).num_layers // 2, 0)


def _map(trace: TranslationTrace, kind: AttentionKind, layer: int, head: int) -> dict:
    """Return the upper left corner of a map with its labels. Cells that may not be read are None."""
    maps = trace.maps(kind)
    weights = maps.weights[layer, head, :MAX_TOKENS, :MAX_TOKENS]
    rows = labels.row_tokens(trace, kind, predicted=kind != AttentionKind.DECODER_SELF)[:MAX_TOKENS]
    is_masked = kind == AttentionKind.DECODER_SELF
    return {
        "rows": list(map(_label, rows)),
        "columns": list(map(_label, maps.key_tokens[:MAX_TOKENS])),
        "weights": [
            [None if is_masked and column > row else weight for column, weight in enumerate(_rounded(values))]
            for row, values in enumerate(weights)
        ],
    }


def _label(token: str) -> str:
    return labels.display(token).removeprefix("▁") or "▁"


def _rounded(values: np.ndarray) -> list[float]:
    return np.round(values.astype(float), 4).tolist()
