"""Word links of the sentence that is looked at, from any head; edited, they are what every head is scored by."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from attention_atlas.model.analysis.alignment.linker import WordMaps, every_head, mean_map, word_maps
from attention_atlas.model.trace import is_integer
from attention_atlas.model.trace.alignment import Gold, Links, RowToken, Voter, content_words, score_links
from attention_atlas.model.trace.kinds import AttentionKind
from attention_atlas.model.trace.translation import TranslationTrace
from attention_atlas.model.trace.words import SPACE
from attention_atlas.viz.panels.heads.survey import map_of_heads, named_head
from attention_atlas.viz.panels.panel import Choice, Panel
from attention_atlas.viz.panels.scene import Scene
from attention_atlas.viz.wire import blocks
from attention_atlas.viz.wire.fields import each
from attention_atlas.viz.words import Words, join, say

SELECTED, BY_LENGTH, LAYER, ALTI, ALL, CHOSEN = "head", "length", "layer", "alti", "all", "chosen"
ROWS = {RowToken.READ: say("token read"), RowToken.PREDICTED: say("token written")}
MEASURED = ""  # a row stands for the token by which the head was measured to link best
SHOWN = 10


def alignment(scene: Scene, source: str, row: str) -> list[dict]:
    if not all(word_texts(scene.trace)):
        return [blocks.paragraph("There are no words to link.")]
    chosen = chosen_heads(scene)
    if source == CHOSEN and not chosen:
        return [blocks.paragraph("No heads of this model have been chosen to link words yet.")]
    stands_for = RowToken(row) if row else measured_row(scene, source)
    what, scores = source_of(scene, word_maps(scene.translator, scene.trace), source, stands_for, chosen)
    if source == CHOSEN:
        stands = say("Each head by the row it aligns best with.")
    elif stands_for is RowToken.READ:
        stands = say("A row stands for the token it reads.")
    else:
        stands = say("A row stands for the token it writes.")
    told = say("{what}: each word of the translation with the source word that has most of it.", what=what)
    return [
        blocks.text(join((told, stands), " "), tone="note"),
        blocks.links(*word_texts(scene.trace), scores, sorted(best(scores))),
        blocks.slot("score", blocks.note("Correct the links; every head is then scored against them.")),
    ]


def measured_row(scene: Scene, source: str) -> RowToken:
    """Which token's links these heads showed over many sentences, the one read or the one then written; where nobody
    counted, the one read."""
    survey = scene.survey
    found = survey.kinds[AttentionKind.CROSS].statistics if survey and AttentionKind.CROSS in survey.kinds else {}
    if not {"alignment_read", "alignment_predicted"} <= found.keys():
        return RowToken.READ
    layer, head = selected(scene)
    at = {SELECTED: (layer, head), BY_LENGTH: (layer, head), LAYER: layer, ALTI: layer}.get(source, ...)
    read, written = (np.nanmean(found[name].value[at]) for name in ("alignment_read", "alignment_predicted"))
    return RowToken.READ if read >= written else RowToken.PREDICTED


def selected(scene: Scene) -> tuple[int, int]:
    """Layer and head of the cross-attention that is selected; where another kind is, the last layer's first."""
    chosen = scene.selection
    if chosen.kind is AttentionKind.CROSS:
        return chosen.layer, chosen.head
    return scene.trace.cross.num_layers - 1, 0


def chosen_heads(scene: Scene) -> tuple[Voter, ...]:
    """Those that linked words for the survey; none where there is no survey, or one without links."""
    survey = scene.survey
    return survey.linked_by if survey else ()


def source_of(
    scene: Scene, maps: Mapping[RowToken, WordMaps], source: str, row: RowToken, chosen: tuple[Voter, ...]
) -> tuple[Words, np.ndarray]:
    """What links are read from, in words, and each word's share of each source word, [target word, source word]."""
    own, (layer, head) = maps[row], selected(scene)
    numbers = {"layer": layer + 1, "head": head + 1}
    if source == CHOSEN:
        return say(
            "Chosen by agreement: {heads}", heads=join([named_head(v.layer, v.head) for v in chosen], "; ")
        ), mean_map(maps, chosen)
    return {
        SELECTED: lambda: (say("Weight, layer {layer}, head {head}", **numbers), own.weights[layer, head]),
        BY_LENGTH: lambda: (
            say("Length of weight times value, layer {layer}, head {head}", **numbers),
            own.by_length[layer, head],
        ),
        LAYER: lambda: (say("Weight, mean of layer {layer}", **numbers), own.weights[layer].mean(0)),
        ALTI: lambda: (say("Contribution to the output of layer {layer} (ALTI)", **numbers), own.contributions[layer]),
        ALL: lambda: (say("Weight, mean of all heads"), own.weights.mean((0, 1))),
    }[source]()


def word_texts(trace: TranslationTrace) -> tuple[list[str], list[str]]:
    """The words of both sides as they are shown."""
    return tuple(
        ["".join(tokens[i] for i in group).replace(SPACE, " ").strip() or SPACE for group in content_words(tokens)]
        for tokens in (trace.source_tokens, trace.target_tokens)
    )


def best(scores: np.ndarray) -> Links:
    """Each target word [target, source] with its best source word."""
    return frozenset((int(line.argmax()), target) for target, line in enumerate(scores))


def scored(scene: Scene, data: Mapping[str, object], source: str, row: str) -> list[dict]:
    """The alignment error rate of every head, by the links that a person made on the page."""
    sources, targets = map(len, word_texts(scene.trace))
    sure, possible = (_links(data, name, sources, targets) for name in ("sure", "possible"))
    gold, maps = Gold(sure, sure | possible), word_maps(scene.translator, scene.trace)
    found = [(score_links(best(values), gold), voter) for voter, values in every_head(maps)]
    rates = {row: np.zeros(one.weights.shape[:2]) for row, one in maps.items()}
    for one, voter in found:
        if not voter.by_length:
            rates[voter.row][voter.layer, voter.head] = one.error_rate
    rows = [(one, named_voter(voter), ROWS[voter.row]) for one, voter in found]
    if chosen := chosen_heads(scene):
        rows.append((score_links(best(mean_map(maps, chosen)), gold), say("the chosen heads"), "–"))
    rows += [
        (score_links(best(layer), gold), say("ALTI, layer {layer}", layer=number), ROWS[name])
        for name, one in maps.items()
        for number, layer in enumerate(one.contributions, start=1)
    ]
    rows.sort(key=lambda row: row[0].error_rate)
    numbers = [
        [what, words, blocks.bar(min(1.0, one.error_rate)), blocks.number(one.precision), blocks.number(one.recall)]
        for one, what, words in rows[:SHOWN]
    ]
    pale = say("0, pale: no link is wrong")
    pictures = [
        map_of_heads(values, join((say("AER of every head"), ROWS[row]), " · "), limit=1.0, signed=False, note=pale)
        for row, values in rates.items()
    ]
    return [
        blocks.note(
            "Alignment error rate against your {n} links on this sentence: 0 means none is wrong. Choosing the "
            "best of many heads on one sentence flatters it.",
            n=len(gold.possible),
        ),
        blocks.row(
            blocks.maps(*pictures),
            blocks.table(blocks.headings("links from", "row", "AER", "precision", "recall"), numbers),
        ),
    ]


def named_voter(voter: Voter) -> Words:
    """A head, and how it is read, in words."""
    if not voter.by_length:
        return named_head(voter.layer, voter.head)
    return say("layer {layer}, head {head}, by length", layer=voter.layer + 1, head=voter.head + 1)


def _links(data: Mapping[str, object], name: str, sources: int, targets: int) -> Links:
    """Links that the page sent, between so many words; a Refusal for anything else."""

    def link(pair: object) -> tuple[int, int]:
        source, target = pair
        if not (is_integer(source, 0, sources - 1) and is_integer(target, 0, targets - 1)):
            raise ValueError(f"{pair!r} is no link between {sources} and {targets} words")
        return source, target

    return frozenset(each({name: [], **data}, name, link))


PANEL = Panel(
    "heads-links",
    say("Word links"),
    say(
        "Which words belong together? Links read off attention, for you to correct: whether a head aligns depends on "
        "which token its row stands for."
    ),
    say("Kobayashi et al. 2020"),
    alignment,
    paper="https://arxiv.org/abs/2004.10102",
    actions={"score": scored},
    controls=(
        Choice(
            say("Links from"),
            {
                SELECTED: say("the selected head"),
                BY_LENGTH: say("the selected head, by length"),
                LAYER: say("its layer's mean"),
                ALTI: say("its layer's contributions"),
                ALL: say("the mean of all heads"),
                CHOSEN: say("chosen heads"),
            },
            SELECTED,
            folded=True,
        ),
        Choice(
            say("A row stands for"),
            {
                MEASURED: say("as measured for the head"),
                RowToken.READ.value: say("the token it reads"),
                RowToken.PREDICTED.value: say("the token it writes"),
            },
            MEASURED,
        ),
    ),
)
