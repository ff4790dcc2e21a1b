"""The documentation: every module of the reference has an example that runs, links work, results are up to date."""

from __future__ import annotations

import doctest
import importlib
import inspect
import json
import pkgutil
import re

import pytest

from attention_atlas.__main__ import COMMANDS
from attention_atlas.viz.panels.registry import TABS
from bench import results
from tests import ROOT, docs
from tests.pages import documented, read

DOCUMENTED = documented()


@pytest.mark.parametrize("name", DOCUMENTED)
def test_each_documented_module_has_an_example_that_runs(name, shipped_checkpoints, monkeypatch):
    monkeypatch.chdir(ROOT)
    results = doctest.testmod(importlib.import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE)
    assert results.attempted and not results.failed


def test_modules_imported_by_pages_and_notebooks_are_in_the_reference():
    pages = ("README.md", "docs/start/library.md", "docs/coming-from.md")
    texts = [*(ROOT / page for page in pages), *(ROOT / "notebooks").glob("*.ipynb")]
    used = {
        name
        for path in texts
        for name in re.findall(r"\bfrom (attention_atlas\.model[.\w]*) import ", path.read_text(encoding="utf-8"))
    }
    packages = {
        "attention_atlas.model.analysis": "attention_atlas.model.analysis.why",
        "attention_atlas.model.trace": "attention_atlas.model.trace.storage",
        "attention_atlas.model.families": "attention_atlas.model.families.hub",
    }
    assert {packages.get(name, name) for name in used} <= {*DOCUMENTED}


def public(name: str) -> list:
    """Return the public objects of a module, which its page documents."""
    module = importlib.import_module(name)
    own = [n for n, value in vars(module).items() if n[0] != "_" and getattr(value, "__module__", None) == name]
    return [getattr(module, n) for n in getattr(module, "__all__", own)]


def ours(thing: object) -> bool:
    return inspect.isclass(thing) and thing.__module__.split(".")[0] == "attention_atlas"


def test_base_classes_and_return_types_are_in_the_reference():
    objects = [thing for name in DOCUMENTED for thing in public(name)]
    classes = {base for cls in filter(ours, objects) for base in cls.__mro__ if ours(base)}
    methods = [getattr(m, "__func__", m) for cls in classes for name, m in vars(cls).items() if name[0] != "_"]
    returned = {
        call.__globals__.get(word)
        for call in filter(inspect.isfunction, [*objects, *methods])
        for word in re.findall(r"\w+", str(inspect.signature(call).return_annotation))
    }
    missing = {cls.__name__ for cls in classes | {*filter(ours, returned)} if cls not in objects}
    assert missing == {"Figure"}  # a class of Plotly


def test_the_page_about_courses_names_panels_and_sections_that_exist():
    page = read("docs/explanation/courses.md")
    panels = {(str(tab.title), str(panel.title)) for tab in TABS for panel in tab.panels}
    places = set(re.findall(r"\*\*(\w+) → (.+?)\*\*", page))
    assert len(places) > 20 and places <= panels
    cells = json.loads((ROOT / "notebooks/from_scratch.ipynb").read_text(encoding="utf-8"))["cells"]
    sections = {int(n) for cell in cells for n in re.findall(r"^## (\d+)\.", "".join(cell["source"]))}
    assert {int(n) for n in re.findall(r"\*from_scratch\* (\d+)", page)} <= sections


def test_modules_named_by_the_page_about_courses_have_what_it_names():
    paths = re.findall(r"`(model\.[\w.]+)`", read("docs/explanation/courses.md"))
    assert paths
    for path in paths:
        assert pkgutil.resolve_name(f"attention_atlas.{path}")


@pytest.mark.long
def test_the_site_is_built_without_a_warning_or_a_dead_link():
    pytest.importorskip("zensical", reason="Zensical needs Python 3.11.5")
    docs.build()
    page = (docs.SITE / "reference" / "pictures" / "index.html").read_text(encoding="utf-8")
    assert 'id="attention_atlas.viz.explore"' in page and "&gt;&gt;&gt;" in page


def test_dead_links_and_files_of_other_hosts_are_reported(tmp_path):
    (tmp_path / "one.html").write_text(
        '<h1 id="top"></h1><a href="#top"></a><a href="two.html#here"></a><a href="https://example.org/"></a>'
        '<a href="#gone"></a><a href="three.html"></a><a href="two.html#gone"></a>'
        '<script src="https://example.org/a.js"></script><link rel="stylesheet" href="//example.org/a.css">'
    )
    (tmp_path / "two.html").write_text('<p id="here"></p>')
    (tmp_path / "a.css").write_text("@font-face { src: url(https://example.org/a.woff2) }")
    faults = docs.find_faults(tmp_path)
    assert len(faults) == 6 and sum("loads" in line for line in faults) == 3


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"])
def test_links_of_top_level_pages_lead_to_files(page):
    addresses = re.findall(r"\]\(([^)#]+)", (ROOT / page).read_text(encoding="utf-8"))
    files = [address for address in addresses if "://" not in address]
    assert files and not [file for file in files if not (ROOT / file).exists()]


def test_the_security_page_names_existing_tests():
    names = set(re.findall(r"`(test_\w+)`", read("docs/security.md")))
    defined = {
        name for path in (ROOT / "tests").rglob("test_*.py") for name in re.findall(r"def (test_\w+)", path.read_text())
    }
    assert names and names <= defined


def test_the_reference_names_every_program():
    page = read("docs/reference/programs.md")
    assert re.findall(r"(?m)^\| `attention-atlas (\w+)` \| (.*) \|$", page) == [
        (name, words) for name, (_, words) in COMMANDS.items()
    ]


def test_docs_results_is_up_to_date():
    expected = results.page(ROOT / "checkpoints", results.FOLDER)
    assert results.PAGE.read_text(encoding="utf-8") == expected, "make results"


def test_the_results_page_has_every_number_of_the_measured_files(tmp_path):
    (tmp_path / "net").mkdir()
    (tmp_path / "domains").mkdir()
    score = {"data": "own", "split": "test", "direction": "de-en", "beam": 5, "length_penalty": 1.0}
    score |= {"sentences": 1234, "bleu": 12.34}
    speeds = (("maps_8", 1.25, "ms"), ("maps_16", 250.4, "ms"), ("startup", 2, "s"))
    domain = {"direction": "de-en", "data": "chats", "sentences": 100}
    files = {
        "net/metrics.json": {"scores": [score, {"split": "dev"}]},
        "speed.json": [{"name": name, "value": value, "unit": unit} for name, value, unit in speeds],
        "load.json": {"load": 21.81, "deep": {"a|b": [1, 0.5]}},
        "why.json": [{"model": "m"}, {"what": "x", "met": True}, {"what": "y", "met": False}],
        "domains/first.net.json": {"scores": [{**domain, "bleu": 20.04}]},
        "domains/later.net.json": {"scores": [{**domain, "bleu": 30.06}]},
    }
    for name, content in files.items():
        (tmp_path / name).write_text(json.dumps(content))
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
    with pytest.raises(ValueError, match=r"own\.json is not the file of a benchmark"):
        results.page(tmp_path, tmp_path)
