"""Caches that live as long as the object they belong to, such as a translator."""

from __future__ import annotations

import functools
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")


def cached_on_owner(maxsize: int) -> Callable[[Callable[..., Result]], Callable[..., Result]]:
    """Like functools.lru_cache, for functions of an owner and hashable values: the results are kept on the owner, and
    deleted with it."""

    def decorate(function: Callable[..., Result]) -> Callable[..., Result]:
        name, lock = f"_results_of_{function.__module__}.{function.__qualname__}", threading.Lock()

        @functools.wraps(function)
        def cached(owner: object, *values: object) -> Result:
            results: OrderedDict = vars(owner).setdefault(name, OrderedDict())
            with lock:
                if values in results:
                    results.move_to_end(values)
                    return results[values]
            result = function(owner, *values)
            with lock:
                results[values] = result
                while len(results) > maxsize:
                    results.popitem(last=False)
            return result

        return cached

    return decorate
