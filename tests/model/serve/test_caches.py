"""Caches are bounded, compute each value once, and hold results of work with the model they are about."""

from __future__ import annotations

import gc
import threading
import time
import weakref
from types import SimpleNamespace

import pytest

from attention_atlas.model.serve.caches import ByteCache, cached_on_owner
from attention_atlas.model.serve.work import MAX_RESULTS, Parts, Work, WorkNeeded


def test_the_least_recently_used_value_is_evicted():
    sizes = []
    cache = ByteCache(10, lambda value: sizes.append(value) or len(value))
    for key, value in (("a", "1234"), ("b", "123")):
        cache.put(key, value)
    assert cache.get("a") == "1234"
    cache.put("c", "12345")
    assert (cache.get("a"), cache.get("b"), cache.get("c")) == ("1234", None, "12345")
    assert cache.bytes == 9 and len(cache) == 2
    assert sizes == ["1234", "123", "12345"]  # each size is computed once


def test_a_value_larger_than_the_cache_is_returned_but_not_stored():
    cache = ByteCache(3, len)
    cache.put("a", "12")
    assert cache.get_or_compute("b", lambda: "12345") == "12345"
    assert cache.get("b") is None and cache.get("a") == "12" and cache.bytes == 2


def test_a_new_value_replaces_the_old_one():
    cache = ByteCache(10, len)
    cache.put("a", "12345678")
    cache.put("a", "12")
    assert cache.get("a") == "12" and cache.bytes == 2


def test_concurrent_requests_compute_a_missing_value_once():
    cache, computed, values = ByteCache(100, len), [], []

    def compute() -> str:
        computed.append(1)
        time.sleep(0.05)
        return "value"

    threads = [threading.Thread(target=lambda: values.append(cache.get_or_compute("a", compute))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert values == ["value"] * 8 and len(computed) == 1


def test_an_error_is_raised_and_not_stored():
    cache = ByteCache(100, len)
    with pytest.raises(ValueError, match="no"):
        cache.get_or_compute("a", lambda: (_ for _ in ()).throw(ValueError("no")))
    assert cache.get_or_compute("a", lambda: "yes") == "yes"


class Owner:
    calls = 0


@cached_on_owner(maxsize=2)
def double(owner: Owner, number: int) -> tuple[Owner, int]:
    owner.calls += 1
    return owner, 2 * number


def test_each_owner_caches_its_own_results():
    first, second = Owner(), Owner()
    assert [double(first, n)[1] for n in (1, 1, 2, 1, 3, 2)] == [2, 2, 4, 2, 6, 4]
    assert first.calls == 4  # 3 evicted 2
    assert double(second, 1) == (second, 2) and second.calls == 1


def test_cached_results_do_not_keep_their_owner_alive():
    owner = Owner()
    double(owner, 1)
    reference = weakref.ref(owner)
    del owner
    gc.collect()
    assert reference() is None


def make_work(owner: SimpleNamespace, setting: int) -> Work[int]:
    def compute() -> Parts[int]:
        for done in range(1, 3):
            yield done, 2
        return 10 * setting

    return Work(owner, ("tens", setting), compute)


def test_work_stores_its_result_once_complete() -> None:
    owner = SimpleNamespace(digest="a")
    work = make_work(owner, 3)
    assert next(work.run()) == (1, 2) and work.find() is None
    with pytest.raises(WorkNeeded) as needed:
        work.result()
    assert needed.value.work is work and list(work.run()) == [(1, 2), (2, 2)]
    assert make_work(owner, 3).result() == 30 and make_work(owner, 4).find() is None
    assert make_work(SimpleNamespace(digest="a"), 3).find() is None


def test_a_work_key_depends_on_the_weights_and_the_settings() -> None:
    keys = [make_work(SimpleNamespace(digest=digest), setting).key for digest in "ab" for setting in (1, 2)]
    assert len(set(keys)) == 4 and keys[0] == make_work(SimpleNamespace(digest="a"), 1).key


def test_an_owner_keeps_a_bounded_number_of_results() -> None:
    owner = SimpleNamespace(digest="a")
    for setting in range(MAX_RESULTS + 1):
        list(make_work(owner, setting).run())
    assert make_work(owner, 0).find() is None and make_work(owner, MAX_RESULTS).find() == 10 * MAX_RESULTS
