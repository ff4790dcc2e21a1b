"""Cancelled work ends between its parts."""

from __future__ import annotations

import threading

import pytest

from attention_atlas.model.serve.cancellation import Cancelled, cancelled_by, raise_if_cancelled
from attention_atlas.model.serve.cores import Cores, map_on_spare_core


@pytest.mark.parametrize("cores", [1, 2])
def test_parts_that_have_not_started_are_skipped(cores):
    gone, done = threading.Event(), []

    def part(number: int) -> None:
        done.append(number)
        if number == 1:
            gone.set()

    with cancelled_by(gone), Cores(cores).share(), pytest.raises(Cancelled):
        map_on_spare_core(part, range(20))
    assert len(done) <= 4


def test_nothing_is_cancelled_outside():
    gone = threading.Event()
    gone.set()
    with cancelled_by(gone), pytest.raises(Cancelled):
        raise_if_cancelled()
    raise_if_cancelled()
