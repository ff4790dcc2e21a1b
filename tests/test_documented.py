"""What `make docs` writes: a page a module, each with an example that runs; and what docs/results.md is made of."""

from __future__ import annotations

import doctest
import importlib
import inspect
import json
import re
import subprocess
import sys

import pytest
from PIL import Image

from bench import animation, results
from tests import ROOT

MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8").replace("\\\n", " ")
DOCUMENTED = re.search(r"^DOCUMENTED := (.*)$", MAKEFILE, re.MULTILINE)[1].split()


@pytest.mark.parametrize("name", DOCUMENTED)
def test_each_page_has_an_example_that_runs(name, shipped_checkpoints, monkeypatch):
    monkeypatch.chdir(ROOT)
    found = doctest.testmod(importlib.import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE)
    assert found.attempted and not found.failed


def test_the_reference_has_what_readme_and_notebooks_import():
    texts = [ROOT / "README.md", *(ROOT / "notebooks").glob("*.ipynb")]
    used = {
        name
        for path in texts
        for name in re.findall(r"\bfrom (attention_atlas\.model[.\w]*) import ", path.read_text(encoding="utf-8"))
    }
    packages = {
        "attention_atlas.model.trace.edits": "attention_atlas.model.trace.edits.values",
        "attention_atlas.model.analysis": "attention_atlas.model.analysis.why",
    }
    packages |= {
        "attention_atlas.model.trace": "attention_atlas.model.trace.storage",
        "attention_atlas.model.families": "attention_atlas.model.families.hub",
    }
    assert {packages.get(name, name) for name in used} <= {*DOCUMENTED}


def public(name: str) -> list:
    """What a module's page shows."""
    module = importlib.import_module(name)
    own = [n for n, value in vars(module).items() if n[0] != "_" and getattr(value, "__module__", None) == name]
    return [getattr(module, n) for n in getattr(module, "__all__", own)]


def ours(thing: object) -> bool:
    return inspect.isclass(thing) and thing.__module__.split(".")[0] == "attention_atlas"


def test_the_reference_has_what_a_class_inherits_and_what_a_call_returns():
    shown = [thing for name in DOCUMENTED for thing in public(name)]
    classes = {base for one in filter(ours, shown) for base in one.__mro__ if ours(base)}
    methods = [getattr(m, "__func__", m) for one in classes for name, m in vars(one).items() if name[0] != "_"]
    returned = {
        call.__globals__.get(word)
        for call in filter(inspect.isfunction, [*shown, *methods])
        for word in re.findall(r"\w+", str(inspect.signature(call).return_annotation))
    }
    missing = {one.__name__ for one in classes | {*filter(ours, returned)} if one not in shown}
    assert missing == {"Figure"}  # Plotly's own


@pytest.mark.long
def test_the_reference_is_a_page_for_each_and_no_other(tmp_path):
    recipe = re.search(r"^\t\S+ (-m pdoc .*)$", MAKEFILE, re.MULTILINE)[1]
    arguments = recipe.replace("docs/api", str(tmp_path)).replace("$(DOCUMENTED)", " ".join(DOCUMENTED)).split()
    subprocess.run([sys.executable, *(a.strip("'") for a in arguments)], cwd=ROOT, check=True)
    pages = {path.relative_to(tmp_path).with_suffix("").as_posix() for path in tmp_path.rglob("*.html")}
    assert {page.replace("/", ".") for page in pages} == {*DOCUMENTED, "index"}
    assert "explore" in (tmp_path / "attention_atlas" / "viz.html").read_text(encoding="utf-8")


def test_the_animation_lasts_as_long_as_it_should_and_is_small():
    path = ROOT / "docs" / "app.webp"
    with Image.open(path) as shown:
        seconds = 0.0
        for frame in range(shown.n_frames):
            shown.seek(frame)
            shown.load()
            seconds += shown.info["duration"] / 1000
        assert shown.n_frames > 10 and shown.width == animation.WIDTH
    assert seconds == pytest.approx(animation.SECONDS, abs=0.05) and path.stat().st_size <= animation.LARGEST
    assert f"]({path.relative_to(ROOT)})" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_results_are_those_that_were_measured():
    expected = results.page(ROOT / "checkpoints", results.FOLDER)
    assert results.PAGE.read_text(encoding="utf-8") == expected, "make results"


def test_every_number_of_a_file_is_on_the_page(tmp_path):
    (tmp_path / "net").mkdir()
    (tmp_path / "net" / "metrics.json").write_text(
        json.dumps(
            {
                "scores": [
                    {
                        "data": "own",
                        "split": "test",
                        "direction": "de-en",
                        "beam": 5,
                        "length_penalty": 1.0,
                        "sentences": 1234,
                        "bleu": 12.34,
                    },
                    {"split": "dev"},
                ]
            }
        )
    )
    (tmp_path / "speed.json").write_text(
        json.dumps(
            [
                {"name": "maps_8", "value": 1.25, "unit": "ms"},
                {"name": "maps_16", "value": 250.4, "unit": "ms"},
                {"name": "startup", "value": 2, "unit": "s"},
            ]
        )
    )
    (tmp_path / "load.json").write_text(json.dumps({"load": 21.81, "deep": {"a|b": [1, 0.5]}}))
    (tmp_path / "why.json").write_text(
        json.dumps([{"model": "m"}, {"what": "x", "met": True}, {"what": "y", "met": False}])
    )
    (tmp_path / "domains").mkdir()
    for state, bleu in {"first": 20.04, "later": 30.06}.items():
        score = {"direction": "de-en", "data": "chats", "sentences": 100, "bleu": bleu}
        (tmp_path / "domains" / f"{state}.net.json").write_text(json.dumps({"scores": [score]}))
    lines = results.page(tmp_path, tmp_path).splitlines()
    for expected in (
        "| direction | corpus | sentences | first | later |",
        "| de-en | chats | 100 | 20.0 | 30.1 |",
        "| de-en | net | own | 1,234 | beam 5 | 13a, cased | 12.3 |  |",
        "| what | unit | 8 | 16 |",
        "| maps | ms | 1.25 | 250 |",
        "| startup | s | 2 |",
        "| load | 21.8 |",
        "| deep: a\\|b | 1, 0.5 |",
        "| x | True |",
        "| y | False |",
    ):
        assert expected in lines, expected
    assert lines.count("Not measured with these versions yet.") == len(results.SECTIONS) - 3
    (tmp_path / "own.json").write_text("3")
    with pytest.raises(ValueError, match=r"own\.json is no benchmark's file"):
        results.page(tmp_path, tmp_path)
