"""POST /ask/NAME: a question of the page, {"address", "fields"} as JSON, and its answer.

An answer is one JSON object, a file, or a stream (application/x-ndjson) of objects, one a line, each of which replaces
the one before. A file is sent as an attachment; inside a stream or through Gradio's queue, where only JSON passes, it
is {"file": {"name", "type", "data"}} with data in base64.

An error is {"api_version", "status": "error", "error", "message"}, as at the named endpoints; its message is a sentence
that the page translates. A malformed request has an HTTP error status, too. A refused question has status 200, since
browsers log any other status as an error of the page.
"""

from __future__ import annotations

import functools
import gzip
import inspect
import json
from collections.abc import AsyncIterator, Callable, Generator, Iterator, Mapping
from types import ModuleType
from urllib.parse import quote

import gradio as gr
from anyio import to_thread
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from attention_atlas.model.serve.cancellation import raise_if_cancelled
from attention_atlas.model.serve.limits import BatchLimits
from attention_atlas.viz.questions.registry import QUESTIONS, Context, ask
from attention_atlas.viz.server import endpoints
from attention_atlas.viz.server.endpoints import refusal
from attention_atlas.viz.server.request_queue import yield_turn
from attention_atlas.viz.wire.file import File
from attention_atlas.viz.words import for_page

JSON, LINES = "application/json", "application/x-ndjson"
MIN_GZIP_BYTES = 2_000  # smaller answers are sent uncompressed
HEADERS = {"cache-control": "no-store", "x-accel-buffering": "no"}  # a proxy must not buffer a stream

GPU_SECONDS = 15  # for which ZeroGPU lends a GPU to one call; short, so that visitors' quotas last
WORK_SECONDS = 60  # the same for a call that runs long work


def route(context: Context) -> Route:
    """Return the route at which the page asks its questions."""
    limits = context.limits

    async def respond(request: Request) -> Response:
        if request.headers.get("content-type", "").split(";")[0].strip().lower() != JSON:
            return _response(415, refusal("invalid", f"A question is sent as {JSON}."))
        body = await to_thread.run_sync(_read, await request.body())
        if body is None:
            return _response(422, refusal("invalid", "A question is one JSON object."))
        compute = functools.partial(ask, context, request.path_params["name"], body)
        content = await to_thread.run_sync(answer_or_refusal, limits, compute)
        if isinstance(content, Generator):
            return StreamingResponse(_lines(content, limits), media_type=LINES, headers=HEADERS)
        compress = "gzip" in request.headers.get("accept-encoding", "")
        if isinstance(content, File):
            disposition = {"content-disposition": f"attachment; filename*=UTF-8''{quote(content.name, safe='')}"}
            return await to_thread.run_sync(_response, 200, content.content, compress, content.media_type, disposition)
        return await to_thread.run_sync(_response, 200, content, compress)

    return Route("/ask/{name}", respond, methods=["POST"])


def add_calls(context: Context, lend: Callable[[Callable], Callable]) -> None:
    """Add every question that may use a GPU to the gr.Blocks that is being built, as a call of Gradio's queue.

    On ZeroGPU the page asks these instead of /ask (viz/web/core/ask.js). lend: makes a function run on a lent GPU.
    """
    for name, question in QUESTIONS.items():
        if question.on_cpu:
            continue
        gr.api(
            lend(_call(context, name)),
            api_name=name,
            api_visibility="undocumented",
            concurrency_id=question.lane,
            queue=True,
        )


def _call(context: Context, name: str) -> Callable[[dict], Generator[dict]]:
    limits = context.limits

    def call(question: dict) -> Generator[dict]:
        answer = answer_or_refusal(limits, functools.partial(ask, context, name, question))
        parts = answer if isinstance(answer, Generator) else iter([answer])
        while (content := answer_or_refusal(limits, functools.partial(next, parts, None))) is not None:
            yield (plain := _plain(content))
            if is_refusal(plain):
                return

    call.__name__ = name
    call.__annotations__ = {"question": dict, "return": dict}
    return call


def lender(spaces: ModuleType) -> Callable[[Callable], Callable]:
    """Return the decorator that runs a function in a process with a lent GPU, on a ZeroGPU Space.

    spaces: Hugging Face's package. Arguments and answers cross a process boundary, so they are JSON, never tensors.
    """

    def lend(function: Callable) -> Callable:
        lent = spaces.GPU(duration=_gpu_seconds)(function)
        if lent is function:
            return function

        @functools.wraps(function)
        def call(*values: object, **named: object) -> object:
            return lent(*values, **named)

        @functools.wraps(function)
        def stream(*values: object, **named: object) -> Iterator[object]:
            yield from lent(*values, **named)

        # Gradio streams the values of generator functions only.
        return stream if inspect.isgeneratorfunction(function) else call

    return lend


def _gpu_seconds(*values: object) -> int:
    """Return the seconds for which a call with these values is lent a GPU."""
    fields = values[0].get("fields") if values and isinstance(values[0], dict) else None
    return WORK_SECONDS if isinstance(fields, dict) and fields.get("begun") else GPU_SECONDS


def _read(body: bytes) -> dict | None:
    """Parse a body. Returns None unless it is a JSON object."""
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) else None


def is_refusal(content: Mapping) -> bool:
    """Return whether an answer is an error."""
    return "api_version" in content


def answer_or_refusal(limits: BatchLimits, compute: functools.partial) -> object:
    """Return compute() on a share of the model, or an error answer."""

    def compute_on_share() -> object:
        with limits.share():
            raise_if_cancelled()
            return compute()

    return endpoints.answer_or_refusal(compute_on_share)


async def _lines(parts: Generator[dict | File], limits: BatchLimits) -> AsyncIterator[bytes]:
    next_part = functools.partial(answer_or_refusal, limits, functools.partial(next, parts, None))
    try:
        while (content := await to_thread.run_sync(next_part)) is not None:
            yield await to_thread.run_sync(_text, content) + b"\n"
            if isinstance(content, dict) and is_refusal(content):
                return
            await yield_turn()
    finally:
        parts.close()


def _plain(content: dict | File) -> dict:
    return for_page(content.to_plain() if isinstance(content, File) else content)


def _text(content: dict | File) -> bytes:
    return json.dumps(_plain(content), allow_nan=False, ensure_ascii=False, separators=(",", ":")).encode()


def _response(
    status: int, content: bytes | dict, compress: bool = False, media_type: str = JSON, headers: Mapping[str, str] = {}
) -> Response:
    body = content if isinstance(content, bytes) else _text(content)
    headers = {**HEADERS, **headers}
    if compress and len(body) >= MIN_GZIP_BYTES:
        body = gzip.compress(body, compresslevel=4)
        headers |= {"content-encoding": "gzip", "vary": "accept-encoding"}
    return Response(body, status, headers, media_type)
