"""The embedding as a space: nearest neighbours, and sums of words."""

from __future__ import annotations

from model.analysis.formulas import space
from model.trace.tokens import is_symbol
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
    """Of the translation, which is written in the vocabulary that is shown here."""
    pieces = [token.replace(SPACE, "") for token in trace.target_tokens if not is_symbol(token)]
    return max(pieces, key=len, default="")


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
    return [
        blocks.formula("cos(a, b) = a·b / (|a| |b|)", say("of the rows of the embedding that words are written with")),
        blocks.row(*parts),
        blocks.table(
            (say("Sum of words"), say("hoped for"), say("nearest piece"), say("cosine"), say("holds")),
            rows,
            caption=say(
                "{n} of {total} such sums hold in this model's table; all that its vocabulary has as "
                "single "
                "pieces were tried. The words of a sum are left out of its answers.",
                n=len(holding),
                total=len(found),
            ),
        )
        if found
        else blocks.text(say("This vocabulary has no sum of ours in single pieces: type one of your own.")),
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
        "Nobody told the model what words mean; it only learned to translate. Yet what is used alike lies close "
        "together, "
        "and some relations have a direction of their own. Which ones hold is computed, not chosen."
    ),
    say("Paper, section {n}", n="3.4"),
    embedding_space,
    controls=(
        Text(say("A word that is one piece"), known=longest_piece),
        Text(say("A sum of words (empty: the first that holds)"), placeholder="father − man + woman"),
    ),
)
