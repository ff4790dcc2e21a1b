"""The Dockerfile's steps by a shell, where there is no Docker: `make image-check`, two minutes.

What Docker would copy is laid out in a folder, and the steps that fill the environment run there, with a folder in the
place of the image's: nothing is in it but Python, and all that is needed comes from the package index. Then, far away,
the command runs with the image's variables until its health check says that it is well, and a sentence is translated.
A wheel that is built from the sources' archive must be what was installed, file by file. Left out is what only an
image has: packages of the system's, and a user. Without torch's own index its wheels are taken from the other one.
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

from attention_atlas.model.program import program
from bench.ports import free_port
from tests import ROOT
from tests.programs.test_docker import TEXT, of
from tests.programs.wheels import as_pip_is

INSTALLED = "/opt/atlas"  # in the image
PATIENCE = 120  # seconds until the page is served


def context(folder: Path) -> None:
    """What COPY has: what git knows, without what .dockerignore names."""
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").split()
    names = subprocess.run(["git", "ls-files", "-coz", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True)
    for name in filter(None, names.stdout.split("\0")):
        if (ROOT / name).is_file() and not any(fnmatch.fnmatch(name.split("/")[0], one) for one in ignored):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)


def run(command: list[object] | str, **options: object) -> str:
    """What it printed. ValueError, with what it said, where it fails."""
    done = subprocess.run(command, capture_output=True, text=True, **options)
    if done.returncode:
        raise ValueError(f"{command}\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
    return done.stdout


def built_from_sources(copy: Path, folder: Path) -> set[str]:
    """Lines of the RECORD (a file, its digest) of a wheel that is built from the archive of the sources."""
    options, environment = as_pip_is()
    run([find_uv_bin(), "build", "--no-config", *options, "--out-dir", folder, copy], env=environment)
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as opened:
        (record,) = (name for name in opened.namelist() if name.endswith(".dist-info/RECORD"))
        return files_of(opened.read(record).decode())


def files_of(record: str) -> set[str]:
    """Without what an installation adds: a script, compiled modules, whence it came."""
    return {line for line in record.splitlines() if re.match(r"attention_atlas/.+\.\w+,sha256=", line)}


def torchs_index() -> str:
    """What --build-arg WHEELS= is by default, or nothing where that cannot be reached: pip would ask it long."""
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
    context(copy)
    sources = built_from_sources(copy, folder / "dist")
    shutil.rmtree(copy / "build", ignore_errors=True)
    began = time.monotonic()
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    for step in of("RUN"):
        if "useradd" not in step:
            run(["sh", "-ec", step.replace(INSTALLED, str(image))], cwd=copy, env={**kept, "WHEELS": torchs_index()})
    print(f"installed into an empty environment in {time.monotonic() - began:.0f} s", flush=True)
    (record,) = image.glob("lib/python*/site-packages/attention_atlas-*.dist-info/RECORD")
    if missing := sources ^ files_of(record.read_text(encoding="utf-8")):
        raise ValueError(f"the archive of the sources gives another package: {sorted(missing)[:5]}")
    print(f"the sources' archive gives the same {len(sources)} files")
    serve(folder, image)


def serve(folder: Path, image: Path) -> None:
    """CMD with the variables of ENV, far from the sources, until HEALTHCHECK is content."""
    port, home = free_port(), folder / "home"
    home.mkdir()
    settings = dict(pair.split("=", 1) for pair in shlex.split(of("ENV")[0]))
    settings |= {"PATH": f"{image}/bin:{os.environ['PATH']}", "HOME": str(home), "GRADIO_SERVER_PORT": str(port)}
    healthy = json.loads(of("HEALTHCHECK")[0].split(" CMD ", 1)[1])
    command, *options = json.loads(of("CMD")[0])
    began = time.monotonic()
    with subprocess.Popen([image / "bin" / command, *options], cwd=home, env=settings) as page:
        try:
            while subprocess.run(healthy, env=settings, capture_output=True).returncode:
                if page.poll() is not None or time.monotonic() - began > PATIENCE:
                    raise ValueError("it is not served")
                time.sleep(0.5)
            print(f"healthy after {time.monotonic() - began:.1f} s")
            client = Client(f"http://127.0.0.1:{port}/", verbose=False, analytics_enabled=False)
            answer = client.predict("Der Hund schläft.", api_name="/translate")
            if answer["status"] != "ok":
                raise ValueError(f"the API answered {answer}")
            print(f"it translates: {answer['translation']}")
        finally:
            page.terminate()


def main() -> None:
    if sys.argv[1:]:
        print(__doc__)
        return
    with tempfile.TemporaryDirectory(prefix="image-") as name:
        check(Path(name))


if __name__ == "__main__":
    program(main)
