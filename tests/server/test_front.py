"""Tests of the page's own files and of what is added to the head of its HTML."""

from __future__ import annotations

import gzip
import re
from pathlib import Path
from urllib.parse import urlsplit

import gradio as gr
import pytest

from attention_atlas.model.translators import Translators
from attention_atlas.viz import assets, shell
from attention_atlas.viz.server.web_files import head
from bench.load import Caller

GZIP = {"Accept-Encoding": "gzip"}


@pytest.mark.parametrize("path", [assets.MOUNT, assets.BASE_STYLE, assets.WEB / "words" / "de.json", assets.PLOTLY])
def test_a_file_is_served_compressed_or_not(port, path: Path) -> None:
    name = path.name if path == assets.PLOTLY else assets.name(path)
    address = f"/{assets.address()}{name}"
    _, body, headers = Caller(port).send("GET", address, headers=GZIP)
    assert headers["Content-Encoding"] == "gzip" and headers["X-Content-Type-Options"] == "nosniff"
    assert gzip.decompress(body) == path.read_bytes()
    _, body, headers = Caller(port).send("GET", address)
    assert headers["Content-Encoding"] is None and body == path.read_bytes()


def test_files_at_the_current_digest_are_cached_for_ever(port) -> None:
    def cache_control(digest: str) -> str:
        return Caller(port).send("GET", f"/atlas/{digest}/page/title.js")[2]["Cache-Control"]

    assert "immutable" in cache_control(assets.digest())
    assert cache_control("0" * 16) == "no-cache"  # asked for by a page of another version


@pytest.mark.parametrize(
    "address",
    [
        "assets/../index.html",
        "gradio_api/file=/etc/hostname",
        "gradio_api/file={web}/core/dom.js",
        "assets/none.js",
        "{own}../theme.py",
        "{own}..%2ftheme.py",
        "{own}core/none.js",
        "{own}core",
        "{own}",
        "atlas/core/dom.js",
    ],
)
def test_other_files_are_not_served(port, address) -> None:
    assert Caller(port).get("/" + address.format(web=assets.WEB, own=assets.address()))[0] in (403, 404)


def test_the_head_has_our_script_and_preloads(port) -> None:
    _, packed, headers = Caller(port).send("GET", "/", headers=GZIP)
    _, plain, plain_headers = Caller(port).send("GET", "/")
    text, whole = gzip.decompress(packed).decode(), plain.decode()
    assert headers["Content-Encoding"] == "gzip" and plain_headers["Content-Encoding"] is None
    assert int(headers["Content-Length"]) < len(text) / 2
    own = head()
    assert text.count(f"<head>{own}") == whole.count(f"<head>{own}") == 1 and "<gradio-app" in text
    preloads = re.findall(r'<link rel="modulepreload" fetchpriority="low" href="([^"]+)">', own)
    assert len(preloads) > 10 and all(address.startswith(assets.address()) for address in preloads)
    for address in (*preloads, *re.findall(r'<link rel="stylesheet" href="([^"]+)">', own)):
        assert Caller(port).get(f"/{address}")[0] == 200


def test_an_ordinary_tab_of_gradio_can_be_added(serve, tiny_translator) -> None:
    page = shell.build(Translators([tiny_translator]))
    with page.demo, gr.Tab("Ordinary"):
        gr.Textbox("Hallo", label="Ordinary")
    assert b"Ordinary" in Caller(urlsplit(serve(page)).port).get("/")[1]
