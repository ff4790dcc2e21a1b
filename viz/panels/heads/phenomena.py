"""The panel "Phenomena": how much each head contributes to right answers on each kind of contrastive pair."""

from __future__ import annotations

import numpy as np

from attention_atlas.model.trace.kinds import AttentionKind
from attention_atlas.viz.maps.labels import KIND_TITLES
from attention_atlas.viz.panels.heads.match import OF
from attention_atlas.viz.panels.heads.survey import draw_head_map
from attention_atlas.viz.panels.panel import Need, Panel
from attention_atlas.viz.panels.scene import Scene
from attention_atlas.viz.wire import blocks
from attention_atlas.viz.words import join, say

PHENOMENA = {
    "agreement in noun phrases": say("agreement in noun phrases"),
    "agreement of subject and verb": say("agreement of subject and verb"),
    "polarity": say("polarity"),
    "omission": say("omission"),
    "genitive": say("genitive"),
    "tense": say("tense"),
    "pronoun": say("pronoun"),
}


def phenomena(scene: Scene, kind: str) -> list[dict]:
    results = scene.trust.phenomena
    losses = {name: np.array(result["heads"][kind]) for name, result in results.items() if kind in result["heads"]}
    limit = max((float(np.abs(values).max()) for values in losses.values()), default=1.0)
    pictures = [
        draw_head_map(values, PHENOMENA.get(name, name), limit=limit, signed=True) for name, values in losses.items()
    ]
    rows = [
        [PHENOMENA.get(name, name), str(result["pairs"]), blocks.bar(result["sum"]), blocks.bar(result["mean"])]
        for name, result in results.items()
    ]
    unit = say(
        "How many nats of its lead over a wrong translation the right one loses when the head's "
        "output is replaced by its mean."
    )
    return [
        blocks.text(join((KIND_TITLES[AttentionKind(kind)], unit), " · "), tone="note"),
        blocks.maps(*pictures),
        blocks.table(
            blocks.headings("Phenomenon", "pairs", "correct by sum", "correct by mean"),
            rows,
            caption=say("Sums of log-probabilities favour short translations, so omissions are judged by the mean."),
        ),
    ]


PANEL = Panel(
    "heads-phenomena",
    "Phenomena",
    "Which heads, when switched off, break agreement, and which negation?",
    say("Sennrich 2017"),
    phenomena,
    controls=(OF,),
    needs=(
        Need(
            lambda scene: bool(scene.trust.phenomena),
            say("No contrastive pairs have been measured for this direction."),
        ),
    ),
    paper="https://arxiv.org/abs/1612.04629",
)
