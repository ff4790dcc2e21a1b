"""The laboratory of causes as plain JSON-ready values. Layers, heads and positions count from 0."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from model.trace.kinds import AttentionKind
from model.trace.why.evidence import Evidence, Sum
from model.trace.why.heads import HeadEffects, Replacement, SmallestSet
from model.trace.why.parts import Parts
from model.trace.why.patches import PatchEffects
from model.trace.why.question import Question
from model.trace.why.rows import Row, Why


def why_dict(why: Why) -> dict:
    """The tokens' matrix: the question, its columns and its rows; null where a method says nothing."""
    columns = why.columns
    return {
        **asked_dict(why.question, why.metric),
        "columns": list(columns.labels),
        "source_columns": len(columns.source),
        "special": columns.special.tolist(),
        "rows": [{**_row(row), "agreement": why.agreement[row.method]} for row in why.rows],
    }


def asked_dict(question: Question, metric: float) -> dict:
    """What is asked, and the measured number that it is about."""
    return {
        "question": {
            "step": question.step,
            "token": question.token,
            "token_id": question.token_id,
            "contrast": question.contrast,
            "contrast_id": question.contrast_id,
            "note": question.note,
        },
        "metric": metric,
        "unit": "nats",
    }


def _row(row: Row) -> dict:
    return {
        "method": row.method,
        "title": str(row.title),
        "evidence": row.evidence.value,
        "unit": row.unit.value,
        "values": _numbers(row.values),
        "class_agnostic": row.class_agnostic,
        "sum": None if row.sum is None else sum_dict(row.sum),
        "notes": list(row.notes),
    }


def parts_dict(parts: Parts) -> dict:
    """Direct logit attribution: what each part of the decoder adds. The encoder's heads have no direct path, and are
    not in it."""
    return {
        "evidence": parts.evidence.value,
        "unit": parts.unit.value,
        "token": parts.token,
        "position": parts.position,
        "heads": {kind.value: parts.heads(kind).tolist() for kind in parts.keys},
        "feed_forward": parts.feed_forward.tolist(),
        "output_biases": {kind.value: values.tolist() for kind, values in parts.output_biases.items()},
        "norm_biases": parts.norm_biases.tolist(),
        "constant": parts.constant,
        "sum": sum_dict(parts.sum),
    }


def sum_dict(found: Sum) -> dict:
    """What should add up, what does, and by how much it is off."""
    return {"expected": found.expected, "found": found.found, "error": found.error, "holds": found.holds}


def heads_dict(*several: HeadEffects) -> dict:
    """A row for each kind and layer of each, a column a head; null where a head was not measured. flips: whether
    another token is written without the head; null where that was not seen."""
    rows = [
        {
            "kind": kind.value,
            "layer": layer,
            "evidence": found.evidence.value,
            "unit": found.unit.value,
            "values": _numbers(values),
            "flips": None if found.flips is None else found.flips[kind][layer].tolist(),
        }
        for found in several
        for kind, effects in found.effects.items()
        for layer, values in enumerate(effects)
    ]
    return {
        "replacement": several[0].replacement.value,
        "draws": several[0].draws,
        "columns": [f"head {head}" for head in range(len(rows[0]["values"]))],
        "rows": rows,
    }


def patch_dict(found: PatchEffects, columns: Sequence[str]) -> dict:
    """A row a layer, a column a position of the receiving run or a head: the metric with that place patched, null where
    the two sentences have no common place. recovered: shares of the way from base to other; null where the two are less
    than 1 nat apart."""
    shares = found.recovered
    return {
        "direction": found.direction.value,
        "base": found.base,
        "other": found.other,
        "pairs": list(found.pairs),
        "columns": list(columns),
        "recovered": None if shares is None else [_numbers(row) for row in shares],
        "rows": [
            {"layer": layer, "evidence": found.evidence.value, "unit": found.unit.value, "values": _numbers(values)}
            for layer, values in enumerate(found.metrics)
        ],
    }


def sets_dict(
    sets: Sequence[SmallestSet], replacement: Replacement, layers: Mapping[AttentionKind, int], heads: int
) -> dict:
    """A row for each order, kind and layer: 1 for a head that the translation needs, 0 for one that could go. layers:
    of each kind; heads: of a layer. sets: the same, each as set_dict()."""
    return {
        "replacement": replacement.value,
        "columns": [f"head {head}" for head in range(heads)],
        "sets": [set_dict(one) for one in sets],
        "rows": [
            {
                "order": order,
                "kind": kind.value,
                "layer": layer,
                "evidence": Evidence.MEASURED.value,
                "unit": "needed",
                "values": [float((kind, layer, head) in one.kept) for head in range(heads)],
            }
            for order, one in enumerate(sets)
            for kind in layers
            for layer in range(layers[kind])
        ],
    }


def set_dict(one: SmallestSet) -> dict:
    """One of them: kept as [kind, layer, head], of how many heads, sets tried, whether it decodes again."""
    return {
        "kept": [[kind.value, layer, head] for kind, layer, head in sorted(one.kept)],
        "heads": one.total,
        "tried": one.passes,
        "verified": one.verified,
    }


def _numbers(values: np.ndarray) -> list[float | None]:
    return [None if np.isnan(value) else float(value) for value in values]
