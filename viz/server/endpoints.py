"""The registry of the named API endpoints, and the checks that all of them share.

`@endpoint` registers a function. Its name, its fields, its documentation for programs, the routes that the guard allows
and its row in docs/reference/endpoints.md all come from that function. viz/server/api.py holds the endpoints.
"""

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

from attention_atlas.model.analysis.why.means import MeansCache
from attention_atlas.model.serve.cancellation import Cancelled
from attention_atlas.model.serve.limits import Busy
from attention_atlas.model.trace import interventions_file, is_integer
from attention_atlas.model.trace.interventions import NO_INTERVENTIONS, Interventions
from attention_atlas.model.trace.translation import TranslationTrace
from attention_atlas.model.translator import Translator
from attention_atlas.model.translators import Translators
from attention_atlas.viz.server.discreet_log import describe
from attention_atlas.viz.server.request_queue import RequestQueue

VERSION = 1  # of the answers' schema
TOOLS = "/gradio_api/mcp"  # where tools of the Model Context Protocol are called
MAX_FIELD = 100_000  # characters of JSON in a field other than a text or the interventions
MODEL_LANE = {"concurrency_id": "model"}  # runs as many calls at once as `--concurrency` allows
EnumType = typing.TypeVar("EnumType", bound=Enum)

log = logging.getLogger(__name__)


def with_envelope(endpoint: Callable[..., dict]) -> Callable[..., dict]:
    """Wrap an endpoint so that its answers carry "api_version" and "status". Errors become answers, too."""

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
    """Return compute(), or a refusal that says why it failed.

    Args:
        compute: computes the answer
        fault: turns the name of an unexpected exception's type into a message
        words: turns a ValueError or Busy, which callers can cause, into a message

    Unexpected exceptions are logged with their place, without what the caller sent.
    """
    try:
        return compute()
    except Busy as error:
        return refusal("busy", words(error))
    except Cancelled:
        return refusal("busy", "The caller left before the answer was complete.")
    except ValueError as error:
        return refusal("invalid", words(error))
    except Exception as error:  # the outermost frame: an uncaught error would reach Gradio
        log.error("a request failed:\n%s", describe(error))
        return refusal("internal", fault(type(error).__name__))


def refusal(kind: str, message: object) -> dict:
    """Return an error answer. kind: "invalid", "busy" or "internal"."""
    return {"api_version": VERSION, "status": "error", "error": kind, "message": message}


def check_string(name: str, value: object) -> str:
    """Return the value of a field. Raises ValueError unless it is a string."""
    if not isinstance(value, str):
        raise ValueError(f"{name} must be a string, found {type(value).__name__}.")
    return value


def check_integer(name: str, value: object) -> int:
    """Return the value of a field. Raises ValueError unless it is an integer."""
    if not is_integer(value):
        raise ValueError(f"{name} must be a whole number, found {value!r:.80}.")
    return value


def check_token_ids(name: str, value: object) -> list[int]:
    """Return the value of a field. Raises ValueError unless it is a list of integers."""
    if not isinstance(value, list):
        raise ValueError(f"{name} must be a list of token ids, found {type(value).__name__}.")
    return [check_integer(f"an id of {name}", i) for i in value]


def read_interventions(value: object) -> Interventions:
    """Parse the field `interventions`: an object as in a trace's file, or its JSON text; None or empty for the plain
    model. Raises ValueError for anything else, and for interventions that a file cannot hold."""
    if not value:
        return NO_INTERVENTIONS
    return interventions_file.from_request(json.loads(value) if isinstance(value, str) else value)


def read_enum(name: str, value: object, kinds: type[EnumType], *also: str) -> EnumType:
    """Return the enum's member with this value. Raises ValueError, listing the values and `also`, if there is none."""
    try:
        return kinds(value)
    except ValueError as error:
        names = ", ".join((*(kind.value for kind in kinds), *also))
        raise ValueError(f"Unknown {name} {value!r:.80}: there are {names}.") from error


@dataclass(frozen=True)
class EndpointContext:
    """The context of a request: the models, the cached mean activations, and the interventions it asks for."""

    translators: Translators
    means_cache: MeansCache = field(default_factory=MeansCache)
    interventions: Interventions = NO_INTERVENTIONS

    def select(self, direction: object) -> tuple[Translator, str]:
        """Return the translator and the direction that a field names; the app's first if the field is empty."""
        route = self.translators.route(check_string("direction", direction) or self.translators.routes[0].label)
        return self.translators[route.label], route.direction

    def translate(self, text: object, direction: object, beam: int = 1) -> TranslationTrace:
        """Return the trace of a text's translation under the request's interventions."""
        translator, code = self.select(direction)
        return translator.translate(check_string("text", text), code, beam=beam, interventions=self.interventions)


# The last, optional field of every endpoint, and its line in their documentation.
INTERVENTIONS = inspect.Parameter(
    "interventions", inspect.Parameter.POSITIONAL_OR_KEYWORD, default=None, annotation="dict | None"
)
BEFORE_RETURNS = "\n\n    Returns:"
INTERVENTIONS_DOC = f"""
        interventions: what every pass of the model is changed by, in the form of a trace's "interventions_data", such
            as {{"heads_off": [["cross", 2, 4]]}}; none for the plain model{BEFORE_RETURNS}"""


@dataclass(frozen=True)
class Endpoint:
    """A registered endpoint.

    Attributes:
        compute: (context, *fields) -> the fields of an answer
        returns: the answer's fields, as the table of endpoints describes them
        options: the options of Gradio's listener
    """

    compute: Callable[..., dict]
    returns: str
    options: Mapping[str, object]

    @property
    def name(self) -> str:
        return self.compute.__name__

    @functools.cached_property
    def fields(self) -> dict[str, inspect.Parameter]:
        """The parameters by name, in order, `interventions` last."""
        own = list(inspect.signature(self.compute).parameters.items())[1:]
        return {**dict(own), INTERVENTIONS.name: INTERVENTIONS}

    @property
    def lane(self) -> str:
        """The lane of the request queue in which its calls wait."""
        return self.options.get("concurrency_id", "page")

    @property
    def row(self) -> str:
        """The endpoint's row in the table of docs/reference/endpoints.md."""
        takes = ", ".join(f"{name} (ids)" if "list[int]" in str(field) else name for name, field in self.fields.items())
        return f"| `{self.name}` | {takes} | {self.returns} |"

    def bind(self, context: EndpointContext) -> Callable[..., dict]:
        """Return the function that Gradio calls, with the signature, types and docstring that it shows to programs."""
        signature = inspect.signature(self.compute).replace(parameters=[*self.fields.values()])

        @with_envelope
        @functools.wraps(self.compute)
        def call(*values: object, **named: object) -> dict:
            arguments = signature.bind(*values, **named).arguments
            interventions = read_interventions(arguments.pop(INTERVENTIONS.name, None))
            return self.compute(replace(context, interventions=interventions), **arguments)

        call.__signature__ = signature
        # Types instead of their names, which Gradio would resolve again at each call.
        types = typing.get_type_hints(self.compute) | {INTERVENTIONS.name: dict | None}
        call.__annotations__ = {name: types[name] for name in (*self.fields, "return")}
        call.__doc__ = INTERVENTIONS_DOC.join(self.compute.__doc__.split(BEFORE_RETURNS, 1))
        return call

    def check_call(self, call: dict, *, by_field: bool = False) -> dict:
        """Return a call's body for Gradio: only known fields, defaults for missing ones, and the interventions as JSON
        text, so that Gradio does not walk through their numbers.

        Args:
            call: the body of the request
            by_field: whether the body holds the fields by name; otherwise "data" lists their values in order

        Raises ValueError for unknown, missing or too long fields.
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
            if name == INTERVENTIONS.name:
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
        session = {name: call[name] for name in ("session_hash",) if isinstance(call.get(name), str)}
        return {"data": list(complete.values()), **session}


ENDPOINTS: dict[str, Endpoint] = {}


def endpoint(*, returns: str, **options: object) -> Callable[[Callable], Callable]:
    """Register a function as the endpoint of its name. returns: its answer's fields, in words."""

    def register(compute: Callable[..., dict]) -> Callable[..., dict]:
        ENDPOINTS[compute.__name__] = Endpoint(compute, returns, options or MODEL_LANE)
        return compute

    return register


def build(
    translators: Translators, request_queue: RequestQueue, lend: Callable[[Callable], Callable] | None = None
) -> None:
    """Add the endpoints to the gr.Blocks that is being built.

    Args:
        translators: the models
        request_queue: where calls wait, by whichever route they come
        lend: on ZeroGPU, makes a function run where a GPU is lent; its calls then wait in Gradio's queue instead
    """
    context = EndpointContext(translators)
    for endpoint in ENDPOINTS.values():
        call = endpoint.bind(context)
        if lend:
            gr.api(lend(call), api_name=endpoint.name, queue=True, **endpoint.options)
        else:
            queued = wait_for_turn(call, request_queue, endpoint.lane)
            gr.api(queued, api_name=endpoint.name, queue=False, concurrency_limit=None)


def wait_for_turn(
    call: Callable[..., dict], request_queue: RequestQueue, lane: str
) -> Callable[..., Awaitable[dict | str]]:
    """Wrap an endpoint's call so that it waits for a turn in a lane and then runs in a thread.

    Gradio fills in the first parameter, `request`, and does not show it to programs. Tools of the Model Context
    Protocol get the answer as JSON text, since Gradio would send them an object's Python representation.
    """
    threads = CapacityLimiter(math.inf)  # the lane limits them

    @functools.wraps(call)
    async def wait(request: gr.Request, *values: object) -> dict | str:
        try:
            async with request_queue.turn(lane, request.client.host if request.client else ""):
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
    """Return the Markdown table of docs/reference/endpoints.md."""
    rows = (endpoint.row for endpoint in ENDPOINTS.values())
    return "\n".join(("| endpoint | takes | returns |", "|---|---|---|", *rows))
