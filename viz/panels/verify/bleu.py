"""The panel "BLEU": the score of one sentence, step by step."""

from __future__ import annotations

import numpy as np

from attention_atlas.model.analysis import bleu
from attention_atlas.model.trace.translation import TranslationTrace
from attention_atlas.model.translator import Translator
from attention_atlas.viz.figures.curves import plot_curves
from attention_atlas.viz.panels.panel import Panel, Slider, Text
from attention_atlas.viz.panels.scene import Scene
from attention_atlas.viz.wire import blocks
from attention_atlas.viz.words import say, say_plural


def known_reference(trace: TranslationTrace, translator: Translator) -> str:
    """Return the reference of a shipped example, "" for any other sentence."""
    examples = translator.examples.get(trace.direction, ())
    return next((example.reference for example in examples if example.text == trace.source_text), "")


def score(scene: Scene, reference: str, largest: int) -> list[dict]:
    """Draw n-gram matches, precisions and brevity penalty. largest: the largest n."""
    if not reference:
        return [
            blocks.paragraph("To compare, type a good translation of the sentence above."),
            blocks.cards((say("Translation"), scene.trace.translation or say("(nothing)"), "")),
        ]
    layout = bleu.lay_out(scene.trace.translation, reference, largest=largest)

    def precision(p: bleu.NgramPrecision) -> dict:
        return blocks.bar(p.matched / p.total if p.total else 0.0, say("{n} of {total}", n=p.matched, total=p.total))

    precisions = layout.precisions
    caption = say("An n-gram counts at most as often as it occurs in the reference.")
    if any(p.total and not p.matched for p in precisions):
        caption = say(
            "An n-gram counts at most as often as it occurs in the reference. Where nothing matched, sacreBLEU "
            "smooths: it halves a virtual match."
        )
    product = " ".join(f"p{n}" for n in "₁₂₃₄"[:largest])
    return [
        blocks.cards(
            (
                say("Translation"),
                scene.trace.translation or say("(nothing)"),
                say_plural("{n} token", "{n} tokens", n=layout.translation_length),
            ),
            (say("Reference"), reference, say_plural("{n} token", "{n} tokens", n=layout.reference_length)),
        ),
        blocks.columns(
            ("", [say("{n}-grams", n=p.order) for p in precisions]),
            (say("in the reference"), [blocks.number(p.matched) for p in precisions]),
            (say("in the translation"), [blocks.number(p.total) for p in precisions]),
            (say("precision"), map(precision, precisions)),
            (say("sacreBLEU's precision"), [f"{p.percent:.1f}%" if p.total else "–" for p in precisions]),
            (say("textbook's exponent"), [f"{p.weight:g}" for p in precisions]),
            caption=caption,
        ),
        blocks.marked(
            (say("Translation, as tokens"), layout.translation, ""),
            (
                say("Reference, as tokens"),
                layout.reference,
                say("Marked: the token is part of an n-gram that both have; the small number is the largest such n."),
            ),
        ),
        blocks.formula(
            say("BLEU = brevity penalty · ({product})^(1/{n})", n=largest, product=product), "Papineni et al. 2002"
        ),
        blocks.formula(say("textbook: exp(min(0, 1 − reference / translation)) · Π pₙ^(1/2ⁿ)"), "Zhang et al., 10.7"),
        blocks.facts(
            (say("sacreBLEU, this sentence"), f"{layout.score:.1f}", layout.signature),
            blocks.fact(
                "Brevity penalty",
                f"{layout.brevity_penalty:.3f}",
                "{n} tokens against {m}",
                n=layout.translation_length,
                m=layout.reference_length,
            ),
            blocks.fact(
                "Textbook variant", f"{layout.textbook:.1f}", "unsmoothed: 0 as soon as one order matches nothing"
            ),
        ),
        _brevity(layout),
        blocks.note("One sentence says little: BLEU is meant for whole test sets, where the counts are summed first."),
    ]


def _brevity(layout: bleu.SentenceBleu) -> dict:
    """Return a figure of the penalty over the translation's length, with this sentence marked."""
    length, reference = layout.translation_length, layout.reference_length
    lengths = np.arange(1, max(2 * reference, length) + 1)
    penalties = np.array([bleu.brevity_penalty(int(n), reference) for n in lengths])
    picture = plot_curves(
        {say("brevity penalty"): penalties},
        x=lengths,
        x_title=say("tokens of the translation"),
        y_title=say("brevity penalty"),
        limits=(0, 1.05),
        marks=[(float(length), say("this translation")), (float(reference), say("the reference"))],
    )
    return blocks.figure(
        picture,
        height=260,
        width=640,
        label=say(
            "The brevity penalty over the translation's length: {penalty} at {n} tokens, 1 from {m} on",
            penalty=f"{layout.brevity_penalty:.3f}",
            n=length,
            m=reference,
        ),
    )


PANEL = Panel(
    "bleu",
    "BLEU",
    "How much of the translation occurs in a reference, as single words, pairs and longer pieces?",
    say("Paper, section {n}", n="6.1"),
    score,
    controls=(
        Text(
            say("Reference: a good translation of the sentence above, by a person"),
            known=known_reference,
            elem_id="bleu-reference",
            scale=3,
        ),
        Slider(say("Largest n"), 1, bleu.LARGEST, bleu.LARGEST),
    ),
    of_any_network=True,
    method=say("Look at how fast the precisions fall as the pieces get longer."),
)
