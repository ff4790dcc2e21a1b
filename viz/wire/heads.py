"""Every head of the model as a cell, for the block that viz/web/lab/heads.js draws."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from model.trace.kinds import AttentionKind
from model.trace.language import Words, say
from model.trace.why.heads import HeadEffects, SmallestSet
from viz.maps import labels
from viz.wire.blocks import compact
from viz.wire.question import with_minus

NARROW = 12  # heads above which a cell has no room for its number
DIGITS = 2


def effects_block(
    about: str,
    estimates: HeadEffects,
    measured: HeadEffects | None,
    *,
    joint: str,
    done: bool,
    kinds: Sequence[AttentionKind],
) -> dict:
    """What each head is worth: measured where it is, else estimated. about: a name for trace and question, by which the
    page keeps what is switched off; joint: the slot that says what is switched off together; done: nothing more comes.
    Six parameters: two of them are the numbers, the rest says where they stand."""
    shown = {kind: _merged(estimates, measured, kind) for kind in kinds}
    limit = max(float(np.abs(values).max()) for values, _ in shown.values()) or 1.0

    def cell(kind: AttentionKind, layer: int, head: int) -> dict:
        values, known = shown[kind]
        value, is_measured = float(values[layer, head]), bool(known[layer, head])
        flips = is_measured and measured.flips is not None and bool(measured.flips[kind][layer, head])
        where = {"kind": labels.KIND_TITLES[kind], "layer": layer + 1, "head": head + 1, "n": signed(value)}
        if not is_measured:
            name = say("{kind}, layer {layer}, head {head}: {n} nats, estimated from its gate's slope.", **where)
        elif flips:
            name = say(
                "{kind}, layer {layer}, head {head}: {n} nats, measured. Without it another token is written.", **where
            )
        else:
            name = say("{kind}, layer {layer}, head {head}: {n} nats, measured.", **where)
        return {
            "value": round(value / limit, 4),
            "text": _room(values, signed(value)),
            "name": name,
            "marks": [mark for mark, holds in (("estimated", not is_measured), ("flips", flips)) if holds],
        }

    return {
        "type": "heads",
        "about": about,
        "kinds": _kinds(shown, cell),
        "joint": joint,
        "done": done,
        "legend": [
            {"marks": "plus", "text": say("+ speaks for the token")},
            {"marks": "minus", "text": say("− speaks against it")},
            {"marks": "estimated", "text": say("estimated")},
            {"marks": "flips", "text": say("without it another token is written")},
        ],
        "hint": say(
            "Choose a head to switch it off, a layer to switch all of it off. Full colour is {n} nats.",
            n=compact(limit, DIGITS),
        ),
    }


def sets_block(
    about: str, sets: Sequence[SmallestSet], kinds: Mapping[AttentionKind, int], heads: Mapping[AttentionKind, int]
) -> dict:
    """In how many of the sets each head is. kinds: layers of each kind; heads: of each in a layer."""
    counts = {
        kind: np.array(
            [
                [sum((kind, layer, head) in one.kept for one in sets) for head in range(heads[kind])]
                for layer in range(layers)
            ]
        )
        for kind, layers in kinds.items()
    }

    def cell(kind: AttentionKind, layer: int, head: int) -> dict:
        count = int(counts[kind][layer, head])
        return {
            "value": count / len(sets) if count else None,
            "text": _room(counts[kind], str(count) if count else ""),
            "marks": [],
            "name": say(
                "{kind}, layer {layer}, head {head}: needed in {n} of {all} orders.",
                kind=labels.KIND_TITLES[kind],
                layer=layer + 1,
                head=head + 1,
                n=count,
                all=len(sets),
            ),
        }

    return {
        "type": "heads",
        "about": about,
        "kinds": _kinds({kind: (c, None) for kind, c in counts.items()}, cell),
        "joint": "",
        "done": False,
        "legend": [],
        "hint": say("Each number: in how many of the orders the head is needed. Empty: in none."),
    }


def _kinds(shown: Mapping[AttentionKind, tuple], cell) -> list[dict]:
    return [
        {
            "kind": kind.value,
            "title": labels.KIND_TITLES[kind],
            "rows": [[cell(kind, layer, head) for head in range(values.shape[1])] for layer in range(values.shape[0])],
        }
        for kind, (values, _) in shown.items()
    ]


def _merged(estimates: HeadEffects, measured: HeadEffects | None, kind: AttentionKind) -> tuple[np.ndarray, np.ndarray]:
    """Values [layers, heads], and which of them are measured."""
    if measured is None:
        return estimates.effects[kind], np.zeros(estimates.effects[kind].shape, bool)
    known = ~np.isnan(measured.effects[kind])
    return np.where(known, measured.effects[kind], estimates.effects[kind]), known


def _room(values: np.ndarray, text: str) -> str:
    return text if values.shape[1] <= NARROW else ""


def signed(value: float) -> str:
    """A number of nats with its sign: "+1.3", "−0.21"; "0" below what is worth saying."""
    if abs(value) < 0.005:
        return "0"
    return with_minus(f"{value:+.{1 if abs(value) >= 0.995 else 2}f}")


def head_name(kind: AttentionKind, layer: int, head: int) -> Words:
    """A head in few words; layer and head from 0."""
    return say("{kind} {layer}.{head}", kind=labels.KIND_TITLES[kind], layer=layer + 1, head=head + 1)
