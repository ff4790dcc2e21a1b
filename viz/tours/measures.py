"""The measures of a tour's claims: functions of a StopScene and of the claim's arguments, by name."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher
from functools import partial, wraps

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
from attention_atlas.model.training.learned import Learned
from attention_atlas.viz.panels.formulas import model_table
from attention_atlas.viz.panels.train.learned import read_history
from attention_atlas.viz.tours.scene import Head, StopScene, display_text
from attention_atlas.viz.wire.blocks import compact, format_effect, format_percent
from attention_atlas.viz.words import Words, join, say

MOST = 0.5  # share of a row above which best_head() counts a head
ROWS = 64  # positions that rotation() compares
CHECKS = {check.measure.__name__: check for check in verify.CHECKS}


def share(value: float) -> str:
    """Format a share in percent with its significant digits. Only 1 is written as 100% and only 0 as 0%."""
    if value <= 0:
        return "0%"
    if value < 0.001:
        return compact(value, 2)
    return f"{value:.1%}" if value < 0.1 or 0.99 < value < 0.9995 else f"{value:.0%}"


def tenths(value: float) -> str:
    """Format a share in percent with one decimal, for shares whose difference or ratio is also given."""
    return f"{value:.1%}" if value >= 0.001 else share(value)


def points(value: float) -> str:
    """Format a difference of shares in percentage points."""
    return f"{100 * value:.1f}".removesuffix(".0")


count, nats = "{:.0f}".format, "{:.1f}".format
error = partial(compact, digits=2)  # a difference that should be 0


@dataclass(frozen=True)
class Measured:
    """A measured value.

    value   None if it cannot be measured, for example if a word was not written; the claim is then not fulfilled
    format  writes the value and its bound, in the same way in every language
    also    further fields of the claim's text
    row     the decoder row that the value is about, which the stop's view pins; None for the one that writes the pair's
            translation
    """

    value: float | None
    format: Callable[[float], str] = share
    also: Mapping[str, object] = field(default_factory=dict)
    row: int | None = None


NOTHING = Measured(None)
MEASURES: dict[str, Callable[..., Measured]] = {}


def measure(*needs: str) -> Callable[[Callable[..., Measured]], Callable[..., Measured]]:
    """Register a function in MEASURES by its name. needs: fields of the scene without which the result is NOTHING."""

    def register(find: Callable[..., Measured]) -> Callable[..., Measured]:
        @wraps(find)
        def measured(scene: StopScene, **given: object) -> Measured:
            return find(scene, **given) if all(getattr(scene, name) for name in needs) else NOTHING

        MEASURES[find.__name__] = measured
        return measured

    return register


# Measures of a translation: its attention maps and probabilities.


@measure("target")
def probability(scene: StopScene) -> Measured:
    """Measure the probability of all pieces of the pair's translation."""
    return Measured(float(np.exp(scene.trace.log_probability[list(scene.target)].sum())))


@measure("source", "target")
def weight(scene: StopScene) -> Measured:
    """Measure the head's weight on the pair's source word in the step that writes its translation."""
    return Measured(float(scene.weights[scene.target[0], list(scene.source)].sum()))


@measure("source", "target")
def read_back(scene: StopScene) -> Measured:
    """Measure the head's weight on the pair's source word in the row that reads the translation's last piece."""
    row = scene.target[-1] + 1
    if row >= len(scene.trace.target_ids):
        return NOTHING
    return Measured(float(scene.weights[row, list(scene.source)].sum()), row=row)


@measure("source", "target")
def best_head(scene: StopScene) -> Measured:
    """Measure the largest weight of a cross-attention head on the pair's source word, and count those above MOST."""
    weights = scene.source_weights
    return Measured(float(weights.max()), also={"count": int((weights > MOST).sum()), "of": weights.size})


@measure()
def statistic(scene: StopScene, name: str) -> Measured:
    """Measure one of the survey's statistics of the head in this sentence."""
    kind = scene.head[0]
    maps = scene.trace.maps(kind)
    statistics = cells.measure(kind, scene.weights, maps.query_tokens, maps.key_tokens)
    if name not in statistics:
        return NOTHING
    return Measured(float(statistics[name].values), also={"chance": share(statistics[name].chance)})


@measure()
def sharpest(scene: StopScene) -> Measured:
    """Measure the mean largest weight of a row, for the sharpest cross-attention head and for the least sharp."""
    confidence = scene.trace.maps(AttentionKind.CROSS).weights.max(-1).mean(-1)
    return Measured(float(confidence.max()), also={"least": share(float(confidence.min())), "of": confidence.size})


@measure()
def mean_probability(scene: StopScene) -> Measured:
    """Measure the geometric mean of the probabilities of the written tokens."""
    mean = float(np.exp(np.mean(scene.trace.log_probability)))
    return Measured(mean if scene.trace.finished else None, also={"steps": len(scene.trace.target_ids)})


@measure()
def trained(scene: StopScene) -> Measured:
    """Measure mean_probability(), and add what was recorded of the training."""
    mean = mean_probability(scene)
    return replace(mean, also={**mean.also, "records": _records(read_history(scene.translator))})


def _records(history: Learned | None) -> Words:
    """Return in words from which update on a training was recorded, and how the loss changed."""
    if history is None:
        return say("This model's training was not recorded.")
    (first, last), (before, after) = (history.updates[[0, -1]].tolist(), history.loss.mean(1)[[0, -1]])
    replayed = say(
        "The panel replays {n} sentences from update {first} (mean loss {before} nats per token) to "
        "update {last} ({after}).",
        n=len(history.probes),
        first=first,
        last=last,
        before=f"{before:.2f}",
        after=f"{after:.2f}",
    )
    earlier = [say("What was learned before update {n} is not in these records.", n=first)] if first else []
    return join([replayed, *earlier], " ")


@measure("source", "target")
def moved(scene: StopScene) -> Measured:
    """Measure how far the pair's word moved, with positions as shares of the sentence."""
    at, by = scene.source[0] / (len(scene.trace.source_ids) - 1), scene.target[0] / len(scene.trace.target_ids)
    return Measured(abs(at - by))


@measure("source")
def pieces(scene: StopScene) -> Measured:
    """Count the pieces of the pair's source word."""
    spelled = " + ".join(display_text(scene.trace.source_tokens[i]) for i in scene.source)
    return Measured(float(len(scene.source)), count, {"pieces": spelled})


@measure()
def digits(scene: StopScene) -> Measured:
    """Count the digits of the pair's number that the translation keeps in order."""
    source, target = (re.sub(r"\D", "", text) for text in (scene.pair.source, scene.trace.translation))
    matches = SequenceMatcher(None, source, target, autojunk=False).get_matching_blocks()
    return Measured(float(sum(block.size for block in matches)), count, {"count": len(source)})


@measure()
def uneven(scene: StopScene) -> Measured:
    """Measure the difference between the largest and the smallest probability of a written piece."""
    trace = scene.trace
    p = np.round(np.exp(trace.log_probability), 3)  # rounded as displayed, so that the displayed difference is exact
    step = int(np.argmin(trace.log_probability))
    rival, probability = next(
        (token, float(q))
        for token, q in zip(trace.top_tokens[step], trace.top_probabilities[step])
        if token != trace.target_tokens[step]
    )
    return Measured(
        float(p.max() - p.min()),
        points,
        {
            "piece": display_text(trace.target_tokens[step]),
            "least": tenths(float(p.min())),
            "most": tenths(float(p.max())),
            "other": display_text(rival),
            "p": share(probability),
        },
    )


@measure()
def future(scene: StopScene) -> Measured:
    """Measure the largest decoder self-attention weight on a later token."""
    weights = scene.trace.maps(AttentionKind.DECODER_SELF).weights
    return Measured(float(np.triu(weights, 1).max()), error)


@measure()
def rows(scene: StopScene) -> Measured:
    """Measure the largest difference of a row's sum from 1."""
    sums = [scene.trace.maps(kind).weights.sum(-1, dtype=np.float64) for kind in scene.trace.kinds]
    return Measured(max(float(np.abs(sums_of_kind - 1).max()) for sums_of_kind in sums), error)


@measure()
def sharper(scene: StopScene) -> Measured:
    """Measure how much the mean largest weight of cross-attention grows without the division by √d_k.

    The softmax of scores that are √d_k times as large is the weights to the power √d_k, normalised.
    """
    weights = scene.trace.maps(AttentionKind.CROSS).weights.astype(np.float64)
    raised = weights ** np.sqrt(scene.translator.config.of(Side.DECODER).d_head)
    raised /= raised.sum(-1, keepdims=True)
    before, after = (round(float(maps.max(-1).mean()), 3) for maps in (weights, raised))
    return Measured(after - before, points, {"before": tenths(before), "after": tenths(after)})


# Measures of how the network is built: the live checks of the panel Verify.


@measure()
def check(scene: StopScene, name: str) -> Measured:
    """Measure the error of a live check. name: of its function in model/checks/verify.py."""
    difference, _ = CHECKS[name].measure(Evidence(scene.translator, scene.trace, scene.output, {}))
    return Measured(float(difference), error)


@measure()
def rotation(scene: StopScene, shift: int) -> Measured:
    """Measure the error of a shift of positions as a rotation of their codes (Vaswani et al. 2017, section 3.5)."""
    waves = geometry.waves_of(scene.translator.config)
    return Measured(geometry.rotation_residual(model_table(scene, ROWS), shift, waves), error)


@measure()
def wider(scene: StopScene) -> Measured:
    """Measure the ratio of d_ff to d_model."""
    decoder = scene.translator.config.of(Side.DECODER)
    return Measured(decoder.d_feedforward / decoder.d_model, count)


# Measures of a changed model or sentence, which take another run.


@measure("source", "target")
def hidden(scene: StopScene) -> Measured:
    """Measure the share of its probability that the pair's translation keeps without attention to its source word."""
    case = scene.case
    removal = measure_removal(case, _source_column(scene), mask_words)
    before, after = (float(p) for p in removal.probabilities[:, removal.ids.index(case.question.token_id)])
    return Measured(after / before, also={"before": share(before), "after": share(after)})


@measure("source", "target")
def matters_most(scene: StopScene) -> Measured:
    """Measure how much more the pair's translation loses without its source word than without any other word, in nats.

    The headline of the tab Why names the word that costs most.
    """
    losses, column = occlusion.measure_losses(scene.case), _source_column(scene)
    others = np.where(scene.case.columns.special, -np.inf, losses.of_metric)
    others[column] = -np.inf
    loss = float(losses.of_metric[column])
    return Measured(
        loss - float(others.max()),
        nats,
        {"before": format_percent(losses.metric), "after": format_percent(losses.metric - loss)},
    )


def _source_column(scene: StopScene) -> int:
    """Return the column of the pair's source word among the words that can be removed."""
    return next(i for i, group in enumerate(scene.case.columns.source) if scene.source[0] in group)


@measure("target")
def without_head(scene: StopScene) -> Measured:
    """Measure the share of its probability that the pair's translation keeps without the head."""
    return _without(scene, [scene.head])


@measure("target")
def without_all(scene: StopScene) -> Measured:
    """Measure the share of its probability that the pair's translation keeps without all cross-attention heads."""
    return _without(scene, [head for head in list_heads(scene.case) if head[0] is AttentionKind.CROSS])


def _without(scene: StopScene, ablated: list[Head]) -> Measured:
    values = heads.mean_values(scene.case) if scene.case.means else heads.zero_values()
    effects, _ = heads.ablate(scene.case, values, [ablated])
    return _kept(scene, float(effects[0]))


@measure()
def on_average(scene: StopScene, name: str) -> Measured:
    """Measure one of the head's statistics over the sentences of the survey."""
    survey = find_survey(scene.translator, scene.trace.direction)
    kind, layer, head = scene.head
    if survey is None or (scene.translator.survey and scene.translator.survey.digest != scene.translator.digest):
        return NOTHING  # the survey is of other weights
    estimate = survey.kinds[kind].statistics[name]
    return Measured(
        float(estimate.value[layer, head]),
        also={"chance": share(estimate.chance), "count": estimate.sentences, "all": survey.sentences},
    )


@measure("source", "target")
def without_edge(scene: StopScene) -> Measured:
    """Measure the share of its probability that the pair's translation keeps with one edge of the head cut."""
    kind, layer, head = scene.head
    edges = [Edge(kind, scene.target[0], key, layer, head) for key in scene.source]
    metric = cutting.metric_without_edges(scene.case, edges, cutting.CutMode.RENORMALISE)
    return _kept(scene, scene.case.metric() - metric)


@measure("target")
def unordered(scene: StopScene) -> Measured:
    """Measure the share of their mean probability that the written pieces keep without positions."""
    comparison = ablation.compare(scene.translator, scene.trace, positions_off())
    return _mean_kept(comparison, broken=comparison.altered.translation)


@measure("other")
def turned(scene: StopScene) -> Measured:
    """Measure the share of their mean probability that the written pieces keep with the words in another order."""
    comparison = ablation.compare(scene.translator, scene.trace, Interventions(), text=scene.other)
    return _mean_kept(comparison, other=scene.other, then=comparison.altered.translation)


def _mean_kept(comparison: ablation.Comparison, **also: str) -> Measured:
    """Return the ratio of the geometric mean probabilities of the plain translation, changed and plain."""
    before = float(np.exp(np.mean(comparison.original.log_probability)))
    after = float(np.exp(np.mean(comparison.forced_log_probability)))
    return Measured(after / before, also={"before": share(before), "after": share(after), **also})


@measure("target")
def forced(scene: StopScene) -> Measured:
    """Measure the mean probability of what the model writes after its second choice is forced in the pair's place."""
    trace, step = scene.trace, scene.target[0]
    second = next(int(token) for token in trace.top_ids[step] if token != trace.target_ids[step])
    forced_trace = scene.translator.trace(
        trace.source_text,
        trace.direction,
        source_ids=trace.source_ids,
        prefix=[*trace.target_ids[:step], second],
        interventions=trace.interventions,
    )
    rest = forced_trace.log_probability[step + 1 :]
    also = {
        "second": display_text(forced_trace.target_tokens[step]),
        "p": share(float(np.exp(forced_trace.log_probability[step]))),
        "instead": forced_trace.translation,
    }
    return Measured(float(np.exp(rest.mean())) if len(rest) and forced_trace.finished else None, also=also)


def _kept(scene: StopScene, lost: float) -> Measured:
    """Return the share of its probability that the token keeps after losing this many nats."""
    before = float(np.exp(scene.case.metric()))
    share_kept = float(np.exp(-lost))
    return Measured(
        share_kept, also={"before": tenths(before), "after": tenths(before * share_kept), "nats": format_effect(lost)}
    )
