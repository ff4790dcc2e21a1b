"""The panel "Steering": the difference between two sentences in the encoder, added to the sentence's stream."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from attention_atlas.model.analysis.steering import translate_with_vector
from attention_atlas.model.trace.directions import parse_direction
from attention_atlas.model.trace.edits import Add, SteeringVector
from attention_atlas.model.trace.translation import TranslationTrace
from attention_atlas.model.translator import Translator
from attention_atlas.viz.panels.panel import Panel, Slider, Text
from attention_atlas.viz.panels.scene import Scene
from attention_atlas.viz.wire import blocks, fields
from attention_atlas.viz.wire.address import link_fields
from attention_atlas.viz.words import Words, say

NAME, PERCENT = "steer", 100
PAIRS = {  # the initial texts: towards, away from
    "de": ("Ich trinke einen Tee.", "Ich trinke ein Bier."),
    "en": ("I am drinking tea.", "I am drinking beer."),
    "fr": ("Je bois du thé.", "Je bois de la bière."),
}

LAYER = Slider(say("After layer"), 1, lambda config: config.num_encoder_layers, 99, name="after")
STRENGTH = Slider(say("Strength in %"), -500, 500, 300, step=25, name="strength")


def steering(scene: Scene, towards: str, away: str, layer: int, strength: int) -> list[dict]:
    """Draw the plain and the steered translation, the size of the added vector, and a link to this recipe."""
    if not towards or not away:
        return [blocks.note("Type two sentences: the direction is the difference between them.")]
    steered_trace = _steered(scene, towards, away, layer, strength)
    vector = steered_trace.interventions.edits[-1][1].value.array
    stream = scene.output.encoder_records[layer - 1].after[0]
    recipe = {"towards": towards, "away": away, "after": layer, "strength": strength}
    return [
        compare_translations(scene.trace, say("Steered"), steered_trace),
        blocks.facts(
            blocks.fact(
                "Length of what is added",
                float(np.linalg.norm(vector)) * abs(strength) / PERCENT,
                "to every token of the source",
            ),
            blocks.fact("Mean length of the residual stream there", float(stream.norm(dim=-1).mean()), "for scale"),
        ),
        blocks.translate(say("Show on every tab"), **recipe),
        {
            "type": "link",
            "text": say("Link to this recipe"),
            "about": link_fields(scene.trace, scene.trace.decoding),
            "fields": {"tab": "inside", "panel": NAME, **recipe},
        },
    ]


def compare_translations(plain: TranslationTrace, title: Words, steered: TranslationTrace) -> dict:
    """Draw a translation as it is and with a vector added, and say whether it changes. title: of the second."""
    same = steered.target_ids == plain.target_ids
    effect = say("The translation stays the same.") if same else say("The translation changes.")
    return blocks.cards(
        (say("As it is"), plain.translation, plain.source_text),
        (title, steered.translation or say("(nothing)"), effect),
    )


def translate_steered(scene: Scene, data: Mapping[str, object]) -> TranslationTrace:
    """Translate with the vector added, for every tab."""
    config = scene.translator.config
    layer, strength = (slider.coerce(fields.read_integer(data, slider.name), config) for slider in (LAYER, STRENGTH))
    return _steered(scene, fields.read_text(data, "towards"), fields.read_text(data, "away"), layer, strength)


def _steered(scene: Scene, towards: str, away: str, layer: int, strength: int) -> TranslationTrace:
    return translate_with(scene, SteeringVector(towards, away, scene.trace.direction), layer - 1, strength)


def translate_with(scene: Scene, vector: np.ndarray | SteeringVector, layer: int, strength: int) -> TranslationTrace:
    """Translate with a vector added to every token after an encoder layer (from 0). strength: in percent."""
    place = f"encoder.{layer}.resid_post"
    return translate_with_vector(scene.translator, scene.trace, place, Add(vector, strength / PERCENT))


def _initial_text(which: int) -> Callable[[TranslationTrace, Translator], str]:
    return lambda trace, translator: PAIRS.get(parse_direction(trace.direction)[0], ("", ""))[which]


PANEL = Panel(
    NAME,
    "Steering",
    "Add the difference between two other sentences to yours: how does the translation change?",
    say("Turner et al. 2023"),
    steering,
    controls=(
        Text(say("Towards"), known=_initial_text(0), scale=2, name="towards"),
        Text(say("Away from"), known=_initial_text(1), scale=2, name="away"),
        LAYER,
        STRENGTH,
    ),
    translate=translate_steered,
    paper="https://arxiv.org/abs/2308.10248",
    method=say(
        "The direction is the difference between the two sentences in the encoder, averaged over their "
        "tokens. It is added to every token of your sentence after one layer."
    ),
)
