"""The panel "Recurrent and Transformer": both networks on the same sentence, and the time of a training update."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from attention_atlas.model.nets.recurrent import Recurrent
from attention_atlas.model.nets.transformer import Transformer
from attention_atlas.model.trace.kinds import AttentionKind
from attention_atlas.model.trace.language import Refusal
from attention_atlas.model.trace.scores import ScoreMap
from attention_atlas.model.trace.translation import TranslationTrace
from attention_atlas.model.training.pace import measure
from attention_atlas.model.translator import Translator
from attention_atlas.viz.figures.curves import plot_curves
from attention_atlas.viz.maps.patterns import most_telling
from attention_atlas.viz.maps.reduce import Combine, Special, View, score_map
from attention_atlas.viz.panels.panel import Choice, Panel
from attention_atlas.viz.panels.scene import Scene
from attention_atlas.viz.wire import blocks
from attention_atlas.viz.words import Words, say

LIKEST, TELLING, MEAN = "likest", "telling", "mean"
WHICH = Choice(
    say("The Transformer's map"),
    {
        LIKEST: say("of the head most like the alignment"),
        TELLING: say("of the head that points most clearly"),
        MEAN: say("mean of all heads"),
    },
    LIKEST,
)
DEVELOPED = "dev"  # the split that training was monitored on; scores are of the others
KINDS = (Transformer, Recurrent)
NAMES = {Transformer: say("Transformer"), Recurrent: say("recurrent network")}


def compare(scene: Scene, which: str) -> list[dict]:
    """Compare the two networks. which: the Transformer's map to show."""
    other = counterpart(scene)
    missing = blocks.paragraph(
        "This panel needs both a Transformer and a recurrent network for {direction}.",
        direction=scene.trace.direction,
    )
    try:
        comparison = _sentence(scene, other, which) if other else [missing]
    except Refusal as error:  # the translation is empty, or too long in the other network's tokens
        comparison = [blocks.text(error.words)]
    return [*comparison, *_pace(measure.read())]


def counterpart(scene: Scene) -> Translator | None:
    """Return the first served model of this direction that is the other kind of network and has attention, or None."""
    if scene.served is None or type(scene.translator.model) not in KINDS:
        return None
    for route in scene.served.routes:
        candidate = scene.served[route.label]
        is_other_kind = type(candidate.model) in KINDS and type(candidate.model) is not type(scene.translator.model)
        if route.direction == scene.trace.direction and is_other_kind and candidate.model.num_layers:
            return candidate
    return None


def recurrent_reading(scene: Scene) -> tuple[Translator, TranslationTrace] | None:
    """Return the recurrent network that the page shows, or the one of its direction, and its trace of the page's
    translation; None if there is none."""
    if isinstance(scene.translator.model, Recurrent):
        return scene.translator, scene.trace
    other = counterpart(scene)
    return None if other is None else (other, read_by_both(scene, other)[Recurrent])


def not_served(scene: Scene) -> list[dict]:
    """Return the content of a panel about a recurrent network if there is none to show."""
    return [
        blocks.paragraph(
            "No recurrent network with attention is served for {direction}.", direction=scene.trace.direction
        )
    ]


def read_by_both(scene: Scene, other: Translator) -> dict[type, TranslationTrace]:
    """Return the traces of both networks over the page's translation, each in its own tokens, by network class."""
    trace = scene.trace
    return {
        type(scene.translator.model): trace,
        type(other.model): other.trace(trace.source_text, trace.direction, target=trace.translation),
    }


def select_maps(traces: dict[type, TranslationTrace], which: str) -> tuple[ScoreMap, ScoreMap, Words]:
    """Return the Transformer's map that `which` names, the recurrent network's, and the title of the first."""
    ours, aligned = traces[Transformer], between_words(traces[Recurrent], View(AttentionKind.ALIGNMENT))
    every = tuple(np.ndindex(ours.cross.weights.shape[:2]))
    if which == MEAN:
        mean = View(AttentionKind.CROSS, heads=every, combine=Combine.MEAN)
        return between_words(ours, mean), aligned, say("Cross-attention, mean of all heads")
    view = most_telling(ours)
    if which == LIKEST and shared_weight(between_words(ours, view), aligned) is not None:
        views = [View(AttentionKind.CROSS, *place) for place in every]
        view = max(views, key=lambda view: shared_weight(between_words(ours, view), aligned))
    title = say("Cross-attention, layer {layer}, head {head}", layer=view.layer + 1, head=view.head + 1)
    return between_words(ours, view), aligned, title


def between_words(trace: TranslationTrace, view: View) -> ScoreMap:
    """Return a map between words without special tokens. A row is the word predicted next."""
    return score_map(trace, replace(view, words=True, special=Special.HIDE, predicted=True))


def shared_weight(first: ScoreMap, second: ScoreMap) -> float | None:
    """Return the weight that two maps put on the same cells: the sum of the smaller values, averaged over rows.

    None if the two split the sentence into different words.
    """
    if (first.rows, first.columns) != (second.rows, second.columns) or not first.values.size:
        return None
    return float(np.nansum(np.minimum(first.values, second.values)) / len(first.rows))


def _sentence(scene: Scene, other: Translator, which: str) -> list[dict]:
    translation = other.translate(scene.trace.source_text, scene.trace.direction)
    wrote = {type(scene.translator.model): scene.trace.translation, type(other.model): translation.translation}
    traces = read_by_both(scene, other)
    ours, aligned, title = select_maps(traces, which)
    cards = [
        (
            say("{network}: its translation", network=NAMES[kind]),
            wrote[kind] or say("(nothing)"),
            say(
                "log-probability it gives to the translation above: {n} nats",
                n=blocks.compact(float(traces[kind].log_probability.sum())),
            ),
        )
        for kind in KINDS
    ]
    pictures = [
        blocks.heatmap(score.values, name, rows=score.rows, columns=score.columns, limit=1.0, signed=False)
        for score, name in ((ours, title), (aligned, say("Alignment of the recurrent network")))
    ]
    return [
        blocks.formula("α = softmax(vᵀ tanh(W s + U h))", say("recurrent network")),
        blocks.formula("α = softmax(q kᵀ / √d_k)", say("Transformer")),
        blocks.cards(*cards),
        *_scores({type(model.model): model for model in (scene.translator, other)}, scene.trace.direction),
        blocks.stack(
            blocks.note(
                "Both networks are forced to write the translation above. A row is the next word, a column a "
                "source word; begin, end and language symbols are left out."
            ),
            blocks.maps(*pictures),
        ),
        *_agreement(ours, aligned),
    ]


def _scores(translators: dict[type, Translator], direction: str) -> list[dict]:
    """Return a table of greedy BLEU on the test sets that both were scored on, if any."""
    scores = {
        kind: {
            score["data"]: score
            for score in translators[kind].metrics.get("scores", [])
            if (score["direction"], score["beam"]) == (direction, 1)
            and score["split"] != DEVELOPED
            and "protocol" not in score
        }
        for kind in KINDS
    }
    both = [name for name in scores[Transformer] if name in scores[Recurrent]]
    table = blocks.columns(
        (say("Test set"), both),
        *((NAMES[kind], [blocks.number(round(scores[kind][name]["bleu"], 1)) for name in both]) for kind in KINDS),
        (say("sentences"), [blocks.number(scores[Recurrent][name]["sentences"]) for name in both]),
        caption=say("BLEU of greedy translations, by sacreBLEU; higher is better. Sizes and training differ, too."),
    )
    return [table] if both else []


def _agreement(ours: ScoreMap, theirs: ScoreMap) -> list[dict]:
    """Return where both point, word by word; nothing if they split the sentence into different words."""
    common = shared_weight(ours, theirs)
    if common is None:
        return []
    known = np.flatnonzero(~np.isnan(ours.values + theirs.values).any(axis=1))
    first, second = ours.values[known], theirs.values[known]
    ours_at, theirs_at = [[ours.columns[i] for i in values.argmax(axis=1)] for values in (first, second)]
    apart = np.flatnonzero(first.argmax(axis=1) != second.argmax(axis=1)).tolist()
    return [
        blocks.facts(
            blocks.fact(
                "They point at the same source word",
                say("{n} of {all} words", n=len(known) - len(apart), all=len(known)),
                "each at the word with most of its weight; attention is a proxy",
            ),
            blocks.fact(
                "Weight on the same cells",
                f"{common:.2f}",
                "out of 1 per row: the smaller of the two, summed over words of the source",
            ),
        ),
        blocks.columns(
            (say("Written next"), [blocks.token(ours.rows[i]) for i in known]),
            (say("Transformer: most on"), map(blocks.token, ours_at)),
            (say("weight"), map(blocks.bar, first.max(axis=1))),
            (say("recurrent: most on"), map(blocks.token, theirs_at)),
            (say("weight"), map(blocks.bar, second.max(axis=1))),
            marked=apart,
            caption=say("Coloured rows: the two point at different words."),
        ),
    ]


def _pace(pace: measure.Pace) -> list[dict]:
    """Draw the time of a training update by sentence length, for both networks."""
    names = {"transformer": NAMES[Transformer], "recurrent": NAMES[Recurrent]}
    times = {name: np.array([1e3 * median for _, median, _ in pace.seconds[key]]) for key, name in names.items()}
    picture = plot_curves(
        times,
        x=np.array(pace.lengths),
        x_title=say("tokens per sentence"),
        y_title=say("ms per update"),
    )
    picture.update_yaxes(rangemode="tozero")
    picture.update_xaxes(type="log", tickvals=list(pace.lengths), ticktext=[str(n) for n in pace.lengths])
    short, long = pace.lengths[0], pace.lengths[-1]
    return [
        blocks.facts(
            *(
                (
                    say("{network}: {long} against {short} tokens per sentence", network=name, long=long, short=short),
                    say("{n} times as long", n=blocks.compact(ms[-1] / ms[0])),
                    say("{first} and {last} ms per update", first=blocks.compact(ms[0]), last=blocks.compact(ms[-1])),
                )
                for name, ms in times.items()
            )
        ),
        blocks.figure(picture, height=300, label=say("Time of an update by the length of its sentences")),
        blocks.note(
            "One update of {tokens} tokens per side, cut into sentences of each length. The Transformer "
            "reads them all at once, the recurrent network one after another. Medians of {rounds} "
            "updates; {transformer} and {recurrent} parameters; processor: {cpu}, threads: {threads}.",
            tokens=pace.tokens,
            rounds=pace.rounds,
            threads=pace.threads,
            cpu=pace.processor,
            transformer=pace.parameters["transformer"],
            recurrent=pace.parameters["recurrent"],
        ),
    ]


PANEL = Panel(
    "recurrent",
    "Recurrent and Transformer",
    "A recurrent network and a Transformer on your sentence: where do they look, and what do they write?",
    say("Bahdanau et al. 2015"),
    compare,
    controls=(WHICH,),
    of_any_network=True,
    paper="https://arxiv.org/abs/1409.0473",
    method=say(
        "A recurrent network reads word by word, with a single alignment that tells it where to look. "
        "Reading in sequence makes training slow."
    ),
)
