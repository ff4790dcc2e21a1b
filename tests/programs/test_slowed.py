"""A slow machine: what cannot be had is said in words, before the command starts."""

from __future__ import annotations

import sys

import pytest

from tests import slowed


@pytest.mark.parametrize("arguments", [["45"], ["0", "true"], ["101", "true"], ["half", "true"]])
def test_what_makes_no_sense_is_refused(arguments):
    with pytest.raises(SystemExit, match="2"):
        slowed.main(arguments)


def test_where_nobody_may_limit_it_nothing_is_run(tmp_path, monkeypatch):
    monkeypatch.setattr(slowed, "CGROUPS", tmp_path)
    with pytest.raises(ValueError, match="limit the processor's time"):
        slowed.main(["45", sys.executable, "-c", f"open({str(tmp_path / 'ran')!r}, 'w')"])
    assert not (tmp_path / "ran").exists()
