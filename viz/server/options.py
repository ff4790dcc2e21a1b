"""The command line of the server, with environment variables as defaults."""

from __future__ import annotations

import argparse
import errno
import logging
import os
import socket
import sys
from collections.abc import Callable
from pathlib import Path

from attention_atlas.model.program import integer
from attention_atlas.model.serve.device import DEVICE_VARIABLE, cores

ROOT = Path(__file__).resolve().parents[2]
DEFAULT_MAX_PASSES = 4  # run at once: memory grows with them, and fewer passes make larger batches
CACHES = {  # name: (default in megabytes, contents), as in viz.questions.traces.CacheBytes
    "trace": ("256", "translations"),
    "pass": ("128", "recorded passes"),
    "toy": ("128", "networks that visitors train"),
}
ANY_HOST, HOSTS_VARIABLE = "*", "ATTENTION_ATLAS_HOSTS"
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
MODELS_VARIABLE, SESSIONS_VARIABLE = "ATTENTION_ATLAS_MODELS", "ATTENTION_ATLAS_MAX_SESSIONS"

log = logging.getLogger(__name__)


def parse(argv: list[str] | None) -> argparse.Namespace:
    """Parse the command line. An option that is missing takes its value from the environment variable in its help."""
    parser = argparse.ArgumentParser(
        prog="python app.py" if Path(sys.argv[0]).name == "app.py" else "attention-atlas serve",
        description="Serve Attention Atlas: translate a sentence, look at every attention head.",
        epilog="Each option can be given as the environment variable in brackets. SIGTERM or Ctrl+C ends the server. "
        "The API is described in docs/how-to/api.md and on the page under 'Use via API'.",
    )

    def option(name: str, variable: str, default: object, words: str, kind: Callable = str) -> None:
        words = f"{words} (default {default}) [{variable}]"
        parser.add_argument(name, type=kind, default=os.environ.get(variable) or default, help=words)

    # A Space's container must be reachable from outside; elsewhere the page is served to this machine only by default.
    host = "0.0.0.0" if "SPACE_ID" in os.environ else "127.0.0.1"
    option("--host", "GRADIO_SERVER_NAME", host, "address to serve on")
    about = "host names that requests may name, separated by commas; * allows any (default: on a loopback address this "
    about += "machine's own names, elsewhere any)"
    parser.add_argument("--hosts", default=os.environ.get(HOSTS_VARIABLE), help=f"{about} [{HOSTS_VARIABLE}]")
    option("--port", "GRADIO_SERVER_PORT", "7860", "port to serve on", integer(1, 65535))
    option("--checkpoints", "ATTENTION_ATLAS_CHECKPOINTS", str(ROOT / "checkpoints"), "folder of checkpoints", Path)
    option("--device", DEVICE_VARIABLE, "auto", "cpu, cuda, cuda:N, mps or auto: cuda if there is one, else cpu")
    parser.add_argument(
        "--max-sessions",
        type=integer(1, 10_000),
        default=os.environ.get(SESSIONS_VARIABLE) or None,
        help=f"has no effect: the server keeps nothing for each visitor any more [{SESSIONS_VARIABLE}]",
    )
    about = "passes through the model that run at once, sharing the cores; requests that wait share a batch"
    option(
        "--concurrency", "ATTENTION_ATLAS_CONCURRENCY", str(min(cores(), DEFAULT_MAX_PASSES)), about, integer(1, 256)
    )
    about = "requests that may wait; beyond it one is told at once to come back"
    option("--queue", "ATTENTION_ATLAS_QUEUE", "128", about, integer(1, 10_000))
    for name, (megabytes, contents) in CACHES.items():
        about = f"megabytes of memory for {contents}"
        option(f"--{name}-cache", f"ATTENTION_ATLAS_{name.upper()}_CACHE", megabytes, about, integer(0, 1_000_000))
    parser.add_argument(
        "--model",
        action="append",
        metavar="FOLDER_OR_ID",
        help="another model to serve, too, of a family in docs/how-to/own-model.md: a folder, or an id on the "
        f"Hugging Face Hub, which is fetched; can be given several times [{MODELS_VARIABLE}, blanks between them]",
    )
    args = parser.parse_args(argv)
    if args.model is None:  # argparse would append to a default
        args.model = os.environ.get(MODELS_VARIABLE, "").split()
    if args.max_sessions is not None:
        log.warning("--max-sessions (%s) has no effect: nothing is kept for each visitor any more.", SESSIONS_VARIABLE)
    args.hosts = allowed_hosts(args.host, args.hosts)
    args.device = None if args.device == "auto" else args.device
    return args


def allowed_hosts(address: str, names: str | None = None) -> frozenset[str] | None:
    """Return the host names that a server on this address answers to; None for any.

    names: the operator's list, separated by commas, in addition to the address itself and this machine's names.
    """
    listed = {name.strip().lower().strip("[]") for name in (names or "").split(",")} - {""}
    if ANY_HOST in listed or not (listed or address in LOOPBACK or address.startswith("127.")):
        return None
    return LOOPBACK | {address.lower()} | listed


def check_port(host: str, port: int) -> None:
    """Raise ValueError if nothing can be served on this address. Called before the models are loaded."""
    try:
        with socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET):
            pass
    except OSError as error:
        why = {
            errno.EADDRINUSE: "is already in use: stop what runs there, or choose another with --port",
            errno.EACCES: "may not be used by this user: choose one above 1023 with --port",
        }
        if error.errno in why:
            raise ValueError(f"port {port} of {host} {why[error.errno]}") from error
        raise ValueError(f"cannot serve on {host}, port {port}: {error}") from error
