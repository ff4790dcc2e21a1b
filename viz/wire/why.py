"""The laboratory of causes as plain JSON-ready values."""

from __future__ import annotations

import numpy as np

from model.trace.why.evidence import Sum
from model.trace.why.parts import Parts
from model.trace.why.rows import Row, Why


def why_dict(why: Why) -> dict:
    """The tokens' matrix: the question, its columns and its rows; null where a method says nothing."""
    question, columns = why.question, why.columns
    return {
        "question": {"step": question.step, "token": question.token, "token_id": question.token_id,
                     "contrast": question.contrast, "contrast_id": question.contrast_id, "note": question.note},
        "metric": why.metric, "unit": "nats", "columns": list(columns.labels),
        "source_columns": len(columns.source), "special": columns.special.tolist(),
        "rows": [{**_row(row), "agreement": why.agreement[row.method]} for row in why.rows]}


def _row(row: Row) -> dict:
    return {"method": row.method, "evidence": row.evidence.value, "unit": row.unit.value,
            "values": _numbers(row.values),
            "class_agnostic": row.class_agnostic, "sum": None if row.sum is None else sum_dict(row.sum),
            "notes": list(row.notes)}


def parts_dict(parts: Parts) -> dict:
    """Direct logit attribution: what each part of the decoder adds. The encoder's heads have no direct path, and are
    not in it."""
    return {
        "evidence": parts.evidence.value, "unit": parts.unit.value, "token": parts.token, "position": parts.position,
        "heads": {kind.value: parts.heads(kind).tolist() for kind in parts.keys},
        "feed_forward": parts.feed_forward.tolist(),
        "output_biases": {kind.value: values.tolist() for kind, values in parts.output_biases.items()},
        "norm_biases": parts.norm_biases.tolist(), "constant": parts.constant, "sum": sum_dict(parts.sum)}


def sum_dict(found: Sum) -> dict:
    """What should add up, what does, and by how much it is off."""
    return {"expected": found.expected, "found": found.found, "error": found.error, "holds": found.holds}


def _numbers(values: np.ndarray) -> list[float | None]:
    return [None if np.isnan(value) else float(value) for value in values]
