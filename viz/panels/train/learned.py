"""The panel "How this model learned": a few sentences ("probes"), measured at about twenty updates of the training.

A record is what the training stored after one of these updates: the translations, losses and attention maps of all
probes. model.training.history writes the records. Of a model without records the panel says so.
"""

from __future__ import annotations

from attention_atlas.model.trace.kinds import AttentionKind, Side
from attention_atlas.model.trace.translation import TranslationTrace
from attention_atlas.model.training import learned
from attention_atlas.model.training.history import NAME
from attention_atlas.model.training.learned import NEAR, Learned
from attention_atlas.model.translator import Translator
from attention_atlas.viz.figures.curves import plot_curves
from attention_atlas.viz.maps import labels
from attention_atlas.viz.panels.menus import HEAD, KIND, LAYER, resolve
from attention_atlas.viz.panels.panel import Panel, Slider
from attention_atlas.viz.panels.scene import Scene
from attention_atlas.viz.wire import blocks
from attention_atlas.viz.words import join, say

MAX_RECORDS = 48  # the end of the slider; a training run has about twenty records, a continued run adds its own

UNRECORDED = blocks.paragraph("This model's training was not recorded.")


def read_history(translator: Translator) -> Learned | None:
    """Return the recorded training of a model; None if it has none. Raises ValueError for a damaged file."""
    folder = translator.folder
    return None if folder is None or not (folder / NAME).is_file() else learned.read(folder)


def count_records(trace: TranslationTrace, translator: Translator) -> int:
    """Return the number of records of a translator's model; 0 if there is no readable history.

    It bounds a slider (Slider.of), which has no place for an error: the panel itself reports a damaged file.
    """
    try:
        history = read_history(translator)
    except ValueError:
        return 0
    return len(history.updates) if history else 0


SENTENCE = Slider(say("Recorded sentence"), 0, 6, 0, info=say("0: the first in this direction"))
RECORD = Slider(say("Record"), 1, MAX_RECORDS, 1, of=count_records)


def update_text(history: Learned, record: int) -> dict:
    """Return the text that names the update of a record (from 0)."""
    first, last = (int(history.updates[i]) for i in (0, -1))
    position = say(
        "Update {n}, record {at} of {all}, from update {first} to {last}.",
        n=int(history.updates[record]),
        at=record + 1,
        all=len(history.updates),
        first=first,
        last=last,
    )
    earlier = [say("What was learned before update {n} is not in these records.", n=first)] if first else []
    return blocks.text(join([position, *earlier], " "))


def replay(scene: Scene, sentence: int, kind: str, layer: int, head: int) -> list[dict]:
    """Draw every record of one probe and one head, as frames that the page plays.

    sentence           number of the probe, from 1; 0: the first in the direction of the scene, or the first of all if
                       none is in this direction
    kind, layer, head  of the head, from 1; "" and 0: as selected in the explorer
    """
    history = read_history(scene.translator)
    if history is None:
        return [UNRECORDED]
    attention, layer_index, head_index, _ = resolve(scene, kind, layer, head)
    if sentence:
        probe = min(sentence, len(history.probes)) - 1
    else:
        directions = [pair["direction"] for pair in history.probes]
        probe = directions.index(scene.trace.direction) if scene.trace.direction in directions else 0
    pair = history.probes[probe]
    return [
        blocks.cards(
            (say("Source"), pair["source"], say("sentence {n} of {all}", n=probe + 1, all=len(history.probes))),
            (say("Reference"), pair["reference"], say("a translation by a person")),
        ),
        *_replay_head(history, probe, attention, layer_index, head_index),
        blocks.figure(
            plot_curves(
                {say("this sentence"): history.loss[:, probe], say("mean of all"): history.loss.mean(1)},
                x=history.updates,
                x_title=say("update"),
                y_title=say("loss, nats per token"),
                logarithmic=True,
            ),
            height=260,
            label=say("Loss of the recorded sentences at each recorded update"),
        ),
    ]


def _replay_head(history: Learned, probe: int, kind: AttentionKind, layer: int, head: int) -> list[dict]:
    """Draw the maps of one head in every record, and how far they are from its last ones."""
    queries, keys = history.sides(kind, probe)
    next_tokens = () if kind.side is Side.ENCODER else history.sentences(probe)[1]
    names = {"rows": labels.pair_names(queries, next_tokens), "columns": [labels.display(token) for token in keys]}
    title = say("{kind}, layer {layer}, head {head}", **labels.place(kind, layer, head))
    maps, distances = history.maps(kind, probe), history.distances(kind, layer, head)
    settled = history.settled(kind, layer, head)  # the first record from which on all are within NEAR of the last
    last = len(history.updates) - 1

    def draw_map(record: int) -> dict:
        update = say("update {n}", n=int(history.updates[record]))
        return blocks.heatmap(maps[record, layer, head], update, signed=False, limit=1.0, **names)

    def draw_record(record: int) -> list[dict]:
        return [
            update_text(history, record),
            blocks.cards(
                (
                    say("Greedy translation"),
                    str(history.translations[record, probe]) or say("(nothing)"),
                    say("loss on the reference: {loss} nats per token", loss=f"{history.loss[record, probe]:.2f}"),
                )
            ),
            blocks.maps(draw_map(record), draw_map(last)),
            blocks.facts(
                blocks.fact(
                    "Distance at this update",
                    f"{distances[record]:.3f}",
                    "bits: mean Jensen-Shannon divergence from its final maps, over the rows of all sentences",
                )
            ),
        ]

    if settled == last:
        update = "–"
        about = say("at the second-to-last record, still more than {near} bits from its final maps", near=NEAR)
    else:
        update = blocks.compact(history.updates[settled])
        about = say("record {n}: within {near} bits of its final maps from there on", n=settled + 1, near=NEAR)
    return [
        blocks.stack(
            blocks.text(title), blocks.frames([draw_record(record) for record in range(last + 1)], say("Record"))
        ),
        blocks.facts((say("Final pattern from update"), update, about)),
        blocks.figure(
            plot_curves(
                {title: distances},
                x=history.updates[: len(distances)],
                x_title=say("update"),
                y_title=say("bits from its final maps"),
                logarithmic=True,
            ),
            height=220,
            label=say("Distance of the head's maps from its final maps, record by record"),
        ),
    ]


PANEL = Panel(
    "learned",
    "How this model learned",
    "Six sentences, recorded during training: play them to watch the loss, the translations and "
    "a head's pattern develop.",
    say("Paper, section {n}", n="5"),
    replay,
    controls=(SENTENCE, KIND, LAYER, HEAD),
    of_any_network=True,
)
