"""The package as somebody installs it: built from here, used far from here."""

from __future__ import annotations

import ast
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import zipfile
from pathlib import Path

import nbformat
import pytest
from gradio_client import Client
from uv import find_uv_bin

from attention_atlas.__main__ import COMMANDS
from bench.ports import free_port
from tests import ROOT, public_types
from tests.pages import block
from tests.programs.test_docker import of

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def required(lines: list[str]) -> set[str]:
    return {line for line in lines if re.match(r"\w", line) and not line.startswith("attention-atlas")}


def test_the_package_asks_for_what_the_requirements_name():
    """requirements.txt is what a Space installs: the package and its app."""
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
    """A wheel, and the sources that it can be built from again."""
    folder = tmp_path_factory.mktemp("built")
    copy = folder / "copy"
    names = subprocess.run(["git", "ls-files", "-coz", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True)
    for name in filter(None, names.stdout.split("\0")):
        if name.startswith(("model/", "viz/", "attention_atlas/", "checkpoints/")) or "/" not in name:
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            if (ROOT / name).is_file():
                os.link(ROOT / name, copy / name)
    for kind in ("sdist", "wheel"):
        command = [sys.executable, "-m", "hatchling", "build", "--target", kind, "--directory", str(folder)]
        done = subprocess.run(command, cwd=copy, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-2000:]
    return {path.suffix: path for path in folder.iterdir() if path.is_file()}


@pytest.fixture(scope="module")
def installed(built, tmp_path_factory) -> Path:
    """The bin folder of an environment with the wheel, whose other packages are those of this one."""
    where = environment_beside(tmp_path_factory.mktemp("environment"))
    pip = [sys.executable, "-m", "pip", "--python", str(where / "python"), "install"]
    subprocess.run([*pip, "-q", "--no-deps", "--disable-pip-version-check", str(built[".whl"])], check=True)
    return where


def environment_beside(folder: Path) -> Path:
    """The bin folder of a new environment that has this one's packages besides its own."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    (purelib,) = folder.glob("lib/python*/site-packages")
    (purelib / "beside.pth").write_text(sysconfig.get_path("purelib"), encoding="utf-8")
    return folder / "bin"


def far(program: Path | str, *arguments: object, at: Path, **options: object) -> subprocess.CompletedProcess:
    """Run far from the checkout."""
    ours = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONSAFEPATH")}
    command = [str(program), *map(str, arguments)]
    return subprocess.run(command, cwd=at, env=ours, capture_output=True, text=True, timeout=300, **options)


@pytest.mark.long
def test_no_module_of_it_is_called_anything_but_attention_atlas(built):
    with zipfile.ZipFile(built[".whl"]) as wheel:
        names = wheel.namelist()
        assert {name.split("/")[0] for name in names} == {
            "attention_atlas",
            f"attention_atlas-{version(names)}.dist-info",
        }
        for name in (name for name in names if name.endswith(".py")):
            for node in ast.walk(ast.parse(wheel.read(name))):
                found = [node.module] if isinstance(node, ast.ImportFrom) else []
                found = [alias.name for alias in node.names] if isinstance(node, ast.Import) else found
                assert not {f"{module}".split(".")[0] for module in found} & {"model", "viz", "app"}, name
        assert "attention_atlas/py.typed" in names and "attention_atlas/viz/web/page/page.css" in names
        assert {f"attention_atlas/{path.relative_to(ROOT)}" for path in ROOT.glob("viz/web/**/*.*")} <= set(names)


@pytest.mark.long
def test_it_is_light(built):
    with zipfile.ZipFile(built[".whl"]) as wheel:
        sizes = {file.filename: file.compress_size for file in wheel.infolist()}
    weights = sum(size for name, size in sizes.items() if name.startswith("attention_atlas/checkpoints/"))
    assert built[".whl"].stat().st_size <= 46.5e6 and sum(sizes.values()) - weights <= 1.7e6


def version(names: list[str]) -> str:
    return next(re.match(r"attention_atlas-(.*)\.dist-info", name)[1] for name in names if ".dist-info/" in name)


@pytest.mark.long
def test_the_sources_hold_all_that_the_wheel_is_made_of(built):
    with tarfile.open(built[".gz"]) as sources, zipfile.ZipFile(built[".whl"]) as wheel:
        held = {name.split("/", 1)[1] for name in sources.getnames() if "/" in name}
        names = [name.removeprefix("attention_atlas/") for name in wheel.namelist() if ".dist-info" not in name]
    assert not {name for name in names if name not in held and f"attention_atlas/{name}" not in held}


CELL = block("docs/start/notebook.md", "python")
# The second of the two cells for Colab, in the shell that notebooks have, as there.
COLAB = f"""
import contextlib, io, sys, types
from IPython.core.interactiveshell import InteractiveShell
sys.modules["google.colab"] = types.ModuleType("google.colab")
with contextlib.redirect_stdout(io.StringIO()):
    found = InteractiveShell.instance().run_cell({CELL!r}, store_history=True)
found.raise_error()
print(len(found.result._repr_html_()))
"""


@pytest.mark.long
def test_a_translation_far_from_the_checkout(installed, tmp_path):
    """Beside a `model` of somebody else's, which stays theirs."""
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
    done = far(installed / "python", "use.py", at=tmp_path)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.startswith("True 1 ") and (tmp_path / "heads.html").stat().st_size > 1_000_000
    same = far(installed / "attention-atlas", "translate", "--device", "cpu", "Der Hund schläft.", at=tmp_path)
    translated, shown = done.stdout.splitlines()
    assert translated.split(" ", 2)[2] == same.stdout.strip()
    assert int(shown) > 1_000_000, "the second cell of Colab shows the explorer with all that it needs"


@pytest.mark.long
def test_pyright_knows_the_type_of_every_public_name(installed):
    assert not public_types.unknown(installed / "python")


@pytest.mark.long
def test_the_documented_calls_have_the_types_that_they_say(installed, tmp_path):
    """By mypy's strict rules, and when they run."""
    shutil.copy(Path(__file__).with_name("typed_calls.py"), tmp_path)
    strict = ["-m", "mypy", "--strict", "--python-executable", installed / "python", "typed_calls.py"]
    done = far(sys.executable, *strict, at=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    done = far(installed / "python", "typed_calls.py", at=tmp_path)
    assert done.returncode == 0, done.stderr[-2000:]


@pytest.mark.long
def test_the_ten_first_cells_run_far_from_the_checkout(installed, tmp_path):
    """The notebook's code shows what it showed."""
    notebook = nbformat.read(ROOT / "notebooks" / "ten_cells.ipynb", 4)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    program = "\n\n".join(f"show({json.dumps(number)}, {json.dumps(cell.source)})" for number, cell in enumerate(cells))
    show = (
        "import ast, os\nos.makedirs('checkpoints', exist_ok=True)\nspace = {}\n"
        "def show(number, source):\n"
        "    *body, last = ast.parse(source).body\n"
        "    exec(compile(ast.Module(body, []), 'cell', 'exec'), space)\n"
        "    if isinstance(last, ast.Expr):\n"
        "        print(number, repr(eval(compile(ast.Expression(last.value), 'cell', 'eval'), space)))\n"
        "    else:\n"
        "        exec(compile(ast.Module([last], []), 'cell', 'exec'), space)\n"
    )
    (tmp_path / "cells.py").write_text(show + program, encoding="utf-8")
    done = far(installed / "python", "cells.py", at=tmp_path)
    assert done.returncode == 0, done.stderr[-2000:]
    for number, cell in enumerate(cells):
        for output in cell.outputs:
            expected = output.get("text") or f"{number} {output['data']['text/plain']}"
            assert expected.strip() in done.stdout


@pytest.mark.long
def test_every_program_has_its_help_and_errors_in_words(installed, tmp_path):
    listed = far(installed / "attention-atlas", at=tmp_path).stdout
    for name in COMMANDS:
        assert f"\n  {name} " in listed
    done = far(installed / "attention-atlas", "align", "--help", at=tmp_path)
    assert done.stdout.startswith("usage: attention-atlas align")
    done = far(installed / "attention-atlas", "dance", at=tmp_path)
    assert done.returncode == 1 and "there is no program 'dance': there are serve, translate" in done.stderr
    assert far(installed / "attention-atlas", "--version", at=tmp_path).stdout.strip() == "0.2.0"
    done = far(installed / "attention-atlas", "means", "--checkpoint", "de-en", at=tmp_path)
    assert done.returncode == 1 and done.stderr.startswith("error: de-en was installed with the package")
    assert not list(tmp_path.iterdir()), "a folder of this name would hide the shipped one"


@pytest.mark.long
def test_the_page_is_served_as_the_dockerfile_says_and_its_health_check_tells_up_from_down(installed, tmp_path):
    """CMD and HEALTHCHECK in the environment that the steps before them make, with the ENV that they set."""
    port = str(free_port())
    settings = dict(pair.split("=", 1) for pair in shlex.split(of("ENV")[0])) | {"GRADIO_SERVER_PORT": port}
    settings |= {"PATH": f"{installed}:{os.environ['PATH']}", "GRADIO_SERVER_NAME": "127.0.0.1"}
    check = json.loads(of("HEALTHCHECK")[0].split(" CMD ", 1)[1])
    assert subprocess.run(check, env=settings, capture_output=True).returncode != 0
    command, *options = (sys.executable if part == "python3" else part for part in json.loads(of("CMD")[0]))
    with subprocess.Popen(
        [str(installed / command), *options],
        cwd=tmp_path,
        env={**os.environ, **settings},
        stdout=subprocess.PIPE,
        text=True,
    ) as app:
        try:
            assert any("is served on" in line for line in app.stdout), "it did not start"
            assert subprocess.run(check, env=settings).returncode == 0
            client = Client(f"http://127.0.0.1:{port}/", verbose=False, analytics_enabled=False)
            assert client.predict("Der Hund schläft.", api_name="/translate")["status"] == "ok"
        finally:
            app.terminate()


@pytest.fixture(scope="module", params=["pip", "uv"])
def editable(request, tmp_path_factory) -> Path:
    """The Python of an environment in which this checkout is installed in editable mode."""
    folder = tmp_path_factory.mktemp("editable")
    python = environment_beside(folder) / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--disable-pip-version-check"]
    uv = [find_uv_bin(), "pip", "install", "--python", str(python)]
    command = [*(pip if request.param == "pip" else uv), "--no-deps", "--no-build-isolation", "-e", str(ROOT)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    return python


@pytest.mark.long
def test_an_editable_install_has_the_modules_of_a_wheel(editable, installed, tmp_path):
    """Their names, their version, and no module called model or viz; the checkpoints are those of the checkout."""
    program = """
import importlib.util
import attention_atlas.model, attention_atlas.viz
from attention_atlas import Translator, __version__
print(Translator.__module__, attention_atlas.viz.View.__module__, __version__)
print(importlib.util.find_spec("model"), importlib.util.find_spec("viz"), importlib.util.find_spec("app"))
print(Translator.load("de-en", "cpu").translate("Der Hund schläft.").translation)
"""
    found = [far(python, "-c", program, at=tmp_path) for python in (editable, installed / "python")]
    assert found[0].stdout == found[1].stdout and found[0].stdout.splitlines()[1] == "None None None", found[0].stderr


@pytest.mark.parametrize("name", ["model", "viz"])
def test_a_second_copy_of_the_modules_is_refused(name):
    for arguments in (["-c", f"import {name}"], ["-m", f"{name}.absent"]):
        done = subprocess.run([sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 1 and f"ImportError: import attention_atlas.{name}" in done.stderr
