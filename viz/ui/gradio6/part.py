"""One thing that rests on Gradio's internals: what it looks for there, and what the page is without it."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import gradio

log = logging.getLogger(__name__)

PACKAGE = Path(gradio.__file__).resolve().parent
FRONT_END = PACKAGE / "templates" / "frontend"


@dataclass(frozen=True)
class Part:
    """name: for a person; find: what of Gradio is missing, in words; without: what the page is like in that case. None:
    it cannot be served."""

    name: str
    find: Callable[[], Iterable[str]]
    without: str | None

    @cached_property
    def missing(self) -> tuple[str, ...]:
        return tuple(self.find())

    @property
    def usable(self) -> bool:
        return not self.missing


def check(parts: Iterable[Part]) -> None:
    """Log what is left out, and why. ValueError for a part that there must be."""
    for part in parts:
        if part.usable:
            continue
        lacks = f"Gradio {gradio.__version__} has no {', no '.join(part.missing)}"
        if part.without is None:
            raise ValueError(f"{lacks}, which {part.name} needs: install the version that requirements.txt names.")
        log.warning("%s: left out, since %s; %s", part.name, lacks, part.without)


def lacking(owner: object, *names: str) -> Iterable[str]:
    """Names that an object of Gradio's does not have."""
    return (f"{getattr(owner, '__name__', owner)}.{name}" for name in names if not hasattr(owner, name))


def unlike(function: Callable, *names: str) -> Iterable[str]:
    """Names of parameters that a function of Gradio's does not take."""
    known = inspect.signature(function).parameters
    return (f"parameter {name} of {function.__qualname__}" for name in names if name not in known)


def unsaid(file: str | Path, *texts: str) -> Iterable[str]:
    """Texts that stand in no file of the package of this name or pattern."""
    said = "".join(path.read_text(encoding="utf-8") for path in sorted(PACKAGE.glob(str(file))))
    return (f"{text!r} in {file}" for text in texts if text not in said)
