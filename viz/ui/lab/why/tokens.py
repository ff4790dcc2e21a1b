"""Which words made it: every method's answer over the words of the source and of what was written before."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from model.analysis.why.attribution import answer
from model.analysis.why.case import Case, masked, replaced
from model.analysis.why.experiments.removal import without
from model.analysis.why.methods import occlusion
from model.analysis.why.registry import METHODS, OCCLUSIONS
from model.trace.why.removal import Removal
from model.trace.why.rows import Why
from viz.ui.lab.panel import Panel, Scene
from viz.ui.language import label
from viz.wire import blocks
from viz.wire.experiments.candidates import candidates
from viz.wire.matrix import Line, line_dict, matrix
from viz.wire.question import names, nats
from viz.words import say

TEST = "test"


def tokens(scene: Scene) -> list[dict]:
    found = answer(scene.case, [name for name, method in METHODS.items() if not method.slow])
    lines = [_line(scene, found, name) for name in METHODS]
    return [matrix(scene.case.columns, lines, limit=_limit(found)), blocks.slot(TEST, blocks.text(
        say("Choose a cell to run its test: the word is taken away, and the model says what it would write then."),
        tone="note"))]


def row(scene: Scene, data: Mapping[str, object]) -> list[dict]:
    """The line of a method that was left out because it is slow, or about one layer of cross-attention."""
    name, layer = data.get("method"), data.get("layer", 0)
    if name not in METHODS or not isinstance(layer, int):
        raise ValueError(f"there is no method {name!r} of layer {layer!r}")
    case = replace(scene.case, cross_layer=layer - 1) if layer else scene.case
    found = answer(case, (occlusion.MASK.name, occlusion.MEAN.name, name))
    return [{"type": "line", **line_dict(_line(scene, found, name, layer), _limit(found))}]


def taken_away(scene: Scene, data: Mapping[str, object]) -> list[dict]:
    """What the model would write without the word of a cell's column, taken away as the cell's row does it."""
    column, by_mean = data.get("column"), data.get("method") == occlusion.MEAN.name
    if not isinstance(column, int):
        raise ValueError(f"a column is a whole number, found {column!r}")
    case = scene.case
    found = without(case, column, replaced if by_mean else masked)
    return _shown(scene, case, column, found, by_mean)


def _shown(scene: Scene, case: Case, column: int, found: Removal, by_mean: bool) -> list[dict]:
    word = case.columns.labels[column]
    token, contrast = names(scene.trace, scene.question)
    values = {"word": word, "before": nats(found.before), "after": nats(found.after), "token": token,
              "contrast": contrast}
    how = say("its embedding is the average one") if by_mean else say("no head may read it")
    if contrast is None:
        title = say("Without {word} ({how}): log p({token}) goes from {before} to {after} nats.", how=how, **values)
    else:
        title = say("Without {word} ({how}): log p({token}) − log p({contrast}) goes from {before} to {after} nats.",
                    how=how, **values)
    return [blocks.text(title), candidates(found, scene.translator.tokenizer.tokens(found.ids), scene.question,
                                           say("with all words"), say("without it"))]


def _limit(found: Why) -> float:
    """The largest effect of one word that was measured: full colour for all rows in nats."""
    measured = [found.row(method.name).values for method in OCCLUSIONS]
    return max(float(np.nanmax(np.abs(values), initial=0.0)) for values in measured) or 1.0


def _line(scene: Scene, found: Why, name: str, layer: int = 0) -> Line:
    method = METHODS[name]
    given = next((row for row in found.rows if row.method == name), None)
    return Line(method.name, method.evidence, method.unit, method.done, method.misleads, method.class_agnostic,
                scene.translator.config.num_decoder_layers if method.by_layer else 0, layer, given,
                found.agreement.get(name))


PANEL = Panel(
    "why-tokens", label("Tokens"), say(
        "Which words made the model write it? Orange speaks for the pinned token, blue against it. Where a method "
        "disagrees with what was measured, it misleads."),
    say("Ferrando et al. 2022"), tokens, acts={"row": row, "test": taken_away}, paper="https://arxiv.org/abs/2205.11631")
