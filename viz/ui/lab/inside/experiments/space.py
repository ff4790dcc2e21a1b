"""The embedding as a space: nearest neighbours, and sums of words."""

from __future__ import annotations

from model.analysis.formulas import space
from model.trace.translation import TranslationTrace
from model.trace.words import SPACE
from model.translator import Translator
from viz.maps import labels
from viz.ui.desk.scene import Scene
from viz.ui.lab.controls import Text
from viz.ui.lab.panel import Panel
from viz.wire import blocks
from viz.words import say


def longest_piece(trace: TranslationTrace, translator: Translator) -> str:
    """Of the translation's words, which are written in the vocabulary that is shown here."""
    for tokens in (trace.target_tokens, trace.source_tokens):
        words = [token.removeprefix(SPACE) for token in tokens if token.startswith(SPACE) and token != SPACE]
        if words:
            return max(words, key=len)
    return ""


def embedding_space(scene: Scene, word: str, sum_of: str) -> list[dict]:
    translator = scene.translator
    found = space.analogies(translator)
    holding = [analogy for analogy in found if analogy.holds]
    asked = sum_of or (holding[0].text if holding else "")
    parts = [_neighbours(translator, text) for text in (word, asked) if text]
    rows = [
        [
            *map(blocks.token, (analogy.text, analogy.expected, labels.display(analogy.found.token))),
            blocks.number(analogy.found.cosine),
            blocks.verdict(analogy.holds, say("rank {n}", n=_rank(analogy.rank))),
        ]
        for analogy in found
    ]
    if found:
        tried = [
            blocks.facts(
                (
                    say("Sums of words that hold"),
                    f"{len(holding) / len(found):.0%}",
                    say("{n} of {total}, of all whose words are single pieces", n=len(holding), total=len(found)),
                )
            ),
            blocks.table(
                (say("Sum of words"), say("expected"), say("nearest piece"), say("cosine"), say("holds")),
                rows,
                caption=say("The words of a sum are left out of its answers."),
            ),
        ]
    else:
        tried = [blocks.text(say("None of our sums has only single pieces in this vocabulary: type one of your own."))]
    return [
        blocks.formula("cos(a, b) = a·b / (|a| |b|)", say("of the rows of the embedding that words are written with")),
        blocks.row(*parts, blocks.stack(*tried)),
    ]


def _neighbours(translator: Translator, text: str) -> dict:
    summands = space.terms(text)
    vector, ids = space.total(translator, summands)
    (found,) = space.nearest(translator, vector[None], [ids])
    shown = "".join(f" {'+' if sign > 0 else '−'} {word}" for sign, word in summands)[3:]
    return blocks.table(
        (say("Piece"), say("cosine")),
        [
            [
                blocks.token(labels.display(neighbour.token)),
                blocks.bar(max(0.0, neighbour.cosine), blocks.compact(neighbour.cosine)),
            ]
            for neighbour in found
        ],
        caption=say("The nearest to {sum} of {n} pieces.", sum=shown, n=len(translator.tokenizer)),
    )


def _rank(rank: int) -> str:
    return str(rank) if rank <= space.RANKS else f"> {space.RANKS}"


PANEL = Panel(
    "space",
    say("Embedding space"),
    say(
        "Nobody told the model what words mean; it only learned to translate. Yet words that are used alike lie "
        "close together, and some relations have a direction of their own. Which ones hold is computed, not chosen."
    ),
    say("Paper, section {n}", n="3.4"),
    embedding_space,
    controls=(
        Text(say("A word that is one piece"), known=longest_piece),
        Text(say("A sum of words (empty: the first that holds)"), placeholder="father − man + woman"),
    ),
)
