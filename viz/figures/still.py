"""A Plotly figure that also has an SVG picture, for notebooks without scripts (nbconvert, GitHub)."""

from __future__ import annotations

import struct
import zlib
from base64 import b64encode
from collections.abc import Iterator
from html import escape, unescape
from re import findall, sub

import numpy as np
import plotly.graph_objects as go
from plotly.colors import sample_colorscale

SVG = "image/svg+xml"
CELL = 28  # pixels, the largest cell of a heatmap
WIDTH, HEIGHT = 360, 22  # pixels, of line figures: between the columns, and of a row
LETTER = 7  # pixels, about
SCALE = 120  # pixels, the length of the colour scale
INK = "#333"


class Figure(go.Figure):
    """A Plotly figure whose notebook output contains an SVG picture, too."""

    def _repr_mimebundle_(self, *args, **options) -> dict:
        bundle = super()._repr_mimebundle_(*args, **options)
        return bundle | {SVG: still(self)} if bundle else bundle

    def _ipython_display_(self) -> None:
        if not self._repr_mimebundle_():  # outside notebooks Plotly opens a browser window
            super()._ipython_display_()
            return
        from IPython.display import display  # this method is only called by IPython

        display(self._repr_mimebundle_(), raw=True)


def still(figure: go.Figure) -> str:
    """Draw the heatmaps, lines, annotations and ticks of a figure as SVG. Other traces are ignored."""
    maps = [trace for trace in figure.data if isinstance(trace, go.Heatmap)]
    notes = figure.layout.annotations
    rows, columns = np.shape(maps[0].z) if maps else (1 + max((note.y for note in notes), default=0), 1)
    cell = min(CELL, max(1, 700 // max(rows, columns)))
    size = (columns * cell, rows * cell) if maps else (WIDTH, rows * HEIGHT)
    ticks = [_ticks(figure.layout.xaxis), _ticks(figure.layout.yaxis)]
    row_labels = [text for _, text in ticks[1]] + [_strip_markup(note.text) for note in notes]
    left = LETTER * max(map(len, row_labels), default=0) + 8
    top = 28 + (8 + LETTER * max((len(text) for _, text in ticks[0]), default=0) if maps else 20)
    elements = [_text(4, 16, _strip_markup(figure.layout.title.text or ""), "start")]
    for trace in maps:
        elements.append(_image(_pixels(trace), left, top, *size))
        elements += _scale(trace, left, top + size[1] + 8)
    for at, text in ticks[0]:
        x = left + (at + 0.5) * cell if maps else left + at * size[0]
        elements.append(
            _text(x, top - 6, text, "start", is_rotated=True) if maps else _text(x, top - 12, text, "middle")
        )
    for at, text in ticks[1] if maps else ():
        elements.append(_text(left - 6, top + (at + 0.5) * cell + 4, text, "end"))
    lines = [trace for trace in figure.data if isinstance(trace, go.Scatter)]
    elements += [_line(trace, left, top, size) for trace in lines]
    for row, trace in enumerate(trace for trace in lines if trace.showlegend):
        elements.append(_text(left, top + size[1] + 16 * (row + 1), trace.name, "start", colour=trace.line.color))
    for note in notes:
        x = left + note.x * size[0] + (note.xshift or 0)
        elements.append(_text(x, top + (note.y + 0.5) * HEIGHT + 4, _strip_markup(note.text), ANCHORS[note.xanchor]))
    legend = 16 * max(1, sum(bool(trace.showlegend) for trace in figure.data))
    width, height = left + size[0] + (8 + top if maps else left), top + size[1] + 16 + legend
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        f'font-family="sans-serif" font-size="12">{"".join(elements)}</svg>'
    )


ANCHORS = {"left": "start", "right": "end"}


def _strip_markup(text: str) -> str:
    """Remove Plotly's markup from a text."""
    return unescape(sub("<[^>]*>", " ", text))


def _ticks(axis: go.layout.XAxis | go.layout.YAxis) -> list[tuple[float, str]]:
    return [(at, _strip_markup(text)) for at, text in zip(axis.tickvals or (), axis.ticktext or ())]


def _text(x: float, y: float, text: str, anchor: str, *, is_rotated: bool = False, colour: str = INK) -> str:
    rotation = f' transform="rotate(-60 {x:.1f} {y:.1f})"' if is_rotated else ""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{escape(colour)}"{rotation}>{escape(text)}</text>'
    )


def _line(trace: go.Scatter, left: float, top: float, size: tuple[int, int]) -> str:
    path = ""
    for x, y in zip(trace.x, trace.y):
        start = "L" if path and path[-1] != " " else "M"
        path += " " if x is None else f"{start}{left + x * size[0]:.1f},{top + (y + 0.5) * HEIGHT:.1f}"
    return (
        f'<path d="{path.strip()}" fill="none" stroke="{escape(trace.line.color)}" opacity="{trace.opacity:.2f}" '
        f'stroke-width="{trace.line.width:.2f}"/>'
    )


def _pixels(trace: go.Heatmap) -> np.ndarray:
    """Return a heatmap as RGBA pixels, uint8 [row, column, 4], transparent at NaN."""
    values = np.asarray(trace.z, np.float64)
    shares = np.clip((values - trace.zmin) / (trace.zmax - trace.zmin), 0, 1)
    pixels = _colours(trace)[np.round(np.nan_to_num(shares) * 255).astype(int)]
    return np.where(np.isnan(values)[..., None], np.uint8(0), pixels)


def _colours(trace: go.Heatmap) -> np.ndarray:
    """Return 256 colours of a heatmap's scale, uint8 [256, 4]."""
    texts = sample_colorscale([list(stop) for stop in trace.colorscale], list(np.linspace(0, 1, 256)))
    return np.array([[*map(int, findall(r"\d+", text)[:3]), 255] for text in texts], np.uint8)


def _scale(trace: go.Heatmap, left: float, top: float) -> Iterator[str]:
    """Draw the colour scale from left to right, with the numbers at its ends."""
    first, *_, last = trace.colorbar.ticktext
    yield _image(_colours(trace)[None], left, top, SCALE, 8)
    yield _text(left - 6, top + 9, first, "end")
    yield _text(left + SCALE + 6, top + 9, last, "start")


def _image(pixels: np.ndarray, left: float, top: float, width: float, height: float) -> str:
    return (
        f'<image x="{left}" y="{top}" width="{width}" height="{height}" preserveAspectRatio="none" '
        f'style="image-rendering:pixelated" href="data:image/png;base64,{b64encode(png(pixels)).decode()}"/>'
    )


def png(pixels: np.ndarray) -> bytes:
    """Encode RGBA pixels, uint8 [row, column, 4], as a PNG file (ISO/IEC 15948)."""
    height, width, _ = pixels.shape

    def chunk(name: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))

    rows = np.concatenate([np.zeros((height, 1), np.uint8), pixels.reshape(height, -1)], axis=1)  # 0: unfiltered
    head = struct.pack(">IIBBBBB", width, height, 8, 6, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(rows.tobytes()))
        + chunk(b"IEND", b"")
    )
