"""Fuzz the tokenizer, the translator, the exports and the page with hostile and strange text.

Every string gives a translation or an error message, and no markup in it is ever executed. `counts` says how many
strings a plain run, a long run and `make endure` take.
"""

from __future__ import annotations

import random
import unicodedata
from collections.abc import Iterator

import numpy as np
import pytest

from attention_atlas.model.text.interface import normalize_text
from attention_atlas.model.trace import storage
from attention_atlas.model.trace.kinds import AttentionKind
from attention_atlas.viz.export import standalone, table
from attention_atlas.viz.maps import reduce
from tests.conftest import SENTENCES
from tests.page.browser import ELEMENTS, FIELD
from tests.viz.export.test_export import assert_equal

HOSTILE = (
    "<script>window.hacked = 1</script>",
    "<img src=x onerror=window.hacked=1>",
    "<svg/onload=window.hacked=1>",
    '"><script src=//example.org/x.js></script>',
    "javascript:window.hacked=1",
    "${window.hacked=1}",
    "#{7*7}",
    "{{constructor.constructor('window.hacked=1')()}}",
    "{{value}}",
    "{% raw %}",
    "<%= 7*7 %>",
    "`${window.hacked=1}`",
    "</textarea><iframe src=https://example.org>",
    "<a href=https://example.org>x</a>",
    "&lt;b&gt;&amp;&#x41;",
    "<!--",
    "]]>",
    "</style><style>*{background:url(https://example.org/x)}",
    "'; DROP TABLE x; --",
    "../../etc/passwd",
    "\\",
    "%s%n%x",
    "{0.__class__}",
    "\r\nSet-Cookie: a=b",
    "</s>",
    "<s>",
    "<pad>",
    "<unk>",
    "<2en>",
    "<0x41>",
    "▁",
    "▁▁a ▁b",
    "<b>bold</b>",
    "\x1b[31mred",
    "\x00",
    "null",
    "NaN",
    "-0",
    "__proto__",
    "constructor",
    "$",
    "=1+1",
    "@SUM(A1)",
)
SPECIAL = (
    "\u200b\u200d\ufeff\u2060\u00ad"  # invisible
    "\u202e\u202d\u2066\u2069\u200f"  # change the direction of writing
    "\u0000\u0007\u0008\u000b\u001b\u007f\u0085"  # control characters
    "\u2028\u2029"  # ends of lines
    "\ufffd\uffff\U0010ffff\U000e0001"  # no characters, or hardly any
    "\u3000\u00a0"  # spaces
    "\u0301\u20dd\u0e33\u1160\ud7a3ﬁǆ"  # combined with others, or normalised into others
)
WORDS = " ".join(SENTENCES).split()


def strange_texts(seed: int) -> Iterator[str]:
    """Yield hostile, random and damaged strings without end, mostly short and reproducible by the seed."""
    pick = random.Random(seed)

    def any_character() -> str:
        top = pick.choice((0x7F, 0xFF, 0x7FF, 0xFFFF, 0x10FFFF))
        code = pick.randint(0, top)
        return chr(code) if not 0xD800 <= code <= 0xDFFF else "?"

    def size() -> int:
        return pick.choice((1, 2, 3, 5, 8, 15, 40))

    makers = (
        lambda: "".join(any_character() for _ in range(size())),
        lambda: "".join(pick.choice(SPECIAL) for _ in range(size())),
        lambda: pick.choice(HOSTILE),
        lambda: f"{pick.choice(WORDS)} {pick.choice(HOSTILE)} {pick.choice(WORDS)}",
        lambda: "".join(c + pick.choice(SPECIAL) for c in pick.choice(WORDS)),
        lambda: pick.choice(WORDS) + "".join(chr(pick.randint(0x300, 0x36F)) for _ in range(pick.choice((3, 30, 300)))),
        lambda: "".join(pick.choice("אבגדשלוםابتثالعربية ‏") for _ in range(size())),
        lambda: "".join(pick.choice("👩‍👩‍👧‍👦🏳️‍🌈🇩🇪👍🏽🤷🏾‍♂️") for _ in range(size())),
        lambda: pick.choice(" \t\n\r\u3000") * size(),
        lambda: unicodedata.normalize(pick.choice(("NFD", "NFKD")), "Übergrößenträger " * pick.randint(1, 2)),
        lambda: pick.choice("aé▁ 0😀") * pick.choice((1, 50, 2_000, 10_001)),
        lambda: " ".join(pick.choices(WORDS, k=size())),
        lambda: f"{pick.choice(WORDS)} {chr(pick.randint(0xD800, 0xDFFF))}{pick.choice(WORDS)}",
    )
    while True:
        yield pick.choice(makers)()


def some(count: int, seed: int) -> list[str]:
    texts = strange_texts(seed)
    return [next(texts) for _ in range(count)]


def has_lone_surrogate(text: str) -> bool:
    return any(0xD800 <= ord(c) <= 0xDFFF for c in text)


def counts(some: int, many: int) -> pytest.MarkDecorator:
    """Parametrise a test by its number of strings: in `make test` and `make test-all`, and in `make endure`."""
    return pytest.mark.parametrize("count", [some, pytest.param(many, marks=pytest.mark.endure)])


@counts(1_000, 20_000)
def test_decoding_inverts_encoding(tokenizer, count):
    refused = 0
    for text in [*HOSTILE, *SPECIAL, *some(count, seed=1)]:
        if has_lone_surrogate(text):
            refused += 1
            with pytest.raises(ValueError, match="half of a surrogate pair"):
                tokenizer.encode(text)
            continue
        ids = tokenizer.encode(text)
        assert tokenizer.decode(ids) == text, repr(text)
        assert not tokenizer.special_ids.intersection(ids), f"typed text became a control symbol: {text!r}"
    assert refused > count / 50


@counts(30, 2_000)
def test_every_text_gives_a_trace_that_exports_or_an_error_message(tiny_translator, count):
    translated = 0
    for text in some(count, seed=2):
        try:
            trace = tiny_translator.translate(text)
        except ValueError as error:
            words = str(error)
            assert words.startswith(("The text ", "the text ")), words
            assert ("is empty" in words) == (len(text) <= 10_000 and not text.strip()), (text, words)
            continue
        translated += 1
        assert trace.source_text == normalize_text(text)
        _check_exports(trace)
    assert translated > count / 3


def _check_exports(trace) -> None:
    for copy in (storage.from_json(storage.to_json(trace)), storage.from_npz(storage.to_npz(trace))):
        assert_equal(copy, trace)
    cross = reduce.score_map(trace, reduce.View(AttentionKind.CROSS))
    rows, columns, values = table.from_csv(table.to_csv(cross))
    assert (rows, columns) == (tuple(cross.rows), tuple(cross.columns))
    assert np.array_equal(values, cross.values.astype(np.float32), equal_nan=True)
    page = standalone.to_html(trace)
    # The page contains the text only escaped, or as JSON in which no tag can begin or end.
    for hostile in HOSTILE:
        if "<" in hostile and hostile in trace.source_text:
            start = page.index('<script type="application/json"')
            assert hostile not in page[:start]
            data = page[start + 1 : page.index("</script>", start)]
            assert "<" not in data


def test_a_megabyte_is_refused_before_the_tokenizer(tiny_translator, monkeypatch):
    monkeypatch.setattr(tiny_translator.tokenizer, "encode", None)
    for text in ("a" * 1_000_000, "e\u0301" * 500_000, " " * 1_000_000, "😀" * 1_000_000):
        with pytest.raises(ValueError, match=r"characters; the limit is 10,000\."):
            tiny_translator.translate(text)


WATCH = """() => {
  window.redrawn = 0;
  new MutationObserver(() => window.redrawn++).observe(document.querySelector("#translation"),
    {childList: true, subtree: true, characterData: true});
}"""
TYPE = """codes => {
  let text = "";
  for (const code of codes) text += String.fromCharCode(code);
  const box = document.querySelector("#source-text textarea");
  Object.getOwnPropertyDescriptor(HTMLTextAreaElement.prototype, "value").set.call(box, text);
  box.dispatchEvent(new Event("input", {bubbles: true}));
}"""


@pytest.mark.browser
@counts(15, 200)
def test_the_page_shows_every_text_as_text(tiny_url, open_app, count):
    page = open_app(tiny_url)
    page.wait_for_selector(FIELD)
    page.evaluate(WATCH)
    elements = page.evaluate(ELEMENTS)
    for text in some(count, seed=3):
        before = page.evaluate("window.redrawn")
        units = np.frombuffer(text[:10_001].encode("utf-16-le", "surrogatepass"), np.uint16).tolist()
        page.evaluate(TYPE, units)
        page.click("#translate")
        page.wait_for_function("before => window.redrawn > before", arg=before, timeout=20_000)
        assert page.evaluate("window.hacked") is None, repr(text)
        assert page.evaluate(ELEMENTS) <= elements + 2, repr(text)
    assert page.locator("#translation-text").count() == 1
