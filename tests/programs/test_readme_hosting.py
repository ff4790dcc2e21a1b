"""The commands of docs/hosting.md that upload the app to a Space run against a local server in place of the hub."""

from __future__ import annotations

import base64
import json
import os
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests import run
from tests.pages import block

TOKEN = "hf_test"


class Hub(BaseHTTPRequestHandler):
    """The part of the hub's API that uploads need: an account, a new repository, and one commit of small files."""

    repository: dict
    files: dict[str, bytes]

    def answer(self, content: object) -> None:
        body = json.dumps(content).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        name = {"name": "someone", "type": "user", "auth": {"type": "access_token", "accessToken": {"role": "write"}}}
        self.answer(
            name if "whoami" in self.path else {"id": "someone/attention-atlas", "sha": "0" * 40, "siblings": []}
        )

    def do_POST(self) -> None:
        assert self.headers["Authorization"] == f"Bearer {TOKEN}"
        sent = self.rfile.read(int(self.headers["Content-Length"])).decode()
        url = f"http://127.0.0.1:{self.server.server_port}/spaces/someone/attention-atlas"
        if self.path == "/api/repos/create":
            self.repository.update(json.loads(sent))
            self.answer({"url": url, "id": "someone/attention-atlas"})
        elif "/preupload/" in self.path:
            files = [
                {"path": f["path"], "uploadMode": "regular", "shouldIgnore": False} for f in json.loads(sent)["files"]
            ]
            self.answer({"files": files})
        else:
            for line in map(json.loads, sent.splitlines()):
                if line["key"] == "file":
                    self.files[line["value"]["path"]] = base64.b64decode(line["value"]["content"])
            self.answer({"commitUrl": f"{url}/commit/{'1' * 40}", "commitOid": "1" * 40, "success": True})

    def log_message(self, *arguments: object) -> None: ...


@pytest.fixture()
def hub() -> Iterator[type[Hub]]:
    handler = type("EmptyHub", (Hub,), {"repository": {}, "files": {}})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    handler.url = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield handler
    server.shutdown()
    server.server_close()


def test_the_commands_create_a_space_and_upload_the_app(hub, readme_bin, tmp_path):
    """A small folder replaces the repository, and a token in the environment replaces the login."""
    script = block("docs/hosting.md", "sh", "hf upload")
    commands = [line for line in script.splitlines() if "auth login" not in line]
    assert [line.split()[:2] for line in commands if line[:1].strip()] == [["hf", "repos"], ["hf", "upload"]]
    script = readme_bin / "hf"
    script.write_text(f'#!/bin/sh\nexec {readme_bin}/python -m huggingface_hub.cli.hf "$@"\n', encoding="utf-8")
    script.chmod(0o755)
    for name in ("app.py", "model/one.py", ".venv/lib.py", "data/corpus.txt", "runs/x/state", ".git/config"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name, encoding="utf-8")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("HF_", "PYTHON"))}
    account = {"HF_ENDPOINT": hub.url, "HF_TOKEN": TOKEN, "HF_HOME": str(tmp_path / "data"), "HF_HUB_DISABLE_XET": "1"}
    environment |= {**account, "PATH": f"{readme_bin}:{os.environ['PATH']}"}
    run(["sh", "-euc", "\n".join(commands).replace("YOUR-NAME", "someone")], cwd=tmp_path, env=environment, timeout=120)
    assert (hub.repository["type"], hub.repository["sdk"]) == ("space", "gradio")
    assert hub.files == {"app.py": b"app.py", "model/one.py": b"model/one.py"}
