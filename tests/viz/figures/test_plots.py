"""The data, labels and limits of figures for notebooks."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from attention_atlas import viz
from attention_atlas.model.trace.kinds import TRANSFORMER_KINDS
from attention_atlas.viz import theme
from attention_atlas.viz.figures.attention import strongest_edges
from attention_atlas.viz.maps.reduce import View, score_map
from tests.pages import block


def test_a_heatmap_shows_the_exact_weights(hand_made_trace):
    for kind in TRANSFORMER_KINDS:
        maps = hand_made_trace.maps(kind)
        for layer, head in product(range(maps.num_layers), range(maps.num_heads)):
            figure = viz.plot_heatmap(hand_made_trace, View(kind, layer, head))
            heatmap = figure.data[0]
            assert np.allclose(np.array(heatmap.z, float), maps.weights[layer, head], atol=1e-7)
            assert (heatmap.zmin, heatmap.zmax) == (0, 1)
            assert f"layer {layer + 1}, head {head + 1}" in figure.layout.title.text


def test_axes_keep_equal_tokens_apart_and_escape_them(hand_made_trace):
    figure = viz.plot_heatmap(hand_made_trace, View("cross", predicted=True))
    x, y = figure.layout.xaxis, figure.layout.yaxis
    assert list(x.tickvals) == list(range(8)) and list(x.ticktext[1:3]) == ["▁der", "▁der"]
    assert x.ticktext[3].startswith("&lt;img src=x") and x.ticktext[5] == "&amp;amp;"
    assert list(y.ticktext)[-1] == "&lt;/s&gt;" and y.autorange == "reversed"
    assert "writes" in y.title.text
    assert "<img" not in str(figure.to_plotly_json())


def test_colour_bars_show_weights(hand_made_trace):
    scale = viz.ColourScale("cividis", "log")
    figure = viz.plot_heatmap(hand_made_trace, View("cross", 1, 1), scale=scale)
    bar = figure.data[0].colorbar
    assert list(bar.ticktext) == ["≤ 0.0001", "0.001", "0.01", "0.1", "1"]
    assert np.allclose(bar.tickvals, [0, 0.25, 0.5, 0.75, 1])
    assert np.allclose(np.array(figure.data[0].z, float), scale.apply(hand_made_trace.cross.weights[1, 1]))


def test_a_grid_shows_every_head(hand_made_trace):
    for kind in TRANSFORMER_KINDS:
        weights = hand_made_trace.maps(kind).weights
        layers, heads, rows, columns = weights.shape
        figure = viz.plot_grid(hand_made_trace, kind)
        z = np.array(figure.data[0].z, float)
        height, width = z.shape[0] // layers, z.shape[1] // heads
        for layer, head in product(range(layers), range(heads)):
            tile = z[layer * height : layer * height + rows, head * width : head * width + columns]
            assert np.allclose(tile, weights[layer, head], atol=1e-7)
        assert np.isnan(z).any() and list(figure.layout.xaxis.ticktext) == [f"H{i + 1}" for i in range(heads)]


def test_any_array_is_drawn_as_a_grid_on_the_named_scale():
    weights = np.random.default_rng(0).dirichlet(np.ones(5), (2, 3, 4)).astype(np.float32)
    figure = viz.plot_weights(weights, title="Mine", scale="cividis")
    heatmap = figure.data[0]
    z, text = np.array(heatmap.z, float), np.array(heatmap.text)
    height, width = z.shape[0] // 2, z.shape[1] // 3
    for sentence, head in product(range(2), range(3)):
        at = slice(sentence * height, sentence * height + 4), slice(head * width, head * width + 5)
        assert np.allclose(z[at], weights[sentence, head])
        value = f"{weights[sentence, head, 2, 1]:.3g}"
        assert text[at][2, 1] == f"sentence {sentence + 1}, head {head + 1}<br>query 3, key 2: {value}"
    assert (list(figure.layout.yaxis.ticktext), list(figure.layout.xaxis.ticktext)) == (["1", "2"], ["H1", "H2", "H3"])
    assert heatmap.colorscale[0][1] == theme.SCALES["cividis"][0] and figure.layout.title.text == "Mine"
    for wrong in (weights[0], weights[:0]):
        with pytest.raises(ValueError, match=r"weights are \[batch, heads, query, key\], found shape"):
            viz.plot_weights(wrong)


def test_scores_of_any_size_stretch_the_scale_and_hidden_cells_are_blank():
    scores = np.linspace(-4, 6, 2 * 150 * 3).reshape(1, 2, 150, 3)
    scores[0, :, :, 2] = -np.inf
    z = np.array((figure := viz.plot_weights(scores)).data[0].z, float)
    tile = z[:64, :3]
    assert np.isnan(tile[:, 2]).all() and (figure.data[0].colorbar.ticktext[0], np.nanmin(z) >= 0) == ("-4", True)
    largest = (scores[0, 0, :2, 0].max() + 4) / (scores[np.isfinite(scores)].max() + 4)
    assert np.isclose(tile[0, 0], largest)  # queries 1 and 2 share a cell
    assert "query 3, key 1" in figure.data[0].text[1][0]


@pytest.mark.parametrize("coverage", [0.05, 0.5, 0.9, 1.0])
def test_lines_are_the_fewest_edges_that_cover_the_share(hand_made_trace, coverage):
    scores = score_map(hand_made_trace, View("cross", 2, 3))
    edges = strongest_edges(scores, coverage)
    for row, values in enumerate(scores.values.astype(float)):
        weights = [value for r, _, value in edges if r == row]
        assert sum(weights) >= coverage * values.sum() - 1e-6
        assert sum(weights[:-1]) < coverage * values.sum()  # one edge fewer is not enough
        assert weights == sorted(values, reverse=True)[: len(weights)]


def test_lines_draw_each_chosen_head_in_its_own_colour(hand_made_trace):
    view = View("cross", heads=((0, 0), (1, 2), (2, 3)))
    figure = viz.plot_lines(hand_made_trace, view, coverage=0.6)
    assert len({line.line.color for line in figure.data}) == 3
    drawn = sum(sum(x is None for x in line.x) for line in figure.data)
    expected = sum(
        len(strongest_edges(score_map(hand_made_trace, View("cross", layer, head)), 0.6)) for layer, head in view.heads
    )
    assert drawn == expected
    texts = [a.text for a in figure.layout.annotations]
    assert texts.count("▁der") == 2 and not any("<" in text for text in texts)
    for coverage in (0, "a", float("nan")):
        with pytest.raises(ValueError, match="coverage is a share"):
            viz.plot_lines(hand_made_trace, view, coverage=coverage)


PAGE = "docs/start/library.md"


def test_the_documented_example_runs(hand_made_trace):
    snippet = block(PAGE, "python", "viz.plot_heatmap")
    assert "viz.plot_grid" in snippet and "viz.plot_lines" in snippet
    lines = [line for line in snippet.splitlines() if "Translator" not in line and "translator" not in line]
    names = {"trace": hand_made_trace, "viz": viz}
    # The hand-made trace has four heads.
    smaller = "\n".join(lines).replace("head=4", "head=3").replace("(2, 4)", "(2, 3)")
    exec(compile(smaller, PAGE, "exec"), names)
    assert names["figure"].data[0].type == "heatmap"


@pytest.mark.parametrize("plot", [viz.plot_lines, viz.plot_heatmap, viz.explore])
def test_missing_heads_are_refused(hand_made_trace, plot):
    for view in (View("cross", heads=((9, 9),)), View("cross", layer=9), View("cross", heads=((0, 0), (1, 9)))):
        with pytest.raises(ValueError, match="cross has layers 0 to 2 and heads 0 to 3, found layer"):
            plot(hand_made_trace, view)


def test_one_selected_head_is_drawn_alone(hand_made_trace):
    one, same = View("cross", heads=((2, 3),)), View("cross", layer=2, head=3)
    assert viz.plot_lines(hand_made_trace, one) == viz.plot_lines(hand_made_trace, same)
    assert viz.plot_heatmap(hand_made_trace, one) == viz.plot_heatmap(hand_made_trace, same)
    with pytest.raises(ValueError, match="a heatmap shows one map"):
        viz.plot_heatmap(hand_made_trace, View("cross", heads=((2, 3), (1, 1))))
