"""Two targets for one source: which the model prefers, and where they part."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from attention_atlas.model.analysis.sentence_pairs import Contrast, contrast, contrastive_pairs
from attention_atlas.model.analysis.why.pinned import contrasts, default_step
from attention_atlas.model.trace.translation import TranslationTrace
from attention_atlas.viz.panels.heads.phenomena import PHENOMENA
from attention_atlas.viz.panels.panel import Panel, Text
from attention_atlas.viz.panels.scene import Scene
from attention_atlas.viz.wire import blocks
from attention_atlas.viz.wire.fields import option
from attention_atlas.viz.wire.question import with_minus
from attention_atlas.viz.wire.survey import pick
from attention_atlas.viz.words import Words, join, say

EXAMPLE = "example"


def two(scene: Scene, second: str) -> list[dict]:
    """The translation at hand beside another one of the same source; and the examples, to be tried."""
    examples = contrastive_pairs(scene.trace.direction)
    names = [join((PHENOMENA[pair.phenomenon], pair.source), ", ") for pair in examples]
    menu = [pick(say("Example"), [say("the sentence above"), *names], act=EXAMPLE, slot=EXAMPLE)] if examples else []
    return [*menu, blocks.slot(EXAMPLE, *_own(scene, second))]


def _own(scene: Scene, second: str) -> list[dict]:
    """The translation at hand beside the one that was typed, else beside what the model's runner-up leads to."""
    other = second or _runner_up(scene)
    if not other or not scene.trace.translation:
        return [blocks.note("Type another translation of the sentence above, or choose an example.")]
    found = beside(scene, scene.trace.source_text, (scene.trace.translation, other))
    if not second:
        found.append(blocks.note("The second begins otherwise at the least certain word: with the model’s runner-up."))
    return found


def _runner_up(scene: Scene) -> str:
    """What the model writes if the least certain word begins as its runner-up does; "" where nothing can be taken, as
    of a changed model: the two are read by the plain one."""
    trace = scene.trace
    if trace.interventions:
        return ""
    try:
        step = default_step(trace)
        begun = [*trace.target_ids[:step], contrasts(trace, step)[0]]
        return scene.translator.trace(trace.source_text, trace.direction, prefix=begun).translation
    except (ValueError, IndexError):  # an empty translation; a token that no text may begin with
        return ""


def chosen(scene: Scene, data: Mapping[str, object], second: str) -> list[dict]:
    """An example; the menu's first entry is the page's own sentence."""
    one = option(data, [None, *contrastive_pairs(scene.trace.direction)])
    return _own(scene, second) if one is None else beside(scene, one.source, (one.right, one.wrong))


def beside(scene: Scene, source: str, targets: tuple[str, str]) -> list[dict]:
    found = contrast(scene.translator, scene.trace.direction, source, targets)
    data = {"source": source, "target": targets[0]}
    if found.first_difference is not None:
        data |= {"step": found.first_difference, "token": found.second.target_ids[found.first_difference]}
    return [
        blocks.cards(
            (say("Source"), source, ""),
            _card(say("First translation"), found.first),
            _card(say("Second translation"), found.second),
        ),
        _verdict(found),
        _tokens(found),
        blocks.translate(say("Show the first one in every tab, and ask there why"), **data),
    ]


def _card(title: Words, one: TranslationTrace) -> tuple:
    total, mean = (with_minus(f"{number:.2f}") for number in (one.log_probability.sum(), one.log_probability.mean()))
    return title, one.translation, say("log-probability {sum}, {mean} a token", sum=total, mean=mean)


def _verdict(found: Contrast) -> dict:
    if found.first_difference is None:
        return blocks.paragraph("They are the same tokens.")
    whole, mean, step = found.margin(mean=False), found.margin(mean=True), found.first_difference + 1
    if (whole > 0) != (mean > 0):
        return blocks.paragraph(
            "By the sum {sum} nats, by the mean {mean}: the two disagree, for sums favour what is short. They part at "
            "step {step}.",
            sum=with_minus(f"{whole:+.2f}"),
            mean=with_minus(f"{mean:+.2f}"),
            step=step,
        )
    numbers = {"sum": f"{abs(whole):.2f}", "mean": f"{abs(mean):.2f}", "step": step}
    if whole > 0:
        return blocks.paragraph(
            "The model prefers the first: by {sum} nats, {mean} a token. They part at step {step}.", **numbers
        )
    return blocks.paragraph(
        "The model prefers the second: by {sum} nats, {mean} a token. They part at step {step}.", **numbers
    )


def _tokens(found: Contrast) -> dict:
    def cells(one: TranslationTrace, step: int) -> list:
        if step >= len(one.target_ids):
            return ["", ""]
        p = float(np.exp(one.log_probability[step]))
        return [blocks.token(one.target_tokens[step]), blocks.shade(p, f"{p:.1%}")]

    steps = range(max(len(one.target_ids) for one in (found.first, found.second)))
    return blocks.table(
        blocks.headings("Step", "First translation", "probability", "Second translation", "probability"),
        [[str(step + 1), *cells(found.first, step), *cells(found.second, step)] for step in steps],
        marked=[] if found.first_difference is None else [found.first_difference],
        caption=say("Measured: each is read as if the model had written it. Marked: where they part."),
    )


def shown(scene: Scene, data: Mapping[str, object]) -> TranslationTrace:
    """The first target as the page's translation. ValueError for what cannot be read."""
    source, target = (str(data.get(name) or "") for name in ("source", "target"))
    return scene.translator.trace(source, scene.trace.direction, target=target)


PANEL = Panel(
    "pairs",
    say("Two translations"),
    say("A right translation and one with a mistake: which does the model prefer, and at which word do they part?"),
    say("Sennrich 2017"),
    two,
    controls=(Text(say("Another translation of the sentence above"), elem_id="pairs-second", scale=3),),
    actions={EXAMPLE: chosen},
    translate=shown,
    paper="https://arxiv.org/abs/1612.04629",
    of_any_network=True,
)
