"""What a tour's claims are measured by: functions of a StopScene and of what the claim gives, by name."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher
from enum import Enum
from functools import wraps
from pathlib import Path

import numpy as np

from attention_atlas.model.analysis import ablation
from attention_atlas.model.analysis.positions import geometry
from attention_atlas.model.analysis.survey.run import find_survey
from attention_atlas.model.analysis.why.case import mask_words, measure_removal
from attention_atlas.model.analysis.why.experiments import cutting, heads
from attention_atlas.model.analysis.why.experiments.heads import list_heads
from attention_atlas.model.analysis.why.methods import occlusion
from attention_atlas.model.checks import verify
from attention_atlas.model.checks.evidence import Evidence
from attention_atlas.model.trace.interventions import Edge, Interventions, positions_off
from attention_atlas.model.trace.kinds import AttentionKind, Side
from attention_atlas.model.trace.survey import cells
from attention_atlas.model.training import learned
from attention_atlas.model.training.history import NAME
from attention_atlas.viz.panels.formulas import model_table
from attention_atlas.viz.tours.scene import Head, StopScene, shown
from attention_atlas.viz.wire.blocks import compact
from attention_atlas.viz.wire.heads import format_effect
from attention_atlas.viz.wire.question import format_percent
from attention_atlas.viz.words import Words, join, say

MOST = 0.5  # of a row
ROWS = 64  # positions
CHECKS = {check.measure.__name__: check for check in verify.CHECKS}


class Unit(str, Enum):
    """How a number is written: see WRITTEN."""

    SHARE = "share"  # of 1: in percent
    POINTS = "points"  # a difference of shares: its percentage points, without a sign for them
    COUNT = "count"
    ERROR = "error"  # a difference that should be none
    NATS = "nats"


@dataclass(frozen=True)
class Measured:
    """value: None where there is nothing to measure, such as a word that was not written: the claim is then not
    fulfilled. also: what a claim's text may name besides {value}. row: the decoder's row whose number it is, which the
    stop's view then pins; None: the one that is about to write the pair's translation."""

    value: float | None
    unit: Unit = Unit.SHARE
    also: Mapping[str, object] = field(default_factory=dict)
    row: int | None = None


NOTHING = Measured(None)


def share(value: float) -> str:
    """In percent, with the digits that still say something; nothing but the whole is 100 %, nothing but nothing 0 %."""
    if value <= 0:
        return "0%"
    if value < 0.001:
        return compact(value, 2)
    return f"{value:.1%}" if value < 0.1 or 0.99 < value < 0.9995 else f"{value:.0%}"


def tenths(value: float) -> str:
    """In percent, with one digit after the point: for numbers whose difference or ratio stands beside them."""
    return f"{value:.1%}" if value >= 0.001 else share(value)


WRITTEN: Mapping[Unit, Callable[[float], str]] = {  # as the page writes it, in every language alike
    Unit.SHARE: share,
    Unit.POINTS: lambda value: f"{100 * value:.1f}".removesuffix(".0"),
    Unit.COUNT: "{:.0f}".format,
    Unit.ERROR: lambda value: compact(value, 2),
    Unit.NATS: "{:.1f}".format,
}
MEASURES: dict[str, Callable[..., Measured]] = {}


def measure(*needs: str) -> Callable[[Callable[..., Measured]], Callable[..., Measured]]:
    """Enter a function in MEASURES by its name. needs: fields of the scene; where one is empty, nothing is measured."""

    def enter(find: Callable[..., Measured]) -> Callable[..., Measured]:
        @wraps(find)
        def measured(scene: StopScene, **given: object) -> Measured:
            return find(scene, **given) if all(getattr(scene, name) for name in needs) else NOTHING

        MEASURES[find.__name__] = measured
        return measured

    return enter


# Of a translation as it stands: its attention maps and probabilities.


@measure("target")
def probability(scene: StopScene) -> Measured:
    """Of the pair's translation, all its pieces."""
    return Measured(float(np.exp(scene.trace.log_probability[list(scene.target)].sum())))


@measure("source", "target")
def weight(scene: StopScene) -> Measured:
    """What the head gives to the pair's source word when its translation is about to be written."""
    return Measured(float(scene.weights[scene.target[0], list(scene.source)].sum()))


@measure("source", "target")
def read_back(scene: StopScene) -> Measured:
    """What the head gives to the pair's source word in the row that reads the translation's last piece."""
    row = scene.target[-1] + 1
    if row >= len(scene.trace.target_ids):
        return NOTHING
    return Measured(float(scene.weights[row, list(scene.source)].sum()), row=row)


@measure("source", "target")
def best_head(scene: StopScene) -> Measured:
    """The largest weight that any cross-attention head gives to the pair's source word when its translation is about to
    be written."""
    given = scene.given
    return Measured(float(given.max()), also={"count": int((given > MOST).sum()), "of": given.size})


@measure()
def statistic(scene: StopScene, name: str) -> Measured:
    """One of the survey's statistics of the head, in this sentence."""
    kind = scene.head[0]
    maps = scene.trace.maps(kind)
    found = cells.measure(kind, scene.weights, maps.query_tokens, maps.key_tokens)
    if name not in found:
        return NOTHING
    return Measured(float(found[name].values), also={"chance": share(found[name].chance)})


@measure()
def sharpest(scene: StopScene) -> Measured:
    """The mean largest weight of a row, of the cross-attention head with most of it; and of the one with least."""
    confidence = scene.trace.maps(AttentionKind.CROSS).weights.max(-1).mean(-1)
    return Measured(float(confidence.max()), also={"least": share(float(confidence.min())), "of": confidence.size})


@measure()
def mean_probability(scene: StopScene) -> Measured:
    """The geometric mean of what the written tokens were given."""
    found = float(np.exp(np.mean(scene.trace.log_probability)))
    return Measured(found if scene.trace.finished else None, also={"steps": len(scene.trace.target_ids)})


@measure()
def trained(scene: StopScene) -> Measured:
    """The same, and what was recorded of the model's training."""
    found = mean_probability(scene)
    return replace(found, also={**found.also, "records": _records(scene.translator.folder)})


def _records(folder: Path | None) -> Words:
    """From which update on sentences were looked at while a checkpoint was trained, and how their loss went."""
    if folder is None or not (folder / NAME).is_file():
        return say("How this model learned was not recorded.")
    found = learned.read(folder)
    (first, last), (before, after) = (found.updates[[0, -1]].tolist(), found.loss.mean(1)[[0, -1]])
    replayed = say(
        "The panel replays what became of {n} sentences from update {first}, where their mean loss was "
        "{before} nats a token, to update {last}, where it was {after}.",
        n=len(found.probes),
        first=first,
        last=last,
        before=f"{before:.2f}",
        after=f"{after:.2f}",
    )
    earlier = [say("What was learned before update {n} is not in these records.", n=first)] if first else []
    return join([replayed, *earlier], " ")


@measure("source", "target")
def moved(scene: StopScene) -> Measured:
    """How far the pair's word stands from where it stood in the source, each position a share of its sentence."""
    at, by = scene.source[0] / (len(scene.trace.source_ids) - 1), scene.target[0] / len(scene.trace.target_ids)
    return Measured(abs(at - by))


@measure("source")
def pieces(scene: StopScene) -> Measured:
    """How many pieces the pair's source word is made of."""
    spelled = " + ".join(shown(scene.trace.source_tokens, [i]) for i in scene.source)
    return Measured(float(len(scene.source)), Unit.COUNT, {"pieces": spelled})


@measure()
def digits(scene: StopScene) -> Measured:
    """How many digits of the pair's number the translation keeps in order."""
    source, target = (re.sub(r"\D", "", text) for text in (scene.pair.source, scene.trace.translation))
    kept = SequenceMatcher(None, source, target, autojunk=False).get_matching_blocks()
    return Measured(float(sum(block.size for block in kept)), Unit.COUNT, {"count": len(source)})


@measure()
def uneven(scene: StopScene) -> Measured:
    """How much surer the model was of its surest piece than of its least sure one."""
    trace = scene.trace
    p = np.round(np.exp(trace.log_probability), 3)  # as it is written: the difference of what is written is said, too
    step = int(np.argmin(trace.log_probability))
    token, other = next(
        (token, float(q))
        for token, q in zip(trace.top_tokens[step], trace.top_probabilities[step])
        if token != trace.target_tokens[step]
    )
    return Measured(
        float(p.max() - p.min()),
        Unit.POINTS,
        {
            "piece": shown(trace.target_tokens, [step]),
            "least": tenths(float(p.min())),
            "most": tenths(float(p.max())),
            "other": shown((token,), (0,)),
            "p": share(other),
        },
    )


@measure()
def future(scene: StopScene) -> Measured:
    """The largest weight that any of the decoder's heads gives to a token that is not written yet."""
    weights = scene.trace.maps(AttentionKind.DECODER_SELF).weights
    return Measured(float(np.triu(weights, 1).max()), Unit.ERROR)


@measure()
def rows(scene: StopScene) -> Measured:
    """How far the sum of any row is from 1."""
    sums = [scene.trace.maps(kind).weights.sum(-1, dtype=np.float64) for kind in scene.trace.kinds]
    return Measured(max(float(np.abs(found - 1).max()) for found in sums), Unit.ERROR)


@measure()
def sharper(scene: StopScene) -> Measured:
    """How much larger the mean largest weight of a row of cross-attention would be without the division by √d_k: a
    softmax of scores that are √d_k times as large is the weights to that power, each row summing to 1 again."""
    weights = scene.trace.maps(AttentionKind.CROSS).weights.astype(np.float64)
    raised = weights ** np.sqrt(scene.translator.config.of(Side.DECODER).d_head)
    raised /= raised.sum(-1, keepdims=True)
    before, after = (round(float(found.max(-1).mean()), 3) for found in (weights, raised))
    return Measured(after - before, Unit.POINTS, {"before": tenths(before), "after": tenths(after)})


# Of how the network is built: the live checks of the tab Verify.


@measure()
def check(scene: StopScene, name: str) -> Measured:
    """The error of one of the checks, as a share of what it tolerates."""
    error, _ = CHECKS[name].measure(Evidence(scene.translator, scene.trace, scene.output, {}))
    return Measured(float(error), Unit.ERROR)


@measure()
def rotation(scene: StopScene, shift: int) -> Measured:
    """How far the codes of positions are from those that stand `shift` places further on and are turned back to them
    (Vaswani et al. 2017, section 3.5)."""
    waves = geometry.waves_of(scene.translator.config)
    return Measured(geometry.rotation_residual(model_table(scene, ROWS), shift, waves), Unit.ERROR)


@measure()
def wider(scene: StopScene) -> Measured:
    """How many times wider the feed-forward network's inner layer is than the model."""
    decoder = scene.translator.config.of(Side.DECODER)
    return Measured(decoder.d_feedforward / decoder.d_model, Unit.COUNT)


# Of what becomes of it when something is changed and the model runs again.


@measure("source", "target")
def hidden(scene: StopScene) -> Measured:
    """What the pair's translation keeps of its probability when no head may read its source word."""
    case = scene.case
    column = next(i for i, mask in enumerate(case.columns.masks()[0]) if mask[scene.source[0]])
    found = measure_removal(case, column, mask_words)
    before, after = (float(p) for p in found.probabilities[:, found.ids.index(case.question.token_id)])
    return Measured(after / before, also={"before": share(before), "after": share(after)})


@measure("source", "target")
def matters_most(scene: StopScene) -> Measured:
    """How much more hiding the pair's source word costs its translation than hiding any other word, of the source or of
    what was written before: the headline of the tab Why names the word that costs most."""
    case = scene.case
    found = occlusion.measure_losses(case)
    own = next(i for i, mask in enumerate(case.columns.masks()[0]) if mask[scene.source[0]])
    others = np.where(case.columns.special, -np.inf, found.of_metric)
    others[own] = -np.inf
    lost = float(found.of_metric[own])
    return Measured(
        lost - float(others.max()),
        Unit.NATS,
        {"before": format_percent(found.metric), "after": format_percent(found.metric - lost)},
    )


@measure("target")
def without_head(scene: StopScene) -> Measured:
    """What the pair's translation keeps of its probability when the head is switched off."""
    return _without(scene, [scene.head])


@measure("target")
def without_all(scene: StopScene) -> Measured:
    """What the pair's translation keeps of its probability when all cross-attention heads are switched off."""
    return _without(scene, [head for head in list_heads(scene.case) if head[0] is AttentionKind.CROSS])


def _without(scene: StopScene, silenced: list[Head]) -> Measured:
    effects, _ = heads.ablate(
        scene.case, heads.mean_values(scene.case) if scene.case.means else heads.zero_values(), [silenced]
    )
    return _kept(scene, float(effects[0]))


@measure()
def on_average(scene: StopScene, name: str) -> Measured:
    """One of the head's statistics, over the sentences that the model was surveyed with."""
    survey = find_survey(scene.translator, scene.trace.direction)
    kind, layer, head = scene.head
    if survey is None or (scene.translator.survey and scene.translator.survey.digest != scene.translator.digest):
        return NOTHING  # of other weights it says nothing
    found = survey.kinds[kind].statistics[name]
    return Measured(
        float(found.value[layer, head]),
        also={"chance": share(found.chance), "count": found.sentences, "all": survey.sentences},
    )


@measure("source", "target")
def without_edge(scene: StopScene) -> Measured:
    """What the pair's translation keeps of its probability when the head may not read its source word there."""
    kind, layer, head = scene.head
    edges = [Edge(kind, scene.target[0], key, layer, head) for key in scene.source]
    return _kept(
        scene, scene.case.metric() - cutting.metric_without_edges(scene.case, edges, cutting.CutMode.RENORMALISE)
    )


@measure("target")
def unordered(scene: StopScene) -> Measured:
    """What the written pieces keep of their mean probability (geometric) when neither side is told any positions."""
    compared = ablation.compare(scene.translator, scene.trace, positions_off())
    return _mean_kept(compared, broken=compared.broken.translation)


@measure("other")
def turned(scene: StopScene) -> Measured:
    """What the written pieces keep of their mean probability (geometric) when the sentence's words stand in its other
    order."""
    compared = ablation.compare(scene.translator, scene.trace, Interventions(), text=scene.other)
    return _mean_kept(compared, other=scene.other, then=compared.broken.translation)


def _mean_kept(compared: ablation.Comparison, **also: str) -> Measured:
    before, after = (
        float(np.exp(np.mean(found))) for found in (compared.plain.log_probability, compared.forced_log_probability)
    )
    return Measured(after / before, also={"before": share(before), "after": share(after), **also})


@measure("target")
def forced(scene: StopScene) -> Measured:
    """The probability (geometric mean) of what the model writes after it was made to begin the pair's translation with
    its second choice."""
    trace, step = scene.trace, scene.target[0]
    second = next(int(token) for token in trace.top_ids[step] if token != trace.target_ids[step])
    found = scene.translator.trace(
        trace.source_text,
        trace.direction,
        source_ids=trace.source_ids,
        prefix=[*trace.target_ids[:step], second],
        interventions=trace.interventions,
    )
    rest = found.log_probability[step + 1 :]
    return Measured(
        float(np.exp(rest.mean())) if len(rest) and found.finished else None,
        also={
            "second": shown(found.target_tokens, [step]),
            "p": share(float(np.exp(found.log_probability[step]))),
            "instead": found.translation,
        },
    )


def _kept(scene: StopScene, lost: float) -> Measured:
    before = float(np.exp(scene.case.metric()))
    kept = float(np.exp(-lost))
    return Measured(kept, also={"before": tenths(before), "after": tenths(before * kept), "nats": format_effect(lost)})
