"""The files that a page is made of, answered from memory: as they are, no others, and kept by browsers."""

from __future__ import annotations

import gzip
import json
import re
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from html import escape, unescape
from http.client import HTTPResponse
from pathlib import Path

import anyio
import pytest
from viz.ui.gradio6.preloads import front_end, together

from model.checkpoint import Example
from model.translators import Translators
from viz import assets, shell, words
from viz.ui.component import url
from viz.ui.gradio6 import files, frame
from viz.ui.language import label
from viz.words import say


def get(address: str, **headers: str) -> HTTPResponse:
    return urllib.request.urlopen(urllib.request.Request(address, headers=headers), timeout=30)


def some() -> list[tuple[str, Path]]:
    """A script and a style sheet of Gradio's, and of ours."""
    return list(
        {
            (path.suffix, path.is_relative_to(assets.WEB)): (address, path)
            for address, path in files.offered().items()
            if path != assets.PLOTLY
        }.values()
    )


@pytest.mark.parametrize(("address", "path"), some(), ids=lambda value: Path(value).suffix)
def test_a_file_arrives_as_it_is_packed_or_not(tiny_url, address, path) -> None:
    with get(tiny_url + address.lstrip("/"), **{"Accept-Encoding": "gzip"}) as answer:
        assert answer.headers["Content-Encoding"] == "gzip"
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert gzip.decompress(answer.read()) == path.read_bytes()
    with get(tiny_url + address.lstrip("/"), **{"Accept-Encoding": "identity"}) as answer:
        assert answer.headers["Content-Encoding"] is None and answer.read() == path.read_bytes()


def test_the_frame_has_words_in_every_language(tiny_url) -> None:
    """All that it says, but what is written in the model's languages."""
    with get(tiny_url) as answer:
        page = answer.read().decode()
    said = {unescape(text) for text in frame.SAID.findall(page)}
    own = json.loads(unescape(re.search(r'<script data-words="([^"]*)">', page)[1]))
    assert len(said) > 12 and set(own) == set(words.files())
    assert all(len(said & set(texts)) == len(texts) > 9 for texts in own.values())


def test_a_frame_is_text_and_stands_for_a_whole_page_alone() -> None:
    assert frame.shell({"components": []}) == ""
    assert frame._said("b", "<i>a & b</i>") == '<b dir="auto">&lt;i&gt;a &amp; b&lt;/i&gt;</b>'
    assert frame._said("b", label(say("Sentence <i>"))) == "<b data-say>Sentence &lt;i&gt;</b>"
    for name in (frame.LABEL + rest for rest in ("", " x", "[]", "{}", '{"key": 1}')):
        assert frame._said("b", name) == frame._plain("b", name)


def test_a_sentence_is_never_taken_for_a_label(tiny_translator) -> None:
    sentence, translator = f'{frame.LABEL}{{"key": "Sentence"}}', copy(tiny_translator)
    translator.examples = {"de-en": (Example(sentence),)}
    html = frame.shell(shell.build(Translators([translator])).config)
    assert html.count(escape(sentence)) == 2 and "<b data-say>Sentence</b>" not in html  # the field, and what to try


def test_what_is_named_by_its_content_is_kept(tiny_url) -> None:
    def kept(address: str) -> str:
        with get(tiny_url + address, **{"Accept-Encoding": "gzip"}) as answer:
            return answer.headers["Cache-Control"]

    path = assets.module("title")
    assert "immutable" in kept(url(path)) and "immutable" in kept(f"assets/{front_end(())[0]}")
    assert "immutable" in kept(f"atlas/{assets.digest()}/page/title.js")
    assert kept(f"gradio_api/file={path}") == "no-cache"


def test_plotly_registers_only_what_is_drawn_and_is_whole_where_it_is_written_otherwise() -> None:
    whole = assets.PLOTLY.read_text(encoding="utf-8")
    (every,), sent = assets.REGISTERED.findall(whole), assets.plotly_script(whole)
    kept = re.search(r"\.register\(\[([\w$]+\(\))\]\)", sent)[1]
    assert every.count(",") > 40 and kept in every.split(",") and len(sent) < len(whole)
    handed = "this, () => {\n", "}));", "this, (function () {\n", "})));"
    assert sent == whole.replace(every, kept).replace(handed[0], handed[2]).removesuffix(handed[1]) + handed[3]
    other = whole.replace('name:"heatmap"', 'name: "heatmap"').replace("this, ()", "this, ( )")
    assert assets.plotly_script(other) == other


@pytest.mark.parametrize(
    "address",
    [
        "assets/../index.html",
        "gradio_api/file=/etc/hostname",
        "gradio_api/file={web}/../theme.py",
        "assets/none.js",
        "atlas/0123456789abcdef/../theme.py",
        "atlas/core/dom.js",
    ],
)
def test_nothing_else_can_be_asked_for(tiny_url, address) -> None:
    with pytest.raises(urllib.error.HTTPError):
        get(tiny_url + address.format(web=assets.WEB), **{"Accept-Encoding": "gzip"})


def test_a_file_that_was_changed_is_read_again(tmp_path, monkeypatch) -> None:
    path = tmp_path / "words.js"
    monkeypatch.setattr(files, "offered", lambda: {"/words.js": path})
    middleware = files.Files(None)
    scope = {
        "type": "http",
        "method": "GET",
        "path": "/words.js",
        "query_string": b"",
        "headers": [(b"accept-encoding", b"gzip, br")],
    }

    def body() -> bytes:
        sent = []

        async def send(message: dict) -> None:
            sent.append(message)

        with ThreadPoolExecutor(1) as apart:  # in this thread a browser's loop may run
            apart.submit(anyio.run, middleware, scope, None, send).result()
        return gzip.decompress(sent[1]["body"])

    path.write_text("one")
    assert body() == body() == b"one"
    path.write_text("another")
    assert body() == b"another"


def test_the_page_is_the_same_packed_or_not(tiny_url) -> None:
    with get(tiny_url, **{"Accept-Encoding": "gzip"}) as packed, get(tiny_url) as plain:
        text = gzip.decompress(packed.read())
        assert len(text) == len(plain.read()) and b"<gradio-app" in text
        early = b"".join(re.findall(rb'<link rel="modulepreload" href="atlas/[^>]*>', text))
        assert b"title.js" in early and b"languages.js" not in early  # whose menus are hidden
        later = set(front_end(("slider",))) - set(front_end(("html", "textbox")))
        assert later and not any(name.encode() in text for name in later)  # the page has none of these
        assert int(packed.headers["Content-Length"]) < len(text) / 2


def test_style_sheets_that_scripts_would_load_one_by_one_come_as_one(tiny_url) -> None:
    with get(tiny_url) as answer:
        page = answer.read().decode()
    disabled = re.findall(r'<link rel="stylesheet" disabled href="\./assets/([^"]*)">', page)
    (address,) = re.findall(r'<link rel="stylesheet" href="\./(assets/together-[^"]*)">', page)
    assert len(disabled) > 12 and any(name.startswith("HTML-") for name in disabled)
    with get(tiny_url + address, **{"Accept-Encoding": "gzip"}) as packed, get(tiny_url + address) as plain:
        text = gzip.decompress(packed.read())
        assert text == plain.read() == together(disabled) and "immutable" in plain.headers["Cache-Control"]
    whole = text.decode()
    assert all((files.FRONT_END / "assets" / name).read_text(encoding="utf-8") in whole for name in disabled)
    assert page.index(f"./{address}") > page.index('rel="stylesheet" crossorigin')  # where scripts would put them
    with get(tiny_url + re.sub("[0-9a-f]{16}", 16 * "0", address)) as other:  # of a page that another version made
        assert other.read() == text
