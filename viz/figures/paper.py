"""Matplotlib figures on a white background, written as PNG, for documents."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from attention_atlas.viz import theme

if TYPE_CHECKING:  # matplotlib is an optional dependency
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["COLOURS", "legend", "panels", "write_png"]

INK, MUTED, LINE = (theme.COLOURS[name][0] for name in ("ink", "muted", "line"))
COLOURS = theme.HEAD_COLOURS
PANEL = (4.2, 2.9)  # inches


def panels(draw: list[Callable[[Axes], None]]) -> Figure:
    """Return a figure with a panel for each function, which is called with its axes; two or three panels in a row."""
    from matplotlib.figure import Figure

    columns = min(len(draw), 2 if len(draw) in (2, 4) else 3)
    rows = -(-len(draw) // columns)
    figure = Figure(figsize=(PANEL[0] * columns, PANEL[1] * rows), layout="constrained", facecolor="white")
    for index, function in enumerate(draw):
        axes = figure.add_subplot(rows, columns, index + 1)
        axes.grid(color=LINE, linewidth=0.6)
        axes.set_axisbelow(True)
        axes.tick_params(colors=MUTED, labelsize=8, which="both")
        for side, spine in axes.spines.items():
            spine.set_visible(side in ("left", "bottom"))
            spine.set_color(LINE)
        function(axes)
        axes.title.set(fontsize=10, color=INK)
        for label in (axes.xaxis.label, axes.yaxis.label):
            label.set(fontsize=9, color=MUTED)
    return figure


def legend(axes: Axes) -> None:
    """Add a small legend without a frame if several lines are labelled."""
    if len(axes.get_legend_handles_labels()[1]) > 1:
        axes.legend(fontsize=8, frameon=False, labelcolor=INK)


def write_png(figure: Figure, path: Path) -> None:
    """Write a figure as a PNG file. ValueError if it cannot be written."""
    try:
        figure.savefig(path, format="png", dpi=110, metadata={"Software": None})
    except OSError as error:
        raise ValueError(f"{path} cannot be written: {error.strerror or error}") from error
