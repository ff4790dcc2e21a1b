"""The panel "Embedding space": nearest neighbours of words, and sums of words such as king − man + woman."""

from __future__ import annotations

from itertools import chain

from attention_atlas.model.analysis.formulas import space
from attention_atlas.model.trace.translation import TranslationTrace
from attention_atlas.model.trace.words import SPACE
from attention_atlas.model.translator import Translator
from attention_atlas.viz.maps import labels
from attention_atlas.viz.panels.panel import Panel, Text
from attention_atlas.viz.panels.scene import Scene
from attention_atlas.viz.wire import blocks
from attention_atlas.viz.words import Words, say


def longest_piece(trace: TranslationTrace, translator: Translator) -> str:
    """Return the longest piece that begins a word of the translation, else of the source; "" without one."""
    for tokens in (trace.target_tokens, trace.source_tokens):
        words = [token.removeprefix(SPACE) for token in tokens if token.startswith(SPACE) and token != SPACE]
        if words:
            return max(words, key=len)
    return ""


def embedding_space(scene: Scene, word: str, sum_of: str) -> list[dict]:
    """Draw the neighbours of a word and of a sum of words, and the sums that this project tries."""
    translator = scene.translator
    analogies = space.analogies(translator)
    whole = [analogy for analogy in analogies if not analogy.split_words]
    holding = [analogy for analogy in whole if analogy.holds]
    expression = sum_of or (holding[0].text if holding else "")

    def rank(analogy: space.Analogy) -> dict | Words:
        words = say("rank {n}", n=analogy.rank)
        return words if analogy.split_words else blocks.verdict(analogy.holds, words)

    tried = [
        blocks.facts(
            blocks.fact(
                "Word analogies that work",
                f"{len(holding) / max(1, len(whole)):.0%}",
                "{n} of {total} whose words are single pieces",
                n=len(holding),
                total=len(whole),
            )
        ),
        blocks.columns(
            (say("Word analogy"), [blocks.token(analogy.text) for analogy in analogies]),
            (say("expected"), [blocks.token(analogy.expected) for analogy in analogies]),
            (say("nearest piece"), [blocks.token(labels.display(analogy.nearest.token)) for analogy in analogies]),
            (say("cosine"), [blocks.number(analogy.nearest.cosine) for analogy in analogies]),
            (say("works"), map(rank, analogies)),
            (say("of several pieces"), [", ".join(analogy.split_words) or "–" for analogy in analogies]),
            caption=say(
                "The words of an analogy are excluded from its answers. A word of several pieces is the mean "
                "of their vectors; its rank is where that mean would be, and proves nothing if it shares a "
                "piece with the analogy."
            ),
        ),
    ]
    if not analogies:
        tried = [blocks.paragraph("None of our analogies is in this model’s languages: type your own.")]
    return [
        blocks.formula("cos(a, b) = a·b / (|a| |b|)", say("of rows of the output embedding")),
        blocks.row(*(_neighbours(translator, text) for text in (word, expression) if text), blocks.stack(*tried)),
    ]


def _neighbours(translator: Translator, text: str) -> dict:
    """Return the nearest pieces to a word or a sum of words, and the rank of what it should equal."""
    summands, expected = space.parse_sum(text)
    vector, ids = space.sum_words(translator, summands)
    (row,) = space.cosines(translator, vector[None], [[*chain.from_iterable(ids)]])
    expression = "".join(f" {'+' if sign > 0 else '−'} {word}" for sign, word in summands)[3:]
    expected_ids = space.word_ids(translator, expected) if expected else []
    size, spelled = len(translator.tokenizer), zip((*(word for _, word in summands), expected), (*ids, expected_ids))
    neighbours = space.nearest_pieces(translator, row)
    parts = [
        blocks.columns(
            (say("Piece"), [blocks.token(labels.display(neighbour.token)) for neighbour in neighbours]),
            (say("cosine"), [blocks.bar(max(0.0, n.cosine), blocks.compact(n.cosine)) for n in neighbours]),
            caption=say("The nearest to {sum} among {n} pieces.", sum=expression, n=size),
        ),
        *(
            blocks.note(
                "{word} consists of {n} pieces here ({pieces}); the mean of their vectors is used.",
                word=word,
                n=len(pieces),
                pieces=" ".join(map(labels.display, translator.tokenizer.tokens(pieces))),
            )
            for word, pieces in spelled
            if len(pieces) > 1
        ),
    ]
    if expected_ids:
        rank = blocks.compact(space.rank_of(translator, row, vector, expected_ids))
        parts.append(blocks.facts((say("Rank of {word}", word=expected), rank, say("of {n} pieces", n=size))))
    return blocks.stack(*parts)


PANEL = Panel(
    "space",
    "Embedding space",
    "Which words lie close together, and which relations have a direction? The model only learned to translate.",
    say("Paper, section {n}", n="3.4"),
    embedding_space,
    of_any_network=True,
    controls=(
        Text(say("A word"), known=longest_piece),
        Text(say("Word analogy (empty: the first that works)"), placeholder="king − man + woman = queen"),
    ),
    method=say("Which analogies work is computed, not chosen."),
)
