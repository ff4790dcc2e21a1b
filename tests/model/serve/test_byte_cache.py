"""A cache that is bounded by bytes."""

from __future__ import annotations

import threading
import time

import pytest

from attention_atlas.model.serve.byte_cache import ByteCache


def test_what_was_used_last_is_kept():
    cache = ByteCache(10, len)
    for key, value in (("a", "1234"), ("b", "1234")):
        cache.put(key, value)
    assert cache.get("a") == "1234"
    cache.put("c", "1234")
    assert (cache.get("a"), cache.get("b"), cache.get("c")) == ("1234", None, "1234")
    assert cache.bytes == 8 and len(cache) == 2


def test_a_value_that_is_too_large_is_handed_on_and_not_kept():
    cache = ByteCache(3, len)
    cache.put("a", "12")
    assert cache.get_or_compute("b", lambda: "12345") == "12345"
    assert cache.get("b") is None and cache.get("a") == "12" and cache.bytes == 2


def test_a_new_value_takes_the_place_of_the_one_before():
    cache = ByteCache(10, len)
    cache.put("a", "12345678")
    cache.put("a", "12")
    assert cache.get("a") == "12" and cache.bytes == 2


def test_sizes_are_computed_once():
    sized = []
    cache = ByteCache(10, lambda value: sized.append(value) or 1)
    cache.put("a", "x")
    for _ in range(3):
        cache.get("a")
    assert sized == ["x"]


def test_a_missing_value_is_computed_once_for_all_who_ask():
    cache, computed, found = ByteCache(100, len), [], []

    def compute() -> str:
        computed.append(1)
        time.sleep(0.05)
        return "value"

    threads = [threading.Thread(target=lambda: found.append(cache.get_or_compute("a", compute))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == ["value"] * 8 and len(computed) == 1


def test_an_error_is_raised_and_not_kept():
    cache = ByteCache(100, len)
    with pytest.raises(ValueError, match="no"):
        cache.get_or_compute("a", lambda: (_ for _ in ()).throw(ValueError("no")))
    assert cache.get_or_compute("a", lambda: "yes") == "yes"
