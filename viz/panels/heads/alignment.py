"""The panel "Word links": links between source and target words, read off attention.

A visitor can correct the links; every head is then scored against them by its alignment error rate.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from attention_atlas.model.analysis.alignment.links import SentenceMaps, average_heads, link_by_rows, word_maps
from attention_atlas.model.trace import is_integer
from attention_atlas.model.trace.alignment import Gold, Links, RowToken, Voter, score_links
from attention_atlas.model.trace.kinds import AttentionKind
from attention_atlas.model.trace.translation import TranslationTrace
from attention_atlas.viz.maps import labels
from attention_atlas.viz.panels.heads.survey import draw_head_map, label_head
from attention_atlas.viz.panels.panel import Choice, Panel
from attention_atlas.viz.panels.scene import Scene
from attention_atlas.viz.wire import blocks, fields
from attention_atlas.viz.words import Words, join, say

SELECTED, BY_LENGTH, LAYER, ALTI, ALL, CHOSEN = "head", "length", "layer", "alti", "all", "chosen"  # sources of links
ROWS = {RowToken.READ: say("token read"), RowToken.PREDICTED: say("token written")}
STANDS = {
    RowToken.READ: say("Each row stands for the token read."),
    RowToken.PREDICTED: say("Each row stands for the token written."),
}
MEASURED = ""  # as the survey measured for the head
SHOWN = 10


def alignment(scene: Scene, source: str, row: str) -> list[dict]:
    """Draw the links of a source of links. row: which token a row of attention stands for."""
    if not all(word_texts(scene.trace)):
        return [blocks.paragraph("There are no words to link.")]
    voters = chosen_heads(scene)
    if source == CHOSEN and not voters:
        return [blocks.paragraph("This model has no alignment heads yet.")]
    stands_for = RowToken(row) if row else measured_row(scene, source)
    title, scores = link_scores(scene, *word_maps(scene.translator, scene.trace), source, stands_for, voters)
    stands = (
        say("Each head is scored with the kind of row that fits it best.") if source == CHOSEN else STANDS[stands_for]
    )
    caption = say("{what}: each translated word is linked to the source word with the largest share.", what=title)
    return [
        blocks.text(join((caption, stands), " "), tone="note"),
        blocks.links(*word_texts(scene.trace), scores, sorted(link_by_rows(scores))),
        blocks.slot("score", blocks.note("Correct the links, then score every head against them.")),
    ]


def measured_row(scene: Scene, source: str) -> RowToken:
    """Return the token by whose links these heads scored better in the survey; the token read without a survey."""
    survey = scene.survey
    statistics = survey.kinds[AttentionKind.CROSS].statistics if survey and AttentionKind.CROSS in survey.kinds else {}
    if not {"alignment_read", "alignment_predicted"} <= statistics.keys():
        return RowToken.READ
    layer, head = selected(scene)
    at = {SELECTED: (layer, head), BY_LENGTH: (layer, head), LAYER: layer, ALTI: layer}.get(source, ...)
    read, written = (np.nanmean(statistics[name].value[at]) for name in ("alignment_read", "alignment_predicted"))
    return RowToken.READ if read >= written else RowToken.PREDICTED


def selected(scene: Scene) -> tuple[int, int]:
    """Return layer and head of the selected cross-attention; the first head of the last layer for another kind."""
    selection = scene.selection
    if selection.kind is AttentionKind.CROSS:
        return selection.layer, selection.head
    return scene.trace.cross.num_layers - 1, 0


def chosen_heads(scene: Scene) -> tuple[Voter, ...]:
    """Return the heads that the survey chose to link words; none without such a survey."""
    survey = scene.survey
    return survey.linked_by if survey else ()


def link_scores(
    scene: Scene,
    maps: SentenceMaps,
    contributions: Mapping[RowToken, np.ndarray],
    source: str,
    row: RowToken,
    voters: tuple[Voter, ...],
) -> tuple[Words, np.ndarray]:
    """Return the title of a source of links, and its scores [target word, source word]."""
    weights, (layer, head) = maps[row, False], selected(scene)
    numbers = {"layer": layer + 1, "head": head + 1}
    if source == CHOSEN:
        heads = join([label_head(v.layer, v.head) for v in voters], "; ")
        return say("Alignment heads, chosen by agreement: {heads}", heads=heads), average_heads(maps, voters)
    if source == SELECTED:
        return say("Weight, layer {layer}, head {head}", **numbers), weights[layer, head]
    if source == BY_LENGTH:
        title = say("Length of weight times value, layer {layer}, head {head}", **numbers)
        return title, maps[row, True][layer, head]
    if source == LAYER:
        return say("Weight, mean of layer {layer}", **numbers), weights[layer].mean(0)
    if source == ALTI:
        title = say("Contribution to the output of layer {layer} (ALTI)", **numbers)
        return title, contributions[row][layer]
    return say("Weight, mean of all heads"), weights.mean((0, 1))


def word_texts(trace: TranslationTrace) -> tuple[list[str], list[str]]:
    """Return the words of source and translation for display."""
    return tuple([word for _, word in labels.words(tokens)] for tokens in (trace.source_tokens, trace.target_tokens))


def score_heads(scene: Scene, data: Mapping[str, object], source: str, row: str) -> list[dict]:
    """Score every head against the links that the visitor corrected: data has sure and possible links."""
    sources, targets = map(len, word_texts(scene.trace))
    sure, possible = (_links(data, name, sources, targets) for name in ("sure", "possible"))
    gold, (maps, contributions) = Gold(sure, sure | possible), word_maps(scene.translator, scene.trace)
    head_scores = [
        (score_links(link_by_rows(values[layer, head]), gold), Voter(layer, head, row, by_length))
        for (row, by_length), values in maps.items()
        for layer, head in np.ndindex(values.shape[:2])
    ]
    rates = {row: np.zeros(maps[row, False].shape[:2]) for row in RowToken}
    for agreement, voter in head_scores:
        if not voter.by_length:
            rates[voter.row][voter.layer, voter.head] = agreement.error_rate
    rows = [(agreement, named_voter(voter), ROWS[voter.row]) for agreement, voter in head_scores]
    if voters := chosen_heads(scene):
        rows.append((score_links(link_by_rows(average_heads(maps, voters)), gold), say("the alignment heads"), "–"))
    rows += [
        (score_links(link_by_rows(layer), gold), say("ALTI, layer {layer}", layer=number), ROWS[row])
        for row, layers in contributions.items()
        for number, layer in enumerate(layers, start=1)
    ]
    rows.sort(key=lambda row: row[0].error_rate)
    cells = [
        [title, row, blocks.bar(min(1.0, score.error_rate)), *map(blocks.number, (score.precision, score.recall))]
        for score, title, row in rows[:SHOWN]
    ]
    pale = say("0 (pale): no wrong links")
    pictures = [
        draw_head_map(values, join((say("AER of every head"), ROWS[row]), " · "), limit=1.0, signed=False, note=pale)
        for row, values in rates.items()
    ]
    return [
        blocks.note(
            "Alignment error rate against your {n} links on this sentence (0: no wrong links). The best "
            "of many heads on a single sentence looks better than it is.",
            n=len(gold.possible),
        ),
        blocks.row(
            blocks.maps(*pictures),
            blocks.table(blocks.headings("links from", "row", "AER", "precision", "recall"), cells),
        ),
    ]


def named_voter(voter: Voter) -> Words:
    """Return the label of a head, and whether it is weighted by value length."""
    if not voter.by_length:
        return label_head(voter.layer, voter.head)
    return say("layer {layer}, head {head}, by length", layer=voter.layer + 1, head=voter.head + 1)


def _links(data: Mapping[str, object], name: str, sources: int, targets: int) -> Links:
    """Read links between this many words from the page. A Refusal for anything else."""

    def link(pair: object) -> tuple[int, int]:
        source, target = pair
        if not (is_integer(source, 0, sources - 1) and is_integer(target, 0, targets - 1)):
            raise ValueError(f"{pair!r} is no link between {sources} and {targets} words")
        return source, target

    return frozenset(fields.read_list({name: [], **data}, name, link))


PANEL = Panel(
    "heads-links",
    "Word links",
    "Which words belong together? These links come from attention; correct them to score every head.",
    say("Kobayashi et al. 2020"),
    alignment,
    paper="https://arxiv.org/abs/2004.10102",
    actions={"score": score_heads},
    controls=(
        Choice(
            say("Links from"),
            {
                SELECTED: say("the selected head"),
                BY_LENGTH: say("the selected head, by length"),
                LAYER: say("its layer's mean"),
                ALTI: say("its layer's contributions"),
                ALL: say("the mean of all heads"),
                CHOSEN: say("alignment heads"),
            },
            SELECTED,
            folded=True,
        ),
        Choice(
            say("A row stands for"),
            {
                MEASURED: say("as measured for each head"),
                RowToken.READ.value: say("the token it reads"),
                RowToken.PREDICTED.value: say("the token it writes"),
            },
            MEASURED,
        ),
    ),
    method=say("Whether a head aligns depends on which token its row stands for."),
)
