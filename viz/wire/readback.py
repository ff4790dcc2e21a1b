"""Read payloads and figures back into arrays, to compare what the page shows with the trace."""

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

# Half a step of the 16-bit codec at weight 1 (viz/wire/codecs.py), plus float32 rounding.
PAYLOAD_TOLERANCE = 3.1e-5


def payload_maps(blocks: Iterable[Mapping], kinds: Mapping[str, Mapping]) -> dict[AttentionKind, np.ndarray]:
    """Decode the blocks of a payload to maps [layers, heads, query, key] by kind, as the page does.

    blocks, kinds: those of the payload. ValueError if a block's size differs from that of its kind.
    """
    parts: dict[AttentionKind, list[np.ndarray]] = {}
    for block in blocks:
        sizes = kinds[block["kind"]]
        shape = (block["last"] - block["first"], sizes["heads"], sizes["queries"], sizes["keys"])
        parts.setdefault(AttentionKind(block["kind"]), []).append(CODECS[block["codec"]].decode(block["data"], shape))
    return {kind: np.concatenate(maps) for kind, maps in parts.items()}


def sent_maps(trace: TranslationTrace) -> dict[AttentionKind, np.ndarray]:
    """Return the maps that the page receives of a trace, encoded and decoded, for all layers."""
    packed = payload.payload(trace, max_bytes=2**62)
    return payload_maps(packed["blocks"], packed["kinds"])


def grid_maps(figure: go.Figure, trace: TranslationTrace, kind: AttentionKind) -> np.ndarray:
    """Return the maps [layers, heads, query, key] of a figure of plot_grid(). ValueError if it pooled long maps."""
    layers, heads, rows, columns = trace.maps(kind).weights.shape
    if max(rows, columns) > SIDE:
        raise ValueError(f"the grid draws at most {SIDE} tokens a side, this map has {rows} x {columns}")
    tiled = np.asarray(figure.data[0].z, np.float64)
    tiles = tiled.reshape(layers, tiled.shape[0] // layers, heads, tiled.shape[1] // heads)
    return tiles[:, :rows, :, :columns].transpose(0, 2, 1, 3)


def drawn_maps(trace: TranslationTrace) -> dict[AttentionKind, np.ndarray]:
    """Return all heads as plot_grid() draws them, linear from 0 to 1."""
    return {kind: grid_maps(plot_grid(trace, kind), trace, kind) for kind in trace.kinds}


def drawn_head(trace: TranslationTrace, kind: AttentionKind, layer: int, head: int) -> np.ndarray:
    """Return one head [query, key] as plot_heatmap() draws it, linear from 0 to 1."""
    return np.asarray(plot_heatmap(trace, View(kind, layer, head)).data[0].z, np.float64)
