"""What all middleware before Gradio shares: types, the path of a request, and an answer of its own."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable

Scope, Receive, Send = dict, Callable[[], Awaitable[dict]], Callable[[dict], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
TEXT = b"text/plain; charset=utf-8"
UNKEPT = ((b"cache-control", b"no-store"),)


def below(scope: Scope) -> str:
    """The path of a request, without what the page itself lies below."""
    return "/" + scope.get("path", "").removeprefix(scope.get("root_path", "")).lstrip("/")


async def answer(
    send: Send,
    status: int,
    content: bytes | dict,
    kind: bytes = b"application/json",
    headers: Iterable[tuple[bytes, bytes]] = UNKEPT,
) -> None:
    """content: bytes of this kind, or what is written as JSON."""
    body = content if isinstance(content, bytes) else json.dumps(content).encode()
    named = [(b"content-type", kind), (b"content-length", str(len(body)).encode()), *headers]
    await send({"type": "http.response.start", "status": status, "headers": named})
    await send({"type": "http.response.body", "body": body})
