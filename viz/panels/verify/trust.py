"""The panel "Trust": how certain each word is, where it came from, and how often such warning signs are right."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from attention_atlas.model.analysis.trust import run_dropout_passes
from attention_atlas.model.trace.trust import PROVOKED, SIGNALS, SignalScore, Trust
from attention_atlas.viz.figures.curves import plot_curves
from attention_atlas.viz.maps import labels
from attention_atlas.viz.panels.panel import Panel, Slider
from attention_atlas.viz.panels.scene import Scene
from attention_atlas.viz.wire import blocks
from attention_atlas.viz.words import join, say

PASSES, STEP = 30, 10  # of the slider of dropout passes
NAMES = {
    "unsure": say("unsure"),
    "unmoved": say("just as probable without the source"),
    "detached": say("from the words already written"),
    "unread": say("hardly used"),
    "repeated": say("repeated"),
}
SETS = {"provoked": say("its own, on misleading sources"), "labelled": say("labelled by people")}
BASELINES = {"short": say("short"), "length": say("unusual length"), "bigrams": say("repeated pairs of words")}
FINDS = {"hallucination": say("hallucination"), "omission": say("omission"), "repetition": say("repetition")}


def trust(scene: Scene, passes: int) -> Iterator[list[dict]]:
    """Draw the words and the measured signals, and the spread of probabilities over passes with dropout."""
    words = blocks.row(_words(scene), _coverage(scene))
    measured = [*_signals(scene), *_reliability(scene.trust)]
    if not passes:
        yield [words, *measured]
        return
    for log_probability, ids in run_dropout_passes(scene.translator, scene.trace, passes):
        yield [words, _dropout(scene, log_probability, ids, passes), *measured]


def _words(scene: Scene) -> dict:
    """Return a table of the translation's words: probability, with and without the source, and the source's share."""
    reading, words = scene.reading, labels.words(scene.trace.target_tokens)
    groups = [list(group) for group, _ in words]
    with_source, without = (
        [np.exp(float(values[group].sum())) for group in groups]
        for values in (reading.log_probability, reading.without_source)
    )
    return blocks.columns(
        (say("Word"), [blocks.token(word) for _, word in words]),
        (say("probability"), [blocks.shade(1 - p, f"{p:.0%}") for p in with_source]),
        (say("without the source"), [f"{p:.1%}" for p in without]),
        (say("share from the source"), [blocks.bar(reading.share[group].mean()) for group in groups]),
        caption=say(
            "Darker: less certain. Without the source: the same words after an empty sentence "
            "(measured). Share: how much of each word came from the source rather than from the words "
            "before it (ALTI+, a proxy)."
        ),
    )


def _coverage(scene: Scene) -> dict:
    """Return a table of how much each source word contributed."""
    words = labels.words(scene.trace.source_tokens)
    contributions = [(word, float(scene.reading.columns[list(group)].sum())) for group, word in words]
    most = max((value for _, value in contributions), default=1.0)
    return blocks.table(
        blocks.headings("Word", "Contribution of each source word to the translation"),
        [[blocks.token(word), blocks.bar(max(0.0, value / most))] for word, value in contributions],
        caption=say("The maximum is 1: a word with a short bar may have been left out."),
    )


def _dropout(scene: Scene, log_probability: np.ndarray, ids: np.ndarray, passes: int) -> dict:
    """Return a table of each token's probability over passes with dropout [pass, step], and what replaced it."""
    rows = []
    for at, token in enumerate(scene.trace.target_tokens):
        others, counts = np.unique(ids[:, at][ids[:, at] != scene.trace.target_ids[at]], return_counts=True)
        best = scene.translator.tokenizer.tokens(others[np.argsort(-counts)][:3].tolist())
        p = np.exp(log_probability[:, at])
        instead = " · ".join(labels.word_label([name]) for name in best)
        rows.append([blocks.token(token), f"{p.mean():.0%} ± {p.std():.0%}", blocks.token(instead)])
    return blocks.table(
        blocks.headings("Token", "probability", "most probable instead"),
        rows,
        caption=say(
            "{n} of {all} passes with random dropout, as in training (MC dropout): where the model changes its mind.",
            n=len(ids),
            all=passes,
        ),
    )


def _signals(scene: Scene) -> list[dict]:
    """Return a table of how well each signal detects errors, and its value here."""
    quality = scene.trust
    if not quality.scores:
        return [blocks.note("This model has not been measured on labelled data yet.")]
    scores = quality.scores

    def baseline(score: SignalScore) -> dict:
        return blocks.bar(score.baseline_auroc, join((f"{score.baseline_auroc:.3f}", BASELINES[score.baseline]), " · "))

    def gain(score: SignalScore) -> str:
        return blocks.with_minus_sign(f"{score.gain:+.3f} ({score.low:+.3f} … {score.high:+.3f})")

    return [
        blocks.columns(
            (say("Signal"), [NAMES[score.signal] for score in scores]),
            (say("finds"), [FINDS[score.of] for score in scores]),
            (say("on"), [SETS["provoked" if score.on == PROVOKED else "labelled"] for score in scores]),
            (say("AUROC"), [blocks.bar(score.auroc) for score in scores]),
            (say("best without a model"), map(baseline, scores)),
            (say("gain"), map(gain, scores)),
            (say("shown"), [blocks.verdict(score.passed) for score in scores]),
            (say("here"), [blocks.number(SIGNALS[score.signal].measure(scene.reading)) for score in scores]),
            (say("warns above"), [blocks.number(quality.thresholds.get(score.signal, np.nan)) for score in scores]),
            caption=say(
                "Gain with a 95% bootstrap interval. On {n} good translations of held-out everyday sentences "
                "any of the shown signals raised an alarm in {share}.",
                n=quality.sentences,
                share=f"{quality.false_alarms:.1%}",
            ),
        )
    ]


def _reliability(quality: Trust) -> list[dict]:
    """Return the calibration of the model's probabilities, if it was measured."""
    if not quality.bins:
        return []
    domains = [say("all") if domain == "all" else blocks.token(domain) for domain in quality.errors]
    curves = {say("this model"): 2, say("ideal"): 1}
    used = [row for row in quality.bins["all"] if row[0]]
    picture = plot_curves(
        {name: np.array([row[at] for row in used]) for name, at in curves.items()},
        x=np.array([row[1] for row in used]),
        x_title=say("probability"),
        y_title=say("share correct"),
        limits=(0, 1.05),
    )
    return [
        blocks.row(
            blocks.figure(
                picture, height=280, width=560, label=say("How often tokens of each probability are correct")
            ),
            blocks.columns(
                (say("Kind of language"), domains),
                (say("expected calibration error"), map(blocks.bar, quality.errors.values())),
                caption=say("Forced references: average gap between probability and share correct (Guo et al. 2017)."),
            ),
        )
    ]


PANEL = Panel(
    "trust",
    "Trust",
    "Can you trust this translation? Dark words and short bars are warning signs.",
    say("Guerreiro et al. 2023"),
    trust,
    controls=(Slider(say("Passes with dropout"), 0, PASSES, 0, STEP),),
    paper="https://arxiv.org/abs/2208.05309",
    stops=True,
)
