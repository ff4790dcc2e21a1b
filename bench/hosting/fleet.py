"""Replicas of the app behind nginx, as docs/hosting has them: what tests and the load model run."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path

from bench.load import ROOT, wait_until_served
from bench.ports import free_port

SITE = ROOT / "docs" / "hosting" / "nginx.conf"
SERVER = "server 127.0.0.1:"  # begins the line of a replica in that file
MAIN = """daemon off; pid {folder}/pid; error_log {folder}/log; worker_processes 1;
events {{ worker_connections 2048; }}
http {{ access_log off; {paths} include {folder}/site.conf; }}"""
APP = "app.py"
TEMPORARY = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")


@contextmanager
def proxy(folder: Path, ports: Sequence[int]) -> Iterator[int]:
    """Run nginx by the project's file before these ports of this machine. Yields its port. folder: for its files."""
    port = free_port()
    site = SITE.read_text(encoding="utf-8").replace("listen 8080", f"listen 127.0.0.1:{port}")
    named = [line for line in site.splitlines(keepends=True) if SERVER in line]
    assert len(named) == 2
    servers = "".join(re.sub(r":\d+ ", f":{number} ", named[0]) for number in ports)
    site = site.replace("".join(named), servers)
    (folder / "site.conf").write_text(site, encoding="utf-8")
    paths = " ".join(f"{name}_temp_path {folder}/{name};" for name in TEMPORARY)
    (folder / "nginx.conf").write_text(MAIN.format(folder=folder, paths=paths), encoding="utf-8")
    process = subprocess.Popen(["nginx", "-p", folder, "-c", folder / "nginx.conf"], stderr=subprocess.PIPE)
    try:
        for _ in range(200):
            if process.poll() is not None:
                raise OSError(process.stderr.read().decode())
            try:
                HTTPConnection("127.0.0.1", port, timeout=5).connect()
                break
            except ConnectionRefusedError:
                time.sleep(0.02)
        yield port
    finally:
        process.terminate()
        process.wait(20)


@dataclass
class Replica:
    """The app as a process of its own on a port that it keeps."""

    port: int
    options: tuple[str, ...]
    process: subprocess.Popen | None = None

    def start(self) -> Replica:
        """Begin; served() waits until it answers."""
        command = [sys.executable, APP, "--host", "127.0.0.1", "--port", str(self.port), *self.options]
        self.process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL)
        return self

    def served(self) -> Replica:
        wait_until_served(self.port, self.process)
        return self

    def end(self, by: signal.Signals = signal.SIGTERM) -> Replica:
        self.process.send_signal(by)
        self.process.wait(20)
        return self


@contextmanager
def fleet(folder: Path, options: Sequence[str], count: int = 2) -> Iterator[tuple[int, tuple[Replica, ...]]]:
    """Start replicas with these options of the app, and nginx before them. Yields its port, and the replicas."""
    replicas = tuple(Replica(free_port(), tuple(options)).start() for _ in range(count))
    with ExitStack() as stack:
        for one in replicas:
            stack.callback(lambda one=one: one.process.poll() is None and one.end(signal.SIGKILL))
        for one in replicas:
            one.served()
        yield stack.enter_context(proxy(folder, [one.port for one in replicas])), replicas
