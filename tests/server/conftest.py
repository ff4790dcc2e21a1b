"""Fixtures of the tests of the server: the tiny model, served in this process or by the app as another one."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from gradio_client import Client

from bench.load import running_server

# Records every name look-up and every connection of the process from its first import on.
AUDIT = """
import os, sys
def audit(event, arguments):
    if event in ("socket.getaddrinfo", "socket.gethostbyname", "socket.connect", "socket.sendto"):
        with open(os.environ["ATLAS_AUDIT"], "a") as file:
            file.write(f"{event} {arguments!r}\\n")
sys.addaudithook(audit)
"""


@pytest.fixture(scope="session")
def port(tiny_url: str) -> int:
    """The port at which the tiny model is served in this process."""
    return urlsplit(tiny_url).port


@pytest.fixture(scope="module")
def client(tiny_url: str) -> Client:
    return Client(tiny_url, verbose=False, analytics_enabled=False)


@dataclass
class Served:
    process: subprocess.Popen
    port: int
    log: Path
    audit: Path


@pytest.fixture(scope="module")
def served(tiny_checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The app with the tiny model as a process of its own, configured through the environment."""
    folder = tmp_path_factory.mktemp("served")
    (folder / "sitecustomize.py").write_text(AUDIT)
    log, audit = folder / "log", folder / "audit"
    audit.touch()
    ours = ("GRADIO_", "ATTENTION_ATLAS_", "SPACE", "HF_")
    settings = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    settings |= {"ATTENTION_ATLAS_CHECKPOINTS": str(tiny_checkpoint.parent), "ATTENTION_ATLAS_DEVICE": "cpu"}
    settings |= {"ATLAS_AUDIT": str(audit), "PYTHONPATH": str(folder), "TMPDIR": str(folder)}
    with (
        log.open("w") as output,
        running_server("app.py", env=settings, stdout=output, stderr=output) as (port, process),
    ):
        yield Served(process, port, log, audit)
