"""Work in parts: its result is kept once it is whole, on the model that it is about."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from attention_atlas.model.serve.work import KEPT, Parts, Work, WorkNeeded


def work_of(owner: SimpleNamespace, setting: int) -> Work[int]:
    def compute() -> Parts[int]:
        for done in range(1, 3):
            yield done, 2
        return 10 * setting

    return Work(owner, ("tens", setting), compute)


def test_a_result_is_kept_once_it_is_whole() -> None:
    owner = SimpleNamespace(digest="a")
    work = work_of(owner, 3)
    assert next(work.run()) == (1, 2) and work.find() is None
    with pytest.raises(WorkNeeded) as needed:
        work.result()
    assert needed.value.work is work and list(work.run()) == [(1, 2), (2, 2)]
    assert work_of(owner, 3).result() == 30 and work_of(owner, 4).find() is None
    assert work_of(SimpleNamespace(digest="a"), 3).find() is None


def test_a_key_is_of_the_weights_and_the_settings() -> None:
    keys = [work_of(SimpleNamespace(digest=digest), setting).key for digest in "ab" for setting in (1, 2)]
    assert len(set(keys)) == 4 and keys[0] == work_of(SimpleNamespace(digest="a"), 1).key


def test_the_results_of_a_model_are_bounded() -> None:
    owner = SimpleNamespace(digest="a")
    for setting in range(KEPT + 1):
        list(work_of(owner, setting).run())
    assert work_of(owner, 0).find() is None and work_of(owner, KEPT).find() == 10 * KEPT
