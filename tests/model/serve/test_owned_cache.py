"""A cache on its owner: bounded, and gone with it."""

from __future__ import annotations

import gc
import weakref

from attention_atlas.model.serve.owned_cache import cached_on_owner


class Owner:
    calls = 0


@cached_on_owner(maxsize=2)
def double(owner: Owner, number: int) -> tuple[Owner, int]:
    owner.calls += 1
    return owner, 2 * number


def test_a_result_is_computed_once_for_each_owner_until_it_is_forgotten():
    first, second = Owner(), Owner()
    assert [double(first, n)[1] for n in (1, 1, 2, 1, 3, 2)] == [2, 2, 4, 2, 6, 4]
    assert first.calls == 4  # 2 was forgotten when 3 came
    assert double(second, 1) == (second, 2) and second.calls == 1


def test_results_do_not_keep_their_owner():
    owner = Owner()
    double(owner, 1)
    gone = weakref.ref(owner)
    del owner
    gc.collect()
    assert gone() is None
