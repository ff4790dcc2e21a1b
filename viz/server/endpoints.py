"""The registry of the named API endpoints, and the checks that all of them share.

`@endpoint` registers a function. Its name, its fields, its documentation for programs and the URL paths that
viz/server/guard.py allows all come from that function. viz/server/api.py holds the endpoints.
"""

from __future__ import annotations

import functools
import inspect
import json
import logging
import math
import typing
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from enum import Enum

import gradio as gr
from anyio import CapacityLimiter, to_thread

from attention_atlas.model.serve.cancellation import Cancelled
from attention_atlas.model.serve.limits import Busy
from attention_atlas.model.trace import interventions_file, is_integer
from attention_atlas.model.trace.interventions import NO_INTERVENTIONS, Interventions
from attention_atlas.model.trace.language import error_message, say
from attention_atlas.model.trace.translation import TranslationTrace
from attention_atlas.model.translator import Translator
from attention_atlas.model.translators import Translators
from attention_atlas.viz.server.discreet_log import describe
from attention_atlas.viz.server.request_queue import TRANSLATE_WIDTH, RequestQueue

VERSION = 1  # of the answers' schema
MCP_PATH = "/gradio_api/mcp"  # the URL path of the tools of the Model Context Protocol (MCP)
MAX_FIELD = 100_000  # characters of JSON in a field that is neither a string nor the interventions
EnumType = typing.TypeVar("EnumType", bound=Enum)

log = logging.getLogger(__name__)


def answer_or_refusal(compute: Callable[[], object]) -> object:
    """Return compute(), or a refusal that says why it failed, in Words where the page can translate it.

    Unexpected exceptions are logged with the line of code that raised them, without what the caller sent.
    """
    try:
        return compute()
    except Busy as error:
        return refusal("busy", error_message(error))
    except Cancelled:
        # Usually nobody reads this. "busy", because the request was valid and can be repeated.
        return refusal("busy", "The caller left before the answer was complete.")
    except ValueError as error:
        return refusal("invalid", error_message(error))
    except Exception as error:  # Gradio would answer and log an uncaught error in its own form
        log.error("a request failed:\n%s", describe(error))
        name = type(error).__name__
        return refusal(
            "internal",
            say(
                "This is a bug in the program ({error}), not a problem with your request. The server's log "
                "has the details.",
                error=name,
            ),
        )


def refusal(kind: str, message: str) -> dict:
    """Return an error answer. kind: "invalid", "busy" or "internal"."""
    return {"api_version": VERSION, "status": "error", "error": kind, "message": message}


def check_type(name: str, value: object, declared: object) -> None:
    """Raise ValueError, naming the field `name`, unless the value has the type that the endpoint declares for it."""
    if declared is str and not isinstance(value, str):
        raise ValueError(f"{name} must be a string, found {type(value).__name__}.")
    if declared is int and not is_integer(value):
        raise ValueError(f"{name} must be a whole number, found {value!r:.80}.")
    if declared == list[int] | None and value:  # null and "" stand for an empty list
        if not isinstance(value, list):
            raise ValueError(f"{name} must be a list of token ids, found {type(value).__name__}.")
        for token_id in value:
            check_type(f"an id of {name}", token_id, int)


def check_range(name: str, value: int, most: int) -> None:
    """Raise ValueError, naming the field `name`, unless the value is from 1 to `most`."""
    if not 1 <= value <= most:
        raise ValueError(f"{name} must be 1 to {most}, found {value}.")


def read_interventions(value: object) -> Interventions:
    """Parse the field `interventions`: an object as in a trace's file, or its JSON text. None, "" and {} are none.

    Raises ValueError for anything else, and for interventions that clients may not send (see from_request()).
    """
    if value is None or value == "":
        return NO_INTERVENTIONS
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError) as error:
            raise ValueError("interventions must be an object or its JSON text; this text is not JSON.") from error
    return interventions_file.from_request(value)


def read_enum(name: str, value: object, enum_type: type[EnumType], *more_values: str) -> EnumType:
    """Return the enum's member with this value.

    Raises ValueError if there is none. Its message lists the enum's values and `more_values`, which the field also
    takes and the caller has handled.
    """
    try:
        return enum_type(value)
    except ValueError as error:
        names = ", ".join((*(member.value for member in enum_type), *more_values))
        raise ValueError(f"Unknown {name} {value!r:.80}: there are {names}.") from error


@dataclass(frozen=True)
class EndpointContext:
    """What an endpoint needs to answer a request.

    Attributes:
        translators: the app's models
        interventions: those of this request
    """

    translators: Translators
    interventions: Interventions = NO_INTERVENTIONS

    def select(self, direction: str) -> tuple[Translator, str]:
        """Return the translator and the language pair, such as "de-en", that the field `direction` names.

        direction: a route's label, such as "de-en" or, where several checkpoints serve the pair, one with the
            checkpoint's name; "" for the app's first
        """
        route = self.translators.route(direction or self.translators.routes[0].label)
        return self.translators[route.label], route.direction

    def translate(self, text: str, direction: str, beam: int = 1) -> TranslationTrace:
        """Return the trace of a text's translation under the request's interventions."""
        translator, code = self.select(direction)
        return translator.translate(text, code, beam=beam, interventions=self.interventions)


# The last, optional field of every endpoint, and its lines in each endpoint's docstring, before "Returns:".
INTERVENTIONS_FIELD = inspect.Parameter(
    "interventions", inspect.Parameter.POSITIONAL_OR_KEYWORD, default=None, annotation="dict | None"
)
RETURNS_HEADING = "\n\nReturns:"
INTERVENTIONS_DOC = """
    interventions: changes to apply to the model while it runs, as in a trace's "interventions_data", such as
        {"heads_off": [["cross", 2, 4]]} (kind, layer and head, from 0); null for none"""


@dataclass(frozen=True)
class Endpoint:
    """A registered endpoint.

    Attributes:
        compute: (context, *fields) -> the fields of an answer
        lane: the lane of the request queue in which its calls wait: "translate" if it only translates, or "model", in
            which as many run at once as the app's option --concurrency allows
    """

    compute: Callable[..., dict]
    lane: str

    @property
    def name(self) -> str:
        return self.compute.__name__

    @functools.cached_property
    def fields(self) -> dict[str, inspect.Parameter]:
        """The parameters by name, in order, `interventions` last."""
        own = list(inspect.signature(self.compute).parameters.items())[1:]
        return {**dict(own), INTERVENTIONS_FIELD.name: INTERVENTIONS_FIELD}

    def bind(self, context: EndpointContext) -> Callable[..., dict]:
        """Return the function that Gradio calls, with the signature, types and docstring that it shows to programs."""
        signature = inspect.signature(self.compute).replace(parameters=[*self.fields.values()])
        # Types instead of their names, which Gradio would resolve again at each call.
        types = typing.get_type_hints(self.compute) | {INTERVENTIONS_FIELD.name: dict | None}

        def compute(*values: object, **named: object) -> dict:
            try:
                arguments = signature.bind(*values, **named).arguments
            except TypeError as error:  # calls that check_call() has not seen, such as those of MCP
                raise ValueError(f"{error}: {self._known_fields}.") from error
            interventions = read_interventions(arguments.pop(INTERVENTIONS_FIELD.name, None))
            for name, value in arguments.items():
                check_type(name, value, types[name])
            fields = self.compute(replace(context, interventions=interventions), **arguments)
            return {"api_version": VERSION, "status": "ok", **fields}

        @functools.wraps(self.compute)
        def handler(*values: object, **named: object) -> dict:
            return answer_or_refusal(functools.partial(compute, *values, **named))

        handler.__signature__ = signature
        handler.__annotations__ = {name: types[name] for name in (*self.fields, "return")}
        handler.__doc__ = inspect.getdoc(self.compute).replace(
            RETURNS_HEADING, f"{INTERVENTIONS_DOC}{RETURNS_HEADING}", 1
        )
        return handler

    @property
    def _known_fields(self) -> str:
        return f"the fields of {self.name} are {', '.join(self.fields)}"

    def check_call(self, body: dict, *, by_field: bool = False) -> dict:
        """Return the body of a request as Gradio takes it: only known fields, defaults for missing ones, and the
        interventions as JSON text, so that Gradio does not walk through their numbers.

        Args:
            body: a JSON object
            by_field: whether the body holds the fields by name; otherwise "data" lists their values in order

        Raises ValueError for unknown, missing or too long fields. bind() checks the values' types.
        """
        known = self._known_fields
        values = body if by_field else body.get("data")
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
        for name, parameter in self.fields.items():
            value = values.get(name, parameter.default)
            if value is parameter.empty:
                raise ValueError(f"The field {name!r} is missing: {known}.")
            if name == INTERVENTIONS_FIELD.name:
                if value is not None and not isinstance(value, str):
                    value = json.dumps(value)
            elif isinstance(value, dict):
                raise ValueError(f"The field {name!r} cannot be an object: {known}.")
            elif not isinstance(value, str):
                length = len(json.dumps(value))
                if length > MAX_FIELD:
                    raise ValueError(f"The field {name!r} is longer than {MAX_FIELD:,} characters of JSON: {length:,}.")
            complete[name] = value
        if by_field:
            return complete
        content = {"data": list(complete.values())}
        # Gradio's clients name their session, in whose stream of events they read the answer. A body by field has no
        # place for it: its answer is fetched by the event's id.
        if isinstance(body.get("session_hash"), str):
            content["session_hash"] = body["session_hash"]
        return content


ENDPOINTS: dict[str, Endpoint] = {}


def endpoint(*, lane: str) -> Callable[[Callable[..., dict]], Callable[..., dict]]:
    """Register a function as the endpoint of its name. lane: see Endpoint.

    Raises ValueError if the name is registered already, or if the docstring has no paragraph "Returns:".
    """

    def register(compute: Callable[..., dict]) -> Callable[..., dict]:
        name = compute.__name__
        if name in ENDPOINTS:
            raise ValueError(f"there is an endpoint {name} already")
        if RETURNS_HEADING not in (inspect.getdoc(compute) or ""):
            raise ValueError(f"the docstring of the endpoint {name} needs a paragraph that begins with Returns:")
        ENDPOINTS[name] = Endpoint(compute, lane)
        return compute

    return register


def build(
    translators: Translators, request_queue: RequestQueue, lend: Callable[[Callable], Callable] | None = None
) -> None:
    """Add the endpoints to the gr.Blocks that is being built.

    Args:
        translators: the models
        request_queue: where calls wait for a turn, whichever URL path they come by
        lend: on a Space with shared GPUs (ZeroGPU), the decorator that runs a function with a GPU
            (viz/server/ask.py). Calls then wait in Gradio's queue instead, and MCP tools, which a Space does not
            install, would get objects instead of JSON text.
    """
    context = EndpointContext(translators)
    for name, registered in ENDPOINTS.items():
        handler = registered.bind(context)
        if lend:
            limit = TRANSLATE_WIDTH if registered.lane == "translate" else "default"
            gr.api(lend(handler), api_name=name, queue=True, concurrency_id=registered.lane, concurrency_limit=limit)
        else:
            # The request queue limits calls instead of Gradio.
            queued = wait_for_turn(handler, request_queue, registered.lane)
            gr.api(queued, api_name=name, queue=False, concurrency_limit=None)


def wait_for_turn(
    handler: Callable[..., dict], request_queue: RequestQueue, lane: str
) -> Callable[..., Awaitable[dict | str]]:
    """Wrap an endpoint's handler so that each call waits for a turn in a lane and then runs in a thread.

    Gradio fills in the first parameter, `request`, and does not show it to programs. MCP calls get the answer as JSON
    text, since Gradio would send them an object's Python representation.
    """
    threads = CapacityLimiter(math.inf)  # no limit on threads: the queue already limits the calls that run

    @functools.wraps(handler)
    async def wait(request: gr.Request, *values: object) -> dict | str:
        try:
            async with request_queue.turn(lane, request.client.host if request.client else ""):
                answer = await to_thread.run_sync(handler, *values, limiter=threads)
        except Busy as error:
            answer = refusal("busy", str(error))
        # The page may be served below another path, and MCP_PATH itself is called with and without a final slash.
        is_mcp_call = f"{MCP_PATH}/" in f"{request.url.path}/"
        return json.dumps(answer, ensure_ascii=False) if is_mcp_call else answer

    signature = inspect.signature(handler)
    first = inspect.Parameter("request", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=gr.Request)
    wait.__signature__ = signature.replace(parameters=[first, *signature.parameters.values()])
    # The published type of the answer stays `dict`, although MCP calls get the same as JSON text.
    wait.__annotations__ = {"request": gr.Request, **handler.__annotations__}
    return wait
