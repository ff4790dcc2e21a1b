"""The panel that takes heads away for as long as the translation stays: how few are enough for this sentence?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from attention_atlas.model.analysis.why.experiments.smallest import shrinking
from attention_atlas.model.analysis.why.experiments.smallest import whole as whole_translation
from attention_atlas.model.analysis.why.passes.ablations import all_heads
from attention_atlas.model.trace.why.effects import Replacement, SmallestSet, sets_table
from attention_atlas.model.trace.why.evidence import to_jsonable
from attention_atlas.viz.export.explained import Explained
from attention_atlas.viz.panels.downloads import EXPORT, exports, file, translation_fields
from attention_atlas.viz.panels.panel import Choice, Panel, prepare_means
from attention_atlas.viz.panels.scene import Scene
from attention_atlas.viz.panels.why.heads import named, translated, voices_for
from attention_atlas.viz.wire import blocks
from attention_atlas.viz.wire.fields import each, whole
from attention_atlas.viz.wire.file import File
from attention_atlas.viz.wire.heads import sets_block
from attention_atlas.viz.words import Words, say, say_plural

ORDERS = (None, 1, 2)  # seeds: the first order is the slopes' own
INSTEAD = {Replacement.ZERO.value: say("zeros"), Replacement.MEAN.value: say("its average")}


def searched(scene: Scene, instead: str) -> Iterator[list[dict]]:
    """Three orders, one after the other, each told as it shrinks."""
    yield from prepare_means(scene) if instead == Replacement.MEAN.value else ()
    found = whole_translation(scene.case, scene.translator, scene.trace)  # all rows of it, not the pinned one alone
    voices, notes = voices_for(scene, found.case, instead)
    sets: list[SmallestSet] = []
    for number, seed in enumerate(ORDERS, start=1):
        for step in shrinking(found, voices.draws[0], seed=seed):
            yield [
                *notes,
                blocks.paragraph(
                    "Order {n} of {all}: {left} of {heads} heads are left, {tried} sets of heads tried.",
                    n=number,
                    all=len(ORDERS),
                    left=len(step.kept),
                    heads=step.total,
                    tried=step.passes,
                ),
                *_shown(scene, sets),
            ]
        sets.append(step)
    silent = instead == Replacement.ZERO.value  # only a set whose others are silent can be run again by every tab
    yield [
        *notes,
        *_shown(scene, sets),
        exports({"sets": to_jsonable(sets)}),
        *([_translate_alone(scene, sets)] if silent else []),
    ]


def _shown(scene: Scene, sets: list[SmallestSet]) -> list[dict]:
    if not sets:
        return []
    facts = [
        (say("Order {n}", n=number), say("{n} of {all}", n=len(one.kept), all=one.total), _verified(one))
        for number, one in enumerate(sets, start=1)
    ]
    sizes = [len(one.kept) for one in sets]
    fewest, most = min(sizes), max(sizes)
    survives = (
        blocks.paragraph("This translation survives on {n} of {all} heads.", n=fewest, all=sets[0].total)
        if fewest == most
        else blocks.paragraph(
            "This translation survives on {n} of {all} heads; other orders end at up to {most}.",
            n=fewest,
            all=sets[0].total,
            most=most,
        )
    )
    model = scene.translator.model
    return [survives, blocks.facts(*facts), sets_block("", sets, model.num_layers, model.num_heads)]


def _verified(one: SmallestSet) -> Words:
    if one.verified:
        return say(
            "verified: decoding again gives the same words; removing any one more changes "
            "the translation ({n} sets tried)",
            n=one.passes,
        )
    return say("decoding again gives different words: a tie decides somewhere ({n} sets tried)", n=one.passes)


def _translate_alone(scene: Scene, sets: list[SmallestSet]) -> dict:
    """A button that translates with the smallest set alone."""
    kept = min((one.kept for one in sets), key=len)
    off = [[head[0].value, *head[1:]] for head in all_heads(scene.case) if head not in kept]
    return blocks.translate(
        say_plural("Translate with this {n} head alone", "Translate with these {n} heads alone", n=len(kept)), heads=off
    )


def as_file(scene: Scene, data: Mapping[str, object], instead: str) -> File:
    """The sets that the page shows, as a file: to search for them again takes seconds."""

    def read(one: object) -> SmallestSet:
        if not isinstance(one, Mapping):
            raise TypeError("a set of heads is an object")
        kept = frozenset(named(scene, {"heads": one.get("kept")}))
        return SmallestSet(kept, whole(one, "heads"), whole(one, "tried"), one.get("verified") is True)

    sets = each(data, "sets", read)
    if not sets:
        raise ValueError("there is no set of heads to write down")
    model = scene.translator.model
    found = sets_table(sets, Replacement(instead), model.num_layers, model.num_heads)
    return file(data, Explained(to_jsonable({**translation_fields(scene), **found})), "smallest-set")


PANEL = Panel(
    "why-smallest",
    say("Smallest set"),
    say(
        "Heads are taken away for as long as every word of the translation stays the most probable one. What is left "
        "is enough for this sentence, and no single head of it can go; a smaller set may exist."
    ),
    say("Voita et al. 2019; Zeller and Hildebrandt 2002"),
    searched,
    controls=(Choice(say("Replace its output with"), INSTEAD, Replacement.ZERO.value),),
    actions={EXPORT: as_file},
    translate=translated,
    stops=True,
)
