"""The page's shared functions (viz/web/core/) on an empty page, compared with Python and numpy."""

from __future__ import annotations

import html
import re

import numpy as np
import pytest

from attention_atlas.viz.maps import labels
from attention_atlas.viz.theme import SCALES
from tests.page.test_fuzz import HOSTILE, SPECIAL, has_lone_surrogate, some

pytestmark = pytest.mark.browser

TEXTS = [text[:300] for text in (*HOSTILE, *SPECIAL, *some(200, seed=4)) if not has_lone_surrogate(text)]
SPEAK = """(words) => {
  document.documentElement.dataset.language = "xx";
  atlas.loadWords({ xx: words });
}"""
FIELD = re.compile(r"\{(\w+)\}")


@pytest.fixture()
def script_page(open_modules):
    """Return an empty page with the shared modules."""
    return open_modules(*(f"core/{name}.js" for name in ("dom", "language", "colours", "format")))


def test_escaped_text_unescapes_to_itself_and_has_no_tags(script_page):
    results = script_page.evaluate("(texts) => texts.map(atlas.escapeTags)", TEXTS)
    for text, escaped in zip(TEXTS, results, strict=True):
        assert html.unescape(escaped) == html.unescape(html.escape(text, quote=False))
        assert not set("<>") & set(escaped)


def test_texts_are_shortened_as_in_python(script_page):
    for limit in (2, 7, 18):
        shortened = script_page.evaluate(
            "([texts, limit]) => texts.map((text) => atlas.shorten(text, limit))", [TEXTS, limit]
        )
        assert shortened == [labels.shorten(text, limit) for text in TEXTS]
        assert max(map(len, shortened)) == limit


def test_text_becomes_a_text_node_wherever_it_goes(script_page):
    nodes = script_page.evaluate(
        """(texts) => texts.map((text) => {
      const attributes = { title: text, class: 'x', hidden: true, lang: null };
      const node = atlas.el('p', attributes, text, [null, text]);
      return [node.textContent, node.title, node.childElementCount, node.childNodes.length, node.attributes.length];
    })""",
        TEXTS,
    )
    assert nodes == [[text + text, text, 0, 2, 3] for text in TEXTS]
    assert script_page.evaluate("window.hacked") is None


def test_colour_scales_are_interpolated_as_by_numpy(script_page):
    steps_of = """(colours) => {
      const colour = atlas.sequentialScale(colours);
      return Array.from({ length: 256 }, (_, step) => colour(step / 255));
    }"""
    for scale in SCALES.values():
        colours = np.array([[int(colour[i : i + 2], 16) for i in (1, 3, 5)] for colour in scale])
        steps = np.array(script_page.evaluate(steps_of, list(scale)))
        places = np.linspace(0, len(colours) - 1, 256)
        expected = np.stack([np.interp(places, range(len(colours)), channel) for channel in colours.T], axis=1)
        assert steps.shape == (256, 3) and np.abs(steps - expected).max() <= 0.5 + 1e-9


def test_translations_are_filled_in_and_unknown_texts_stay_english(script_page):
    pairs = [["{n} of {m} heads", "{m} Köpfe, davon {n}"], ["no value", "kein Wert"], ["{a}{a}", "{a}-{a}"]]
    script_page.evaluate(SPEAK, dict(pairs))
    for english, german in pairs:
        texts = script_page.evaluate("(english) => atlas.t(english, { n: 1, m: 2, a: 3 })", english)
        assert texts == FIELD.sub(lambda match: {"n": "1", "m": "2", "a": "3"}[match[1]], german)
    texts = script_page.evaluate(
        """(texts) => texts.map(
      (text) => atlas.t('{n} of {m} heads', { n: text, m: text }))""",
        TEXTS,
    )
    assert texts == [f"{text} Köpfe, davon {text}" for text in TEXTS], "a value is never read as words with fields"
    assert script_page.evaluate("atlas.t('{n} of {m}, {a} each', { n: 15400, m: 999, a: '2048' })") == (
        "15\u202f400 of 999, 2048 each"
    ), "a comma would be a decimal point to many"
    numbers = ["82\u202f000 tokens", "−1\u202f234.5 ×", "1\u202f200"]
    assert script_page.evaluate("(all) => all.map((text) => atlas.localizeNumber(text))", numbers) == numbers
    assert script_page.evaluate("atlas.t('not in the table: {n}', { n: 3 })") == "not in the table: 3"
    assert script_page.evaluate("atlas.toText(atlas.say('no value'))") == "kein Wert"


def test_a_burst_of_calls_is_one_call_after_the_last(script_page):
    counts = script_page.evaluate("""async () => {
      let calls = 0;
      const call = atlas.debounce(() => calls++, 60);
      for (let i = 0; i < 10; i++) call();
      const before = calls;
      await new Promise((resolve) => setTimeout(resolve, 400));
      return [before, calls];
    }""")
    assert counts == [0, 1]


def test_numbers_are_formatted_as_in_print(script_page):
    """A percentage has two digits, without a zero after the point, and a small share is never 0%."""
    shares = [1, 0.996, 0.5, 0.0996, 0.0994, 0.00096, 4e-4, 1e-9]
    percentages = script_page.evaluate("(all) => all.map((share) => atlas.formatPercent(share))", shares)
    assert percentages == ["100%", "100%", "50%", "10%", "9.9%", "0.1%", "0.04%", "≈ 0%"]
    numbers = [-1.257, 0.5, None]
    fixed = script_page.evaluate("(all) => all.map((number) => atlas.formatFixed(number, 2))", numbers)
    assert fixed == ["−1.26", "0.50", "–"]
    significant = script_page.evaluate("[-12.5, 0.25, 1e-7].map((number) => atlas.formatSignificant(number, 3))")
    assert significant == ["−12.5", "0.25", "1·10⁻⁷"]
