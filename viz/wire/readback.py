"""What the program shows, read back as arrays, so that it can be held against the trace it was made from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import plotly.graph_objects as go

from attention_atlas.model.trace.kinds import AttentionKind
from attention_atlas.model.trace.translation import TranslationTrace
from attention_atlas.viz.figures.attention import SIDE, plot_grid, plot_heatmap
from attention_atlas.viz.maps.reduce import View
from attention_atlas.viz.wire import payload
from attention_atlas.viz.wire.codecs import CODECS

# Half a step of the 16-bit format at weight 1 (viz/wire/codecs.py), and a little for float32.
PAYLOAD_TOLERANCE = 3.1e-5


def payload_maps(blocks: Iterable[Mapping], kinds: Mapping[str, Mapping]) -> dict[AttentionKind, np.ndarray]:
    """The maps [layers, heads, query, key] that a payload's blocks carry, by kind, as the page decodes them.

    blocks, kinds: the payload's own. ValueError if a block's size is not what its kind announces.
    """
    found: dict[AttentionKind, list[np.ndarray]] = {}
    for block in blocks:
        sizes = kinds[block["kind"]]
        shape = (block["last"] - block["first"], sizes["heads"], sizes["queries"], sizes["keys"])
        found.setdefault(AttentionKind(block["kind"]), []).append(CODECS[block["codec"]].decode(block["data"], shape))
    return {kind: np.concatenate(parts) for kind, parts in found.items()}


def sent_maps(trace: TranslationTrace) -> dict[AttentionKind, np.ndarray]:
    """What the explorer's page receives of a trace, all layers, through the payload and back."""
    packed = payload.payload(trace, largest=2**62)
    return payload_maps(packed["blocks"], packed["kinds"])


def grid_maps(figure: go.Figure, trace: TranslationTrace, kind: AttentionKind) -> np.ndarray:
    """The maps [layers, heads, query, key] as plot_grid() tiled them. ValueError if it thinned them, being too long."""
    layers, heads, rows, columns = trace.maps(kind).weights.shape
    if max(rows, columns) > SIDE:
        raise ValueError(f"the grid draws at most {SIDE} tokens a side, this map has {rows} x {columns}")
    tiled = np.asarray(figure.data[0].z, np.float64)
    tiles = tiled.reshape(layers, tiled.shape[0] // layers, heads, tiled.shape[1] // heads)
    return tiles[:, :rows, :, :columns].transpose(0, 2, 1, 3)


def drawn_maps(trace: TranslationTrace) -> dict[AttentionKind, np.ndarray]:
    """All heads as plot_grid() draws them, linear from 0 to 1."""
    return {kind: grid_maps(plot_grid(trace, kind), trace, kind) for kind in trace.kinds}


def drawn_head(trace: TranslationTrace, kind: AttentionKind, layer: int, head: int) -> np.ndarray:
    """One head [query, key] as plot_heatmap() draws it, linear from 0 to 1."""
    return np.asarray(plot_heatmap(trace, View(kind, layer, head)).data[0].z, np.float64)
