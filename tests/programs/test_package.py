"""The package as users install it: built from the checkout, used outside it."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
from uv import find_uv_bin

from attention_atlas import __version__
from attention_atlas.__main__ import COMMANDS
from tests import ROOT, run
from tests.pages import block
from tests.programs import image, release

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PACKAGE = "attention_atlas"


def required(lines: list[str]) -> set[str]:
    return {line for line in lines if re.match(r"\w", line) and not line.startswith("attention-atlas")}


def test_dependencies_of_the_package_match_the_requirements_files():
    """requirements.txt, which a Space installs, has the dependencies of the package and of its app."""
    of_files = {
        name: required((ROOT / f"requirements{name}.txt").read_text(encoding="utf-8").splitlines())
        for name in ("", "-dev", "-mcp")
    }
    extras = {name: required(lines) for name, lines in PROJECT["optional-dependencies"].items()}
    assert required(PROJECT["dependencies"]) | extras["app"] == of_files[""]
    assert extras["mcp"] == of_files["-mcp"]
    assert extras["train"] | extras["plots"] | extras["metrics"] <= of_files[""] | of_files["-dev"]


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> dict[str, Path]:
    """The wheel and the source archive, by suffix."""
    folder = tmp_path_factory.mktemp("built")
    packaged = ("model/", "viz/", "attention_atlas/", "checkpoints/")
    release.copy_sources(folder / "copy", lambda name: name.startswith(packaged) or "/" not in name)
    return {path.suffix: path for path in release.build(folder / "dist", folder / "copy")}


@pytest.fixture(scope="module")
def installed(built, tmp_path_factory) -> Path:
    """The bin folder of an environment with the wheel; its dependencies are those of the present environment."""
    where = make_environment(tmp_path_factory.mktemp("environment"))
    pip = [sys.executable, "-m", "pip", "--python", str(where / "python"), "install"]
    run([*pip, "-q", "--no-deps", "--disable-pip-version-check", built[".whl"]])
    return where


def make_environment(folder: Path) -> Path:
    """Make an environment that can also import the packages of the present one; return its bin folder."""
    run([sys.executable, "-m", "venv", "--without-pip", folder])
    (purelib,) = folder.glob("lib/python*/site-packages")
    (purelib / "present.pth").write_text(sysconfig.get_path("purelib"), encoding="utf-8")
    return folder / "bin"


def run_outside(program: Path | str, *arguments: object, at: Path) -> subprocess.CompletedProcess:
    """Run a program in a folder outside the checkout, without the variables that would make it importable."""
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONSAFEPATH")}
    command = [str(program), *map(str, arguments)]
    return subprocess.run(command, cwd=at, env=environment, capture_output=True, text=True, timeout=300)


@pytest.mark.long
def test_the_wheel_has_one_package_that_imports_itself_by_its_full_name(built):
    with zipfile.ZipFile(built[".whl"]) as wheel:
        names = wheel.namelist()
        (info,) = {name.split("/")[0] for name in names} - {PACKAGE}
        assert re.fullmatch(rf"{PACKAGE}-[\d.]+\.dist-info", info)
        for name in (name for name in names if name.endswith(".py")):
            for node in ast.walk(ast.parse(wheel.read(name))):
                modules = [node.module] if isinstance(node, ast.ImportFrom) else []
                modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else modules
                assert not {f"{module}".split(".")[0] for module in modules} & {"model", "viz", "app"}, name
        assert "attention_atlas/py.typed" in names and "attention_atlas/viz/web/page/page.css" in names
        assert {f"attention_atlas/{path.relative_to(ROOT)}" for path in ROOT.glob("viz/web/**/*.*")} <= set(names)


@pytest.mark.long
def test_the_wheel_is_small(built):
    with zipfile.ZipFile(built[".whl"]) as wheel:
        sizes = {file.filename: file.compress_size for file in wheel.infolist()}
    weights = sum(size for name, size in sizes.items() if name.startswith("attention_atlas/checkpoints/"))
    assert built[".whl"].stat().st_size <= 46.5e6 and sum(sizes.values()) - weights <= 1.7e6


@pytest.mark.long
def test_the_source_archive_has_every_file_of_the_wheel(built):
    with tarfile.open(built[".gz"]) as sources, zipfile.ZipFile(built[".whl"]) as wheel:
        sources_names = {name.split("/", 1)[1] for name in sources.getnames() if "/" in name}
        names = [name.removeprefix("attention_atlas/") for name in wheel.namelist() if ".dist-info" not in name]
    assert not {name for name in names if not {name, f"attention_atlas/{name}"} & sources_names}


CELL = block("docs/start/notebook.md", "python")
# Run the second cell for Colab in an IPython shell, with a module google.colab as on Colab.
COLAB = f"""
import contextlib, io, sys, types
from IPython.core.interactiveshell import InteractiveShell
sys.modules["google.colab"] = types.ModuleType("google.colab")
with contextlib.redirect_stdout(io.StringIO()):
    execution = InteractiveShell.instance().run_cell({CELL!r}, store_history=True)
execution.raise_error()
print(len(execution.result._repr_html_()))
"""


@pytest.mark.long
def test_the_installed_package_translates_and_explains_outside_the_checkout(installed, tmp_path):
    """A module of the user's called `model` stays importable."""
    (tmp_path / "model.py").write_text("THEIRS = True\n", encoding="utf-8")
    (tmp_path / "use.py").write_text(
        "import model\nfrom attention_atlas import Translator, viz\n"
        "from attention_atlas.model.analysis import why\n"
        "translator = Translator.load('de-en', 'cpu')\n"
        "trace = translator.translate('Der Hund schläft.')\n"
        "print(model.THEIRS, len(why.attribute(translator, trace, methods=['alti']).rows), trace.translation)\n"
        "viz.explore(trace).save('heads.html')\n" + COLAB,
        encoding="utf-8",
    )
    done = run_outside(installed / "python", "use.py", at=tmp_path)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.startswith("True 1 ") and (tmp_path / "heads.html").stat().st_size > 300_000
    command = run_outside(
        installed / "attention-atlas", "translate", "--device", "cpu", "Der Hund schläft.", at=tmp_path
    )
    translated, size = done.stdout.splitlines()
    assert translated.split(" ", 2)[2] == command.stdout.strip()
    assert int(size) > 300_000, "the cell for Colab shows the explorer with its scripts"


@pytest.mark.long
def test_every_public_name_has_a_type_that_pyright_knows(installed, tmp_path):
    """Public names are those in an `__all__`; viz.server is no library."""
    # --verifytypes ignores --pythonpath and uses the first python of PATH.
    environment = {**os.environ, "PATH": f"{installed}{os.pathsep}{os.environ['PATH']}"}
    command = [sys.executable, "-m", "basedpyright", "--verifytypes", PACKAGE, "--ignoreexternal", "--outputjson"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    report = json.loads(done.stdout)["typeCompleteness"]
    symbols = {symbol["name"]: symbol for symbol in report["symbols"]}
    package = Path(report["packageRootDirectory"])
    for path in sorted(package.rglob("*.py")):
        module = ".".join(path.relative_to(package.parent).with_suffix("").parts).removesuffix(".__init__")
        if module.startswith(f"{PACKAGE}.viz.server"):
            continue
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
                for name in ast.literal_eval(node.value):
                    symbol = symbols[f"{module}.{name}"]
                    assert symbol["isTypeKnown"], (symbol["name"], symbol["diagnostics"])


@pytest.mark.long
def test_documented_calls_have_their_documented_types(installed, tmp_path):
    """typed_calls.py passes `mypy --strict`, and runs."""
    shutil.copy(Path(__file__).with_name("typed_calls.py"), tmp_path)
    strict = ["-m", "mypy", "--strict", "--python-executable", installed / "python", "typed_calls.py"]
    done = run_outside(sys.executable, *strict, at=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    done = run_outside(installed / "python", "typed_calls.py", at=tmp_path)
    assert done.returncode == 0, done.stderr[-2000:]


@pytest.mark.long
def test_the_command_lists_its_programs_and_reports_errors(installed, tmp_path):
    listing = run_outside(installed / "attention-atlas", at=tmp_path).stdout
    for name in COMMANDS:
        assert f"\n  {name} " in listing
    done = run_outside(installed / "attention-atlas", "align", "--help", at=tmp_path)
    assert done.stdout.startswith("usage: attention-atlas align")
    done = run_outside(installed / "attention-atlas", "dance", at=tmp_path)
    assert done.returncode == 1 and "there is no program 'dance': there are serve, translate" in done.stderr
    assert run_outside(installed / "attention-atlas", "--version", at=tmp_path).stdout.strip() == __version__
    done = run_outside(installed / "attention-atlas", "means", "--checkpoint", "de-en", at=tmp_path)
    assert done.returncode == 1 and done.stderr.startswith("error: de-en was installed with the package")
    assert not list(tmp_path.iterdir()), "a new folder of this name would hide the shipped checkpoint"


@pytest.mark.long
def test_the_command_of_the_dockerfile_serves_the_page_and_its_health_check_detects_it(installed, tmp_path):
    image.serve(tmp_path, installed.parent)


@pytest.fixture(scope="module", params=["pip", "uv"])
def editable(request, tmp_path_factory) -> Path:
    """The Python of an environment in which this checkout is installed in editable mode."""
    folder = tmp_path_factory.mktemp("editable")
    python = make_environment(folder) / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--disable-pip-version-check"]
    uv = [find_uv_bin(), "pip", "install", "--python", str(python)]
    command = [*(pip if request.param == "pip" else uv), "--no-deps", "--no-build-isolation", "-e", str(ROOT)]
    run(command, cwd=folder)
    return python


@pytest.mark.long
def test_an_editable_install_has_the_modules_of_a_wheel(editable, installed, tmp_path):
    """Both have the same module names, version and checkpoints, and no module called model, viz or app."""
    program = """
import importlib.util
import attention_atlas.model, attention_atlas.viz
from attention_atlas import Translator, __version__
print(Translator.__module__, attention_atlas.viz.View.__module__, __version__)
print(importlib.util.find_spec("model"), importlib.util.find_spec("viz"), importlib.util.find_spec("app"))
print(Translator.load("de-en", "cpu").translate("Der Hund schläft.").translation)
"""
    link, copy = (run_outside(python, "-c", program, at=tmp_path) for python in (editable, installed / "python"))
    assert link.stdout == copy.stdout and link.stdout.splitlines()[1] == "None None None", link.stderr


@pytest.mark.parametrize("name", ["model", "viz"])
def test_importing_the_modules_by_another_name_is_refused(name):
    for arguments in (["-c", f"import {name}"], ["-m", f"{name}.absent"]):
        done = subprocess.run([sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 1 and f"ImportError: import attention_atlas.{name}" in done.stderr
