"""Reading the bodies of requests: within a size, within a time, and within a total for all of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from viz.server.asgi import Receive

SECONDS = 20.0  # for a whole body
TOTAL = 48_000_000  # bytes of all bodies in memory
DISCARDED = 16_000_000  # bytes of a refused body that are read before the answer
SMALL = 64_000  # bytes of a body that is read whatever the total is


class ClientGone(Exception):
    """The connection was closed before the body was complete."""


@dataclass(frozen=True)
class Unread(Exception):
    """The body is refused: an HTTP status, and why in words."""

    status: int
    message: str


class Bodies:
    """Reads bodies. held: bytes of those that were read and whose requests are not answered yet."""

    def __init__(self, total: int = TOTAL, seconds: float = SECONDS) -> None:
        self.total, self.seconds, self.held = total, seconds, 0

    @asynccontextmanager
    async def read(self, receive: Receive, limit: int, announced: int = 0) -> AsyncIterator[bytes]:
        """The whole body, for the `async with` block that answers it. announced: its Content-Length.

        Raises Unread for a body of more than `limit` bytes, one that takes too long, or one for which there is no room
        beside the others; ClientGone if the client closes the connection first.
        """
        body = bytearray()  # one block: the allocator returns it to the system at once
        try:
            try:
                await asyncio.wait_for(self._read(receive, limit, announced, body), self.seconds)
            except TimeoutError:
                raise Unread(408, f"The request did not arrive within {self.seconds:g} seconds.") from None
            yield bytes(body)
        finally:
            self.held -= len(body)
            body.clear()  # a traceback may keep it until garbage is collected

    async def _read(self, receive: Receive, limit: int, announced: int, body: bytearray) -> None:
        size, refusal = 0, None
        async for part in _parts(receive):
            size += len(part)
            if refusal is not None:  # most clients read no answer before they have sent everything
                if size > DISCARDED:
                    break
            elif max(size, announced) > limit:
                refusal = Unread(413, f"The request is larger than {limit:,} bytes.")
            elif size > SMALL and self.held + len(part) > self.total:
                refusal = Unread(503, "Too many large requests arrive at once. Please try again in a moment.")
            else:
                self.held += len(part)
                body += part
            if refusal is not None:
                self.held -= len(body)
                body.clear()
        if refusal is not None:
            raise refusal


async def _parts(receive: Receive) -> AsyncIterator[bytes]:
    more = True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGone
        more = message.get("more_body", False)
        yield message.get("body", b"")
