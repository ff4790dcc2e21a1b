"""Faults while people ask: others are answered, rightly, and no answer that was finished is lost."""

from __future__ import annotations

import pytest

from bench.hosting.besieged import running
from bench.hosting.faults import FAULTS


@pytest.fixture(scope="module")
def served(tiny_checkpoint, tmp_path_factory):
    with running(
        ["--checkpoints", str(tiny_checkpoint.parent), "--device", "cpu"], tmp_path_factory.mktemp("app")
    ) as one:
        yield one


def check(name: str, found: dict[str, float]) -> None:
    print(name, found)
    assert not found.get("wrong") and not found.get("failed") and not found.get("wrong answers")
    assert found.get("answers to others", 1) > 0
    whole = {"slow clients": ("clients", "whole answers"), "a full disk": ("exports", "whole exports")}
    if name in whole:
        asked, came = whole[name]
        assert found[asked] == found[came]
    if name == "sessions":
        assert found["memory (MB)"] < 1.25 * found["memory after a fifth (MB)"] + 50
    if name == "SIGTERM":
        assert found["lost"] == 0 and found["taken"] >= found["callers"]
        assert found["exit code"] == 0 and found["seconds to the end"] < 5


@pytest.mark.long
@pytest.mark.parametrize("name", FAULTS)
def test_others_are_answered_and_nothing_finished_is_lost(served, name):
    fault, few, _ = FAULTS[name]
    if name == "a clock that is set" and served.clock is None:
        pytest.skip("there is no C compiler")
    check(name, fault(served, few))


@pytest.mark.endure
@pytest.mark.parametrize("name", FAULTS)
def test_so_it_is_with_thousands(tiny_checkpoint, tmp_path, name):
    fault, _, many = FAULTS[name]
    with running(["--checkpoints", str(tiny_checkpoint.parent), "--device", "cpu"], tmp_path) as one:
        if name == "a clock that is set" and one.clock is None:
            pytest.skip("there is no C compiler")
        check(name, fault(one, many))
