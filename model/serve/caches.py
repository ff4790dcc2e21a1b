"""Bounded caches: one limited by the bytes of its values, one that lives on the object its results belong to."""

from __future__ import annotations

import functools
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

Value = TypeVar("Value")
Result = TypeVar("Result")


class ByteCache(Generic[Value]):
    """A least-recently-used cache that holds at most `max_bytes` bytes of values; safe for any number of threads.

    A value larger than `max_bytes` is computed and returned, but not stored. When several threads request the same
    missing value at once, one computes it and the others wait.

    >>> cache = ByteCache(10, len)
    >>> cache.get_or_compute("key", lambda: "value")
    'value'
    """

    def __init__(self, max_bytes: int, size: Callable[[Value], int]) -> None:
        """size: returns the bytes of a value; called once, when the value is stored."""
        self.max_bytes, self._size = max_bytes, size
        self._entries: OrderedDict[Hashable, tuple[Value, int]] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()
        self._computing: dict[Hashable, threading.Lock] = {}

    @property
    def bytes(self) -> int:
        """The bytes of all stored values."""
        return self._bytes

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: Hashable) -> Value | None:
        """Return the stored value, or None."""
        with self._lock:
            if key not in self._entries:
                return None
            self._entries.move_to_end(key)
            return self._entries[key][0]

    def put(self, key: Hashable, value: Value) -> None:
        """Store a value, and evict the least recently used ones beyond the limit."""
        size = self._size(value)
        with self._lock:
            self._bytes -= self._entries.pop(key, (None, 0))[1]
            if size > self.max_bytes:
                return
            self._entries[key] = value, size
            self._bytes += size
            while self._bytes > self.max_bytes:
                self._bytes -= self._entries.popitem(last=False)[1][1]

    def get_or_compute(self, key: Hashable, compute: Callable[[], Value]) -> Value:
        """Return the stored value, or compute and store it. An exception of compute() propagates; nothing is stored."""
        if (value := self.get(key)) is not None:
            return value
        with self._lock:
            computing = self._computing.setdefault(key, threading.Lock())
        with computing:
            try:
                if (value := self.get(key)) is None:
                    self.put(key, value := compute())
                return value
            finally:
                with self._lock:
                    self._computing.pop(key, None)


def cached_on_owner(maxsize: int) -> Callable[[Callable[..., Result]], Callable[..., Result]]:
    """Cache the results of a function of an owner and hashable values, like functools.lru_cache.

    The results are attributes of the owner (such as a translator) and are freed with it.
    """

    def decorate(function: Callable[..., Result]) -> Callable[..., Result]:
        name = f"_results_of_{function.__module__}.{function.__qualname__}"

        @functools.wraps(function)
        def cached(owner: object, *values: object) -> Result:
            results: ByteCache = vars(owner).setdefault(name, ByteCache(maxsize, lambda result: 1))  # each counts as 1
            return results.get_or_compute(values, lambda: function(owner, *values))

        return cached

    return decorate
