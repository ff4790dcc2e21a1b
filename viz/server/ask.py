"""POST /ask/NAME: a question of the page, {"address", "fields"} as JSON, and its answer.

An answer is one JSON object, a file, or of a question that is answered in parts (application/x-ndjson) one object a
line, each in place of the one before. A file is sent as an attachment; where only JSON passes, as a part of a stream or
through Gradio's queue, it is {"file": {"name", "type", "data"}}, with data in base64. What cannot be answered is
{"api_version", "status": "error", "error", "message"}, as at the named endpoints; its message is a sentence that the
page translates. Of a request that is no question the HTTP status says so, too; of a question that is refused it is 200,
since browsers report any other as a fault of the page.
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
from attention_atlas.model.trace.language import words_of
from attention_atlas.viz.questions.registry import QUESTIONS, Context, ask
from attention_atlas.viz.server import endpoints
from attention_atlas.viz.server.endpoints import refusal
from attention_atlas.viz.server.line import let_others_go
from attention_atlas.viz.wire.file import File
from attention_atlas.viz.words import for_page, say

JSON, LINES = "application/json", "application/x-ndjson"
PACKED = 2_000  # bytes of an answer that is worth packing
HEADERS = {"cache-control": "no-store", "x-accel-buffering": "no"}  # the latter: a proxy is to pass on each line

GPU_SECONDS = 15  # that one call is lent a GPU for; short, so that visitors' quotas last
WORK_SECONDS = 60  # the same of a call with long work


def route(context: Context) -> Route:
    """The route at which the page asks its questions."""
    limits = context.limits

    async def answered(request: Request) -> Response:
        name = request.path_params["name"]
        if name not in QUESTIONS:
            return _response(404, refusal("invalid", "There is no such question."))
        if request.headers.get("content-type", "").split(";")[0].strip().lower() != JSON:
            return _response(415, refusal("invalid", f"A question is sent as {JSON}."))
        body = await to_thread.run_sync(_read, await request.body())
        if body is None:
            return _response(422, refusal("invalid", "A question is one JSON object."))
        compute = functools.partial(answer_or_refusal, limits, functools.partial(ask, context, name, body))
        content = await to_thread.run_sync(compute)
        if isinstance(content, Generator):
            return StreamingResponse(_lines(content, limits), media_type=LINES, headers=HEADERS)
        packs = "gzip" in request.headers.get("accept-encoding", "")
        if isinstance(content, File):
            saved_as = {"content-disposition": f"attachment; filename*=UTF-8''{quote(content.name, safe='')}"}
            return await to_thread.run_sync(_response, 200, content.content, packs, content.media_type, saved_as)
        text = await to_thread.run_sync(_text, content)
        return _response(200, text, packs)

    return Route("/ask/{name}", answered, methods=["POST"])


def add_calls(context: Context, lend: Callable[[Callable], Callable]) -> None:
    """Add every question that may use a GPU to the page that is being built, as a call of Gradio's queue: the page asks
    these instead where a GPU is lent (viz/web/core/ask.js). lend: makes a function run where there is one."""
    for name, one in QUESTIONS.items():
        if one.on_cpu:
            continue
        gr.api(
            lend(_call(context, name)),
            api_name=name,
            api_visibility="undocumented",
            concurrency_id=one.lane,
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
    """Return the decorator of functions that use a model on a ZeroGPU Space: they run in a process that is lent a GPU.
    spaces: Hugging Face's package.

    Arguments and answers cross to another process: they are JSON, never tensors.
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

        # Gradio takes one value from whatever is no generator function.
        return stream if inspect.isgeneratorfunction(function) else call

    return lend


def _gpu_seconds(*values: object) -> int:
    """How long a call with these values is lent a GPU for at the most."""
    fields = values[0].get("fields") if values and isinstance(values[0], dict) else None
    return WORK_SECONDS if isinstance(fields, dict) and fields.get("begun") else GPU_SECONDS


def _read(body: bytes) -> dict | None:
    """The object that a body holds; None if it holds anything else."""
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) else None


def is_refusal(content: Mapping) -> bool:
    """Whether an answer is a refusal."""
    return "api_version" in content


def answer_or_refusal(limits: BatchLimits, compute: functools.partial) -> object:
    """Return compute(), or a refusal that the page translates."""

    def share() -> object:
        with limits.share():
            raise_if_cancelled()
            return compute()

    return endpoints.answer_or_refusal(share, _fault, lambda error: for_page(words_of(error)))


def _fault(error: str) -> dict:
    return for_page(
        say("This is a fault of the program ({error}), not of what you asked. Its log says where.", error=error)
    )


async def _lines(parts: Generator[dict | File], limits: BatchLimits) -> AsyncIterator[bytes]:
    next_part = functools.partial(answer_or_refusal, limits, functools.partial(next, parts, None))
    try:
        while (content := await to_thread.run_sync(next_part)) is not None:
            yield await to_thread.run_sync(_text, content) + b"\n"
            if isinstance(content, dict) and is_refusal(content):
                return
            await let_others_go()
    finally:
        parts.close()


def _plain(content: dict | File) -> dict:
    return for_page(content.to_plain() if isinstance(content, File) else content)


def _text(content: dict | File) -> bytes:
    return json.dumps(_plain(content), allow_nan=False, ensure_ascii=False, separators=(",", ":")).encode()


def _response(
    status: int, content: bytes | dict, packs: bool = False, media_type: str = JSON, headers: Mapping[str, str] = {}
) -> Response:
    body = content if isinstance(content, bytes) else _text(content)
    headers = {**HEADERS, **headers}
    if packs and len(body) >= PACKED:
        body = gzip.compress(body, compresslevel=4)
        headers |= {"content-encoding": "gzip", "vary": "accept-encoding"}
    return Response(body, status, headers, media_type)
