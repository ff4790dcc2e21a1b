"""A trace as one compact JSON value for the page: weights at 16 bits, compressed; what is large, piece by piece.

viz/web/explorer/trace.js reads it. A block {kind, first, last, codec, data} holds weights [layers, heads, query, key]
of the layers first .. last - 1, in one of the codecs of viz/wire/codecs.py; thumbnails {kind, rows, columns, codec,
data} hold every head of a kind [layers, heads, rows, columns].
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from attention_atlas.model.trace.kinds import AttentionKind
from attention_atlas.model.trace.maps import AttentionMaps
from attention_atlas.model.trace.scores import Groups, ScoreMap
from attention_atlas.model.trace.tokens import is_symbol
from attention_atlas.model.trace.translation import TranslationTrace
from attention_atlas.model.trace.words import sentence_ends, word_groups
from attention_atlas.viz import theme
from attention_atlas.viz.maps import labels
from attention_atlas.viz.maps.patterns import head_patterns
from attention_atlas.viz.maps.reduce import THUMBNAIL, View, pool
from attention_atlas.viz.wire.address import link_fields
from attention_atlas.viz.wire.codecs import EXACT, ROOT, SIGNED, SMALL
from attention_atlas.viz.wire.tiles import all_tiles, described, is_large, strip, tiles
from attention_atlas.viz.words import say

FORMAT = 1
LARGEST = 1_000_000  # bytes sent at once; where all weights are more, the rest is sent when it is asked for
_THUMBNAILS, _WEIGHTS = 0.42, 0.8  # shares of it: of a kind's thumbnails, and with the open layer; the rest is words
_BYTES_A_CODE = 4 / 3  # before gzip, which saves little on real weights


def payload(trace: TranslationTrace, selection: object = None, *, exact: bool = False, largest: int = LARGEST) -> dict:
    """Everything the explorer needs of a trace, JSON-ready.

    selection: something with kind, layer, head, query and key to open with (viz.panels.scene.Selection), or None.
    exact: every layer, as float32. largest: bytes above which weights are left to block(). Then there are the
    thumbnails of the kind that is open, and the layer of the selection where there is room for it beside them. Of kinds
    whose maps are large tiles come when they are looked at (viz/wire/tiles.py); an exact payload, which can ask for
    nothing, holds one head's and says what it leaves out.
    """
    kinds = {kind: trace.maps(kind) for kind in trace.kinds}
    whole = {kind: maps for kind, maps in kinds.items() if not is_large(trace, kind)}
    lazy = not exact and 2 * _BYTES_A_CODE * sum(maps.weights.size for maps in kinds.values()) > largest
    small, blocks, kind, layer = [], [], trace.kinds[-1], 0
    if selection:
        kind, layer = selection.kind, selection.layer
    if lazy and kind in whole:
        small = [thumbnails(trace, kind, largest=_THUMBNAILS * largest)]
        room = _WEIGHTS * largest - len(small[0]["data"])
        fits = 2 * _BYTES_A_CODE * kinds[kind].weights[layer].size <= room
        blocks = [block(trace, kind, layer, layer + 1)] if fits else []
    elif not lazy:
        blocks = [block(trace, kind, 0, maps.num_layers, exact=exact) for kind, maps in whole.items()]
    return {
        **(_alone(trace, selection or View(kind)) if exact and len(whole) < len(kinds) else {}),
        "format": FORMAT,
        "key": key_of(trace),
        "lazy": lazy,
        "blocks": blocks,
        "thumbnails": small,
        **link_fields(trace, trace.decoding),
        "translation": trace.translation,
        "finished": trace.finished,
        "decoding": trace.decoded_by,
        "attention_only": trace.attention_only,
        "tokens": {
            "source": _tokens(trace.source_tokens),
            "read": _tokens(trace.decoder_inputs),
            "predicted": {
                **_tokens(trace.target_tokens),
                "log_probability": np.round(trace.log_probability, 3).tolist(),
            },
        },
        "kinds": {kind.value: _kind(trace, kind, maps) for kind, maps in kinds.items()},
        "selection": selection_dict(selection) if selection else None,
        "colours": {"scales": theme.SCALES, "heads": theme.HEAD_COLOURS},
    }


def _alone(trace: TranslationTrace, shown: object) -> dict:
    """Of large maps the one that is shown, whole, and thumbnails of its kind. shown: a selection, or a view."""
    kind, layer, head = shown.kind, shown.layer, shown.head
    if not is_large(trace, kind):
        return {"left_out": say("For so long a translation this file leaves these maps out: it has the smaller ones.")}
    title = {"title": labels.KIND_TITLES[kind], "layer": layer + 1, "head": head + 1}
    return {
        "tiles": [tiles(trace, kind, layer, head, all_tiles(trace, kind))],
        "strips": [strip(trace, kind, at) for at in range(trace.maps(kind).num_layers)],
        "left_out": say(
            "For so long a translation this file has one large map, of {title}, layer {layer}, head {head}, and "
            "small pictures of that kind's other heads. The rest is left out.",
            **title,
        ),
    }


def block(trace: TranslationTrace, kind: AttentionKind, first: int, last: int, *, exact: bool = False) -> dict:
    """The weights of layers first .. last - 1 of a kind. ValueError if there are no such layers."""
    maps = trace.maps(kind)
    if not 0 <= first < last <= maps.num_layers:
        raise ValueError(f"{kind.value} has layers 0 to {maps.num_layers - 1}, found {first} to {last - 1}")
    weights = maps.weights[first:last]
    codec = EXACT if exact else ROOT
    return {"kind": kind.value, "first": first, "last": last, "codec": codec.name, "data": codec.encode(weights)}


def thumbnails(trace: TranslationTrace, kind: AttentionKind, *, largest: float = _THUMBNAILS * LARGEST) -> dict:
    """Every head of a kind, pooled to so many cells that all of them take no more than `largest` bytes."""
    maps = trace.maps(kind)
    side = max(1, min(THUMBNAIL, math.isqrt(int(largest / _BYTES_A_CODE / (maps.num_layers * maps.num_heads)))))
    pooled = maps.of_heads(lambda weights: pool(weights, side))
    return {
        "kind": kind.value,
        "rows": pooled.shape[2],
        "columns": pooled.shape[3],
        "codec": SMALL.name,
        "data": SMALL.encode(pooled),
    }


def key_of(trace: TranslationTrace) -> str:
    """A name for what a trace shows: that of its identity."""
    return trace.identity.key


def selection_dict(selection: object) -> dict:
    """A Selection as the page reads it."""
    return {**vars(selection), "kind": selection.kind.value}


def _tokens(tokens: Sequence[str]) -> dict:
    groups = word_groups(tokens)
    return {
        "raw": list(tokens),
        "labels": [labels.display(token) for token in tokens],
        "special": [int(is_symbol(token)) for token in tokens],
        "words": groups,
        "ends": sentence_ends(tokens),
        "word_labels": [labels.word_label([tokens[i] for i in group]) for group in groups],
    }


def _kind(trace: TranslationTrace, kind: AttentionKind, maps: AttentionMaps) -> dict:
    layers, heads, queries, keys = maps.weights.shape
    # Of a large kind the patterns come with each layer's thumbnails (viz/wire/tiles.py).
    told = [{}] * layers if is_large(trace, kind) else [described(layer) for layer in head_patterns(trace, kind)]
    return {
        "title": labels.KIND_TITLES[kind],
        "layers": layers,
        "heads": heads,
        "queries": queries,
        "keys": keys,
        "large": is_large(trace, kind),
        "entropies": [layer.get("entropies") for layer in told],
        "readings": [layer.get("readings") for layer in told],
    }


def descriptor(name: str, title: str, kind: AttentionKind, found: ScoreMap) -> dict:
    """Return a derived map as the page draws it, JSON-ready: {id, title, kind, unit, signed, range, rows, columns,
    codec, data}. rows, columns: {title, labels, positions}; range: the values at the two ends of the colours, of which
    0 is one or, if signed, the middle."""
    values = found.values
    within = not found.signed and values.size and values.min() >= 0 and values.max() <= 1  # not with a NaN either
    codec = ROOT if within else SIGNED
    return {
        "id": name,
        "title": title,
        "kind": kind.value,
        "unit": found.unit,
        "signed": found.signed,
        "range": _limits(found),
        "rows": _axis(found.row_title, found.rows, found.row_positions),
        "columns": _axis(found.column_title, found.columns, found.column_positions),
        "codec": codec.name,
        "data": codec.encode(values),
    }


def _limits(found: ScoreMap) -> list[float]:
    """[low, high] at full colour: the map's own, else its largest absolute value; even about 0 if it is signed."""
    low, high = found.limits or (0.0, float(np.nanmax(np.abs(found.values), initial=0.0)))
    end = max(abs(low), abs(high)) or 1.0
    return [-end if found.signed else 0.0, end]


def _axis(title: str, names: tuple[str, ...], positions: Groups) -> dict:
    return {"title": title, "labels": list(names), "positions": [list(group) for group in positions]}
