"""The panel "Two translations": which of two translations the model prefers, and where they diverge."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from attention_atlas.model.analysis.sentence_pairs import Contrast, contrast, contrastive_pairs
from attention_atlas.model.analysis.why.questions import default_step, list_contrasts
from attention_atlas.model.trace.translation import TranslationTrace
from attention_atlas.viz.panels.heads.phenomena import PHENOMENA
from attention_atlas.viz.panels.panel import Panel, Text
from attention_atlas.viz.panels.scene import Scene
from attention_atlas.viz.wire import blocks, fields
from attention_atlas.viz.words import Words, join, say

EXAMPLE = "example"


def two(scene: Scene, second: str) -> list[dict]:
    """Compare the scene's translation with a second one, and offer the examples."""
    examples = contrastive_pairs(scene.trace.direction)
    names = [join((PHENOMENA[pair.phenomenon], pair.source), ", ") for pair in examples]
    return blocks.pick(say("Example"), [say("the sentence above"), *names], EXAMPLE, _compare_second(scene, second))


def _compare_second(scene: Scene, second: str) -> list[dict]:
    """Compare the scene's translation with the typed one, or if empty with the one that its runner-up leads to."""
    other = second or _runner_up(scene)
    if not other or not scene.trace.translation:
        return [blocks.note("Type another translation of the sentence above, or choose an example.")]
    comparison = compare(scene, scene.trace.source_text, (scene.trace.translation, other))
    if not second:
        comparison.append(blocks.note("At the least certain word, the second takes the runner-up."))
    return comparison


def _runner_up(scene: Scene) -> str:
    """Return the translation that continues from the runner-up of the least certain word.

    "" if there is none, and for a changed model, since both translations are scored by the plain one.
    """
    trace = scene.trace
    if trace.interventions:
        return ""
    try:
        step = default_step(trace)
        begun = [*trace.target_ids[:step], list_contrasts(trace, step)[0]]
        return scene.translator.trace(trace.source_text, trace.direction, prefix=begun).translation
    except (ValueError, IndexError):  # an empty translation, or a prefix that is not allowed
        return ""


def show_example(scene: Scene, data: Mapping[str, object], second: str) -> list[dict]:
    """Compare the translations of an example. The first entry of the menu is the scene's own sentence."""
    pair = fields.read_option(data, [None, *contrastive_pairs(scene.trace.direction)])
    return _compare_second(scene, second) if pair is None else compare(scene, pair.source, (pair.right, pair.wrong))


def compare(scene: Scene, source: str, targets: tuple[str, str]) -> list[dict]:
    """Score two translations of a source, and draw where they diverge."""
    scores = contrast(scene.translator, scene.trace.direction, source, targets)
    data = {"source": source, "target": targets[0]}
    if scores.first_difference is not None:
        data |= {"step": scores.first_difference, "token": scores.second.target_ids[scores.first_difference]}
    return [
        blocks.cards(
            (say("Source"), source, ""),
            _card(say("First translation"), scores.first),
            _card(say("Second translation"), scores.second),
        ),
        _verdict(scores),
        _tokens(scores),
        blocks.translate(say("Show the first one in every tab and ask why"), **data),
    ]


def _card(title: Words, trace: TranslationTrace) -> tuple:
    total, mean = map(blocks.two_decimals, (trace.log_probability.sum(), trace.log_probability.mean()))
    return title, trace.translation, say("log-probability {sum}, {mean} per token", sum=total, mean=mean)


def _verdict(scores: Contrast) -> dict:
    if scores.first_difference is None:
        return blocks.paragraph("They are the same tokens.")
    whole, mean, step = scores.margin(mean=False), scores.margin(mean=True), scores.first_difference + 1
    if (whole > 0) != (mean > 0):
        return blocks.paragraph(
            "The sum says {sum} nats, the mean {mean}: they disagree, because sums favour short "
            "translations. They diverge at step {step}.",
            sum=blocks.with_minus_sign(f"{whole:+.2f}"),
            mean=blocks.with_minus_sign(f"{mean:+.2f}"),
            step=step,
        )
    numbers = {"sum": f"{abs(whole):.2f}", "mean": f"{abs(mean):.2f}", "step": step}
    first = say("The model prefers the first: by {sum} nats, {mean} a token. They diverge at step {step}.", **numbers)
    second = say("The model prefers the second: by {sum} nats, {mean} a token. They diverge at step {step}.", **numbers)
    return blocks.text(first if whole > 0 else second)


def _tokens(scores: Contrast) -> dict:
    def cells(trace: TranslationTrace, step: int) -> list:
        if step >= len(trace.target_ids):
            return ["", ""]
        p = float(np.exp(trace.log_probability[step]))
        return [blocks.token(trace.target_tokens[step]), blocks.shade(p, f"{p:.1%}")]

    steps = range(max(len(trace.target_ids) for trace in (scores.first, scores.second)))
    return blocks.table(
        blocks.headings("Step", "First translation", "probability", "Second translation", "probability"),
        [[str(step + 1), *cells(scores.first, step), *cells(scores.second, step)] for step in steps],
        marked=[] if scores.first_difference is None else [scores.first_difference],
        caption=say("Measured: each is scored as if the model had written it. Marked: where they diverge."),
    )


def translate_first(scene: Scene, data: Mapping[str, object]) -> TranslationTrace:
    """Return the trace of the first translation, for every tab. ValueError for texts that cannot be read."""
    source, target = (str(data.get(name) or "") for name in ("source", "target"))
    return scene.translator.trace(source, scene.trace.direction, target=target)


PANEL = Panel(
    "pairs",
    "Two translations",
    "A correct translation and one with a mistake: which does the model prefer, and where do they diverge?",
    say("Sennrich 2017"),
    two,
    controls=(Text(say("Another translation of the sentence above"), elem_id="pairs-second", scale=3),),
    actions={EXAMPLE: show_example},
    translate=translate_first,
    paper="https://arxiv.org/abs/1612.04629",
    of_any_network=True,
)
