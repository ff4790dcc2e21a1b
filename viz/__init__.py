"""Pictures of a TranslationTrace, or of any array of weights: numpy in, plotly.graph_objects.Figure out, or the page's
explorer. For notebooks, without gradio or torch.

>>> from attention_atlas.model.translator import Translator
>>> trace = Translator.load("checkpoints/de-en", device="cpu").translate("Ich möchte ein Bier, bitte.")
>>> figure = plot_heatmap(trace, View("cross", layer=2, head=4))  # in a notebook: a cell's last value, or figure.show()
>>> bool((figure.data[0].z == trace.cross.weights[2, 4]).all())
True
>>> explore(trace).view.kind.value  # the page's explorer, which a notebook shows and .save("heads.html") writes
'cross'
"""

if __name__ == "viz":
    raise ImportError("import attention_atlas.viz: a module called viz would be another copy of it")


from attention_atlas.model.trace.scores import ScoreMap
from attention_atlas.viz.export.notebook import Explorer, compare, explore
from attention_atlas.viz.figures.attention import ColourScale, plot_grid, plot_heatmap, plot_lines, plot_weights
from attention_atlas.viz.maps.reduce import View, score_map
from attention_atlas.viz.wire.address import link

__all__ = [
    "ColourScale",
    "Explorer",
    "ScoreMap",
    "View",
    "compare",
    "explore",
    "link",
    "plot_grid",
    "plot_heatmap",
    "plot_lines",
    "plot_weights",
    "score_map",
]
