"""The named endpoints: a function each, which `endpoint` registers. Its name, its fields, its documentation for
programs, what the guard lets in, and its row in README.md's table all come from that function."""

from __future__ import annotations

import functools
import inspect
import json
import logging
import math
import typing
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum

import gradio as gr
from anyio import CapacityLimiter, to_thread

from attention_atlas.model.analysis.why.means_cache import MeansCache
from attention_atlas.model.serve.cancellation import Cancelled
from attention_atlas.model.serve.limits import Busy
from attention_atlas.model.trace import interventions_file, is_integer
from attention_atlas.model.trace.interventions import NO_INTERVENTIONS, Interventions
from attention_atlas.model.trace.translation import TranslationTrace
from attention_atlas.model.translator import Translator
from attention_atlas.model.translators import Translators
from attention_atlas.viz.server.discreet_log import describe
from attention_atlas.viz.server.line import Line

VERSION = 1  # of the answers' schema
TOOLS = "/gradio_api/mcp"  # where tools of the Model Context Protocol are called
MAX_FIELD = 100_000  # characters of JSON of a field that is neither a text nor the interventions
ONE_BY_ONE = {"concurrency_id": "model"}  # work on the model, as many calls at once as `--concurrency` says
One = typing.TypeVar("One", bound=Enum)

log = logging.getLogger(__name__)


def answering(endpoint: Callable[..., dict]) -> Callable[..., dict]:
    """Return the endpoint with its answer in the schema's envelope. Errors are answers, too."""

    def fault(error: str) -> str:
        return f"The server could not answer ({error}). Other requests are unaffected; please report this."

    @functools.wraps(endpoint)
    def answer(*args: object, **options: object) -> dict:
        return answer_or_refusal(
            lambda: {"api_version": VERSION, "status": "ok", **endpoint(*args, **options)}, fault, str
        )

    return answer


def answer_or_refusal(
    compute: Callable[[], object], fault: Callable[[str], object], words: Callable[[Exception], object]
) -> object:
    """Return compute(), or a refusal that says why it failed: words(a user's mistake), or fault(the name of a fault of
    ours). The log gets where it happened, never what was asked."""
    try:
        return compute()
    except Busy as error:
        return refusal("busy", words(error))
    except Cancelled:
        return refusal("busy", "The caller left before the answer was complete.")
    except ValueError as error:
        return refusal("invalid", words(error))
    except Exception as error:  # the outermost edge: nothing of ours is above it
        log.error("a request failed:\n%s", describe(error))
        return refusal("internal", fault(type(error).__name__))


def refusal(kind: str, message: object) -> dict:
    """An answer that says why there is none."""
    return {"api_version": VERSION, "status": "error", "error": kind, "message": message}


def string(name: str, value: object) -> str:
    """The value of a field. ValueError if it is no string."""
    if not isinstance(value, str):
        raise ValueError(f"{name} must be a string, found {type(value).__name__}.")
    return value


def whole(name: str, value: object) -> int:
    """The value of a field. ValueError if it is no whole number."""
    if not is_integer(value):
        raise ValueError(f"{name} must be a whole number, found {value!r:.80}.")
    return value


def token_ids(name: str, value: object) -> list[int]:
    """The value of a field. ValueError if it is no list of whole numbers."""
    if not isinstance(value, list):
        raise ValueError(f"{name} must be a list of token ids, found {type(value).__name__}.")
    return [whole(f"an id of {name}", i) for i in value]


def interventions(value: object) -> Interventions:
    """The value of the last field of every endpoint, in the form of a trace's file or its JSON text; None or empty: the
    plain model.
    ValueError, in words, for what is not, or cannot be run from there."""
    if not value:
        return NO_INTERVENTIONS
    return interventions_file.requested(json.loads(value) if isinstance(value, str) else value)


def one_of(name: str, value: object, kinds: type[One], *more: str) -> One:
    """The member that a field names by its value. ValueError, with what there is (and `more`), if there is none."""
    try:
        return kinds(value)
    except ValueError as error:
        names = ", ".join((*(one.value for one in kinds), *more))
        raise ValueError(f"Unknown {name} {value!r:.80}: there are {names}.") from error


@dataclass(frozen=True)
class Served:
    """What endpoints ask: the models, the means that experiments share, and what the request changes in every pass."""

    translators: Translators
    means_cache: MeansCache = field(default_factory=MeansCache)
    interventions: Interventions = NO_INTERVENTIONS

    def chosen(self, direction: object) -> tuple[Translator, str]:
        """The translator and the direction that a field means; empty: the app's first."""
        route = self.translators.route(string("direction", direction) or self.translators.routes[0].label)
        return self.translators[route.label], route.direction

    def traced(self, text: object, direction: object, beam: int = 1) -> TranslationTrace:
        translator, code = self.chosen(direction)
        return translator.translate(string("text", text), code, beam=beam, interventions=self.interventions)


# The last, optional field of every endpoint, and its line in their documentation.
CHANGES = inspect.Parameter(
    "interventions", inspect.Parameter.POSITIONAL_OR_KEYWORD, default=None, annotation="dict | None"
)
BEFORE_RETURNS = "\n\n    Returns:"
CHANGES_ABOUT = f"""
        interventions: what every pass of the model is changed by, in the form of a trace's "interventions_data", such
            as {{"heads_off": [["cross", 2, 4]]}}; none for the plain model{BEFORE_RETURNS}"""


@dataclass(frozen=True)
class Endpoint:
    """find: (Served, *fields) -> an answer's fields. returns: them in its table. options: of Gradio's listener."""

    find: Callable[..., dict]
    returns: str
    options: Mapping[str, object]

    @property
    def name(self) -> str:
        return self.find.__name__

    @functools.cached_property
    def fields(self) -> dict[str, inspect.Parameter]:
        """By name, in order, with what every endpoint takes besides."""
        return {**dict(list(inspect.signature(self.find).parameters.items())[1:]), CHANGES.name: CHANGES}

    @property
    def lane(self) -> str:
        """Of the line that its calls wait in."""
        return self.options.get("concurrency_id", "page")

    @property
    def row(self) -> str:
        """Of the table in docs/reference/endpoints.md."""
        takes = ", ".join(f"{name} (ids)" if "list[int]" in str(one) else name for name, one in self.fields.items())
        return f"| `{self.name}` | {takes} | {self.returns} |"

    def bound(self, served: Served) -> Callable[..., dict]:
        """What Gradio calls: it reads a function's parameters, their types and its docstring."""

        signature = inspect.signature(self.find).replace(parameters=[*self.fields.values()])

        @answering
        @functools.wraps(self.find)
        def call(*values: object, **named: object) -> dict:
            asked = signature.bind(*values, **named).arguments
            changed = replace(served, interventions=interventions(asked.pop(CHANGES.name, None)))
            return self.find(changed, **asked)

        call.__signature__ = signature
        # Types, not their names: Gradio resolves names anew at each call.
        types = typing.get_type_hints(self.find) | {CHANGES.name: dict | None}
        call.__annotations__ = {name: types[name] for name in (*self.fields, "return")}
        call.__doc__ = CHANGES_ABOUT.join(self.find.__doc__.split(BEFORE_RETURNS, 1))
        return call

    def checked(self, call: dict, *, by_field: bool = False) -> dict:
        """A call as Gradio is to get it: only its fields, with the defaults of those it leaves out (such as fields that
        came later), and the interventions as JSON text, which Gradio passes on without a look at each number.

        by_field: the call holds the fields by name; else "data" lists their values in order. ValueError, in words, for
        a call that the endpoint cannot answer.
        """
        known = f"the fields of {self.name} are {', '.join(self.fields)}"
        values = call if by_field else call.get("data")
        if by_field:
            for name in values:
                if name not in self.fields:
                    raise ValueError(f"There is no field {name!r:.80}: {known}.")
        elif not isinstance(values, list):
            raise ValueError(f'"data" must be a list of values, in order: {known}.')
        elif len(values) > len(self.fields):
            raise ValueError(f"{self.name} takes {len(self.fields)} values, found {len(values)}: {known}.")
        else:
            values = dict(zip(self.fields, values))
        complete = {}
        for name, field_ in self.fields.items():
            value = values.get(name, field_.default)
            if value is field_.empty:
                raise ValueError(f"The field {name!r} is missing: {known}.")
            if name == CHANGES.name:
                value = json.dumps(value) if value else None
            elif isinstance(value, dict):
                raise ValueError(f"The field {name!r} cannot be an object: {known}.")
            elif not isinstance(value, str) and len(written := json.dumps(value)) > MAX_FIELD:
                raise ValueError(
                    f"The field {name!r} is longer than {MAX_FIELD:,} characters of JSON: {len(written):,}."
                )
            complete[name] = value
        if by_field:
            return complete
        kept = {name: call[name] for name in ("session_hash",) if isinstance(call.get(name), str)}
        return {"data": list(complete.values()), **kept}


ENDPOINTS: dict[str, Endpoint] = {}


def endpoint(*, returns: str, **options: object) -> Callable[[Callable], Callable]:
    """Register a function as the endpoint of its name."""

    def register(find: Callable[..., dict]) -> Callable[..., dict]:
        ENDPOINTS[find.__name__] = Endpoint(find, returns, options or ONE_BY_ONE)
        return find

    return register


def build(translators: Translators, line: Line, lend: Callable[[Callable], Callable] | None = None) -> None:
    """Add the endpoints to the page that is being built. line: what calls wait in, by whichever route they come. lend:
    on ZeroGPU, makes a function run where a GPU is lent; then its calls wait in Gradio's queue instead."""
    served = Served(translators)
    for endpoint in ENDPOINTS.values():
        call = endpoint.bound(served)
        if lend:
            gr.api(lend(call), api_name=endpoint.name, queue=True, **endpoint.options)
        else:
            waits = in_turn(call, line, endpoint.lane)
            gr.api(waits, api_name=endpoint.name, queue=False, concurrency_limit=None)


def in_turn(call: Callable[..., dict], line: Line, lane: str) -> Callable[..., Awaitable[dict | str]]:
    """Return an endpoint's call that waits in a lane for its turn, and then runs in a thread. Its first parameter is
    filled in by Gradio; programs do not see it. Tools of the Model Context Protocol get the answer as JSON text:
    Gradio would write an object as Python prints it."""
    threads = CapacityLimiter(math.inf)  # the lane is what bounds them

    @functools.wraps(call)
    async def wait(request: gr.Request, *values: object) -> dict | str:
        try:
            async with line.turn(lane, request.client.host if request.client else ""):
                answer = await to_thread.run_sync(call, *values, limiter=threads)
        except Busy as error:
            answer = refusal("busy", str(error))
        return json.dumps(answer, ensure_ascii=False) if f"{TOOLS}/" in f"{request.url.path}/" else answer

    signature = inspect.signature(call)
    first = inspect.Parameter("request", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=gr.Request)
    wait.__signature__ = signature.replace(parameters=[first, *signature.parameters.values()])
    wait.__annotations__ = {"request": gr.Request, **call.__annotations__}
    return wait


def table() -> str:
    """That of docs/reference/endpoints.md."""
    return "\n".join(("| endpoint | takes | returns |", "|---|---|---|", *(one.row for one in ENDPOINTS.values())))
