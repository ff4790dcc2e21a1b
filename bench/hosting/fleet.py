"""Replicas of the app behind nginx, configured as in docs/hosting, for tests and the load model."""

from __future__ import annotations

import re
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from http.client import HTTPConnection
from pathlib import Path

from bench.common import ROOT
from bench.load import APP, Server
from bench.ports import free_port

SITE = ROOT / "docs" / "hosting" / "nginx.conf"
SERVER = "server 127.0.0.1:"  # a line of that file with this text names a replica
MAIN = """daemon off; pid {folder}/pid; error_log {folder}/log; worker_processes 1;
events {{ worker_connections 2048; }}
http {{ access_log off; {paths} include {folder}/site.conf; }}"""
TEMPORARY = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")


@contextmanager
def proxy(folder: Path, ports: Sequence[int]) -> Iterator[int]:
    """Run nginx with the project's configuration in front of these local ports; yield its port. folder: for files."""
    port = free_port()
    site = SITE.read_text(encoding="utf-8").replace("listen 8080", f"listen 127.0.0.1:{port}")
    server_lines = [line for line in site.splitlines(keepends=True) if SERVER in line]
    assert len(server_lines) == 2
    servers = "".join(re.sub(r":\d+ ", f":{number} ", server_lines[0]) for number in ports)
    site = site.replace("".join(server_lines), servers)
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


@contextmanager
def fleet(folder: Path, options: Sequence[str], count: int = 2) -> Iterator[tuple[int, tuple[Server, ...]]]:
    """Run replicas of the app with these options, and nginx in front of them. Yields nginx's port and the replicas."""
    replicas = tuple(Server(free_port(), (*APP, *options)).start() for _ in range(count))
    with ExitStack() as stack:
        for replica in replicas:
            stack.callback(lambda replica=replica: replica.process.poll() is None and replica.end(signal.SIGKILL))
        for replica in replicas:
            replica.wait()
        yield stack.enter_context(proxy(folder, [replica.port for replica in replicas])), replicas
