"""Close connections on which no request arrives: uvicorn waits for the first headers of a connection for ever."""

from __future__ import annotations

import threading
import time
from weakref import WeakKeyDictionary

import uvicorn

SECONDS = 10.0  # for the headers of a request
CHECKED = 2.0  # seconds between two looks


def close_silent_connections(server: uvicorn.Server) -> None:
    """From now on, as long as this server runs, close each connection that has been without a request for SECONDS."""
    threading.Thread(target=_close_silent, args=(server,), name="silent connections", daemon=True).start()


def _close_silent(server: uvicorn.Server) -> None:
    # By connection: the request that was last answered there (None: there was none), and since when there is no other.
    silent: WeakKeyDictionary[object, tuple[object, float]] = WeakKeyDictionary()
    while not server.should_exit:
        time.sleep(CHECKED)
        now = time.monotonic()
        for connection in list(server.server_state.connections):
            request = getattr(connection, "cycle", None)
            if request is not None and not request.response_complete:
                silent.pop(connection, None)
                continue
            last, since = silent.get(connection, (None, now))
            if connection not in silent or last is not request:
                silent[connection] = request, now
            elif now - since >= SECONDS:
                connection.loop.call_soon_threadsafe(connection.transport.close)
