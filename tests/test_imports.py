"""The one-way imports of the design, read from the sources. CONTRIBUTING.md explains the layers that are named here."""

from __future__ import annotations

import ast
import functools
import subprocess
import sys
from pathlib import Path

import pytest

from tests import ROOT

PRODUCT = sorted([ROOT / "attention_atlas" / "app.py", *ROOT.glob("model/**/*.py"), *ROOT.glob("viz/**/*.py")])
PACKAGE = "attention_atlas."  # left out of the names of modules here
NOT_IN_MODEL = {"viz", "gradio", "plotly", "app"}
NOT_IN_PACKAGE = {"recipes", "bench", "tests", "notebooks"}
# The live checks may use torch.nn's own layers, as their reference.
ORACLE = {f"model/checks/{name}.py" for name in ("verify", "claims", "evidence", "oracle")}

# Each group may import its own package and the groups before it; never a neighbour in the same group.
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
# A program may use another (what is scored is what a run chose); what is read back is a figure.
EXCEPTIONS = {
    ("model.evaluate", "model.train"),
    ("model.truth.alignment", "model.align"),
    ("viz.wire.readback", "viz.figures"),
}
# These ask models; the rest of viz reads traces.
ASK_MODELS = (
    "viz/panels",
    "viz/directions.py",
    "viz/explorer",
    "viz/tours",
    "viz/questions",
    "viz/server",
    "viz/shell.py",
)
WITHOUT_TORCH = (
    "model.trace.flow",
    "model.trace.words",
    "model.trace.interventions",
    "model.trace.storage",
    "model.trace.scores",
    "model.trace.tokens",
    "model.trace.directions",
    "model.trace.edits",
    "viz",
)


@functools.cache
def imports(path: Path) -> set[str]:
    """Every module that a file imports, wherever in the file."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name.removeprefix(PACKAGE) for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: a relative import"
            # `from attention_atlas.model import trace` names a module, `from ...trace.kinds import X` does not.
            within = node.module.removeprefix(PACKAGE)
            names = {f"{within}.{alias.name}".removeprefix(PACKAGE) for alias in node.names}
            found |= {n for n in names if _is_module(n)} or {within}
    return found


def _is_module(name: str) -> bool:
    path = ROOT / name.replace(".", "/")
    return path.with_suffix(".py").exists() or (path / "__init__.py").exists()


def group_of(name: str, layers: tuple[tuple[str, ...], ...]) -> tuple[int, str] | None:
    """The layer that a module is in, and the longest name there that it stands under."""
    found = [
        (len(prefix), level, prefix)
        for level, group in enumerate(layers)
        for prefix in group
        if name == prefix or (name.startswith(prefix + ".") and prefix != "viz")
    ]
    return max(found)[1:] if found else None


def against_the_layers(name: str, imported: set[str]) -> list[str]:
    """What a module imports from its own layer's neighbours or from above."""
    layers = MODEL if name.startswith("model") else VIZ
    level, own = group_of(name, layers) or pytest.fail(f"{name} stands in no layer: name it in {__file__}")
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
        for line in against_the_layers(module(path), imports(path))
    ]
    assert not wrong, "\n".join(sorted(wrong))


@pytest.mark.parametrize(
    ("name", "imported"),
    [
        ("model.nets.transformer", "model.decode.greedy"),
        ("model.decode.greedy", "model.serve.batching"),
        ("model.checkpoint", "model.translator"),
        ("viz.maps.reduce", "viz.wire.payload"),
        ("model.analysis.lenses.decoder", "model.training.batches"),
        ("viz.figures.attention", "viz.panels.scene"),
    ],
)
def test_the_test_of_layers_sees_a_step_up(name, imported):
    assert against_the_layers(name, {imported}) and not against_the_layers(name, {"numpy", name})


def within(folder: str) -> list[Path]:
    found = [path for path in PRODUCT if where(path).startswith(folder)]
    assert len(found) > 50
    return found


def test_the_package_imports_nothing_of_the_checkout_around_it():
    for path in {*PRODUCT, *ROOT.glob("attention_atlas/*.py")}:
        assert not {name.split(".")[0] for name in imports(path)} & NOT_IN_PACKAGE, path


def test_the_model_knows_nothing_of_pictures():
    for path in within("model"):
        assert not {name.split(".")[0] for name in imports(path)} & NOT_IN_MODEL, path


def test_pictures_know_only_traces():
    for path in within("viz"):
        found = imports(path)
        top = {name.split(".")[0] for name in found}
        assert not top & {"torch", "app"}, path
        if not where(path).startswith(("viz/component.py", "viz/server", "viz/shell.py")):
            assert "gradio" not in top, path
        if not where(path).startswith(ASK_MODELS):
            known = ("model.trace", "model.program", "model.files")
            assert all(n.startswith(known) for n in found if n.split(".")[0] == "model"), path


def test_torchs_own_attention_is_the_oracle_only():
    for path in PRODUCT:
        oracle = {n for n in torch_names(path) if n.startswith("Transformer") or n == "MultiheadAttention"}
        if "torch" in {n.split(".")[0] for n in imports(path)} and where(path) not in ORACLE:
            assert oracle <= {"Transformer"}, path  # ours has that name
            assert "nn.Transformer" not in path.read_text(encoding="utf-8"), path


def test_only_the_live_checks_import_the_oracle():
    for path in PRODUCT:
        assert where(path) in ORACLE or "model.checks.oracle" not in imports(path), path


def test_importable_without_torch():
    """Each by itself, and so in a child of its own."""
    program = (
        "import importlib, os, sys; sys.modules['torch'] = None; import numpy\n"
        "for name in sys.argv[1:]:\n"
        "    if not os.fork(): importlib.import_module(name); sys.exit()\n"
        "    assert os.wait()[1] == 0, name"
    )
    subprocess.run([sys.executable, "-c", program, *(PACKAGE + name for name in WITHOUT_TORCH)], cwd=ROOT, check=True)


def test_the_package_imports_torch_once_something_needs_it():
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


def test_what_traces_are_made_of_is_all_importable_without_torch():
    for path in ROOT.glob("model/trace/**/*.py"):
        assert "torch" not in {n.split(".")[0] for n in imports(path)}, path


def test_no_import_of_the_model_has_side_effects_on_torch():
    """Importing a program neither draws random numbers nor sets the number of threads."""
    program = (
        "import torch; torch.manual_seed(5); state, threads = torch.get_rng_state(), torch.get_num_threads();"
        "import attention_atlas.model.train, attention_atlas.model.translator;"
        "assert torch.equal(state, torch.get_rng_state()) and threads == torch.get_num_threads()"
    )
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True)


def test_the_reader_of_imports_sees_them_all(tmp_path):
    file = tmp_path / "x.py"
    file.write_text("def f():\n    import gradio.themes\n    from torch import nn\nfrom model import trace\n")
    assert imports(file) == {"gradio.themes", "torch", "model.trace"}
