"""The panel "Units": sentences that activate single neurons or dictionary units, and the effect of adding one."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from attention_atlas.model.analysis.sentences import has_sentences, source_sentences
from attention_atlas.model.analysis.units.dictionary import StoredDictionary, load_stored
from attention_atlas.model.analysis.units.units import Units
from attention_atlas.model.trace.language import Refusal
from attention_atlas.model.trace.translation import TranslationTrace
from attention_atlas.model.translator import Translator
from attention_atlas.viz.maps import labels
from attention_atlas.viz.panels.inside.steer import compare_translations, translate_with
from attention_atlas.viz.panels.panel import Choice, Need, Panel, Slider
from attention_atlas.viz.panels.scene import Scene
from attention_atlas.viz.wire import blocks, fields
from attention_atlas.viz.words import say

NAME = "heads-units"
NEURONS, DICTIONARY = "neurons", "dictionary"
READ = 200  # sentences that are searched
SHOWN, SENTENCES = 12, 3  # units in the table, and sentences for each
MOST = 8192  # end of the slider of units
KINDS = {NEURONS: say("feed-forward neurons"), DICTIONARY: say("sparse dictionary of the residual stream")}
QUALITY = {DICTIONARY: say("this dictionary"), "random": say("as many random directions"), NEURONS: say("neurons")}
LAYER = Slider(say("Encoder layer"), 1, lambda config: config.num_encoder_layers, 3, name="layer")
KIND = Choice(say("Units"), KINDS, NEURONS, name="units")


def _stored(translator: Translator) -> StoredDictionary | None:
    return load_stored(translator.folder, translator.digest, translator.config.d_model)


def _count(trace: TranslationTrace, translator: Translator) -> int:
    """Return the number of units in a layer or in the dictionary, whichever has more."""
    fitted = _stored(translator)
    return min(MOST, max(getattr(translator.config, "d_feedforward", 1), len(fitted.dictionary.bias) if fitted else 0))


UNIT = Slider(say("Unit"), 1, MOST, 1, name="unit", of=_count)
STRENGTH = Slider(say("Strength in %"), -500, 500, 0, step=25, name="strength")


def units(scene: Scene, layer: int, kind: str, unit: int, strength: int) -> list[dict]:
    """Draw the units that this sentence activates most, and the translation with one unit added."""
    try:
        read = _units(scene, layer, kind)
    except Refusal as error:
        return [blocks.text(error.words, tone="note")]
    if scene.result(read.peaks) is None:
        return [
            blocks.work(
                read.peaks.key,
                say("Read {n} sentences", n=READ),
                "To find out, the model reads this project's own sentences once per layer.",
            )
        ]
    qualities = _qualities(scene) if read.dictionary else []
    return [*_steering(scene, read, unit, strength), _table(scene, read), *qualities]


def _units(scene: Scene, layer: int, kind: str) -> Units:
    """Return the units of a layer; a dictionary has a layer of its own. A Refusal without a dictionary."""
    translator, direction = scene.translator, scene.trace.direction
    texts = source_sentences(direction)[:READ]
    texts = tuple(text for text in texts if translator.fits(text, direction))
    if kind == NEURONS:
        return Units(translator, direction, layer - 1, texts)
    fitted = _stored(scene.translator)
    if fitted is None:
        raise Refusal("No dictionary was trained for this model.")
    return Units(translator, direction, fitted.layer, texts, fitted.dictionary)


def _table(scene: Scene, read: Units) -> dict:
    """Return a table of the units that this sentence activates most, with example sentences for each."""
    values = read.activations(scene.trace.source_ids, scene.trace.interventions)
    peaks, places = scene.result(read.peaks)
    usual = np.maximum(peaks.max(0), 1e-6)  # activations are compared with each unit's own maximum
    strongest = np.argsort(-(values.max(0) / usual), kind="stable")[:SHOWN]
    kind, rows = DICTIONARY if read.dictionary else NEURONS, []
    for number in strongest.tolist():
        token = scene.trace.source_tokens[int(values[:, number].argmax())]
        best = np.argsort(-peaks[:, number])[:SENTENCES].tolist()
        link = blocks.to_panel("more", NAME, layer=read.layer + 1, units=kind, unit=number + 1)
        rows.append(
            [
                blocks.button(str(number + 1), link),
                blocks.token(labels.display(token)),
                blocks.bar(min(1.0, float(values[:, number].max() / usual[number]))),
                *(_marked(read, line, int(places[line, number])) for line in best),
            ]
        )
    caption = say(
        "Measured. Of {n} units, those that this sentence activates most, with the sentences of this "
        "project that activate each one most (the word in brackets).",
        n=values.shape[1],
    )
    columns = (say("unit"), say("active at"), say("share of its maximum"), *(str(n + 1) for n in range(SENTENCES)))
    return blocks.table(columns, rows, caption=caption)


def _marked(read: Units, line: int, place: int) -> str:
    """Return a sentence with the word at a token in brackets."""
    text = read.texts[line]
    tokens = read.translator.tokenizer.source_tokens(read.translator.encode(text, read.direction), text)
    return " ".join(f"[{word}]" if place in group else word for group, word in labels.words(tokens))


def _steering(scene: Scene, read: Units, unit: int, strength: int) -> list[dict]:
    """Draw the translation as it is and with a unit added."""
    if not strength:
        return [
            blocks.note(
                "Choose a unit by its number, then set the strength: the unit's direction is added to every token."
            )
        ]
    steered_trace = _translate_with(scene, read, unit, strength)
    kind = DICTIONARY if read.dictionary else NEURONS
    recipe = {"layer": read.layer + 1, "units": kind, "unit": unit, "strength": strength}
    return [
        compare_translations(scene.trace, say("With unit {n}", n=str(unit)), steered_trace),
        blocks.translate(say("Show on every tab"), **recipe),
    ]


def _translate_with(scene: Scene, read: Units, unit: int, strength: int) -> TranslationTrace:
    """Translate the sentence with a unit's direction added after its layer. A Refusal for an unknown unit.

    strength: in percent of the unit's mean activation in its strongest sentences.
    """
    written = read.directions
    if unit > len(written):
        raise Refusal("There is no unit {unit}: this layer has {n} units.", n=len(written), unit=str(unit))
    peaks, _ = read.peaks.result()
    usual = float(np.sort(peaks[:, unit - 1])[-SENTENCES:].mean())
    vector = (written[unit - 1] * usual).float().cpu().numpy()
    return translate_with(scene, vector, read.layer, strength)


def translate_with_unit(scene: Scene, data: Mapping[str, object]) -> TranslationTrace:
    """Translate with the unit added, for every tab."""
    config = scene.translator.config
    sliders = (LAYER, UNIT, STRENGTH)
    layer, unit, strength = (slider.coerce(fields.read_integer(data, slider.name), config) for slider in sliders)
    read = _units(scene, layer, KIND.coerce(fields.read_text(data, KIND.name), config))
    return _translate_with(scene, read, unit, strength)


def _qualities(scene: Scene) -> list[dict]:
    """Return a table of how well the dictionary rebuilds the stream, against random directions and neurons."""
    fitted = _stored(scene.translator)
    rows = [
        [
            QUALITY[name],
            *(
                blocks.bar(min(1.0, max(0.0, share)), blocks.with_minus_sign(f"{100 * share:.0f} %"))
                for share in (quality.recovered, quality.explained)
            ),
            blocks.number(quality.active),
            f"{100 * quality.dead:.1f} %",
        ]
        for name, quality in fitted.qualities.items()
    ]
    columns = ("", say("loss recovered"), say("variance explained"), say("active at once (L0)"), say("dead"))
    caption = say(
        "Reconstruction quality: the residual stream after layer {layer}, rebuilt from this many "
        "units, on held-out sentences. Loss recovered is 0 for the stream's mean and 1 for the "
        "stream itself.",
        layer=fitted.layer + 1,
    )
    return [blocks.table(columns, rows, caption=caption)]


PANEL = Panel(
    NAME,
    "Units",
    "What activates a single neuron, or a unit of a sparse dictionary?",
    say("Gao et al. 2024"),
    units,
    controls=(LAYER, KIND, UNIT, STRENGTH),
    needs=(
        Need(
            lambda scene: has_sentences(scene.trace.direction),
            say("There are no example sentences in this language."),
        ),
    ),
    translate=translate_with_unit,
    paper="https://arxiv.org/abs/2406.04093",
    method=say(
        "Check whether a unit's sentences have a meaning in common, then turn the unit up and read the translation."
    ),
)
