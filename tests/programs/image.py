"""Run the Dockerfile's steps in a shell, without Docker: `make image-check`, two minutes.

The files that Docker would copy are placed in a folder, where the RUN steps install the app into an empty environment,
with packages from the package index. Then CMD runs outside that folder with the image's variables until HEALTHCHECK
succeeds, and a sentence is translated through the API. A wheel built from the source archive must contain the installed
files. System packages and the image's user are left out. If PyTorch's own index cannot be reached, torch comes from the
default one.
"""

from __future__ import annotations

import fnmatch
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
import zipfile
from pathlib import Path

from gradio_client import Client
from uv import find_uv_bin

from attention_atlas.model.program import run_program
from bench.ports import free_port
from tests import ROOT, run
from tests.programs.release import copy_sources
from tests.programs.test_docker import TEXT, arguments_of
from tests.programs.wheels import uv_settings

INSTALLED = "/opt/atlas"  # in the image
START_TIMEOUT = 120  # seconds until the page is served


def build_wheel_from_archive(copy: Path, folder: Path) -> set[str]:
    """Build the source archive and a wheel from it; return the wheel's files with their digests (lines of RECORD)."""
    options, environment = uv_settings()
    run([find_uv_bin(), "build", "--no-config", *options, "--out-dir", folder, copy], env=environment)
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        (record,) = (name for name in archive.namelist() if name.endswith(".dist-info/RECORD"))
        return files_of(archive.read(record).decode())


def files_of(record: str) -> set[str]:
    """Return the lines of RECORD for the package's own files, without those that an installer adds."""
    return {line for line in record.splitlines() if re.match(r"attention_atlas/.+\.\w+,sha256=", line)}


def torch_index() -> str:
    """Return the Dockerfile's default of WHEELS, or "" if it cannot be reached: pip would retry for minutes."""
    (url,) = re.findall(r"^ARG WHEELS=(\S+)", TEXT, re.MULTILINE)
    try:
        with urllib.request.urlopen(url, timeout=10):
            return url
    except OSError:
        print(f"{url} could not be reached", flush=True)
        return ""


def check(folder: Path) -> None:
    copy, image = folder / "app", folder / "atlas"
    copy.mkdir()
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").split()
    copy_sources(copy, lambda name: not any(fnmatch.fnmatch(name.split("/")[0], pattern) for pattern in ignored))
    sources = build_wheel_from_archive(copy, folder / "dist")
    shutil.rmtree(copy / "build", ignore_errors=True)
    began = time.monotonic()
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    for step in arguments_of("RUN"):
        if "useradd" not in step:
            run(
                ["sh", "-ec", step.replace(INSTALLED, str(image))],
                cwd=copy,
                env={**environment, "WHEELS": torch_index()},
            )
    print(f"installed into an empty environment in {time.monotonic() - began:.0f} s", flush=True)
    (record,) = image.glob("lib/python*/site-packages/attention_atlas-*.dist-info/RECORD")
    if missing := sources ^ files_of(record.read_text(encoding="utf-8")):
        raise ValueError(f"the source archive builds another package; these files differ: {sorted(missing)[:5]}")
    print(f"the source archive builds the same {len(sources)} files")
    serve(folder, image)


def serve(folder: Path, image: Path) -> None:
    """Run CMD with the variables of ENV until HEALTHCHECK succeeds; then translate a sentence through the API."""
    port, home = free_port(), folder / "home"
    home.mkdir()
    settings = dict(pair.split("=", 1) for pair in shlex.split(arguments_of("ENV")[0]))
    settings |= {"PATH": f"{image}/bin:{os.environ['PATH']}", "HOME": str(home)}
    settings |= {"GRADIO_SERVER_NAME": "127.0.0.1", "GRADIO_SERVER_PORT": str(port)}
    healthy = json.loads(arguments_of("HEALTHCHECK")[0].split(" CMD ", 1)[1])
    command, *options = json.loads(arguments_of("CMD")[0])
    if subprocess.run(healthy, env=settings, capture_output=True).returncode == 0:
        raise ValueError("HEALTHCHECK succeeds before the page is started")
    began = time.monotonic()
    with subprocess.Popen([image / "bin" / command, *options], cwd=home, env=settings) as page:
        try:
            while subprocess.run(healthy, env=settings, capture_output=True).returncode:
                if page.poll() is not None or time.monotonic() - began > START_TIMEOUT:
                    raise ValueError(f"the page was not served within {START_TIMEOUT} seconds")
                time.sleep(0.5)
            print(f"healthy after {time.monotonic() - began:.1f} s")
            client = Client(f"http://127.0.0.1:{port}/", verbose=False, analytics_enabled=False)
            answer = client.predict("Der Hund schläft.", api_name="/translate")
            if answer["status"] != "ok":
                raise ValueError(f"the API answered {answer}")
            print(f"translated: {answer['translation']}")
        finally:
            page.terminate()


def main() -> None:
    if sys.argv[1:]:
        print(__doc__)
        return
    with tempfile.TemporaryDirectory(prefix="image-") as name:
        check(Path(name))


if __name__ == "__main__":
    run_program(main)
