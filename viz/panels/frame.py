"""What stands above the panels of the tab "Why": the pinned token, its contrast, the answer in one measured sentence.

A pin is a row of the decoder, so it is the explorer's pinned query as well: either follows the other
(viz/web/store/question.js).
"""

from __future__ import annotations

from collections.abc import Mapping

from attention_atlas.model.analysis.why import pinned
from attention_atlas.model.analysis.why.methods import occlusion
from attention_atlas.model.trace.language import Refusal
from attention_atlas.viz.panels.scene import Scene, wanted_by
from attention_atlas.viz.wire.address import named
from attention_atlas.viz.wire.payload import key_of
from attention_atlas.viz.wire.question import exact, headline, picture, question_payload


def asked_about(scene: Scene, data: Mapping[str, object]) -> dict:
    """Return {asked}, the question for the page to keep. data: see wanted_by(). ValueError, in words, where there is
    none."""
    question = wanted_by(data, scene.trace, scene.asked)
    question.question(scene.translator, scene.trace)  # raises
    return {"asked": question.to_plain()}


def answered(scene: Scene) -> dict:
    """What the page draws: the translation's tokens, the question, and the headline; in its place, in words, why it
    cannot be had. most: how many tokens, from the first on, can be asked about: those within the limit; of another
    network, none. ValueError, in words, for what cannot be asked."""
    trace, question = scene.trace, scene.question
    most = scene.askable
    found = {
        "asked": scene.asked.fitted(trace).to_plain(),
        "about": key_of(trace),
        **named(trace, trace.decoding),
        **question_payload(trace, question, pinned.contrasts(trace, question.step)),
        "most": most,
        "limit": len(trace.source_ids) + most,
    }
    try:
        case = scene.case
    except Refusal as error:
        return {**found, "refused": error.words, "most": most if question.step >= most else 0}
    lost = occlusion.losses(case)
    tokens = scene.translator.tokenizer.tokens(lost.ids.ravel().tolist())
    return {
        **found,
        "headline": headline(trace, question, lost, case.columns),
        "exact": exact(lost, case.columns),
        "picture": picture(question, lost, case.columns, tokens),
    }
