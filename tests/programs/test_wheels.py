"""`make wheels` distinguishes requirements with wheels, without wheels, and an index that cannot be reached."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path

import pytest

from tests import ROOT
from tests.programs import wheels
from tests.server.space_check import front_matter


def distribution(folder: Path, name: str, tag: str, needs: str = "") -> None:
    """Write an empty wheel with the metadata that a resolver reads."""
    about = f"{name}-1.0.dist-info"
    with zipfile.ZipFile(folder / f"{name}-1.0-{tag}.whl", "w") as wheel:
        wheel.writestr(f"{about}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n{needs}")
        wheel.writestr(f"{about}/WHEEL", f"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: {tag}\n")
        wheel.writestr(f"{about}/RECORD", "")


@pytest.fixture()
def index(tmp_path, monkeypatch):
    """A folder that replaces every package index, with requirements files for its packages."""
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


def setting(index: Path, name: str, python: str) -> wheels.Setting:
    return wheels.Setting(python, index / f"{name}.txt", ())


@pytest.mark.long
def test_wheels_are_resolved_for_each_python_version(index, capsys):
    resolved = wheels.resolve(setting(index, "everywhere", "3.12"))
    assert resolved == (True, "everywhere==1.0\ntwelve-only==1.0\n")
    assert wheels.resolve(setting(index, "everywhere", "3.13")) == (True, "everywhere==1.0\n")
    for name, python, missing in (
        ("twelve_only", "3.13", "twelve-only"),
        ("everywhere", "3.11", "lacking"),
        ("unbuilt", "3.12", "unbuilt"),
    ):
        is_resolved, output = wheels.resolve(setting(index, name, python))
        assert not is_resolved and missing in output
    assert wheels.check([setting(index, "twelve_only", python) for python in ("3.13", "3.12")]) == 1
    output = capsys.readouterr().out
    assert "Python 3.13, twelve_only.txt, the newest versions: no compatible wheels" in output
    assert "Python 3.12, twelve_only.txt, the newest versions: 1 wheels" in output, (
        "the rest is checked after a failure"
    )


def test_the_package_is_checked_with_every_extra():
    (package,) = (s for s in wheels.SETTINGS if s.requirements.suffix == ".toml" and s.python == "3.11")
    names = set(re.findall(r"^[\w-]+", package.requirement_lines, re.MULTILINE))
    assert {"torch", "gradio", "matplotlib", "tqdm", "mcp"} <= names and "attention-atlas" not in names


def test_an_unreachable_index_is_reported_and_is_no_failure(index, monkeypatch, capsys):
    monkeypatch.setenv("PIP_NO_INDEX", "0")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    options, environment = wheels.uv_settings()
    monkeypatch.setattr(wheels, "uv_settings", lambda: ([*options], {**environment, "UV_HTTP_RETRIES": "0"}))
    assert wheels.check([setting(index, name, "3.12") for name in ("twelve_only", "everywhere")]) == 0
    output = capsys.readouterr().out
    assert output.count("could not be reached") == 1 and "wheels\n" not in output


def test_settings_of_pip_are_passed_on():
    text = (
        "global.index-url='one'\n:env:.index-url='two'\ninstall.find-links='a b'\n"
        "global.extra-index-url='\\nc\\nd'\nfreeze.index-url='three'\n"
    )
    settings = {"index-url": ["two"], "find-links": ["a", "b"], "extra-index-url": ["c", "d"]}
    assert wheels.parse_pip_config(text) == settings
    assert wheels.parse_pip_config("\n".join(reversed(text.splitlines()))) == settings


def test_the_supported_python_versions_agree_everywhere():
    """In the Makefile, pyproject.toml, the README, its front matter and the settings here."""
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
