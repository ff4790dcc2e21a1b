"""Blocks with a cell for every head of the model, which viz/web/lab/heads.js draws."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from attention_atlas.model.trace.kinds import AttentionKind
from attention_atlas.model.trace.language import Words, say
from attention_atlas.model.trace.why.effects import HeadEffects, SmallestSet
from attention_atlas.viz.maps import labels
from attention_atlas.viz.wire.blocks import compact, format_effect

MAX_HEADS_WITH_TEXT = 12  # of a layer; with more heads, cells are too narrow for numbers
DIGITS = 2


def effects_block(about: str, estimates: HeadEffects, measured: HeadEffects | None, *, joint: str, done: bool) -> dict:
    """Return a block with the effect of each head: measured if it is already, else estimated.

    about: the name under which the page stores which heads are switched off; joint: the slot for their joint effect;
    done: whether this is the last block of the stream.
    """
    values = dict(estimates.effects)  # by kind [layers, heads]
    for kind, effects in measured.effects.items() if measured else ():
        values[kind] = np.where(np.isnan(effects), values[kind], effects)
    limit = max(float(np.abs(of_kind).max()) for of_kind in values.values()) or 1.0

    def cell(kind: AttentionKind, layer: int, head: int) -> dict:
        value = float(values[kind][layer, head])
        is_measured = measured is not None and not np.isnan(measured.effects[kind][layer, head])
        flips = is_measured and bool(measured.flips[kind][layer, head])
        where = {**labels.place(kind, layer, head), "n": format_effect(value)}
        if not is_measured:
            name = say("{kind}, layer {layer}, head {head}: {n} nats, estimated from its gate's slope.", **where)
        elif flips:
            name = say(
                "{kind}, layer {layer}, head {head}: {n} nats, measured. Without it another token is written.", **where
            )
        else:
            name = say("{kind}, layer {layer}, head {head}: {n} nats, measured.", **where)
        marks = [mark for mark, holds in (("estimated", not is_measured), ("flips", flips)) if holds]
        return {"value": round(value / limit, 4), "text": format_effect(value), "name": name, "marks": marks}

    legend = {
        "plus": say("+ supports the token"),
        "minus": say("− counts against it"),
        "estimated": say("estimated"),
        "flips": say("without it another token is written"),
    }
    hint = say(
        "Click a head to switch it off, or a layer to switch off all its heads. Full colour is {n} nats.",
        n=compact(limit, DIGITS),
    )
    return _block(about, values, cell, hint, joint=joint, done=done, legend=legend)


def sets_block(
    sets: Sequence[SmallestSet], layers: Mapping[AttentionKind, int], heads: Mapping[AttentionKind, int]
) -> dict:
    """Return a block with the number of sets that each head is in.

    layers, heads: the number of layers of each kind, and of heads in each of its layers.
    """
    counts = {kind: np.zeros((depth, heads[kind]), int) for kind, depth in layers.items()}
    for kind, layer, head in (place for smallest in sets for place in smallest.kept):
        counts[kind][layer, head] += 1

    def cell(kind: AttentionKind, layer: int, head: int) -> dict:
        count = int(counts[kind][layer, head])
        where = {**labels.place(kind, layer, head), "n": count, "all": len(sets)}
        name = say("{kind}, layer {layer}, head {head}: needed in {n} of {all} orders.", **where)
        return {"value": count / len(sets) if count else None, "text": str(count or ""), "name": name, "marks": []}

    hint = say("Number: in how many orders the head is needed. Empty: in none.")
    return _block("", counts, cell, hint)


def _block(
    about: str,
    values: Mapping[AttentionKind, np.ndarray],
    cell: Callable[[AttentionKind, int, int], dict],
    hint: Words,
    *,
    joint: str = "",
    done: bool = False,
    legend: Mapping[str, Words] = {},
) -> dict:
    """Return the block. values: by kind [layers, heads], of which cell(kind, layer, head) makes a cell."""
    kinds = []
    for kind, of_kind in values.items():
        layers, heads = of_kind.shape
        rows = [[cell(kind, layer, head) for head in range(heads)] for layer in range(layers)]
        if heads > MAX_HEADS_WITH_TEXT:
            rows = [[{**entry, "text": ""} for entry in row] for row in rows]
        kinds.append({"kind": kind.value, "title": labels.KIND_TITLES[kind], "rows": rows})
    notes = [{"marks": marks, "text": text} for marks, text in legend.items()]
    return {
        "type": "heads",
        "about": about,
        "kinds": kinds,
        "joint": joint,
        "done": done,
        "legend": notes,
        "hint": hint,
    }


def head_name(kind: AttentionKind, layer: int, head: int) -> Words:
    """Return a short name of a head; layer and head from 0."""
    return say("{kind} {layer}.{head}", **labels.place(kind, layer, head))
