"""The panel "Scoring": six scoring functions on the same query and keys."""

from __future__ import annotations

from attention_atlas.model.analysis.formulas.scoring import Scoring, compare_scorings
from attention_atlas.viz.maps.patterns import entropy_bits
from attention_atlas.viz.panels.menus import HEAD, KIND, LAYER, QUERY, dissect_query
from attention_atlas.viz.panels.panel import MASKED, SCALED, Panel
from attention_atlas.viz.panels.scene import Scene
from attention_atlas.viz.wire import blocks
from attention_atlas.viz.words import say


def scoring(scene: Scene, kind: str, layer: int, head: int, query: int) -> list[dict]:
    """Draw the weights that each function gives at one query, and its scores."""
    stages, title, keys = dissect_query(scene, kind, layer, head, query)
    scorings = compare_scorings(stages)
    charts = (
        blocks.chart(
            scoring.name,
            [(key, [weight]) for key, weight in zip(keys, scoring.weights)],
            note=say("{formula} · {bits} bits", formula=scoring.formula, bits=f"{entropy_bits(scoring.weights):.2f}"),
            marked=scoring.trained,
        )
        for scoring in scorings
    )

    def scores(scoring: Scoring) -> list:
        pairs = zip(scoring.scores, stages.allowed)
        return [blocks.number(score) if allowed else say("masked") for score, allowed in pairs]

    trained = {True: say("trained"), False: say("illustration only: not trained this way")}
    return [
        blocks.stack(blocks.text(title), blocks.bars(*charts)),
        blocks.folded(
            say("Scores, and where each function is from"),
            blocks.columns(
                (say("Key"), map(blocks.token, keys)), *((scoring.name, scores(scoring)) for scoring in scorings)
            ),
            blocks.table(
                blocks.headings("Function", "score", "source", "in this model"),
                [[scoring.name, scoring.formula, scoring.source, trained[scoring.trained]] for scoring in scorings],
                marked=(0,),
            ),
        ),
        blocks.note(
            "General and additive attention have weights of their own (W, U, v). Here these are random "
            "with a fixed seed, so their scores show only the shape of the computation. A cosine lies "
            "between −1 and 1, so its weights can never be far apart. The Gaussian kernel's width² is "
            "√d_k, which makes it the scaled dot product minus |k|² / (2√d_k): it favours short keys."
        ),
    ]


PANEL = Panel(
    "scoring",
    "Scoring",
    "Six ways to score a query against the same keys. How sharply would each choose?",
    say("Paper, section {n}", n="3.2.1"),
    scoring,
    controls=(KIND, LAYER, HEAD, QUERY),
    needs=(MASKED, SCALED),
    method=say("Only the scaled dot product was trained here."),
)
