"""On a ZeroGPU Space, every function that uses a model runs in a process that is lent a GPU."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from types import ModuleType

GPU_SECONDS = 15  # of one call; short, so that visitors' quotas last


def lender(spaces: ModuleType) -> Callable[[Callable], Callable]:
    """Return the decorator of functions that are lent a GPU. spaces: Hugging Face's package.

    Arguments and answers cross to another process: they are JSON, never tensors.
    """

    def lend(function: Callable) -> Callable:
        lent = spaces.GPU(duration=GPU_SECONDS)(function)
        if lent is function:
            return function

        @functools.wraps(function)
        def call(*values: object, **named: object) -> object:
            return lent(*values, **named)

        @functools.wraps(function)
        def stream(*values: object, **named: object) -> Iterator[object]:
            yield from lent(*values, **named)

        # Gradio takes one value from whatever is no generator function.
        return stream if inspect.isgeneratorfunction(function) else call

    return lend
