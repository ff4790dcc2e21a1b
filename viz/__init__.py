"""Pictures of a TranslationTrace: numpy in, plotly.graph_objects.Figure out, or the page's explorer. For notebooks,
without gradio or torch."""

from model.trace.scores import ScoreMap
from viz.export.notebook import compare, explore
from viz.figures.colour import ColourScale
from viz.figures.grid import plot_grid
from viz.figures.heatmap import plot_heatmap
from viz.figures.lines import plot_lines
from viz.maps.reduce import View, score_map

__all__ = ["ColourScale", "ScoreMap", "View", "compare", "explore", "plot_grid", "plot_heatmap", "plot_lines",
           "score_map"]
