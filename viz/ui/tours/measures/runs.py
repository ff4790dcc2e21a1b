"""Measures that change something and run the model again."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from model.analysis import ablation
from model.analysis.survey.own import surveyed
from model.analysis.why.experiments import cutting, heads, removal
from model.analysis.why.methods import occlusion
from model.analysis.why.passes.ablations import all_heads
from model.analysis.why.passes.change import masked
from model.trace.interventions import Edge, Interventions, Positions
from model.trace.kinds import AttentionKind
from viz.ui.tours.measures.measured import NOTHING, Measured, Unit, share, tenths
from viz.ui.tours.scene import Head, StopScene, shown
from viz.wire.heads import signed
from viz.wire.question import chance


def hidden(scene: StopScene) -> Measured:
    """What the pair's translation keeps of its probability when no head may read its source word."""
    if not (scene.source and scene.target):
        return NOTHING
    case = scene.case
    column = next(i for i, mask in enumerate(case.columns.masks()[0]) if mask[scene.source[0]])
    found = removal.without(case, column, masked)
    before, after = (float(p) for p in found.probabilities[:, found.ids.index(case.question.token_id)])
    return Measured(after / before, also={"before": share(before), "after": share(after)})


def matters_most(scene: StopScene) -> Measured:
    """How much more hiding the pair's source word costs its translation than hiding any other word, of the source or of
    what was written before: the headline of the tab Why names the word that costs most."""
    if not (scene.source and scene.target):
        return NOTHING
    case = scene.case
    found = occlusion.losses(case)
    own = next(i for i, mask in enumerate(case.columns.masks()[0]) if mask[scene.source[0]])
    others = np.where(case.columns.special, -np.inf, found.of_metric)
    others[own] = -np.inf
    lost = float(found.of_metric[own])
    return Measured(
        lost - float(others.max()), Unit.NATS, {"before": chance(found.metric), "after": chance(found.metric - lost)}
    )


def without_head(scene: StopScene) -> Measured:
    """What the pair's translation keeps of its probability when the head is switched off."""
    return _without(scene, [scene.head]) if scene.target else NOTHING


def without_all(scene: StopScene) -> Measured:
    """What the pair's translation keeps of its probability when all cross-attention heads are switched off."""
    if not scene.target:
        return NOTHING
    return _without(scene, [head for head in all_heads(scene.case) if head[0] is AttentionKind.CROSS])


def _without(scene: StopScene, silenced: list[Head]) -> Measured:
    effects, _ = heads.ablate(scene.case, heads.usual(scene.case), [silenced])
    return _kept(scene, float(effects[0]))


def on_average(scene: StopScene, name: str) -> Measured:
    """One of the head's statistics, over the sentences that the model was surveyed with."""
    survey = surveyed(scene.translator, scene.trace.direction)
    kind, layer, head = scene.head
    if survey is None or (scene.translator.survey and scene.translator.survey.digest != scene.translator.digest):
        return NOTHING  # of other weights it says nothing
    found = survey.kinds[kind].statistics[name]
    return Measured(
        float(found.value[layer, head]),
        also={"chance": share(found.chance), "count": found.sentences, "all": survey.sentences},
    )


def without_edge(scene: StopScene) -> Measured:
    """What the pair's translation keeps of its probability when the head may not read its source word there."""
    if not (scene.source and scene.target):
        return NOTHING
    kind, layer, head = scene.head
    edges = [Edge(kind, scene.target[0], key, layer, head) for key in scene.source]
    return _kept(scene, scene.case.metric() - cutting.metric_without(scene.case, edges, cutting.Cut.RENORMALISE))


def unordered(scene: StopScene) -> Measured:
    """What the written pieces keep of their mean probability (geometric) when neither side is told any positions."""
    if not scene.target:
        return NOTHING
    off = Positions(enabled=False)
    changes = Interventions(source_positions=off, target_positions=off)
    compared = ablation.compare(scene.translator, scene.trace, changes)
    before, after = (
        float(np.exp(np.mean(found))) for found in (scene.trace.log_probability, compared.forced_log_probability)
    )
    return Measured(
        after / before, also={"before": share(before), "after": share(after), "broken": compared.broken.translation}
    )


def turned(scene: StopScene) -> Measured:
    """What the written pieces keep of their mean probability (geometric) when the sentence's words stand in its other
    order."""
    if not scene.other:
        return NOTHING
    compared = ablation.compare(scene.translator, scene.trace, Interventions(), text=scene.other)
    before, after = (
        float(np.exp(np.mean(found))) for found in (scene.trace.log_probability, compared.forced_log_probability)
    )
    found = {"before": share(before), "after": share(after), "other": scene.other, "then": compared.broken.translation}
    return Measured(after / before, also=found)


def forced(scene: StopScene) -> Measured:
    """The probability (geometric mean) of what the model writes after it was made to begin the pair's translation with
    its second choice."""
    if not scene.target:
        return NOTHING
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
    return Measured(kept, also={"before": tenths(before), "after": tenths(before * kept), "nats": signed(lost)})


MEASURES: Mapping[str, Callable[..., Measured]] = {
    measure.__name__: measure
    for measure in (
        hidden,
        matters_most,
        without_head,
        without_all,
        on_average,
        without_edge,
        unordered,
        turned,
        forced,
    )
}
