"""Pictures of a TranslationTrace: numpy in, plotly.graph_objects.Figure out. For notebooks, without gradio or torch."""

from viz.colour import ColourScale
from viz.plot_grid import plot_grid
from viz.plot_heatmap import plot_heatmap
from viz.plot_lines import plot_lines
from viz.reduce import ScoreMap, View, score_map

__all__ = ["ColourScale", "ScoreMap", "View", "plot_grid", "plot_heatmap", "plot_lines", "score_map"]
