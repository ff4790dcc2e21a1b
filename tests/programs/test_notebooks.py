"""The notebooks run from top to bottom, and their outputs have the properties that their text describes."""

from __future__ import annotations

import html
import importlib
import json
import re
from collections.abc import Iterator

import nbformat
import numpy as np
import pytest
import torch

from attention_atlas.viz.export.standalone import from_html
from tests import ROOT

notebooks = importlib.import_module("notebooks.__main__")
PATHS = {path.stem: path for path in notebooks.paths()}
SKIPPED = "skip-execution"
PATH = re.compile(rf"{re.escape(str(ROOT))}|/(?:home|root|tmp|usr|Users|work)/|site-packages|[A-Z]:\\\\")


@pytest.fixture(scope="module")
def run(shipped_checkpoints, readme_bin, tmp_path_factory) -> Iterator[dict[str, nbformat.NotebookNode]]:
    """The executed notebooks by name, filled by execute(); the kernel is the environment of docs/start/page.md."""
    folder = tmp_path_factory.mktemp("jupyter")
    (folder / "kernels" / "readme").mkdir(parents=True)
    command = [str(readme_bin / "python"), "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    kernel = {"argv": command, "display_name": "README", "language": "python"}
    (folder / "kernels" / "readme" / "kernel.json").write_text(json.dumps(kernel), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JUPYTER_PATH", str(folder))
        yield {}


def execute(run: dict, name: str) -> nbformat.NotebookNode:
    if name not in run:
        run[name] = notebooks.executed(PATHS[name], kernel="readme")
    return run[name]


def outputs(cell: nbformat.NotebookNode) -> list[str]:
    """Return the media types and streams of a cell's outputs."""
    return [part for output in cell.outputs for part in sorted(output.get("data", {output.get("name", ""): None}))]


def all_outputs(notebook: nbformat.NotebookNode) -> list[nbformat.NotebookNode]:
    return [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]


def text(notebook: nbformat.NotebookNode) -> str:
    return "\n".join(
        output.get("text", "") + str(output.get("data", {}).get("text/plain", "")) for output in all_outputs(notebook)
    )


def outputs_of(notebook: nbformat.NotebookNode, media_type: str) -> list[str]:
    return [output.data[media_type] for output in all_outputs(notebook) if media_type in output.get("data", {})]


@pytest.mark.parametrize("name", PATHS)
def test_a_committed_notebook_was_executed_in_order_and_contains_no_local_path(name):
    notebook = nbformat.read(PATHS[name], 4)
    nbformat.validate(notebook)
    for cell in (cell for cell in notebook.cells if cell.cell_type == "code"):
        assert (cell.execution_count is None) == (SKIPPED in cell.metadata.get("tags", []))
        assert "execution" not in cell.metadata, "no execution times"
        assert not any(output.output_type == "error" or output.get("name") == "stderr" for output in cell.outputs)
        outputs_as_text = re.sub(r"[A-Za-z0-9+/]{200,}", "", str(cell.outputs))  # scripts and weights are base64
        assert not (match := PATH.search(outputs_as_text)), match
    counts = [c.execution_count for c in notebook.cells if c.cell_type == "code" and c.execution_count]
    assert counts == list(range(1, len(counts) + 1)), "executed from top to bottom in one run"
    assert all(len(image) < 60_000 for image in outputs_of(notebook, "image/png"))
    assert PATHS[name].stat().st_size < (3_000_000 if name == "first_look" else 300_000)


@pytest.mark.long
@pytest.mark.parametrize("name", PATHS)
def test_a_notebook_runs_and_has_the_kinds_of_output_that_were_committed(run, name):
    committed = nbformat.read(PATHS[name], 4)
    for old, new in zip(committed.cells, execute(run, name).cells, strict=True):
        if new.cell_type == "code":
            assert outputs(old) == outputs(new), new.source


@pytest.mark.long
def test_the_first_look_shows_every_weight(run, shipped_translators):
    translator = next(t for t in shipped_translators.all if "de-en" in t.directions)
    fragments = outputs_of(execute(run, "first_look"), "text/html")
    trace = translator.translate("Der kleine Hund schläft unter dem Tisch.")
    assert len(fragments) == 3 and all(html.escape(trace.translation) in fragment for fragment in fragments)
    page = html.unescape(re.search(r'srcdoc="([^"]*)"', fragments[1])[1])
    for kind, weights in from_html(page).items():
        np.testing.assert_allclose(weights, trace.maps(kind).weights, atol=1e-5)


@pytest.mark.long
def test_the_rank_of_the_chosen_head_follows_from_its_loss(run):
    output = text(execute(run, "head_importance"))
    loss, rank, count = re.search(r"costs (-?[\d.]+) nats: rank (\d+) of (\d+)", output).groups()
    dearest = float(re.search(r"the dearest is layer \d+, head \d+: ([\d.]+) nats", output)[1])
    assert 1 <= int(rank) <= int(count) and float(loss) <= dearest and dearest > 0
    low, value, high = (
        float(re.search(pattern, output)[1])
        for pattern in (r"interval (-?[\d.]+) to", r"the chosen head: (-?[\d.]+) \(", r"to (-?[\d.]+)\)")
    )
    assert low <= value <= high


@pytest.mark.long
def test_the_output_of_a_user_model_agrees_with_transformers(run):
    output = text(execute(run, "own_model"))
    logits, weights = re.search(r"log-probability (\S+), of an attention weight (\S+)", output).groups()
    assert float(logits) < 1e-4 and float(weights) < 1e-5


@pytest.mark.long
def test_a_circuit_preserves_the_decision_and_random_edges_do_not(run):
    output = text(execute(run, "circuits"))
    best, random = (float(re.search(rf"{name}: (-?[\d.]+) \[", output)[1]) for name in ("best edges", "by lot"))
    assert best >= 0.9 and random <= 0.1
    assert "man" in re.search(r"5.0% of the edges: (.+)", output)[1].split()


@pytest.mark.long
def test_the_parts_written_by_hand_agree_with_torch_and_the_trained_network_translates(run):
    output = text(execute(run, "from_scratch"))
    differences = [float(number) for number in re.findall(r"largest difference (\S+)", output)]
    assert len(differences) > 20 and max(differences) < 1e-5
    assert "uniform logits: 10.37" in output
    measured, expected = re.search(r"a random output layer: (\S+) for .* = (\S+)", output).groups()
    assert abs(float(measured) - float(expected)) < 0.1
    batches = [float(value) for value in re.search(r"batches of 20 tokens: (.+)", output)[1].split(", ")]
    assert min(batches) < 10.92 < max(batches)
    assert "base 10,000: [1.0, 0.9647, 0.9306, 0.8977, 0.866]" in output
    assert "base 1,000: [1.0, 0.9734," in output
    assert "ich möchte ein bier → i want a beer . (torch.nn: i want a beer .)" in output


@pytest.mark.parametrize(
    "right, wrong",
    [
        ("return x @ self.weight.T + self.bias", "return x @ self.weight.T"),
        ("[part.bias for part in projections]", "[part.bias for part in reversed(projections)]"),
        ("return self.norms[1](x + self.feed_forward(x))", "return self.norms[0](x + self.feed_forward(x))"),
        ("x = self.norms[1](x + mixed)", "x = self.norms[2](x + mixed)"),
        ("self.norms[2](x + self.feed_forward(x))", "self.norms[0](x + self.feed_forward(x))"),
        ("additive.u @ key", "additive.w @ key"),
    ],
)
def test_a_comparison_notices_a_mistake_in_a_part_written_by_hand(right, wrong):
    cells = [cell.source for cell in nbformat.read(PATHS["from_scratch"], 4).cells if cell.cell_type == "code"]
    code = "\n".join(cells[: 1 + next(i for i, cell in enumerate(cells) if "class TorchTransformer" in cell)])
    assert code.count(right) == 1
    with torch.random.fork_rng(), pytest.raises(AssertionError):
        exec(code.replace(right, wrong), {"__name__": "notebook"})
