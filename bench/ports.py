"""Where the servers of tests and benchmarks listen."""

from __future__ import annotations

import os
import random
import socket
from collections import deque

FIRST, EACH, PROCESSES = 10_000, 100, 220  # all below the ports that the system gives to outgoing connections


_given: deque[int] = deque(maxlen=EACH // 2)  # to servers that may not listen yet


def free_port() -> int:
    """A port of 127.0.0.1 that nobody listens on, and that was not given lately. Each process looks in a stretch of its
    own, so that two that run beside one another do not find the same port between the look and the server's start; nor
    does a browser."""
    start = FIRST + os.getpid() % PROCESSES * EACH
    ports = random.sample(range(start, start + EACH), EACH)
    found = next((port for port in ports if port not in _given and is_free(port)), None)
    if found is None:
        raise OSError(f"too few of the ports from {start} to {start + EACH - 1} are free")
    _given.append(found)
    return found


def is_free(port: int) -> bool:
    """Whether a server could listen on this port of 127.0.0.1. Connections of an earlier one that still linger are no
    hindrance."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
            probe.listen()
        except OSError:
            return False
    return True
