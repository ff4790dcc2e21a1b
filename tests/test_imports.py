"""The one-way imports of the design, read from the sources."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PRODUCT = sorted([ROOT / "app.py", *ROOT.glob("model/**/*.py"), *ROOT.glob("viz/**/*.py")])
NOT_IN_MODEL = {"viz", "gradio", "plotly", "app", "bench"}
ORACLE = {"model/verify.py", "model/oracle.py"}  # live checks, and torch's layers that they compare with
NUMPY_ONLY = {"model.trace", "model.intervention", "model.divergence", "model"}  # what viz may know of the model


def imports(path: Path) -> set[str]:
    """Every module that a file imports, wherever in the file."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: a relative import"
            # `from model import trace` names a module, `from model.trace import X` does not.
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {n for n in names if (ROOT / (n.replace(".", "/") + ".py")).exists()} or {node.module}
    return found


def torch_names(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {n.attr for n in ast.walk(tree) if isinstance(n, ast.Attribute)} | {
        alias.name for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) for alias in n.names}


def where(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", [p for p in PRODUCT if where(p).startswith("model")], ids=where)
def test_the_model_knows_nothing_of_pictures(path):
    assert not {name.split(".")[0] for name in imports(path)} & NOT_IN_MODEL


@pytest.mark.parametrize("path", [p for p in PRODUCT if where(p).startswith("viz")], ids=where)
def test_pictures_know_only_traces(path):
    found = imports(path)
    top = {name.split(".")[0] for name in found}
    assert not top & {"torch", "app", "bench"}
    if not where(path).startswith("viz/ui"):
        assert "gradio" not in top
        assert {n for n in found if n.split(".")[0] == "model"} <= NUMPY_ONLY
        assert not any(n.startswith("viz.ui") for n in found)


@pytest.mark.parametrize("path", PRODUCT, ids=where)
def test_torchs_own_attention_is_the_oracle_only(path):
    oracle = {n for n in torch_names(path) if n.startswith("Transformer") or n == "MultiheadAttention"}
    if "torch" in {n.split(".")[0] for n in imports(path)} and where(path) not in ORACLE:
        assert oracle <= {"Transformer"}  # ours has that name
        assert "nn.Transformer" not in path.read_text(encoding="utf-8")


@pytest.mark.parametrize("path", [p for p in PRODUCT if where(p) not in ORACLE], ids=where)
def test_only_the_live_checks_import_the_oracle(path):
    assert "model.oracle" not in imports(path)


@pytest.mark.parametrize("module", ["model.trace", "model.intervention", "model.divergence"])
def test_importable_without_torch(module):
    program = f"import sys; sys.modules['torch'] = None; import {module}"
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True)


def test_no_import_of_the_model_has_side_effects_on_torch():
    """Importing a program neither draws random numbers nor sets the number of threads."""
    program = ("import torch; torch.manual_seed(5); state, threads = torch.get_rng_state(), torch.get_num_threads();"
               "import model.train, model.translator;"
               "assert torch.equal(state, torch.get_rng_state()) and threads == torch.get_num_threads()")
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True)


def test_the_reader_of_imports_sees_them_all(tmp_path):
    file = tmp_path / "x.py"
    file.write_text("def f():\n    import gradio.themes\n    from torch import nn\nfrom model import trace\n")
    assert imports(file) == {"gradio.themes", "torch", "model.trace"}
