"""On a ZeroGPU Space, every handler that uses the model runs in a process that is lent a GPU."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import NamedTuple

import gradio as gr
from gradio.blocks import BlockFunction

from viz.ui.gradio6.part import Part, unlike

MODEL_EVENTS = ("translate", "model")  # the concurrency_id of handlers that use the model
GPU_SECONDS = 15  # what one handler may take on a ZeroGPU Space; short, so that visitors' quotas last


def wrap_for_zero_gpu(demo: gr.Blocks, spaces: ModuleType | None) -> None:
    """Let handlers be lent a GPU. spaces: Hugging Face's package; None: nothing is lent here.

    The handlers' inputs and outputs cross to another process: texts, ids and numpy traces, never tensors. An event is
    reduced to its data, since it also refers to the page.
    """
    if spaces is None:
        return
    for block_function in demo.fns.values():
        if block_function.concurrency_id in MODEL_EVENTS and block_function.fn is not None:
            block_function.fn = _on_lent_gpu(block_function.fn, spaces)


class _EventData(NamedTuple):
    data: object  # an event's; Gradio's own class cannot be unpickled


def _on_lent_gpu(handler: Callable, spaces: ModuleType) -> Callable:
    def run(values: tuple) -> object:
        return handler(*(gr.EventData(None, v.data) if isinstance(v, _EventData) else v for v in values))

    @functools.wraps(handler)
    def inside(*values: object) -> object:
        return run(values)

    if inspect.isgeneratorfunction(handler):  # `spaces` sends what a generator yields, one by one, if it sees it is one

        @functools.wraps(handler)
        def inside(*values: object) -> object:
            yield from run(values)

    lent = spaces.GPU(duration=GPU_SECONDS)(inside)
    if lent is inside:
        return handler

    def crossing(values: tuple) -> tuple:
        return tuple(_EventData(v._data) if isinstance(v, gr.EventData) else v for v in values)

    @functools.wraps(handler)
    def call(*values: object) -> object:
        return lent(*crossing(values))

    @functools.wraps(handler)
    def stream(*values: object) -> Iterator[object]:
        yield from lent(*crossing(values))

    # Gradio takes one value from whatever is no generator function.
    return stream if inspect.isgeneratorfunction(handler) else call


def _missing() -> Iterator[str]:
    yield from unlike(BlockFunction.__init__, "fn", "concurrency_id")
    yield from unlike(gr.EventData.__init__, "target", "_data")


PART = Part("handlers that are lent a GPU", _missing, None)
