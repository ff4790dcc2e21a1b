"""Tests of faults under load: other requests are answered correctly, and no finished answer is lost."""

from __future__ import annotations

import pytest

from bench.hosting.faults import FAULTS, running


@pytest.fixture(scope="module")
def served(tiny_checkpoint, tmp_path_factory):
    with running(
        ["--checkpoints", str(tiny_checkpoint.parent), "--device", "cpu"], tmp_path_factory.mktemp("app")
    ) as app:
        yield app


def check(name: str, counts: dict[str, float]) -> None:
    print(name, counts)
    assert not counts.get("wrong") and not counts.get("failed") and not counts.get("wrong answers")
    assert counts.get("answers to others", 1) > 0
    whole = {"slow clients": ("clients", "whole answers"), "a full disk": ("exports", "whole exports")}
    if name in whole:
        requests, answers = whole[name]
        assert counts[requests] == counts[answers]
    if name == "sessions":
        assert counts["memory (MB)"] < 1.25 * counts["memory after a fifth (MB)"] + 50
    if name == "SIGTERM":
        assert counts["lost"] == 0 and counts["taken"] >= counts["callers"]
        assert counts["exit code"] == 0 and counts["seconds to the end"] < 5


@pytest.mark.long
@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_loses_no_answers(served, name):
    fault, few, _ = FAULTS[name]
    if name == "a clock that is set" and served.clock is None:
        pytest.skip("there is no C compiler")
    check(name, fault(served, few))


@pytest.mark.endure
@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_among_thousands_of_requests_loses_no_answers(tiny_checkpoint, tmp_path, name):
    fault, _, many = FAULTS[name]
    with running(["--checkpoints", str(tiny_checkpoint.parent), "--device", "cpu"], tmp_path) as app:
        if name == "a clock that is set" and app.clock is None:
            pytest.skip("there is no C compiler")
        check(name, fault(app, many))
