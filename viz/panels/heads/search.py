"""The panel "Search by example": heads and sentences that do what the pinned cell or the selected head shows."""

from __future__ import annotations

import numpy as np

from attention_atlas.model.analysis.sentences import has_sentences, source_sentences
from attention_atlas.model.analysis.survey.batch import similarity
from attention_atlas.model.trace.survey import cells
from attention_atlas.model.trace.survey.statistics import STATISTICS
from attention_atlas.model.trace.survey.survey import KindSurvey
from attention_atlas.viz.maps import labels
from attention_atlas.viz.panels.heads.survey import label_head, measure_in_sentence
from attention_atlas.viz.panels.panel import Panel
from attention_atlas.viz.panels.scene import Scene
from attention_atlas.viz.wire import blocks
from attention_atlas.viz.words import Words, say

SHOWN = 6


def search(scene: Scene) -> list[dict]:
    survey = scene.survey.kinds.get(scene.selection.kind) if scene.survey else None
    return [*_by_cell(scene, survey), *_by_map(scene, survey)]


def _by_cell(scene: Scene, survey: KindSurvey | None) -> list[dict]:
    """Name the statistics that the pinned cell is an example of, and the heads with most of each."""
    selection = scene.selection
    maps = scene.trace.maps(selection.kind)
    if selection.query is None or selection.key is None:
        return [blocks.note("Pin a cell on the Attention tab to search by it.")]
    places = cells.statistic_cells(selection.kind, maps.query_tokens, maps.key_tokens)
    named = [name for name, place in places.items() if place.cells[selection.query, selection.key]]
    pinned = blocks.paragraph(
        "The pinned cell: {row}, attending to {key}.",
        row=labels.row_name(scene.trace, selection.kind, selection.query),
        key=labels.display(maps.key_tokens[selection.key]),
    )
    if not named:
        strong = maps.weights[..., selection.query, selection.key]
        none = blocks.paragraph("No statistic counts this cell. These heads put the most weight on it.")
        return [blocks.stack(pinned, none, _ranking(strong, say("weight on the cell")))]
    parts, allowed = [pinned], cells.allowed_cells(selection.kind, *maps.weights.shape[2:])
    for name in named:
        now = cells.measure_weights(maps.weights, allowed, {name: places[name]})[name].values
        values = survey.statistics[name].value if survey and name in survey.statistics else now
        parts.append(
            blocks.row(_ranking(values, STATISTICS[name].title, now), *_sentences(scene, survey, name, values))
        )
    return [blocks.stack(*parts)]


def _ranking(values: np.ndarray, title: Words, now: np.ndarray | None = None) -> dict:
    """Rank the heads of one kind by a value [layers, heads]; now: the value in this sentence."""
    places = [divmod(int(at), values.shape[1]) for at in np.argsort(-values, axis=None)[:SHOWN]]
    here = [] if now is None else [(say("in this sentence"), [blocks.number(now[at]) for at in places])]
    return blocks.columns(
        (say("head"), [label_head(*at) for at in places]),
        (title, [blocks.bar(min(1.0, values[at])) for at in places]),
        *here,
    )


def _sentences(scene: Scene, survey: KindSurvey | None, name: str, values: np.ndarray) -> list[dict]:
    if survey is None or name not in survey.examples or not has_sentences(scene.trace.direction):
        return []
    lines = source_sentences(scene.trace.direction)
    best = np.unravel_index(int(values.argmax()), values.shape)
    rows = [[lines[line]] for line in survey.examples[name]["most"][best] if 0 <= line < len(lines)]
    return [blocks.table([say("sentences where the top head does this most")], rows)]


def _by_map(scene: Scene, survey: KindSurvey | None) -> list[dict]:
    """List heads with rows like the selected head's, in this sentence and over the survey, and describe the head."""
    selection = scene.selection
    maps = scene.trace.maps(selection.kind)
    layers, heads = maps.weights.shape[:2]
    allowed = cells.allowed_cells(selection.kind, *maps.weights.shape[2:])
    own = selection.layer * heads + selection.head
    like_here = similarity(maps.weights.reshape(layers * heads, *maps.weights.shape[2:]), allowed)[own]
    order = [int(i) for i in np.argsort(-like_here, kind="stable") if i != own][:SHOWN]
    like_ever = map(blocks.number, survey.similarity[own][order]) if survey else ["–"] * len(order)
    title = say(
        "{kind}, layer {layer}, head {head}: heads with similar rows",
        **labels.place(selection.kind, selection.layer, selection.head),
    )
    return [
        blocks.columns(
            (say("head"), [label_head(*divmod(i, heads)) for i in order]),
            (say("same rows here"), map(blocks.bar, like_here[order])),
            (say("over the survey"), like_ever),
            caption=title,
        ),
        *_describe(scene, survey),
    ]


def _describe(scene: Scene, survey: KindSurvey | None) -> list[dict]:
    """Name what the selected head does most beyond chance in this sentence."""
    selection = scene.selection
    now = measure_in_sentence(scene, selection.kind, selection.layer, selection.head)
    tested = {name: float(f.values) - f.chance for name, f in now.items() if STATISTICS[name].threshold is not None}
    if not tested:
        return []
    name = max(tested, key=tested.get)
    most = blocks.paragraph(
        "Its strongest habit here: it {does} ({value}; random rows {chance})",
        does=STATISTICS[name].plain,
        value=f"{float(now[name].values):.2f}",
        chance=f"{now[name].chance:.2f}",
    )
    if not survey or name not in survey.statistics:
        return [most]
    values = survey.statistics[name].value
    ranking = blocks.row(_ranking(values, STATISTICS[name].title), *_sentences(scene, survey, name, values))
    return [blocks.stack(most, ranking)]


PANEL = Panel(
    "heads-search",
    "Search by example",
    "Which other heads and sentences show the pattern selected on the Attention tab?",
    say("Vig 2019"),
    search,
    paper="https://arxiv.org/abs/1906.05714",
    method=say("The example is the head selected on the Attention tab, or the cell pinned there."),
)
