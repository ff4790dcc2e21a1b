"""The registry of the page's questions. A question is a function (context, address, fields) -> JSON-ready answer.

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
from dataclasses import dataclass
from functools import partial

from attention_atlas.model.serve.limits import BatchLimits
from attention_atlas.model.serve.work import WorkNeeded
from attention_atlas.model.trace.address import Address
from attention_atlas.model.trace.language import Refusal
from attention_atlas.model.trace.translation import TranslationTrace
from attention_atlas.model.training.toy.toys import ToyNeeded
from attention_atlas.model.translators import Translators
from attention_atlas.viz.questions.traces import Retrained, Traces
from attention_atlas.viz.wire.file import File

PREFIX = "page_"  # a question under a public endpoint's name would take its place in Gradio
MAX_ATTEMPTS = (
    5  # to answer a question: it may need toys and long work for two addresses, each lost from its cache once
)
Answer = dict | File | Generator[dict | File]


@dataclass(frozen=True)
class Context:
    """The models that questions are answered with, and the caches of earlier results."""

    translators: Translators
    traces: Traces
    limits: BatchLimits = BatchLimits()  # a question is computed on a share of its cores

    def trace(self, address: Address | None) -> TranslationTrace:
        """Return the translation at an address. Raises Refusal if the address is None: nothing is translated yet."""
        if address is None:
            raise Refusal("Translate a sentence first.")
        return self.traces.find(address)


@dataclass(frozen=True)
class Question:
    """A registered question.

    Attributes:
        answer: (context, address or None, fields) -> a JSON-ready dict, a file, or a generator of these, of which each
            replaces the one before
        lane: the lane of the request queue in which the request waits (viz.server.request_queue)
        on_cpu: whether it never uses a GPU
    """

    answer: Callable[[Context, Address | None, Mapping], Answer]
    lane: str
    on_cpu: bool = False


QUESTIONS: dict[str, Question] = {}


def question(*, lane: str, on_cpu: bool = False) -> Callable[[Callable], Callable]:
    """Register a function as the question of its name."""

    def register(answer: Callable[[Context, Address | None, Mapping], Answer]) -> Callable:
        name = answer.__name__
        assert name.startswith(PREFIX) and name not in QUESTIONS, name
        QUESTIONS[name] = Question(answer, lane, on_cpu)
        return answer

    return register


def ask(context: Context, name: str, body: Mapping) -> Answer:
    """Answer a question. body: {"address", "fields"} as JSON; either may be missing. Raises ValueError for a question
    that cannot be answered.

    If the answer needs a toy or the result of long work that is not in a cache, that is computed first, and its
    progress is streamed: {"training": {"update", "of"}}, with "waits" while another large toy is trained, or {"work":
    {"done", "of"}}. If a retrained toy has other weights than the address names, the answer is {"retrained": the new
    address}."""
    address, fields = body.get("address"), body.get("fields") or {}
    if not isinstance(fields, dict):
        raise ValueError("The fields of a question are an object.")
    place = None if address is None else Address.from_plain(address)
    answer = partial(QUESTIONS[name].answer, context, place, fields)
    try:
        content = answer()
    except (ToyNeeded, WorkNeeded, Retrained):
        content = None
    return content if isinstance(content, dict | File) else _in_parts(context, answer, content)


def _in_parts(
    context: Context, answer: Callable[[], Answer], content: Generator[dict | File] | None
) -> Generator[dict | File]:
    """Yield the parts of an answer. If it needs a toy or long work, compute that and start again."""
    for _ in range(MAX_ATTEMPTS):
        try:
            content = answer() if content is None else content
            yield from [content] if isinstance(content, dict | File) else content
            return
        except Retrained as error:
            yield {"retrained": error.address.to_plain()}
            return
        except (ToyNeeded, WorkNeeded) as error:
            needed, content = error, None
        if isinstance(needed, WorkNeeded):
            for done, of in needed.work.run():
                yield {"work": {"done": done, "of": of}}
            continue
        for update in context.traces.toys.train(needed.recipe):
            waits = {"waits": True} if update is None else {}
            yield {"training": {"update": update or 0, "of": needed.recipe.updates, **waits}}
    raise Refusal("The model is busy: your toy was trained, and others took its place. Please try again in a moment.")


def load_all() -> None:
    """Import all modules of this package, which register their questions."""
    package = importlib.import_module(__package__)
    for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        importlib.import_module(module.name)
