"""A cache that is bounded by how many bytes its values take."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

Value = TypeVar("Value")


class ByteCache(Generic[Value]):
    """The values that were used last, up to `most` bytes of them. For any number of threads.

    A value that is larger than `most` is computed and handed on, but not kept. Of threads that ask for one missing
    value at once, one computes it, and the others wait for that.
    """

    def __init__(self, most: int, size: Callable[[Value], int]) -> None:
        """size: the bytes of a value. It is called once, when the value is stored."""
        self.most, self._size = most, size
        self._kept: OrderedDict[Hashable, tuple[Value, int]] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()
        self._computing: dict[Hashable, threading.Lock] = {}

    @property
    def bytes(self) -> int:
        """Of all values that are kept."""
        return self._bytes

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, key: Hashable) -> Value | None:
        """The value that is kept under this key."""
        with self._lock:
            if key not in self._kept:
                return None
            self._kept.move_to_end(key)
            return self._kept[key][0]

    def put(self, key: Hashable, value: Value) -> None:
        """Keep a value, in the place of those that were not used for longest."""
        size = self._size(value)
        with self._lock:
            self._bytes -= self._kept.pop(key, (None, 0))[1]
            if size > self.most:
                return
            self._kept[key] = value, size
            self._bytes += size
            while self._bytes > self.most:
                self._bytes -= self._kept.popitem(last=False)[1][1]

    def get_or_compute(self, key: Hashable, compute: Callable[[], Value]) -> Value:
        """The value under this key, computed where there is none. An error of compute() is raised, and not kept."""
        if (found := self.get(key)) is not None:
            return found
        with self._lock:
            computing = self._computing.setdefault(key, threading.Lock())
        with computing:
            try:
                if (found := self.get(key)) is None:
                    self.put(key, found := compute())
                return found
            finally:
                with self._lock:
                    self._computing.pop(key, None)
