"""Plain-text formulas are turned into MathML."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.browser

# Formula -> MathML without the namespace. A product before "/" is the numerator; the denominator is one factor.
FORMULAS = {
    "q·kᵀ / √32": "<mfrac><mrow><mi>q</mi><mo>·</mo><msup><mi>k</mi><mi>T</mi></msup></mrow>"
    "<msqrt><mn>32</mn></msqrt></mfrac>",
    "a + b / (c + 1)": "<mi>a</mi><mo>+</mo><mfrac><mi>b</mi><mrow><mi>c</mi><mo>+</mo><mn>1</mn></mrow></mfrac>",
    "√d_k": "<msqrt><msub><mi>d</mi><mi>k</mi></msub></msqrt>",
    "W_i^Q x₁": "<msubsup><mi>W</mi><mi>i</mi><mi>Q</mi></msubsup><msub><mi>x</mi><mi>1</mi></msub>",
    "b^(2i/d)": "<msup><mi>b</mi><mrow><mn>2</mn><mi>i</mi><mo>/</mo><mi>d</mi></mrow></msup>",
    "f(x)": "<mrow><mi>f</mi><mo>\u2061</mo><mrow><mo>(</mo><mi>x</mi><mo>)</mo></mrow></mrow>",
    "Σᵢ yᵢ": "<msub><mo>Σ</mo><mi>i</mi></msub><msub><mi>y</mi><mi>i</mi></msub>",
    "log p / vᵀ tanh x": '<mfrac><mrow><mi>log</mi><mspace width="0.35em"></mspace><mi>p</mi></mrow>'
    '<msup><mi>v</mi><mi>T</mi></msup></mfrac><mspace width="0.35em"></mspace><mi>tanh</mi>'
    '<mspace width="0.35em"></mspace><mi>x</mi>',
    "[L, 256]": "<mrow><mo>[</mo><mi>L</mi><mo>,</mo><mn>256</mn><mo>]</mo></mrow>",
}


def test_formulas_become_mathml_and_malformed_ones_do_not_fail(open_modules) -> None:
    page = open_modules("lab/math.js")
    for text, expected in FORMULAS.items():
        markup = page.evaluate("(text) => atlas.math(text).innerHTML", text)
        assert markup == expected, text
    for odd in ("", "/", "√", "((", "x_", "^", "a / )", "]", "<b>", "x / / y"):  # malformed formulas do not fail
        assert page.evaluate("(text) => String(atlas.math(text).textContent ?? '')", odd) is not None
    assert page.evaluate("atlas.math('for each sentence and head')") == "for each sentence and head"
