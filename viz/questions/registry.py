"""The registry of the page's questions.

>>> @question(lane="page")
... def page_echo(context, address, fields):
...     return {"heard": fields.get("text")}
>>> ask(None, "page_echo", {"fields": {"text": "Hallo"}})
{'heard': 'Hallo'}
>>> del QUESTIONS["page_echo"]
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field

from model.analysis.why.means_cache import MeansCache
from model.serve.limits import BatchLimits
from model.trace.address import Address
from model.trace.language import Refusal
from model.trace.translation import TranslationTrace
from model.translators import Translators
from viz.questions.traces import Traces

PREFIX = "page_"  # a question under a public endpoint's name would take its place in Gradio
Answer = dict | Generator[dict]


@dataclass(frozen=True)
class Context:
    """The models that answer questions, and the results that are kept for later ones."""

    translators: Translators
    traces: Traces
    means: MeansCache = field(default_factory=MeansCache)
    limits: BatchLimits = BatchLimits()  # whose share of the cores a question is computed on

    def trace(self, address: Address | None) -> TranslationTrace:
        """Return the translation at an address. A Refusal if there is no address: nothing is translated yet."""
        if address is None:
            raise Refusal("Translate a sentence first.")
        return self.traces.find(address)


@dataclass(frozen=True)
class Question:
    """answer: (context, address or None, fields) -> JSON-ready, or a generator of such, each in place of the one
    before. lane: of the line that the request waits in (viz.ui.server.line)."""

    answer: Callable[[Context, Address | None, Mapping], Answer]
    lane: str


QUESTIONS: dict[str, Question] = {}


def question(*, lane: str) -> Callable[[Callable], Callable]:
    """Register a function as the question of its name."""

    def register(answer: Callable[[Context, Address | None, Mapping], Answer]) -> Callable:
        name = answer.__name__
        assert name.startswith(PREFIX) and name not in QUESTIONS, name
        QUESTIONS[name] = Question(answer, lane)
        return answer

    return register


def ask(context: Context, name: str, body: Mapping) -> Answer:
    """Answer a question. body: {"address", "fields"} as JSON; either may be left out. ValueError, in words, for what
    cannot be answered."""
    address, fields = body.get("address"), body.get("fields") or {}
    if not isinstance(fields, dict):
        raise ValueError("The fields of a question are an object.")
    return QUESTIONS[name].answer(context, None if address is None else Address.from_plain(address), fields)


def load_all() -> None:
    """Import every module of questions, each of which registers its own."""
    package = importlib.import_module(__package__)
    for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        importlib.import_module(module.name)
