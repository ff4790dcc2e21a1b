"""The panel "How this model learned": recorded sentences at about twenty updates of the training."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

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

MOST = 48  # largest record of the slider; a run records about twenty, a continued run adds its own

UNRECORDED = blocks.paragraph("How this model learned was not recorded.")


def read_history(scene: Scene) -> Learned | None:
    """Return the recorded training of the model, or None."""
    return learned.read(scene.translator.folder) if has_history(scene.translator) else None


def has_history(translator: Translator) -> bool:
    """Return whether the model's folder has a recorded training."""
    return translator.folder is not None and (translator.folder / NAME).is_file()


@lru_cache(maxsize=64)
def _count(folder: Path, digest: str) -> int:
    return len(learned.read(folder).updates)


def records(trace: TranslationTrace, translator: Translator) -> int:
    """Return the number of records of a sentence's model; 0 if there is no readable history."""
    try:
        return _count(translator.folder, translator.digest) if has_history(translator) else 0
    except ValueError:
        return 0


SENTENCE = Slider(say("Recorded sentence"), 0, 6, 0, info=say("0: the first in this direction"))
RECORD = Slider(say("Record"), 1, MOST, 1, of=records)


def update_text(history: Learned, record: int) -> dict:
    """Return the text that names the update of a record (from 0)."""
    first, last = (int(history.updates[i]) for i in (0, -1))
    at = say(
        "Update {n}, record {at} of {all}, from update {first} to {last}.",
        n=int(history.updates[record]),
        at=record + 1,
        all=len(history.updates),
        first=first,
        last=last,
    )
    earlier = [say("What was learned before update {n} is not in these records.", n=first)] if first else []
    return blocks.text(join([at, *earlier], " "))


def replay(scene: Scene, sentence: int, kind: str, layer: int, head: int) -> list[dict]:
    """Replay the records of one sentence (from 1; 0 for the first in this direction) and one head."""
    history = read_history(scene)
    if history is None:
        return [UNRECORDED]
    attention, at_layer, at_head, _ = resolve(scene, kind, layer, head)
    probe = min(sentence, len(history.probes)) - 1
    if not sentence:  # the first in this direction, else the first of all
        directions = [probe["direction"] for probe in history.probes]
        probe = directions.index(scene.trace.direction) if scene.trace.direction in directions else 0
    pair = history.probes[probe]
    return [
        blocks.cards(
            (say("It read"), pair["source"], say("sentence {n} of {all}", n=probe + 1, all=len(history.probes))),
            (say("Reference"), pair["reference"], say("a translation by a person")),
        ),
        *_head(history, probe, attention, at_layer, at_head),
        blocks.figure(
            plot_curves(
                {say("this sentence"): history.loss[:, probe], say("mean of all"): history.loss.mean(1)},
                x=history.updates,
                x_title=say("update"),
                y_title=say("loss, nats a token"),
                logarithmic=True,
            ),
            height=260,
            label=say("Loss of the recorded sentences at each recorded update"),
        ),
    ]


def _head(history: Learned, probe: int, kind: AttentionKind, layer: int, head: int) -> list[dict]:
    read, keys = history.sides(kind, probe)
    written = () if kind.side is Side.ENCODER else history.sentences(probe)[1]
    names = {"rows": labels.pair_names(read, written), "columns": [labels.display(token) for token in keys]}
    title = say("{kind}, layer {layer}, head {head}", **labels.place(kind, layer, head))
    maps, distances = history.maps(kind, probe), history.distances(kind, layer, head)
    settled = history.settled(kind, layer, head)
    last = len(history.updates) - 1

    def drawn(record: int) -> dict:
        update = say("update {n}", n=int(history.updates[record]))
        return blocks.heatmap(maps[record, layer, head], update, signed=False, limit=1.0, **names)

    def record(at: int) -> list[dict]:
        return [
            update_text(history, at),
            blocks.cards(
                (
                    say("It wrote, greedily"),
                    str(history.translations[at, probe]) or say("(nothing)"),
                    say("loss on the reference: {loss} nats a token", loss=f"{history.loss[at, probe]:.2f}"),
                )
            ),
            blocks.maps(drawn(at), drawn(last)),
            blocks.facts(
                (
                    say("Distance at this update"),
                    f"{distances[at]:.3f}",
                    say("bits: mean Jensen-Shannon divergence to its last maps, over the rows of all sentences"),
                )
            ),
        ]

    form = (
        blocks.compact(int(history.updates[settled])),
        say("record {n}: from there on within {near} bits of its last maps", n=settled + 1, near=NEAR),
    )
    if settled == last:
        form = ("–", say("one record before the last it was still more than {near} bits from its last maps", near=NEAR))
    return [
        blocks.text(title),
        blocks.frames([record(at) for at in range(last + 1)], say("Record")),
        blocks.facts((say("It has its final form from update"), *form)),
        blocks.figure(
            plot_curves(
                {title: distances},
                x=history.updates[: len(distances)],
                x_title=say("update"),
                y_title=say("bits to its last maps"),
                logarithmic=True,
            ),
            height=220,
            label=say("How far the head's maps are from its last ones, record by record"),
        ),
    ]


PANEL = Panel(
    "learned",
    say("How this model learned"),
    say(
        "Six sentences were recorded while this model was trained. Play the records and see how its loss, its "
        "translations and a head's pattern developed."
    ),
    say("Paper, section {n}", n="5"),
    replay,
    controls=(SENTENCE, KIND, LAYER, HEAD),
    of_any_network=True,
)
