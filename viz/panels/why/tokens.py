"""The panel "Tokens": the attribution of the pinned token to source words and earlier words, by every method."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from attention_atlas.model.analysis.why.attribution import attribute_case
from attention_atlas.model.analysis.why.case import mask_words, measure_removal, replace_words
from attention_atlas.model.analysis.why.methods import METHODS, OCCLUSIONS, methods_of, occlusion
from attention_atlas.model.nets.transformer import Transformer
from attention_atlas.model.trace.why.attribution import Why
from attention_atlas.model.trace.why.effects import Removal
from attention_atlas.viz.panels import rankings
from attention_atlas.viz.panels.downloads import EXPORT, exports, matrix_file
from attention_atlas.viz.panels.panel import Panel
from attention_atlas.viz.panels.scene import Scene
from attention_atlas.viz.wire import blocks, fields
from attention_atlas.viz.wire.matrix import Axis, Line, cells, margin, matrix, noted, sum_margin
from attention_atlas.viz.wire.question import candidates_table, largest_loss, token_names
from attention_atlas.viz.words import Words, say

TEST = "test"
MARGINS = (
    (say("sum"), say("Expected and actual sum of the row.")),
    (
        say("agreement"),
        say("Rank correlation with occlusion under the other replacement: 1 is the same order of words."),
    ),
)


def tokens(scene: Scene) -> list[dict]:
    """Draw the matrix of methods by words. Slow methods are computed on request."""
    methods = methods_of(scene.translator.model)
    answers = attribute_case(scene.words_case, [name for name, method in methods.items() if not method.slow])
    ranking = rankings.ranking_of(scene.translator)
    column, loss = largest_loss(answers.row(occlusion.MASK.slug).values, answers.columns)  # as in the headline
    columns = answers.columns  # words of the source, then of the prefix
    groups = ((say("source"), len(columns.source)), (say("already written"), len(columns.prefix)))
    axis = Axis(groups, columns.labels, columns.special.tolist(), sight=None if loss == -np.inf else column)
    lines = [_line(scene, answers, name, folded=name in ranking.folded) for name in ranking.order]
    hint = blocks.note(
        "Click a cell to run its test: the word is removed, and the model says what it would write instead."
    )
    none = say("This method has no value for this word.")
    return [
        blocks.text(ranking.reason, tone="note"),
        matrix(say("Methods by words"), axis, lines, margins=MARGINS, act=TEST, none=none),
        *([exports()] if isinstance(scene.translator.model, Transformer) else []),  # a file also has its parts
        blocks.slot(TEST, hint),
    ]


def compute_row(scene: Scene, data: Mapping[str, object]) -> list[dict]:
    """Compute the row of a slow method, or of one layer (from 1) of cross-attention."""
    name, layer = fields.read_entry(data, "row", METHODS).slug, fields.read_integer(data, "layer", 0)
    case = replace(scene.words_case, cross_layer=layer - 1) if layer else scene.words_case
    answers = attribute_case(case, (*(method.slug for method in OCCLUSIONS), name))
    return [_line(scene, answers, name, layer).payload()]


def remove_word(scene: Scene, data: Mapping[str, object]) -> list[dict]:
    """Remove the word of a cell's column by the occlusion of its row, and draw the next tokens then."""
    column, by_mean = fields.read_integer(data, "column"), data.get("row") == occlusion.MEAN.slug
    removal = measure_removal(scene.words_case, column, replace_words if by_mean else mask_words)
    tokens = scene.translator.tokenizer.tokens(removal.ids)
    return [
        blocks.text(_removal_text(scene, scene.words_case.columns.labels[column], removal, by_mean)),
        candidates_table(removal, tokens, scene.question, say("with all words"), say("without it")),
    ]


def _removal_text(scene: Scene, word: str, removal: Removal, by_mean: bool) -> Words:
    """Return the metric before and after a word was removed."""
    token, contrast = token_names(scene.trace, scene.question)
    values = {
        "word": word,
        "before": blocks.format_nats(removal.before),
        "after": blocks.format_nats(removal.after),
        "token": token,
        "how": say("its embedding is replaced by the average") if by_mean else say("it is hidden"),
    }
    if contrast is None:
        return say("Without {word} ({how}): log p({token}) goes from {before} to {after} nats.", **values)
    return say(
        "Without {word} ({how}): log p({token}) − log p({contrast}) goes from {before} to {after} nats.",
        contrast=contrast,
        **values,
    )


def _line(scene: Scene, answers: Why, name: str, layer: int = 0, *, folded: bool = False) -> Line:
    """Return the row of a method; without values if it was not computed."""
    method, layers = METHODS[name], scene.translator.config.num_decoder_layers
    about = {
        "key": method.slug,
        "name": method.title,
        "evidence": method.evidence,
        "folded": folded,
        "layers": layers if method.by_layer and layers > 1 else 0,
        "layer": layer,
    }
    row = next((row for row in answers.rows if row.method == name), None)
    if row is None:
        return Line(cells=None, about=(method.description, method.caveat), **about)
    same = noted(say("the same for any contrast")) if method.class_agnostic else []
    sums = sum_margin(row.sum, row.unit) if row.sum else []
    agreement = answers.agreement[name]
    return Line(
        cells=cells(row.values, row.unit, limit=_limit(answers) if not method.class_agnostic else 0.0),
        margins=(sums + same, margin("–" if agreement is None else blocks.two_decimals(agreement))),
        about=(method.description, method.caveat, *row.notes),
        **about,
    )


def _limit(answers: Why) -> float:
    """Return the largest measured effect of one word, which sets the colour scale of rows in nats."""
    measured = [answers.row(method.slug).values for method in OCCLUSIONS]
    return max(float(np.nanmax(np.abs(values), initial=0.0)) for values in measured) or 1.0


PANEL = Panel(
    "why-tokens",
    "Tokens",
    "Which words made the model write this token? Orange supports it, blue counts against it.",
    say("Ferrando et al. 2022"),
    tokens,
    of_any_network=True,
    actions={"row": compute_row, TEST: remove_word, EXPORT: matrix_file},
    paper="https://arxiv.org/abs/2205.11631",
    method=say("Where a method disagrees with the measurement, trust the measurement."),
)
