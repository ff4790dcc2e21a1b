"""The payload: a trace as compact JSON for the page, which viz/web/explorer/trace.js reads.

A block {kind, first, last, codec, data} holds the weights [layers, heads, query, key] of layers first .. last - 1 in
one of the codecs of viz/wire/codecs.py. Thumbnails {kind, rows, columns, codec, data} hold every head of a kind
[layers, heads, rows, columns]. For long texts the page requests further blocks and tiles when they are looked at.
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
from attention_atlas.viz.wire.tiles import all_tiles, describe_patterns, is_large, strip, tiles
from attention_atlas.viz.words import say

FORMAT = 1
MAX_BYTES = 1_000_000  # of a payload; further weights are sent on request
_THUMBNAILS, _WEIGHTS = 0.42, 0.8  # shares of it for a kind's thumbnails, and for these with the open layer
_BYTES_PER_CODE = 4 / 3  # in base64, not compressed


def payload(
    trace: TranslationTrace, selection: object = None, *, exact: bool = False, max_bytes: int = MAX_BYTES
) -> dict:
    """Return everything that the explorer needs of a trace, JSON-ready.

    selection  an object with kind, layer, head, query and key to open with (viz.panels.scene.Selection), or None
    exact      include every layer as float32, for a file without a server
    max_bytes  if the weights have more, send only the thumbnails of the open kind, and the selection's layer if it fits

    Kinds with large maps are sent in tiles (viz/wire/tiles.py); an exact payload holds the tiles of one head and says
    what it leaves out.
    """
    kinds = {kind: trace.maps(kind) for kind in trace.kinds}
    small_kinds = {kind: maps for kind, maps in kinds.items() if not is_large(trace, kind)}
    is_lazy = not exact and 2 * _BYTES_PER_CODE * sum(maps.weights.size for maps in kinds.values()) > max_bytes
    small, blocks, kind, layer = [], [], trace.kinds[-1], 0
    if selection:
        kind, layer = selection.kind, selection.layer
    if is_lazy and kind in small_kinds:
        small = [thumbnails(trace, kind, max_bytes=_THUMBNAILS * max_bytes)]
        bytes_left = _WEIGHTS * max_bytes - len(small[0]["data"])
        fits = 2 * _BYTES_PER_CODE * kinds[kind].weights[layer].size <= bytes_left
        blocks = [block(trace, kind, layer, layer + 1)] if fits else []
    elif not is_lazy:
        blocks = [block(trace, kind, 0, maps.num_layers, exact=exact) for kind, maps in small_kinds.items()]
    return {
        **(_one_large_map(trace, selection or View(kind)) if exact and len(small_kinds) < len(kinds) else {}),
        "format": FORMAT,
        "key": trace.key,
        "lazy": is_lazy,
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
        "colours": {"scales": theme.SCALES, "heads": theme.HEAD_COLOURS, "dashes": theme.HEAD_DASHES},
    }


def _one_large_map(trace: TranslationTrace, selection: object) -> dict:
    """Return all tiles of the selected head, and thumbnails of its kind. selection: a Selection or a View."""
    kind, layer, head = selection.kind, selection.layer, selection.head
    if not is_large(trace, kind):
        return {
            "left_out": say(
                "This translation is long, so this file leaves these maps out and has only the smaller ones."
            )
        }
    title = {"title": labels.KIND_TITLES[kind], "layer": layer + 1, "head": head + 1}
    return {
        "tiles": [tiles(trace, kind, layer, head, all_tiles(trace, kind))],
        "strips": [strip(trace, kind, at) for at in range(trace.maps(kind).num_layers)],
        "left_out": say(
            "This translation is long, so this file has one large map ({title}, layer {layer}, head "
            "{head}) and thumbnails of that kind's other heads. The rest is left out.",
            **title,
        ),
    }


def block(trace: TranslationTrace, kind: AttentionKind, first: int, last: int, *, exact: bool = False) -> dict:
    """Return the weights of layers first .. last - 1 of a kind. ValueError if there are no such layers."""
    maps = trace.maps(kind)
    if not 0 <= first < last <= maps.num_layers:
        raise ValueError(f"{kind.value} has layers 0 to {maps.num_layers - 1}, found {first} to {last - 1}")
    weights = maps.weights[first:last]
    codec = EXACT if exact else ROOT
    return {"kind": kind.value, "first": first, "last": last, "codec": codec.name, "data": codec.encode(weights)}


def thumbnails(trace: TranslationTrace, kind: AttentionKind, *, max_bytes: float = _THUMBNAILS * MAX_BYTES) -> dict:
    """Return every head of a kind, pooled so that together they have at most `max_bytes` bytes."""
    maps = trace.maps(kind)
    side = max(1, min(THUMBNAIL, math.isqrt(int(max_bytes / _BYTES_PER_CODE / (maps.num_layers * maps.num_heads)))))
    pooled = maps.map_heads(lambda weights: pool(weights, side))
    return {
        "kind": kind.value,
        "rows": pooled.shape[2],
        "columns": pooled.shape[3],
        "codec": SMALL.name,
        "data": SMALL.encode(pooled),
    }


def selection_dict(selection: object) -> dict:
    """Convert a Selection to JSON-ready data."""
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
    # Large kinds get their patterns with each layer's thumbnails (viz/wire/tiles.py).
    patterns = [{}] * layers
    if not is_large(trace, kind):
        patterns = [describe_patterns(layer) for layer in head_patterns(trace, kind)]
    return {
        "title": labels.KIND_TITLES[kind],
        "layers": layers,
        "heads": heads,
        "queries": queries,
        "keys": keys,
        "large": is_large(trace, kind),
        "entropies": [layer.get("entropies") for layer in patterns],
        "readings": [layer.get("readings") for layer in patterns],
    }


def descriptor(name: str, title: str, kind: AttentionKind, score_map: ScoreMap) -> dict:
    """Return a score map as JSON-ready data: {id, title, kind, unit, signed, range, rows, columns, codec, data}.

    rows and columns are {title, labels, positions}. range holds the values at the two ends of the colours: the map's
    limits or its largest absolute value, symmetric if it is signed.
    """
    values = score_map.values
    is_share = not score_map.signed and values.size and values.min() >= 0 and values.max() <= 1  # False with NaN
    codec = ROOT if is_share else SIGNED
    low, high = score_map.limits or (0.0, float(np.nanmax(np.abs(values), initial=0.0)))
    end = max(abs(low), abs(high)) or 1.0
    return {
        "id": name,
        "title": title,
        "kind": kind.value,
        "unit": score_map.unit,
        "signed": score_map.signed,
        "range": [-end if score_map.signed else 0.0, end],
        "rows": _axis(score_map.row_title, score_map.rows, score_map.row_positions),
        "columns": _axis(score_map.column_title, score_map.columns, score_map.column_positions),
        "codec": codec.name,
        "data": codec.encode(values),
    }


def _axis(title: str, names: tuple[str, ...], positions: Groups) -> dict:
    return {"title": title, "labels": list(names), "positions": [list(group) for group in positions]}
