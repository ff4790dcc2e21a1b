"""The program that serves the page: `attention-atlas serve --help`"""

from __future__ import annotations

import argparse
import os
import signal
import threading

# Before gradio is imported: send no data about the page's visitors.
os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")
os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
if "SPACE_ID" in os.environ:  # behind Hugging Face's proxy, which has no fixed address
    os.environ.setdefault("FORWARDED_ALLOW_IPS", "*")
# Before torch is imported: how often its threads check for work before they sleep. The default of 300,000 blocks a core
# for milliseconds: next to one other program on two cores, a decoding step of T5-base takes 170 to 1,400 ms, with this
# value 70 ms. Alone it takes 20 ms with either.
os.environ.setdefault("GOMP_SPINCOUNT", "10000")

try:
    import spaces  # on Hugging Face Spaces; it must be imported before torch
except ImportError:
    spaces = None
from attention_atlas.model.families import hub
from attention_atlas.model.serve.cores import Cores
from attention_atlas.model.serve.device import allow_many_files, cores, return_freed_memory, share_cores
from attention_atlas.model.serve.limits import BatchLimits
from attention_atlas.model.translators import Translators
from attention_atlas.viz import directions, shell
from attention_atlas.viz.questions.traces import CacheBytes
from attention_atlas.viz.server.ask import lender
from attention_atlas.viz.server.discreet_log import keep_text_out_of_records, keep_text_out_of_tracebacks
from attention_atlas.viz.server.health import shut_down
from attention_atlas.viz.server.options import check_port, parse
from attention_atlas.viz.shell import Page

FINISHING_SECONDS, CLOSING_SECONDS = 2.5, 1.5
WAIT_SECONDS = 1 if os.name == "nt" else 60  # on Windows, Ctrl+C does not interrupt a wait


def serve(page: Page, args: argparse.Namespace) -> None:
    """Serve until SIGTERM or Ctrl+C, then finish running requests for at most four seconds and exit."""
    stopped = threading.Event()
    host = f"[{args.host}]" if ":" in args.host else args.host
    options = {"queue": args.queue, "concurrency": args.concurrency, "hosts": args.hosts}
    page.launch(**options, server_name=host, server_port=args.port)
    print(f"{shell.TITLE} is served on http://{host}:{args.port}", flush=True)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopped.set())
    while not stopped.wait(WAIT_SECONDS):
        pass
    shut_down(page.app, FINISHING_SECONDS)
    closing = threading.Thread(target=page.demo.close, kwargs={"verbose": False}, daemon=True)
    closing.start()
    closing.join(CLOSING_SECONDS)
    os._exit(0)  # a normal exit would wait for a running translation


def main(argv: list[str] | None = None) -> None:
    """Load the checkpoints, build the page and serve it."""
    args = parse(argv)
    check_port(args.host, args.port)
    keep_text_out_of_tracebacks()
    keep_text_out_of_records()
    return_freed_memory()
    allow_many_files()
    share_cores(args.concurrency)
    # ZeroGPU provides a GPU inside handlers only, so models are loaded on the CPU.
    zero_gpu = spaces is not None and spaces.config.Config.zero_gpu
    shared = Cores(cores())
    limits = BatchLimits(at_once=args.concurrency, waiting=args.queue, cores=shared)
    translators = Translators.load(
        args.checkpoints,
        "cpu" if zero_gpu else args.device,
        limits=limits,
        models=[hub.locate(name) for name in args.model],
    )
    if not any(map(directions.is_large, translators.all)):
        # A small model's pass is fastest on one thread: each thread of the server has its own torch threads, which fall
        # asleep between small operations. On two idle cores `why` takes 1.05 s with two threads and 0.7 s with one.
        shared.threads = 1
    cache_bytes = CacheBytes(
        *(1_000_000 * megabytes for megabytes in (args.trace_cache, args.pass_cache, args.toy_cache))
    )
    page = shell.build(translators, lender(spaces) if zero_gpu else None, cache_bytes)
    if zero_gpu:
        translators.to("cuda")
    serve(page, args)
