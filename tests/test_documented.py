"""The reference that `make docs` writes, whose modules each have an example that runs; the site; docs/results.md."""

from __future__ import annotations

import doctest
import importlib
import inspect
import json
import re

import pytest
from PIL import Image

from attention_atlas.__main__ import COMMANDS
from bench import animation, results
from tests import ROOT, docs
from tests.pages import documented, read

DOCUMENTED = documented()


@pytest.mark.parametrize("name", DOCUMENTED)
def test_each_page_has_an_example_that_runs(name, shipped_checkpoints, monkeypatch):
    monkeypatch.chdir(ROOT)
    found = doctest.testmod(importlib.import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE)
    assert found.attempted and not found.failed


def test_the_reference_has_what_pages_and_notebooks_import():
    pages = ("README.md", "docs/start/library.md", "docs/coming-from.md")
    texts = [*(ROOT / page for page in pages), *(ROOT / "notebooks").glob("*.ipynb")]
    used = {
        name
        for path in texts
        for name in re.findall(r"\bfrom (attention_atlas\.model[.\w]*) import ", path.read_text(encoding="utf-8"))
    }
    packages = {
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
def test_the_site_is_built_without_a_warning_or_a_dead_link():
    pytest.importorskip("zensical", reason="it needs Python 3.11.5")
    docs.build()
    page = (docs.SITE / "reference" / "pictures" / "index.html").read_text(encoding="utf-8")
    assert 'id="attention_atlas.viz.explore"' in page and "&gt;&gt;&gt;" in page


def test_a_dead_link_and_what_another_host_serves_are_found(tmp_path):
    (tmp_path / "one.html").write_text(
        '<h1 id="top"></h1><a href="#top"></a><a href="two.html#here"></a><a href="https://example.org/"></a>'
        '<a href="#gone"></a><a href="three.html"></a><a href="two.html#gone"></a>'
        '<script src="https://example.org/a.js"></script><link rel="stylesheet" href="//example.org/a.css">'
    )
    (tmp_path / "two.html").write_text('<p id="here"></p>')
    (tmp_path / "a.css").write_text("@font-face { src: url(https://example.org/a.woff2) }")
    found = docs.faults(tmp_path)
    assert len(found) == 6 and sum("loads" in line for line in found) == 3


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"])
def test_links_of_the_top_lead_to_files(page):
    addresses = re.findall(r"\]\(([^)#]+)", (ROOT / page).read_text(encoding="utf-8"))
    files = [address for address in addresses if "://" not in address]
    assert files and not [file for file in files if not (ROOT / file).exists()]


def test_the_reference_names_every_program():
    page = read("docs/reference/programs.md")
    assert re.findall(r"(?m)^\| `attention-atlas (\w+)` \| (.*) \|$", page) == [
        (name, words) for name, (_, words) in COMMANDS.items()
    ]


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
