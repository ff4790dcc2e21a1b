"""Files that panels of the tab "Why" offer contain the numbers that the panels show."""

from __future__ import annotations

import csv
import io
import json

import numpy as np
import pytest

from attention_atlas.model.analysis import why
from attention_atlas.model.analysis.why.attribution import attribute
from attention_atlas.model.analysis.why.experiments.patching import PatchMode
from attention_atlas.model.translator import Translator
from attention_atlas.viz.export.formats import FORMATS
from attention_atlas.viz.panels import downloads
from attention_atlas.viz.panels.scene import PageQuestion, Scene, Selection
from attention_atlas.viz.panels.why import heads, patch, smallest
from tests.viz.panels.panels import block_of


def read_values(name: str, content: bytes) -> np.ndarray:
    """Read the values [row, column] of a file of an answer."""
    if name == "npz":
        with np.load(io.BytesIO(content), allow_pickle=False) as stored:
            return stored["values"]
    if name == "json":
        return np.array([row["values"] for row in json.loads(content)["rows"]], np.float64)
    _, *lines = csv.reader(io.StringIO(content.decode(), newline=""))
    return np.array([[cell or "nan" for cell in line[3:]] for line in lines], np.float64)


@pytest.mark.parametrize("name", [name for name, form in FORMATS.items() if form.why])
def test_files_of_the_matrix_read_back(scene, name) -> None:
    file = downloads.matrix_file(scene, {"format": name})
    assert file.name == f"why-step4.{name}" and file.media_type == FORMATS[name].media_type
    values = read_values(name, file.content)
    expected = attribute(scene.translator, scene.trace, step=3)
    assert values.dtype == np.float64
    np.testing.assert_array_equal(values, np.stack([row.values for row in expected.rows]))


def test_means_computed_in_the_page_change_only_ablation(tiny_checkpoint, few_sentences) -> None:
    translator = Translator.load(tiny_checkpoint, "cpu")
    trace = translator.translate("Der kleine Hund schläft unter dem Tisch.", "de-en")
    before, after = (Scene(trace, Selection(), translator, page_question=PageQuestion.of(trace, 3)) for _ in range(2))
    matrix = downloads.matrix_file(before, {"format": "csv"}).content
    *_, content = heads.explore_heads(before, "mean", "quick")
    assert "its average over" in content[0]["text"]
    effects = [heads.as_file(after, {"format": "csv"}, instead, "quick").content for instead in ("mean", "zero")]
    assert effects[0] != effects[1]
    assert downloads.matrix_file(after, {"format": "csv"}).content == matrix


def test_only_formats_that_hold_the_matrix_are_offered(scene) -> None:
    offered = [entry["text"] for entry in downloads.exports()["formats"]]
    assert offered == ["csv", "json", "npz"]
    for wrong in ("html", "exe", None):
        with pytest.raises(ValueError, match="asked for something unknown"):
            downloads.matrix_file(scene, {"format": wrong})


EXPERIMENTS = {
    "heads": (heads.as_file, ("zero", "all")),
    "patch": (patch.as_file, ("Der Hund", "decoder stream", "noise")),
    "smallest": (smallest.as_file, ("zero",)),
}


def last_blocks(scene, name: str) -> tuple[list[dict], np.ndarray]:
    """Return the last blocks of a panel, and its numbers computed by the library."""
    if name == "heads":
        *_, blocks = heads.explore_heads(scene, "zero", "all")
        rows = why.measure_heads(scene.translator, scene.trace, step=3).effects
        return blocks, np.concatenate(list(rows.values()))
    if name == "patch":
        return patch.patch(scene, *EXPERIMENTS[name][1]), why.patch(
            scene.translator, scene.trace, "Der Hund", step=3, direction=PatchMode.NOISE
        ).metrics
    *_, blocks = smallest.search_sets(scene, "zero")
    sets = [why.find_smallest_set(scene.translator, scene.trace, seed=seed).kept for seed in smallest.ORDERS]
    layers, width = scene.translator.model.num_layers, scene.translator.model.num_heads
    return blocks, np.array(
        [
            [(kind, layer, head) in kept for head in range(width[kind])]
            for kept in sets
            for kind in layers
            for layer in range(layers[kind])
        ],
        float,
    )


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_files_of_an_experiment_read_back(scene, name) -> None:
    blocks, expected = last_blocks(scene, name)
    buttons = block_of(blocks, "exports")
    act, controls = EXPERIMENTS[name]
    for form in (entry["text"] for entry in buttons["formats"]):
        data = {**json.loads(json.dumps(buttons["data"])), "format": form}
        written = act(scene, data, *controls)
        assert written.name.endswith(f".{form}")
        values = read_values(form, written.content)
        np.testing.assert_allclose(values[: len(expected)], expected, atol=1e-5)
    fields = json.loads(act(scene, {**buttons["data"], "format": "json"}, *controls).content)
    assert fields["text"] == scene.trace.source_text and len(fields["rows"]) == len(values)
    table = act(scene, {**buttons["data"], "format": "csv"}, *controls).content.decode()
    assert table.startswith("row,evidence,unit,") and "measured" in table
    with pytest.raises(ValueError, match="asked for something unknown"):
        act(scene, {**buttons["data"], "format": "exe"}, *controls)


@pytest.mark.parametrize(
    "sets", [None, [], [{}], "x", ["x"], [{"kept": [["roof", 0, 0]], "heads": 1, "tried": 1, "verified": True}]]
)
def test_invalid_sets_are_refused(scene, sets) -> None:
    with pytest.raises(ValueError):
        smallest.as_file(scene, {"format": "csv", "sets": sets}, "zero")
