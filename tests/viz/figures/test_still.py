"""The SVG pictures of figures, for notebooks without scripts."""

from __future__ import annotations

import re
from base64 import b64decode
from html import unescape
from io import BytesIO
from xml.etree import ElementTree

import numpy as np
import plotly.io as pio
import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from PIL import Image

from attention_atlas import viz
from attention_atlas.viz.figures.still import still

TEXT, IMAGE, PATH = (f"{{http://www.w3.org/2000/svg}}{name}" for name in ("text", "image", "path"))


@pytest.fixture()
def notebook(monkeypatch):
    """Return an IPython shell with the Plotly renderer that `make notebooks` uses."""
    monkeypatch.setattr(pio.renderers, "default", "plotly_mimetype")
    yield InteractiveShell.instance()
    InteractiveShell.clear_instance()


def drawn(svg: str) -> tuple[list[str], list[np.ndarray], list[ElementTree.Element]]:
    """Return the texts, the images' pixels and the paths of an SVG."""
    root = ElementTree.fromstring(svg)
    files = [b64decode(image.get("href").partition(",")[2]) for image in root.iter(IMAGE)]
    return (
        [text.text or "" for text in root.iter(TEXT)],
        [np.asarray(Image.open(BytesIO(file))) for file in files],
        list(root.iter(PATH)),
    )


def test_notebook_output_has_the_figure_and_a_picture(hand_made_trace, notebook):
    with capture_output() as captured:
        notebook.display_formatter.format(viz.plot_heatmap(hand_made_trace))
    (bundle,) = (output.data for output in captured.outputs)
    assert set(bundle) == {"application/vnd.plotly.v1+json", "image/svg+xml"}


def test_a_heatmap_picture_has_cells_labels_and_scale(hand_made_trace):
    figure = viz.plot_heatmap(hand_made_trace, viz.View("cross", layer=1, head=0))
    texts, (cells, scale), _ = drawn(still(figure))
    weights = hand_made_trace.cross.weights[1, 0]
    assert cells.shape == (*weights.shape, 4) and scale.shape == (1, 256, 4)
    near = np.abs(scale[0][None, None].astype(int) - cells[:, :, None]).sum(-1).argmin(-1) / 255
    np.testing.assert_allclose(near, weights, atol=0.01)
    for axis in (figure.layout.xaxis, figure.layout.yaxis):
        assert set(map(unescape, axis.ticktext)) <= set(texts)
    assert figure.layout.title.text in texts and {"0", "1"} <= set(texts)


def test_pictures_of_grids_and_of_lines(hand_made_trace):
    _, (cells, _), _ = drawn(still(viz.plot_grid(hand_made_trace)))
    blank = np.isnan(np.asarray(viz.plot_grid(hand_made_trace).data[0].z))
    assert (cells[..., 3] == np.where(blank, 0, 255)).all()
    figure = viz.plot_lines(hand_made_trace, viz.View("cross", heads=((1, 0), (0, 2))))
    texts, _, lines = drawn(still(figure))
    assert {"layer 2, head 1", "layer 1, head 3"} <= set(texts)
    assert len(lines) == len(figure.data)
    assert all(len(re.findall("M", line.get("d"))) == list(t.x).count(0) for line, t in zip(lines, figure.data))


def test_markup_in_tokens_is_escaped(hand_made_trace):
    figure = viz.plot_heatmap(hand_made_trace)
    figure.update_layout(title="<b>a &lt; b & c</b>")
    assert " a < b & c " in drawn(still(figure))[0]
