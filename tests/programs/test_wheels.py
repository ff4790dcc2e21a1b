"""`make wheels`: what can be installed is told from what cannot, and from not being able to ask."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path

import pytest

from tests import ROOT
from tests.programs import wheels
from tests.server.space_check import front_matter


def distribution(folder: Path, name: str, tag: str, needs: str = "") -> None:
    """A wheel that a resolver can read."""
    about = f"{name}-1.0.dist-info"
    with zipfile.ZipFile(folder / f"{name}-1.0-{tag}.whl", "w") as made:
        made.writestr(f"{about}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n{needs}")
        made.writestr(f"{about}/WHEEL", f"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: {tag}\n")
        made.writestr(f"{about}/RECORD", "")


@pytest.fixture()
def place(tmp_path, monkeypatch):
    """A folder in the place of every index, and what is wanted of it."""
    distribution(tmp_path, "twelve_only", "cp312-none-any")
    distribution(
        tmp_path,
        "everywhere",
        "py3-none-any",
        "Requires-Dist: twelve_only; python_version == '3.12'\nRequires-Dist: lacking; python_version < '3.12'\n",
    )
    (tmp_path / "unbuilt-1.0.tar.gz").write_bytes(b"")
    for name in ("twelve_only", "everywhere", "unbuilt"):
        (tmp_path / f"{name}.txt").write_text(f"{name}\n")
    for name, value in {"PIP_CONFIG_FILE": "/dev/null", "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path)}.items():
        monkeypatch.setenv(name, value)
    return tmp_path


def asked(place: Path, name: str, python: str) -> tuple[bool, str]:
    return wheels.resolve(wheels.Setting(python, place / f"{name}.txt", ()))


@pytest.mark.long
def test_each_python_is_asked_for_its_own_wheels(place, capsys):
    assert asked(place, "everywhere", "3.12") == (True, "everywhere==1.0\ntwelve-only==1.0\n")
    assert asked(place, "everywhere", "3.13") == (True, "everywhere==1.0\n"), "needs of another Python do not count"
    for name, python, said in (
        ("twelve_only", "3.13", "twelve-only"),
        ("everywhere", "3.11", "lacking"),
        ("unbuilt", "3.12", "unbuilt"),
    ):
        good, told = asked(place, name, python)
        assert not good and said in told
    both = [wheels.Setting(python, place / "twelve_only.txt", ()) for python in ("3.13", "3.12")]
    assert wheels.check(both) == 1
    said = capsys.readouterr().out
    assert "Python 3.13, twelve_only.txt, the newest versions: not to be installed" in said
    assert "Python 3.12, twelve_only.txt, the newest versions: 1 wheels" in said, "one that fails does not end the rest"


def test_the_package_is_asked_for_with_every_extra():
    (setting,) = (one for one in wheels.SETTINGS if one.requirements.suffix == ".toml" and one.python == "3.11")
    names = set(re.findall(r"^[\w-]+", setting.wanted, re.MULTILINE))
    assert {"torch", "gradio", "matplotlib", "tqdm", "mcp"} <= names and "attention-atlas" not in names


def test_no_network_is_said_and_is_no_failure(place, monkeypatch, capsys):
    monkeypatch.setenv("PIP_NO_INDEX", "0")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setattr(
        wheels,
        "as_pip_is",
        lambda found=wheels.as_pip_is: (  # at once: not after three tries
            found()[0],
            {**found()[1], "UV_HTTP_RETRIES": "0"},
        ),
    )
    assert (
        wheels.check(
            [
                wheels.Setting("3.12", place / "twelve_only.txt", ()),
                wheels.Setting("3.12", place / "everywhere.txt", ()),
            ]
        )
        == 0
    )
    said = capsys.readouterr().out
    assert said.count("could not be reached") == 1 and "was not found out" in said and "wheels\n" not in said


def test_what_pip_is_told_is_passed_on():
    listed = (
        "global.index-url='one'\n:env:.index-url='two'\ninstall.find-links='a b'\n"
        "global.extra-index-url='\\nc\\nd'\nfreeze.index-url='three'\n"
    )
    assert wheels.configured(listed) == {"index-url": ["two"], "find-links": ["a", "b"], "extra-index-url": ["c", "d"]}
    assert wheels.configured("\n".join(reversed(listed.splitlines()))) == wheels.configured(listed)


def test_one_range_of_pythons_everywhere():
    """The Makefile, pyproject.toml, the README, its front matter and what is resolved say the same."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    pinned = [setting.python for setting in wheels.SETTINGS if setting.pins]
    first, last = re.search(r"Python (\d\.\d+) to (\d\.\d+)", readme).groups()
    assert (first, last) == (pinned[0], pinned[-1])
    assert f"needs Python {first} or newer" in (ROOT / "Makefile").read_text(encoding="utf-8")
    pyproject = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert f'requires-python = ">={first}"' in pyproject
    assert f'target-version = "py{first.replace(".", "")}"' in pyproject
    assert pinned == [f"3.{minor}" for minor in range(int(first[2:]), int(last[2:]) + 1)]
    assert re.findall(r'"Programming Language :: Python :: (.*)"', pyproject) == pinned
    newest = [setting for setting in wheels.SETTINGS if not setting.pins]
    of_a_space = {setting.python for setting in newest if setting.requirements.suffix == ".txt"}
    assert [setting.python for setting in newest if setting.requirements.suffix == ".toml"] == [first, last]
    assert of_a_space == {front_matter(readme)["python_version"]}
