"""The panel "Heads": the effect of switching off single heads or several, and the translation without them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from attention_atlas.model.analysis import rerun
from attention_atlas.model.analysis.sentences import has_sentences
from attention_atlas.model.analysis.why.case import Case, compare_outputs
from attention_atlas.model.analysis.why.experiments import heads
from attention_atlas.model.analysis.why.means import find_means, means_work
from attention_atlas.model.trace.interventions import NO_INTERVENTIONS, Interventions
from attention_atlas.model.trace.kinds import Side
from attention_atlas.model.trace.translation import TranslationTrace
from attention_atlas.model.trace.why.effects import Head, HeadEffects, Replacement, effects_table
from attention_atlas.model.trace.why.faithfulness import spearman
from attention_atlas.viz.panels.downloads import EXPORT, about_step, exports, file, question_fields
from attention_atlas.viz.panels.panel import Choice, Panel
from attention_atlas.viz.panels.scene import Scene
from attention_atlas.viz.wire import blocks, fields
from attention_atlas.viz.wire.file import File
from attention_atlas.viz.wire.heads import effects_block, head_name
from attention_atlas.viz.wire.question import candidates_table
from attention_atlas.viz.words import Words, say, say_plural

JOINT = "joint"
FIRST = 16  # heads measured at first in a large model
QUICK = 60e9  # floating-point operations up to which all heads are measured at once, about a second on two cores
MOST_ALONE = 64  # largest number of selected heads that are also measured one by one
INSTEAD = {
    Replacement.MEAN.value: say("its average"),
    Replacement.ZERO.value: say("zeros"),
    Replacement.RESAMPLE.value: say("its output on other sentences"),
}
EXTENT = {"quick": say("as many as fit in a second"), "all": say("all heads")}


def explore_heads(scene: Scene, instead: str, extent: str) -> Iterator[list[dict]]:
    """Draw the estimated effect of every head, then the measured ones in batches, largest estimates first."""
    yield from prepare_means(scene) if instead == Replacement.MEAN.value else ()
    for notes, estimates, measured in _measure(scene, instead, extent):
        yield [*notes, _block(scene, estimates, measured, done=False)]
    back = blocks.translate(say("Back to the unchanged model's translation"), heads=[])
    yield [
        *notes,
        *_summary(estimates, measured),
        _block(scene, estimates, measured, done=True),
        exports(),
        blocks.slot(JOINT),
        *([back] if scene.trace.interventions else []),
    ]


def _measure(scene: Scene, instead: str, extent: str) -> Iterator[tuple[list[dict], HeadEffects, HeadEffects | None]]:
    """Yield notes on the replacement, the estimates, and the effects measured so far."""
    case = scene.case
    values, notes = ablation_values_for(scene, case, instead)
    estimates = heads.estimate_heads(case, values)
    yield notes, estimates, None
    order = estimates.by_size()
    if extent != "all" and len(order) * len(values.draws) * _operations(case) > QUICK:
        order = order[:FIRST]
    for measured in heads.measure_in_order(case, values, order):
        yield notes, estimates, measured


def as_file(scene: Scene, data: Mapping[str, object], instead: str, extent: str) -> File:
    """Return the estimates and the measured effects as a file."""
    *_, (_, estimates, measured) = _measure(scene, instead, extent)
    table = {**question_fields(scene), **effects_table(measured, estimates)}
    return file(data, table, about_step("heads", scene))


def prepare_means(scene: Scene) -> Iterator[list[dict]]:
    """Compute the mean output of each head if it is missing and can be computed. Yields the progress as blocks.

    Ablation alone uses means computed in the page: other answers must not depend on which panels were opened before.
    """
    direction = scene.trace.direction
    if find_means(scene.translator, direction) is None and has_sentences(direction):
        for done, total in means_work(scene.translator, direction).run():
            yield [blocks.note("Averaging each head's output: {n} of {all} sentences.", n=done, all=total)]


def ablation_values_for(scene: Scene, case: Case, instead: str) -> tuple[heads.AblationValues, list[dict]]:
    """Return the values that replace a head's output, and notes about them.

    Zeros if there are neither means nor sentences in this language.
    """
    means = find_means(scene.translator, scene.trace.direction)
    if instead == Replacement.MEAN.value and means is not None:
        return heads.mean_values(replace(case, means=means)), [
            blocks.note("A head that is switched off outputs its average over {n} sentences.", n=means.sentences)
        ]
    if instead == Replacement.RESAMPLE.value and has_sentences(scene.trace.direction):
        values = heads.make_ablation_values(case, scene.translator, scene.trace, Replacement.RESAMPLE)
        return values, [
            blocks.note(
                "A head that is switched off outputs what it computes at the same place in another sentence; "
                "mean over {n} sentences.",
                n=len(values.draws),
            )
        ]
    lacking = blocks.note(
        "There are no sentences in this source language to average over, so a head that is switched off outputs zero."
    )
    return heads.zero_values(), [] if instead == Replacement.ZERO.value else [lacking]


def _block(scene: Scene, estimates: HeadEffects, measured: HeadEffects | None, *, done: bool) -> dict:
    about = scene.trace.key  # the page keeps the selected heads under this key
    return effects_block(about, estimates, measured, joint=JOINT, done=done)


def _operations(case: Case) -> float:
    """Return the floating-point operations of a pass over source and prefix: two for each matrix weight and token."""
    config, d = case.model.config, case.model.config.d_model
    encoder, decoder = (2 * d * config.of(side).d_feedforward for side in Side)
    return 2.0 * (
        case.source_ids.shape[1] * config.num_encoder_layers * (4 * d * d + encoder)
        + case.decoder_ids.shape[1] * config.num_decoder_layers * (8 * d * d + decoder)
    )


def _summary(estimates: HeadEffects, measured: HeadEffects) -> list[dict]:
    """Summarise the measured effects, and their rank correlation with the estimates."""
    head, effect = measured.ranked()[0]
    agreement = spearman(
        *(np.concatenate([part.effects[kind].ravel() for kind in part.effects]) for part in (estimates, measured))
    )
    flips = sum(int(flips.sum()) for flips in measured.flips.values())
    values = {
        "all": sum(int((~np.isnan(effects)).sum()) for effects in measured.effects.values()),
        "head": head_name(*head),
        "effect": blocks.format_effect(effect),
    }
    parts = [
        blocks.text(
            say_plural(
                "Switched off one at a time, {n} of the {all} heads changes the token; "
                "{head} matters most ({effect} nats).",
                "Switched off one at a time, {n} of the {all} heads change the token; "
                "{head} matters most ({effect} nats).",
                n=flips,
                **values,
            )
            if flips
            else say(
                "Switched off one at a time, none of the {all} heads changes the token; "
                "{head} matters most ({effect} nats).",
                **values,
            )
        )
    ]
    if agreement is not None:
        parts.append(
            blocks.note(
                "The estimates, all from one gradient, agree with the measurements: rank correlation {n}.",
                n=blocks.with_minus_sign(f"{agreement:.2f}"),
            )
        )
    return parts


def joint(scene: Scene, data: Mapping[str, object], instead: str, extent: str) -> list[dict]:
    """Switch the selected heads off together, and compare with the sum of their single effects."""
    selected = read_heads(scene, data)
    if not selected:
        return []
    case = scene.case
    values, _ = ablation_values_for(scene, case, instead)
    alone = selected if len(selected) <= MOST_ALONE else []
    effects, flips = heads.ablate(case, values, [selected, *([head] for head in alone)])
    facts = [(say("Together"), blocks.format_effect(effects[0]), say("nats, measured"))]
    if len(alone) > 1:
        total = float(effects[1:].sum())
        facts += [
            (say("Sum of the single effects"), blocks.format_effect(total), say("nats, measured one by one")),
            (say("The difference"), blocks.format_effect(effects[0] - total), _self_repair(effects[0] - total)),
        ]
    changed = compare_outputs(case, heads.run_without_heads(case, [selected], values.draws[0]))
    tokens = scene.translator.tokenizer.tokens(changed.ids)
    return [
        blocks.facts(*facts),
        blocks.paragraph("Without them another token is written.")
        if flips[0]
        else blocks.paragraph("Without them the same token is written."),
        candidates_table(changed, tokens, scene.question, say("with all heads"), say("without these")),
    ]


def _self_repair(difference: float) -> Words:
    if difference > 0.05:
        return say("they back each other up")
    return say("each counts for less once the others are off") if difference < -0.05 else say("they add up")


def read_heads(scene: Scene, data: Mapping[str, object]) -> list[Head]:
    """Read data["heads"], [[kind, layer, head], …], without duplicates. ValueError for an unknown head."""
    requested = list(dict.fromkeys(fields.read_list(data, "heads", fields.parse_head)))
    for kind, layer, head in requested:
        model = scene.translator.model
        if not (0 <= layer < model.num_layers.get(kind, 0) and 0 <= head < model.num_heads[kind]):
            raise ValueError(f"there is no head {head} in layer {layer} of {kind.value}")
    return requested


def translate_without(scene: Scene, data: Mapping[str, object]) -> TranslationTrace:
    """Translate with the heads in data switched off; without any, by the plain model."""
    selected = read_heads(scene, data)
    before = scene.trace.interventions if selected else NO_INTERVENTIONS
    without = before | Interventions(heads_off=frozenset(selected))
    return rerun.retranslate(scene.translator, scene.trace, without)


PANEL = Panel(
    "why-heads",
    "Heads",
    "Switch heads off: how much does the pinned token lose?",
    say("Michel et al. 2019; Voita et al. 2019"),
    explore_heads,
    controls=(
        Choice(say("Replace its output with"), INSTEAD, Replacement.MEAN.value, folded=True),
        Choice(say("Measured"), EXTENT, "quick", folded=True),
    ),
    actions={JOINT: joint, EXPORT: as_file},
    translate=translate_without,
    stops=True,
    method=say(
        "Several heads together often cost more than the sum of their single effects, because they back each other up."
    ),
)
