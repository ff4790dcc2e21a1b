"""Downloads from a hub, with a small server on the loopback that can fail as a real one does."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from attention_atlas.model import checkpoint
from attention_atlas.model.families import hub
from tests.model.families import theirs
from tests.model.families.theirs import PICKLE, WEIGHTS

SHA = "a" * 40
NAME = "own/opus-mt-de-en"


class FakeHub:
    """A server of folders as repositories.

    file_requests   (method, file) of each request for a file
    breaks  the number of further answers with weights that end in the middle
    status  the status of the model's page in place of 200, with its error code
    """

    def __init__(self) -> None:
        self.repositories: dict[str, Path] = {}
        self.file_requests: list[tuple[str, str]] = []
        self.breaks = 0
        self.status: tuple[int, str] | None = None
        fake = self

        class Handler(BaseHTTPRequestHandler):
            def do_HEAD(self):
                fake.answer(self)

            def do_GET(self):
                fake.answer(self)

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        # It looks for its end every so many seconds: by itself every half, which each test waited for.
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        path = request.path.split("?")[0]
        page = re.fullmatch(r"/api/models/(.+?)(/revision/[^/]+|/tree/[^/]+)?", path)
        file = re.fullmatch(r"/(.+)/resolve/[^/]+/([^/]+)", path)
        name = (page or file)[1] if page or file else None
        folder = self.repositories.get(name)
        if folder is None or (page and self.status):
            code, word = self.status or (404, "RepoNotFound")
            self.send(request, code, b"{}", {"X-Error-Code": word})
        elif page:
            files = [f for f in sorted(folder.iterdir()) if f.is_file()]
            tree = [{"type": "file", "path": f.name, "size": f.stat().st_size, "oid": f.name} for f in files]
            whole = {"id": name, "sha": SHA, "siblings": [{"rfilename": f.name} for f in files]}
            self.send(request, 200, json.dumps(tree if "/tree/" in path else whole).encode())
        else:
            self.send_file(request, folder / file[2])

    def send_file(self, request: BaseHTTPRequestHandler, path: Path) -> None:
        self.file_requests.append((request.command, path.name))
        if not path.is_file():
            self.send(request, 404, b"", {"X-Error-Code": "EntryNotFound"})
            return
        content, headers = path.read_bytes(), {"ETag": f'"{path.name}"', "X-Repo-Commit": SHA}
        span = re.fullmatch(r"bytes=(\d+)-.*", request.headers.get("Range", ""))
        if span and int(span[1]):
            start = int(span[1])
            headers["Content-Range"] = f"bytes {start}-{len(content) - 1}/{len(content)}"
            self.send(request, 206, content[start:], headers)
        else:
            breaks = self.breaks > 0 and request.command == "GET" and path.suffix in (".safetensors", ".bin")
            self.breaks -= breaks
            self.send(request, 200, content, headers, part=len(content) // 2 if breaks else None)

    @staticmethod
    def send(request, code: int, body: bytes, headers: dict | None = None, part: int | None = None) -> None:
        request.send_response(code)
        for key, value in {**(headers or {}), "Content-Length": str(len(body))}.items():
            request.send_header(key, value)
        request.end_headers()
        if request.command == "GET":
            request.wfile.write(body[:part])
            if part is not None:
                request.wfile.flush()
                request.connection.close()


@pytest.fixture()
def fake() -> Iterator[FakeHub]:
    running = FakeHub()
    yield running
    running.server.shutdown()
    running.server.server_close()


@pytest.fixture(scope="module")
def saved(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("repository") / "opus-mt-de-en"
    theirs.marian(folder).save_pretrained(folder)
    (folder / "README.md").write_text("---\nlicense: cc-by-4.0\n---\nA model of our own.\n")
    for other in ("tf_model.h5", "rust_model.ot", "flax_model.msgpack", "run_me.py"):
        (folder / other).write_bytes(b"never fetched")
    return folder


def fetched(fake: FakeHub, tmp_path: Path, name: str = NAME) -> Path:
    return hub.locate(name, endpoint=fake.url, cache=tmp_path / "cache")


def test_only_needed_files_are_downloaded_once(fake, saved, folder, tmp_path):
    torch.save(load_file(folder / WEIGHTS), folder / PICKLE)
    fake.repositories[NAME] = folder
    local = fetched(fake, tmp_path)
    got = {name for method, name in fake.file_requests if method == "GET"}
    assert got == {
        "config.json",
        "generation_config.json",
        "tokenizer_config.json",
        "vocab.json",
        "source.spm",
        "target.spm",
        WEIGHTS,
        "README.md",
    }
    opened = checkpoint.load(local)
    assert opened.name == NAME and opened.directions == ("de-en",)
    expected = checkpoint.load(saved).model.state_dict()
    assert all(torch.equal(t, expected[name]) for name, t in opened.model.state_dict().items())
    fake.file_requests.clear()
    assert fetched(fake, tmp_path) == local and not [name for method, name in fake.file_requests if method == "GET"]


def test_sharded_pickles_are_downloaded_if_there_are_no_safetensors(fake, folder, tmp_path):
    theirs.save_shards(load_file(folder / WEIGHTS), folder)
    (folder / WEIGHTS).unlink()
    fake.repositories[NAME] = folder
    assert checkpoint.load(fetched(fake, tmp_path)).directions == ("de-en",)


def test_an_interrupted_download_resumes(fake, saved, tmp_path):
    fake.repositories[NAME], fake.breaks = saved, 1
    folder = fetched(fake, tmp_path)
    assert fake.breaks == 0
    assert (folder / WEIGHTS).read_bytes() == (saved / WEIGHTS).read_bytes()


def test_the_cache_is_used_offline(fake, saved, tmp_path):
    fake.repositories[NAME] = saved
    folder = fetched(fake, tmp_path)
    fake.server.shutdown()
    fake.server.server_close()
    assert fetched(fake, tmp_path) == folder
    with pytest.raises(
        ValueError, match=r"no folder 'own/other' here, no model .* in the cache, and the hub cannot be reached"
    ):
        fetched(fake, tmp_path, "own/other")


def test_an_unsupported_family_is_refused_before_its_weights_are_downloaded(fake, folder, tmp_path):
    theirs.edit(folder, model_type="t5", architectures=["T5Model"])
    fake.repositories[NAME] = folder
    with pytest.raises(ValueError, match=r"T5Model.*model\.foreign\.trace_of"):
        fetched(fake, tmp_path)
    assert {name for _, name in fake.file_requests} == {"config.json"}


@pytest.mark.parametrize(
    ("status", "words"),
    [((404, "RepoNotFound"), "the hub has no model of that name"), ((403, "GatedRepo"), "is gated: ask for access")],
)
def test_an_unavailable_model_is_refused_with_the_reason(fake, saved, tmp_path, status, words):
    fake.repositories[NAME], fake.status = saved, status
    with pytest.raises(ValueError, match=words):
        fetched(fake, tmp_path)


@pytest.mark.parametrize(
    ("absent", "words"), [("config.json", "has no config.json"), ("model.safetensors", "no weights that can be opened")]
)
def test_a_repository_without_a_model_is_refused(fake, folder, tmp_path, absent, words):
    (folder / absent).unlink()
    fake.repositories[NAME] = folder
    with pytest.raises(ValueError, match=words):
        fetched(fake, tmp_path)


@pytest.mark.parametrize("name", ["../outside", "/etc", "a/b/c", "", "a//b", "own/--x..y", "https://hub/own/model"])
def test_an_invalid_id_sends_no_request(fake, tmp_path, name, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if Path(name).is_dir():
        assert hub.locate(name) == Path(name)
        return
    with pytest.raises(ValueError, match=r"neither a folder nor the id|there is no folder"):
        fetched(fake, tmp_path, name)
    assert fake.file_requests == []


def test_a_full_disk_is_reported(fake, saved, tmp_path, monkeypatch):
    fake.repositories[NAME] = saved

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("huggingface_hub.snapshot_download", full)
    with pytest.raises(ValueError, match="the disk is full"):
        fetched(fake, tmp_path)
