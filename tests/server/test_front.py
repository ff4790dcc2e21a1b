"""Tests of the page's own files and of what is added to the head of its HTML."""

from __future__ import annotations

import gzip
import re
import urllib.error
import urllib.request
from http.client import HTTPResponse
from pathlib import Path

import gradio as gr
import pytest

from attention_atlas.model.translators import Translators
from attention_atlas.viz import assets, shell
from attention_atlas.viz.server.web_files import head


def get(address: str, **headers: str) -> HTTPResponse:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return urllib.request.urlopen(urllib.request.Request(address, headers=named), timeout=30)


@pytest.mark.parametrize("path", [assets.MOUNT, assets.BASE_STYLE, assets.WEB / "words" / "de.json", assets.PLOTLY])
def test_a_file_is_served_compressed_or_not(tiny_url, path: Path) -> None:
    name = path.name if path == assets.PLOTLY else assets.name(path)
    address = f"{tiny_url}{assets.address()}{name}"
    with get(address, Accept_Encoding="gzip") as answer:
        assert answer.headers["Content-Encoding"] == "gzip"
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert gzip.decompress(answer.read()) == path.read_bytes()
    with get(address, Accept_Encoding="identity") as answer:
        assert answer.headers["Content-Encoding"] is None and answer.read() == path.read_bytes()


def test_files_at_the_current_digest_are_cached_for_ever(tiny_url) -> None:
    def cache_control(digest: str) -> str:
        with get(f"{tiny_url}atlas/{digest}/page/title.js") as answer:
            return answer.headers["Cache-Control"]

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
def test_other_files_are_not_served(tiny_url, address) -> None:
    with pytest.raises(urllib.error.HTTPError) as refused:
        get(tiny_url + address.format(web=assets.WEB, own=assets.address()))
    assert refused.value.code in (403, 404)


def test_the_head_has_our_script_and_preloads(tiny_url) -> None:
    with get(tiny_url, Accept_Encoding="gzip") as packed, get(tiny_url) as plain:
        text, whole = gzip.decompress(packed.read()).decode(), plain.read().decode()
        assert packed.headers["Content-Encoding"] == "gzip" and plain.headers["Content-Encoding"] is None
        assert int(packed.headers["Content-Length"]) < len(text) / 2
    own = head()
    assert text.count(f"<head>{own}") == whole.count(f"<head>{own}") == 1 and "<gradio-app" in text
    preloads = re.findall(r'<link rel="modulepreload" fetchpriority="low" href="([^"]+)">', own)
    assert len(preloads) > 10 and all(address.startswith(assets.address()) for address in preloads)
    for address in (*preloads, *re.findall(r'<link rel="stylesheet" href="([^"]+)">', own)):
        with get(tiny_url + address) as answer:
            assert answer.status == 200


def test_an_ordinary_tab_of_gradio_can_be_added(serve, tiny_translator) -> None:
    page = shell.build(Translators([tiny_translator]))
    with page.demo, gr.Tab("Ordinary"):
        gr.Textbox("Hallo", label="Ordinary")
    with get(serve(page)) as answer:
        assert "Ordinary" in answer.read().decode()
