"""The notebooks, run from top to bottom; what they show is compared by property, since weights change."""

from __future__ import annotations

import html
import importlib
import json
import re
from collections.abc import Iterator

import nbformat
import numpy as np
import pytest

from attention_atlas.viz.export.standalone import from_html
from tests import ROOT

notebooks = importlib.import_module("notebooks.__main__")
PATHS = {path.stem: path for path in notebooks.paths()}
SKIPPED = "skip-execution"
PATH = re.compile(rf"{re.escape(str(ROOT))}|/(?:home|root|tmp|usr|Users|work)/|site-packages|[A-Z]:\\\\")


@pytest.fixture(scope="module")
def run(shipped_checkpoints, readme_bin, tmp_path_factory) -> Iterator[dict[str, nbformat.NotebookNode]]:
    """Each notebook as it runs now, in the environment that docs/start/page.md makes."""
    folder = tmp_path_factory.mktemp("jupyter")
    (folder / "kernels" / "readme").mkdir(parents=True)
    command = [str(readme_bin / "python"), "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    told = {"argv": command, "display_name": "README", "language": "python"}
    (folder / "kernels" / "readme" / "kernel.json").write_text(json.dumps(told), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JUPYTER_PATH", str(folder))
        yield {}


def now(run: dict, name: str) -> nbformat.NotebookNode:
    if name not in run:
        run[name] = notebooks.executed(PATHS[name], kernel="readme")
    return run[name]


def outputs(cell: nbformat.NotebookNode) -> list[str]:
    """The kinds of what a cell shows."""
    return [part for output in cell.outputs for part in sorted(output.get("data", {output.get("name", ""): None}))]


def text(notebook: nbformat.NotebookNode) -> str:
    return "\n".join(
        output.get("text", "") + str(output.get("data", {}).get("text/plain", ""))
        for cell in notebook.cells
        if cell.cell_type == "code"
        for output in cell.outputs
    )


def html_of(notebook: nbformat.NotebookNode) -> list[str]:
    return [
        output.data["text/html"]
        for cell in notebook.cells
        if cell.cell_type == "code"
        for output in cell.outputs
        if "text/html" in output.get("data", {})
    ]


def test_there_are_five_and_two_are_short():
    assert set(PATHS) == {"circuits", "first_look", "head_importance", "own_model", "ten_cells"}
    cells = [cell.source for cell in nbformat.read(PATHS["ten_cells"], 4).cells if cell.cell_type == "code"]
    assert len(cells) == 12 and all(len(source.splitlines()) <= 4 for source in cells[1:])
    assert len(nbformat.read(PATHS["first_look"], 4).cells) == 12


@pytest.mark.parametrize("name", PATHS)
def test_what_is_committed_was_produced_and_holds_no_path(name):
    notebook = nbformat.read(PATHS[name], 4)
    nbformat.validate(notebook)
    for cell in (cell for cell in notebook.cells if cell.cell_type == "code"):
        assert (cell.execution_count is None) == (SKIPPED in cell.metadata.get("tags", []))
        assert "execution" not in cell.metadata, "no times of a machine's clock"
        assert not any(output.output_type == "error" or output.get("name") == "stderr" for output in cell.outputs)
        found = PATH.search(re.sub(r"[A-Za-z0-9+/]{200,}", "", str(cell.outputs)))  # scripts and weights are base64
        assert not found, found
    counts = [c.execution_count for c in notebook.cells if c.cell_type == "code" and c.execution_count]
    assert counts == list(range(1, len(counts) + 1)), "from top to bottom, in one go"
    images = [
        output.data["image/png"]
        for cell in notebook.cells
        if cell.cell_type == "code"
        for output in cell.outputs
        if "image/png" in output.get("data", {})
    ]
    assert all(len(image) < 60_000 for image in images)
    assert PATHS[name].stat().st_size < (3_000_000 if name == "first_look" else 300_000)


@pytest.mark.long
@pytest.mark.parametrize("name", PATHS)
def test_they_run_from_top_to_bottom_and_show_what_they_showed(run, name):
    committed = nbformat.read(PATHS[name], 4)
    for old, new in zip(committed.cells, now(run, name).cells, strict=True):
        if new.cell_type == "code":
            assert outputs(old) == outputs(new), new.source


@pytest.mark.long
def test_the_first_look_shows_every_weight(run, shipped_translators):
    translator = next(found for found in shipped_translators.all if "de-en" in found.directions)
    shown = html_of(now(run, "first_look"))
    trace = translator.translate("Der kleine Hund schläft unter dem Tisch.")
    assert len(shown) == 3 and all(html.escape(trace.translation) in part for part in shown)
    page = html.unescape(re.search(r'srcdoc="([^"]*)"', shown[1])[1])
    for kind, weights in from_html(page).items():
        np.testing.assert_allclose(weights, trace.maps(kind).weights, atol=1e-5)
    carried = ['id="bundle"' in html.unescape(part) for part in shown]
    assert carried == [False, True, False], "one copy of Plotly.js"


@pytest.mark.long
def test_the_chosen_heads_rank_follows_from_its_loss(run):
    said = text(now(run, "head_importance"))
    loss, rank, count = re.search(r"costs (-?[\d.]+) nats: rank (\d+) of (\d+)", said).groups()
    dearest = float(re.search(r"the dearest is layer \d+, head \d+: ([\d.]+) nats", said)[1])
    assert 1 <= int(rank) <= int(count) and float(loss) <= dearest and dearest > 0
    low, value, high = (
        float(re.search(pattern, said)[1])
        for pattern in (r"interval (-?[\d.]+) to", r"the chosen head: (-?[\d.]+) \(", r"to (-?[\d.]+)\)")
    )
    assert low <= value <= high


@pytest.mark.long
def test_an_own_model_agrees_with_transformers(run):
    said = text(now(run, "own_model"))
    logits, weights = re.search(r"log-probability (\S+), of an attention weight (\S+)", said).groups()
    assert float(logits) < 1e-4 and float(weights) < 1e-5


@pytest.mark.long
def test_a_circuit_keeps_the_decision_and_edges_drawn_by_lot_do_not(run):
    said = text(now(run, "circuits"))
    best, lot = (float(re.search(rf"{name}: (-?[\d.]+) \[", said)[1]) for name in ("best edges", "by lot"))
    assert best >= 0.9 and lot <= 0.1
    assert "man" in re.search(r"5.0% of the edges: (.+)", said)[1].split()
