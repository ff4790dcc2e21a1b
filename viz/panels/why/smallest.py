"""The panel "Smallest set": heads are removed as long as the translation stays the same, in several orders."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from attention_atlas.model.analysis.why.experiments.heads import list_heads
from attention_atlas.model.analysis.why.experiments.smallest import open_translation, shrink
from attention_atlas.model.trace.why.effects import Replacement, SmallestSet, sets_table
from attention_atlas.model.trace.why.evidence import to_jsonable
from attention_atlas.viz.panels.downloads import EXPORT, exports, file, translation_fields
from attention_atlas.viz.panels.panel import Choice, Panel
from attention_atlas.viz.panels.scene import Scene
from attention_atlas.viz.panels.why.heads import ablation_values_for, prepare_means, read_heads, translate_without
from attention_atlas.viz.wire import blocks, fields
from attention_atlas.viz.wire.file import File
from attention_atlas.viz.wire.heads import sets_block
from attention_atlas.viz.words import Words, say, say_plural

ORDERS = (None, 1, 2)  # seeds of the orders; None: by the estimated effects
INSTEAD = {Replacement.ZERO.value: say("zeros"), Replacement.MEAN.value: say("its average")}


def search_sets(scene: Scene, instead: str) -> Iterator[list[dict]]:
    """Search in three orders, and draw each set as it shrinks."""
    yield from prepare_means(scene) if instead == Replacement.MEAN.value else ()
    translation = open_translation(scene.case, scene.translator, scene.trace)
    values, notes = ablation_values_for(scene, translation.case, instead)
    sets: list[SmallestSet] = []
    for number, seed in enumerate(ORDERS, start=1):
        for step in shrink(translation, values.draws[0], seed=seed):
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
                *_sets_blocks(scene, sets),
            ]
        sets.append(step)
    is_zero = instead == Replacement.ZERO.value  # other tabs can only run a model whose removed heads output zeros
    yield [
        *notes,
        *_sets_blocks(scene, sets),
        exports({"sets": to_jsonable(sets)}),
        *([_translate_alone(scene, sets)] if is_zero else []),
    ]


def _sets_blocks(scene: Scene, sets: list[SmallestSet]) -> list[dict]:
    """Draw the sets that are complete."""
    if not sets:
        return []
    facts = [
        (say("Order {n}", n=number), say("{n} of {all}", n=len(head_set.kept), all=head_set.total), _verified(head_set))
        for number, head_set in enumerate(sets, start=1)
    ]
    sizes = [len(head_set.kept) for head_set in sets]
    fewest, most = min(sizes), max(sizes)
    numbers = {"n": fewest, "all": sets[0].total}
    survives = (
        say("{n} of {all} heads suffice.", **numbers)
        if fewest == most
        else say("{n} of {all} heads suffice; other removal orders need up to {most}.", **numbers, most=most)
    )
    model = scene.translator.model
    return [
        blocks.stack(blocks.text(survives), blocks.facts(*facts)),
        sets_block(sets, model.num_layers, model.num_heads),
    ]


def _verified(head_set: SmallestSet) -> Words:
    """Return whether decoding with the set gives the same words."""
    if head_set.verified:
        return say(
            "verified: decoding again gives the same words; removing any one more changes "
            "the translation ({n} sets tried)",
            n=head_set.passes,
        )
    return say("decoding again gives different words: a tie decides somewhere ({n} sets tried)", n=head_set.passes)


def _translate_alone(scene: Scene, sets: list[SmallestSet]) -> dict:
    """Return a button that translates with the smallest set alone."""
    smallest = min((head_set.kept for head_set in sets), key=len)
    off = [[head[0].value, *head[1:]] for head in list_heads(scene.case) if head not in smallest]
    label = say_plural("Translate with this {n} head alone", "Translate with these {n} heads alone", n=len(smallest))
    return blocks.translate(label, heads=off)


def as_file(scene: Scene, data: Mapping[str, object], instead: str) -> File:
    """Return the sets as a file. The page sends them back, since searching again takes seconds."""

    def read(value: object) -> SmallestSet:
        if not isinstance(value, Mapping):
            raise TypeError("a set of heads is an object")
        heads = frozenset(read_heads(scene, {"heads": value.get("kept")}))
        total, passes = fields.read_integer(value, "heads"), fields.read_integer(value, "tried")
        return SmallestSet(heads, total, passes, value.get("verified") is True)

    sets = fields.read_list(data, "sets", read)
    if not sets:
        raise ValueError("there is no set of heads to write down")
    model = scene.translator.model
    table = sets_table(sets, Replacement(instead), model.num_layers, model.num_heads)
    return file(data, {**translation_fields(scene), **table}, "smallest-set")


PANEL = Panel(
    "why-smallest",
    "Smallest set",
    "How few heads suffice for this translation?",
    say("Voita et al. 2019; Zeller and Hildebrandt 2002"),
    search_sets,
    controls=(Choice(say("Replace its output with"), INSTEAD, Replacement.ZERO.value),),
    actions={EXPORT: as_file},
    translate=translate_without,
    stops=True,
    method=say(
        "Heads are removed as long as every word of the translation stays the most probable one. No "
        "single remaining head can be removed; a smaller set may exist."
    ),
)
