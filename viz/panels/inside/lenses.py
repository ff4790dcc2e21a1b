"""The panel "Lens": the encoder's layers read as target words, and as translations by the decoder."""

from __future__ import annotations

from attention_atlas.model.analysis.lenses import fit
from attention_atlas.model.analysis.lenses.read import encoder_lens, layer_translations
from attention_atlas.model.analysis.lenses.storage import Lenses
from attention_atlas.model.analysis.rerun import check_rerun
from attention_atlas.model.analysis.sentences import has_sentences
from attention_atlas.viz.maps import labels
from attention_atlas.viz.panels.panel import Panel, Slider
from attention_atlas.viz.panels.scene import Scene
from attention_atlas.viz.wire import blocks
from attention_atlas.viz.words import Words, say

DOMAINS = {"captions": say("captions of pictures"), "everyday": say("everyday sentences"), "news": say("news")}


def lenses(scene: Scene, words: int) -> list[dict]:
    """Draw the lens of every token and layer, with this many words per cell, and the layers' translations."""
    trace, translator = scene.trace, scene.translator
    check_rerun(translator, trace)
    names = (say("embedding"), *(say("layer {n}", n=n + 1) for n in range(translator.config.num_encoder_layers)))
    ids = layer_translations(translator, list(trace.source_ids), trace.direction, trace.interventions)
    return [
        *(_words(scene, names, words) if scene.lenses else [_fitting(scene)]),
        blocks.columns(
            (say("The decoder reads"), names),
            (say("and writes"), map(translator.tokenizer.decode, ids)),
            caption=say("Measured: each layer's residual stream replaces the encoder's output."),
        ),
    ]


def _fitting(scene: Scene) -> dict:
    """Return an offer to fit lenses if this project has sentences in the source language, else a note."""
    if not has_sentences(scene.trace.direction):
        return blocks.note("No lenses were fitted to this model.")
    return blocks.work(
        fit.lens_work(scene.translator, scene.trace.direction).key,
        say("Fit lenses"),
        "No lenses have been fitted to this model. They can be fitted to {n} of this project's own sentences.",
        n=fit.PAGE_SENTENCES,
    )


def _words(scene: Scene, names: tuple[Words, ...], words: int) -> list[dict]:
    """Return a table of the lens's words by token and layer. names: of the layers."""
    lens = encoder_lens(scene.translator.model, scene.output, scene.lenses)
    written = set(scene.trace.target_ids)

    def cell(layer: int, token: int) -> dict:
        best = lens.ids[layer, token][:words].tolist()
        text = " · ".join(labels.word_label([token]) for token in scene.translator.tokenizer.tokens(best))
        return blocks.shade(lens.shares[layer, token][0], text, framed=bool(written & set(best)))

    tokens = scene.trace.source_tokens
    return [
        blocks.columns(
            (say("Token"), [blocks.token(labels.display(token)) for token in tokens]),
            *((name, [cell(layer, i) for i in range(len(tokens))]) for layer, name in enumerate(names)),
            caption=say(
                "Darker: more certain of its first word. Framed: a piece of the translation. A proxy: mean "
                "slopes over {n} sentences; nothing was changed.",
                n=scene.lenses.sentences,
            ),
        ),
        *_measured(scene.lenses),
    ]


def _measured(lenses: Lenses) -> list[dict]:
    """Return a table of how often the lens found words of the reference, and of another sentence as a control."""
    if not lenses.hit_rates:
        return []
    rates = lenses.hit_rates.values()
    return [
        blocks.columns(
            (say("Held-out sentences"), [DOMAINS.get(name, name) for name in lenses.hit_rates]),
            (say("how many"), [str(rate.sentences) for rate in rates]),
            (say("their own words"), [blocks.bar(rate.own[-1]) for rate in rates]),
            (say("another sentence's words"), [blocks.bar(rate.other[-1]) for rate in rates]),
            caption=say(
                "After the last layer: the share of source tokens with a piece of the reference among the "
                "ten best, and as a control with a piece of another sentence's reference."
            ),
        )
    ]


PANEL = Panel(
    "lenses",
    "Lens",
    "Which target words each source token points the decoder to, after each encoder layer.",
    say("Langedijk et al. 2024"),
    lenses,
    controls=(Slider(say("Words per cell"), 1, 5, 2),),
    paper="https://aclanthology.org/2024.findings-naacl.296/",
    method=say("Look at where a word's meaning is settled, and at words of several meanings."),
)
