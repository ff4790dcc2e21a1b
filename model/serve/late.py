"""A package that another one imports, and that is mostly never used, imported when it is."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType


class _Late(ModuleType):
    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):  # whoever looks through all modules asks for such alone
            raise AttributeError(name)
        return getattr(importlib.import_module(self.__name__), name)


@contextmanager
def late(name: str) -> Iterator[None]:
    """Whatever imports this package here has it imported by the first use of it; elsewhere it is imported as ever.
    A package that is here already, or nowhere, is left as it is."""
    spec = None if name in sys.modules else importlib.util.find_spec(name)
    if spec is None:
        yield
        return
    stands_in = _Late(name)
    stands_in.__spec__ = spec
    sys.modules[name] = stands_in
    try:
        yield
    finally:
        if sys.modules.get(name) is stands_in:
            del sys.modules[name]
