"""Imports go one way: each module imports only modules of its own layer's package and of earlier layers."""

from __future__ import annotations

import ast
import functools
import subprocess
import sys
from pathlib import Path

import pytest

from tests import ROOT

PRODUCT = sorted([ROOT / "attention_atlas" / "app.py", *ROOT.glob("model/**/*.py"), *ROOT.glob("viz/**/*.py")])
PACKAGE = "attention_atlas."  # module names below are relative to it
NOT_IN_MODEL = {"viz", "gradio", "plotly", "app"}
NOT_IN_PACKAGE = {"recipes", "bench", "tests", "notebooks"}
# The live checks compare with torch.nn's own layers.
ORACLE = {f"model/checks/{name}.py" for name in ("verify", "claims", "evidence", "oracle")}

# A module may import its own package and the layers above it in this list, but no neighbour in the same layer.
MODEL = (
    ("model.files",),
    ("model.trace",),
    ("model.config", "model.processor"),
    ("model.program",),
    ("model.text",),
    ("model.nets",),
    ("model.decode", "model.serve", "model.families"),
    ("model.checkpoint",),
    ("model.translator",),
    ("model.translators", "model.foreign"),
    ("model.analysis", "model.training"),
    ("model.checks",),
    (
        "model.train",
        "model.evaluate",
        "model.translate",
        "model.convert",
        "model.means",
        "model.lenses",
        "model.dictionary",
        "model.faithfulness",
        "model.survey",
        "model.align",
        "model.truth",
    ),
)
VIZ = (
    ("viz.theme", "viz.assets"),
    ("viz.words",),
    ("viz.maps",),
    ("viz.figures", "viz.wire"),
    ("viz.export", "viz.component"),
    ("viz.panels", "viz.directions"),
    ("viz.explorer", "viz.tours"),
    ("viz.questions", "viz", "viz.learning_curves"),
    ("viz.server",),
    ("viz.shell",),
)
# evaluate scores the model that train would choose; align's links are a benchmark; readback reads figures.
EXCEPTIONS = {
    ("model.evaluate", "model.train"),
    ("model.truth.alignment", "model.align"),
    ("viz.wire.readback", "viz.figures"),
}
# These may import any module of model; the rest of viz only model.trace, model.program and model.files.
ASK_MODELS = (
    "viz/panels",
    "viz/directions.py",
    "viz/explorer",
    "viz/tours",
    "viz/questions",
    "viz/server",
    "viz/shell.py",
)


@functools.cache
def imports(path: Path) -> set[str]:
    """Return the names of all modules that a file imports, anywhere in it."""
    modules = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            modules |= {alias.name.removeprefix(PACKAGE) for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            # `from attention_atlas.model import trace` names a module, `from ...trace.kinds import X` does not.
            within = node.module.removeprefix(PACKAGE)
            names = {f"{within}.{alias.name}".removeprefix(PACKAGE) for alias in node.names}
            modules |= {n for n in names if _is_module(n)} or {within}
    return modules


def _is_module(name: str) -> bool:
    path = ROOT / name.replace(".", "/")
    return path.with_suffix(".py").exists() or (path / "__init__.py").exists()


def group_of(name: str, layers: tuple[tuple[str, ...], ...]) -> tuple[int, str] | None:
    """Return the level of the layer that contains a module, and the entry of the layer that it matches."""
    matches = [
        (len(prefix), level, prefix)
        for level, group in enumerate(layers)
        for prefix in group
        if name == prefix or (name.startswith(prefix + ".") and prefix != "viz")
    ]
    return max(matches)[1:] if matches else None


def forbidden_imports(name: str, imported: set[str]) -> list[str]:
    """Return a message for each import from a neighbour in the same layer or from a later layer."""
    layers = MODEL if name.startswith("model") else VIZ
    level, own = group_of(name, layers) or pytest.fail(f"{name} is in no layer: add it to {__file__}")
    wrong = []
    for other in imported:
        if other.split(".")[0] != name.split(".")[0] or group_of(other, layers) is None:
            continue
        above, theirs = group_of(other, layers)
        allowed = theirs == own or above < level or (name, theirs) in EXCEPTIONS
        wrong += [] if allowed else [f"{name} imports {other}"]
    return wrong


def torch_names(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {n.attr for n in ast.walk(tree) if isinstance(n, ast.Attribute)} | {
        alias.name for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) for alias in n.names
    }


def where(path: Path) -> str:
    return str(path.relative_to(ROOT))


def module(path: Path) -> str:
    return where(path).removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def test_imports_go_one_way():
    wrong = [
        line
        for path in PRODUCT
        if module(path) not in ("attention_atlas.app", "model")
        for line in forbidden_imports(module(path), imports(path))
    ]
    assert not wrong, "\n".join(sorted(wrong))


def within(folder: str) -> list[Path]:
    paths = [path for path in PRODUCT if where(path).startswith(folder)]
    assert len(paths) > 50
    return paths


def test_the_package_imports_nothing_else_of_the_checkout():
    for path in {*PRODUCT, *ROOT.glob("attention_atlas/*.py")}:
        assert not {name.split(".")[0] for name in imports(path)} & NOT_IN_PACKAGE, path


def test_model_does_not_import_viz():
    for path in within("model"):
        assert not {name.split(".")[0] for name in imports(path)} & NOT_IN_MODEL, path


def test_viz_never_imports_torch_and_only_named_parts_import_models_or_gradio():
    for path in within("viz"):
        modules = imports(path)
        top = {name.split(".")[0] for name in modules}
        assert not top & {"torch", "app"}, path
        if not where(path).startswith(("viz/component.py", "viz/server", "viz/shell.py")):
            assert "gradio" not in top, path
        if not where(path).startswith(ASK_MODELS):
            known = ("model.trace", "model.program", "model.files")
            assert all(n.startswith(known) for n in modules if n.split(".")[0] == "model"), path


def test_only_the_live_checks_use_torchs_own_attention():
    for path in PRODUCT:
        assert where(path) in ORACLE or "model.checks.oracle" not in imports(path), path
        oracle = {n for n in torch_names(path) if n.startswith("Transformer") or n == "MultiheadAttention"}
        if "torch" in {n.split(".")[0] for n in imports(path)} and where(path) not in ORACLE:
            assert oracle <= {"Transformer"}, path  # our own class has this name
            assert "nn.Transformer" not in path.read_text(encoding="utf-8"), path


def test_traces_and_viz_are_importable_without_torch():
    """Each module is imported in a process of its own."""
    program = (
        "import importlib, os, sys; sys.modules['torch'] = None; import numpy\n"
        "for name in sys.argv[1:]:\n"
        "    if not os.fork(): importlib.import_module(name); sys.exit()\n"
        "    assert os.wait()[1] == 0, name"
    )
    names = [PACKAGE + module(path) for path in PRODUCT if where(path).startswith("model/trace/")]
    subprocess.run([sys.executable, "-c", program, *names, f"{PACKAGE}viz"], cwd=ROOT, check=True)


def test_the_package_imports_torch_lazily():
    program = (
        "import sys, attention_atlas\n"
        "assert {*attention_atlas.__all__} <= {*dir(attention_atlas)}\n"
        "from attention_atlas import Interventions, edits, viz\n"
        "assert Interventions(edits=[('logits', edits.Scale(2))]) and viz.View\n"
        "assert 'torch' not in sys.modules\n"
        "print(*(getattr(attention_atlas, name).__name__ for name in attention_atlas.__all__))\n"
        "attention_atlas.absent"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    analysis = "attention_atlas.model.analysis"
    assert done.stdout.split() == [
        "Interventions",
        "Translator",
        f"{analysis}.circuits",
        "attention_atlas.model.trace.edits",
        f"{analysis}.lenses",
        "attention_atlas.viz",
        f"{analysis}.why",
    ]
    assert "AttributeError: attention_atlas has no 'absent': it has Interventions, Translator" in done.stderr


def test_importing_a_program_draws_no_random_number_and_sets_no_threads():
    program = (
        "import torch; torch.manual_seed(5); state, threads = torch.get_rng_state(), torch.get_num_threads();"
        "import attention_atlas.model.train, attention_atlas.model.translator;"
        "assert torch.equal(state, torch.get_rng_state()) and threads == torch.get_num_threads()"
    )
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True)
