"""The page as a program: `attention-atlas serve --help`"""

from __future__ import annotations

import argparse
import os
import signal
import threading

# Before gradio is imported: nothing about the people who use this page leaves it.
os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")
os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
if "SPACE_ID" in os.environ:  # behind Hugging Face's proxy, whose address varies
    os.environ.setdefault("FORWARDED_ALLOW_IPS", "*")
# Before torch is: how often its threads look for work before they sleep. Its own 300,000 times keep a core for
# milliseconds that another program has to wait for: with one such program on two cores, a step of T5-base's size takes
# 170 to 1,400 ms; looking so often, 70. Alone it takes 20 ms either way.
os.environ.setdefault("GOMP_SPINCOUNT", "10000")

try:
    import spaces  # there on Hugging Face Spaces; it must come before torch
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
LISTENING = 1 if os.name == "nt" else 60  # seconds: on Windows a wait does not hear Ctrl+C


def serve(page: Page, args: argparse.Namespace) -> None:
    """Serve until SIGTERM or Ctrl+C; then finish what is under way, but end within four seconds, whatever is left."""
    ended = threading.Event()
    host = f"[{args.host}]" if ":" in args.host else args.host
    options = {"queue": args.queue, "concurrency": args.concurrency, "hosts": args.hosts}
    page.launch(**options, server_name=host, server_port=args.port)
    print(f"{shell.TITLE} is served on http://{host}:{args.port}", flush=True)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    while not ended.wait(LISTENING):
        pass
    shut_down(page.app, FINISHING_SECONDS)
    closing = threading.Thread(target=page.demo.close, kwargs={"verbose": False}, daemon=True)
    closing.start()
    closing.join(CLOSING_SECONDS)
    os._exit(0)  # a translation still under way would hold a normal exit up


def main(argv: list[str] | None = None) -> None:
    args = parse(argv)
    check_port(args.host, args.port)
    keep_text_out_of_tracebacks()
    keep_text_out_of_records()
    return_freed_memory()
    allow_many_files()
    share_cores(args.concurrency)
    # ZeroGPU lends a GPU to handlers only: what runs before the first of them runs on the CPU.
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
        # A small model's pass is fastest on one thread: every thread of the server has torch helpers of its own, which
        # fall asleep between small operations. Alone on two cores `why` took 1.05 s with two threads, 0.7 s with one.
        shared.threads = 1
    most = CacheBytes(*(1_000_000 * megabytes for megabytes in (args.trace_cache, args.pass_cache, args.toy_cache)))
    page = shell.build(translators, lender(spaces) if zero_gpu else None, most)
    if zero_gpu:
        translators.to("cuda")
    serve(page, args)
