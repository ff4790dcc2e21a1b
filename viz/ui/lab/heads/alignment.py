"""Word links of the sentence that is looked at, from any head; edited, they are what every head is scored by."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from model.trace.alignment.links import Links
from model.trace.alignment.score import Gold, score
from model.trace.kinds import AttentionKind
from model.trace.tokens import is_symbol
from model.trace.translation import TranslationTrace
from model.trace.words import SPACE, word_groups
from viz.ui.lab.controls import Choice
from viz.ui.lab.heads.survey import named_head
from viz.ui.lab.panel import Panel, Scene
from viz.ui.language import label
from viz.wire import blocks
from viz.wire.links import links as links_block
from viz.words import say

SELECTED, LAYER, ALL = "head", "layer", "all"
READ, PREDICTED = "read", "predicted"
ROWS = {READ: say("token read"), PREDICTED: say("token predicted")}
SHOWN = 10


def alignment(scene: Scene, source: str, row: str) -> list[dict]:
    if not all(word_texts(scene.trace)):
        return [blocks.text(say("There are no words to link."))]
    maps = between_words(scene.trace, row)
    chosen, trace = scene.selection, scene.trace
    layer = chosen.layer if chosen.kind is AttentionKind.CROSS else len(maps) - 1
    head = chosen.head if chosen.kind is AttentionKind.CROSS else 0
    scores = {SELECTED: maps[layer, head], LAYER: maps[layer].mean(0), ALL: maps.mean((0, 1))}[source]
    what = {SELECTED: say("Cross-attention, layer {layer}, head {head}", layer=layer + 1, head=head + 1),
            LAYER: say("Cross-attention, mean of layer {layer}", layer=layer + 1),
            ALL: say("Cross-attention, mean of all heads")}[source]
    return [blocks.text(say("{what}: each word of the translation with the source word that has most of its weight.",
                            what=what), tone="note"),
            links_block(*word_texts(trace), scores, sorted(best(scores))),
            blocks.slot("score", blocks.text(say("Correct the links by clicks; then every head is scored by them."),
                                             tone="note"))]


def words_of(tokens: tuple[str, ...]) -> list[tuple[int, ...]]:
    """Positions by word, symbols left out."""
    return [group for group in word_groups(tokens) if not is_symbol(tokens[group[0]])]


def word_texts(trace: TranslationTrace) -> tuple[list[str], list[str]]:
    """The words of both sides as they are shown."""
    return tuple(["".join(tokens[i] for i in group).replace(SPACE, " ").strip() or SPACE for group in words_of(tokens)]
                 for tokens in (trace.source_tokens, trace.target_tokens))


def between_words(trace: TranslationTrace, row: str) -> np.ndarray:
    """Cross-attention between words, float64 [layers, heads, target word, source word]: summed over a source word's
    pieces, a mean over a target word's (Kobayashi et al. 2020). row: which row stands for a token."""
    weights = trace.maps(AttentionKind.CROSS).weights.astype(np.float64)
    steps = weights.shape[2]
    found = np.stack([weights[..., list(group)].sum(-1) for group in words_of(trace.source_tokens)], -1)
    rows = [[min(i + (row == READ), steps - 1) for i in group] for group in words_of(trace.target_tokens)]
    return np.stack([found[:, :, group].mean(2) for group in rows], 2)


def best(scores: np.ndarray) -> Links:
    """Each target word [target, source] with its best source word."""
    return frozenset((int(line.argmax()), target) for target, line in enumerate(scores))


def scored(scene: Scene, data: Mapping[str, object], source: str, row: str) -> list[dict]:
    """The alignment error rate of every head, by the links that a person made on the page."""
    sources, targets = map(len, word_texts(scene.trace))
    gold = _links(data.get("links"), sources, targets)
    rows = []
    for name, words in ROWS.items():
        maps = between_words(scene.trace, name)
        for layer, head in np.ndindex(maps.shape[:2]):
            found = score(best(maps[layer, head]), Gold(gold, gold))
            rows.append((found.error_rate, layer, head, words, found))
    rows.sort(key=lambda one: one[:3])
    return [blocks.table(
        [say("head"), say("row"), say("AER"), say("precision"), say("recall")],
        [[named_head(layer, head), words, blocks.bar(min(1.0, rate)), blocks.number(found.precision),
          blocks.number(found.recall)] for rate, layer, head, words, found in rows[:SHOWN]],
        caption=say("Alignment error rate by your {n} links on this sentence: 0 is none wrong. The best of many heads "
                    "on one sentence is flattered.", n=len(gold)))]


def _links(given: object, sources: int, targets: int) -> Links:
    """Links that the page sent. ValueError for anything else."""
    pairs = given if isinstance(given, list) else []
    for pair in pairs:
        if not (isinstance(pair, list) and len(pair) == 2 and all(isinstance(i, int) for i in pair)
                and 0 <= pair[0] < sources and 0 <= pair[1] < targets):
            raise ValueError(f"{pair!r} is no link between {sources} and {targets} words")
    return frozenset((source, target) for source, target in pairs)


PANEL = Panel(
    "heads-links", label("Word links"), say("Which words belong together? Links read off attention, to be corrected: "
                                            "whether a head aligns depends on which token its row stands for."),
    say("Kobayashi et al. 2020"), alignment, paper="https://arxiv.org/abs/2004.10102", acts={"score": scored},
    controls=(Choice(label("Links from"), {SELECTED: label("the selected head"), LAYER: label("its layer's mean"),
                                           ALL: label("the mean of all heads")}, SELECTED),
              Choice(label("A row stands for"), {READ: label("the token it reads"),
                                                 PREDICTED: label("the token it predicts")}, READ)))
