"""install.py, as the Makefile calls it: what goes wrong is said in words, and a second try heals it."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import install
from tests import ROOT


def wheel(folder: Path, name: str) -> None:
    """The smallest distribution that pip installs."""
    about = f"{name}-1.0.dist-info"
    with zipfile.ZipFile(folder / f"{name}-1.0-py3-none-any.whl", "w") as made:
        made.writestr(f"{name}.py", "")
        made.writestr(f"{about}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        made.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        made.writestr(
            f"{about}/RECORD",
            "".join(f"{part},,\n" for part in (f"{name}.py", f"{about}/METADATA", f"{about}/WHEEL", f"{about}/RECORD")),
        )


@pytest.fixture()
def place(tmp_path):
    for name in ("first_thing", "second_thing"):
        wheel(tmp_path, name)
    (tmp_path / "base.txt").write_text("# words\nfirst-thing>=0.5\n")
    (tmp_path / "wanted.txt").write_text("-r base.txt\nsecond_thing\n")
    return tmp_path


def run(place: Path, *options: str, **environment: str) -> subprocess.CompletedProcess:
    index = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(place), **environment}
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
    return subprocess.run(
        [sys.executable, str(ROOT / "install.py"), ".venv", "wanted.txt", *options],
        cwd=place,
        env={**kept, **index},
        capture_output=True,
        text=True,
        timeout=200,
    )


@pytest.mark.long
def test_without_a_network_it_says_so_and_a_second_try_heals_what_was_left(place):
    offline = run(place, PIP_NO_INDEX="0", PIP_INDEX_URL="http://127.0.0.1:9/", PIP_RETRIES="1", PIP_FIND_LINKS="")
    assert not (place / ".venv" / install.UNDER_WAY).exists(), "nothing was begun"
    assert offline.returncode == 1 and "Making an environment of Python" in offline.stdout
    assert "package index could not be reached" in offline.stderr and "Traceback" not in offline.stderr
    second = run(place)
    assert second.returncode == 0, second.stderr
    assert "Making" not in second.stdout, "what the first try made is used"
    whole = run(place, "--mend")
    assert (whole.returncode, whole.stdout, whole.stderr) == (0, "", ""), "nothing to do, nothing to say"

    inside = subprocess.run(
        [install.python_of(place / ".venv"), "-c", "import first_thing as it; print(it.__file__)"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    for path in Path(inside).parent.glob("first_thing-1.0.dist-info/*"):
        path.unlink()
    (Path(inside).parent / "first_thing-1.0.dist-info").rmdir()
    mended = run(place, "--mend")
    assert mended.returncode == 0 and "lacks first-thing" in mended.stdout

    (place / ".venv" / install.UNDER_WAY).touch()  # as after a power cut
    anew = run(place, "--mend")
    assert anew.returncode == 0 and "damaged or half-installed" in anew.stdout
    assert run(place, "--mend").stdout == ""
    install.python_of(place / ".venv").unlink()  # as after an update of the system's Python
    assert not install.works(place / ".venv")


def test_a_python_that_is_too_old_is_refused_before_anything_is_made(tmp_path, monkeypatch):
    for version in ((3, 10, 14), (3, 6, 0), (2, 7, 18)):
        said = install.refusal(version)
        assert f"is {version[0]}.{version[1]}" in said and "3.11 or newer" in said and "PYTHON=" in said
    assert install.refusal((3, 11, 0)) is install.refusal((3, 12, 1)) is install.refusal((4, 0)) is None
    monkeypatch.setattr(install.sys, "version_info", (3, 10, 14, "final", 0))
    with pytest.raises(SystemExit, match=r"needs Python 3\.11"):
        install.main([str(tmp_path / "new"), str(tmp_path / "wanted.txt")])
    assert not (tmp_path / "new").exists()
    assert f'requires-python = ">={".".join(map(str, install.OLDEST))}"' in (ROOT / "pyproject.toml").read_text()


def test_a_folder_that_is_no_environment_is_left_alone(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    (tmp_path / "wanted.txt").write_text("first_thing\n")
    with pytest.raises(SystemExit, match="no environment of Python's"):
        install.main([str(tmp_path / "mine"), str(tmp_path / "wanted.txt")])
    assert (tmp_path / "mine" / "letter.txt").read_text() == "dear"


def test_an_old_python_can_read_it():
    ast.parse((ROOT / "install.py").read_text(encoding="utf-8"), feature_version=(3, 7))


@pytest.mark.parametrize(
    ("output", "said"),
    [
        ("ERROR: [Errno 28] No space left on device", "no space left"),
        ("NameResolutionError(...)\nERROR: No matching distribution found for torch>=2.8", "could not be reached"),
        ("ERROR: No matching distribution found for torch>=2.8", "has no torch>=2.8 for Python"),
        ("something\nelse", "else"),
    ],
)
def test_what_pip_says_becomes_words(output, said):
    assert said in install.explanation(output, Path(".venv"))


def test_the_makefile_installs_in_no_other_way():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert makefile.count("pip install") == 0 and makefile.count("-m venv") == 1  # that of mcp, beside this one
    names = install.names(ROOT / "requirements-bench.txt")
    assert {"torch", "gradio", "pytest", "ctranslate2"} <= set(names)
