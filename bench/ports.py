"""Free local ports for the servers of tests and benchmarks."""

from __future__ import annotations

import os
import random
import socket
from collections import deque

FIRST, EACH, PROCESSES = 10_000, 100, 220  # all below the ports that the system gives to outgoing connections
_recent: deque[int] = deque(maxlen=EACH // 2)  # ports of servers that may not listen yet


def free_port() -> int:
    """Return a port of 127.0.0.1 that nobody listens on and that was not returned recently.

    Each process has a range of its own, so that no other process takes the port before the server starts.
    """
    start = FIRST + os.getpid() % PROCESSES * EACH
    for port in random.sample(range(start, start + EACH), EACH):
        if port not in _recent and is_free(port):
            _recent.append(port)
            return port
    raise OSError(f"too few of the ports from {start} to {start + EACH - 1} are free")


def is_free(port: int) -> bool:
    """Return whether a server could listen on this port of 127.0.0.1. Lingering connections do not matter."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
            probe.listen()
        except OSError:
            return False
    return True
