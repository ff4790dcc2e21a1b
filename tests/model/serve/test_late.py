"""A package that another imports, imported when it is used."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

from model.serve.late import late
from tests import ROOT


@pytest.fixture
def package(tmp_path, monkeypatch) -> str:
    """A package with a part of its own, and a module that imports it."""
    (tmp_path / "atlas_tables").mkdir()
    (tmp_path / "atlas_tables/__init__.py").write_text("from atlas_tables import rows\nNAME = 'tables'\n")
    (tmp_path / "atlas_tables/rows.py").write_text("COUNT = 3\n")
    (tmp_path / "atlas_user.py").write_text("import atlas_tables as tables\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield "atlas_tables"
    for name in [name for name in sys.modules if name.startswith("atlas_")]:
        del sys.modules[name]


def test_what_a_module_imports_runs_when_it_is_used(package) -> None:
    with late(package):
        user = importlib.import_module("atlas_user")
        assert not hasattr(user.tables, "__file__"), "asked of all modules by whoever looks through them"
    assert package not in sys.modules and f"{package}.rows" not in sys.modules
    assert user.tables.NAME == "tables" and user.tables.rows.COUNT == 3
    assert user.tables.rows is importlib.import_module(f"{package}.rows")
    with pytest.raises(AttributeError, match="nothing"):
        user.tables.nothing  # noqa: B018


def test_what_is_there_already_or_nowhere_stays_as_it_is(package) -> None:
    there = importlib.import_module(package)
    with late(package):
        assert importlib.import_module("atlas_user").tables is there
    assert sys.modules[package] is there
    with late("atlas_nowhere"), pytest.raises(ModuleNotFoundError):
        importlib.import_module("atlas_nowhere")


def test_what_is_imported_in_earnest_meanwhile_stays(package) -> None:
    with late(package):
        user = importlib.import_module("atlas_user")
        del sys.modules[package]
        there = importlib.import_module(package)
    assert sys.modules[package] is there and user.tables.rows is there.rows


def test_the_app_has_no_pandas_until_somebody_wants_a_table() -> None:
    program = (
        "import sys, app, gradio.caching; assert 'pandas' not in sys.modules; "
        "gradio.caching.pd.DataFrame({'a': [1]}); import pandas; assert gradio.caching.pd.Series is pandas.Series"
    )
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True)
