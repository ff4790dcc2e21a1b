"""One head's map with its raw tokens, exact to the last bit, as JSON or as a NumPy archive."""

from __future__ import annotations

import io
import json

import numpy as np

from model.trace.translation import TranslationTrace
from viz.maps.reduce import View


def to_json(trace: TranslationTrace, view: View) -> bytes:
    """weights [query][key] of the view's layer and head, query_tokens (for the decoder those READ), key_tokens, kind,
    layer, head."""
    maps = trace.maps(view.kind)
    return json.dumps(
        {
            "kind": view.kind.value,
            "layer": view.layer,
            "head": view.head,
            "weights": maps.weights[view.layer, view.head].tolist(),
            "query_tokens": maps.query_tokens,
            "key_tokens": maps.key_tokens,
        },
        ensure_ascii=False,
    ).encode()


def from_json(data: bytes) -> np.ndarray:
    """The weights float32 [query, key] of to_json()'s bytes."""
    return np.array(json.loads(data)["weights"], np.float32)


def to_npz(trace: TranslationTrace, view: View) -> bytes:
    """The fields of to_json() as arrays. No pickle."""
    written, maps = io.BytesIO(), trace.maps(view.kind)
    np.savez_compressed(
        written,
        weights=maps.weights[view.layer, view.head],
        query_tokens=np.array(maps.query_tokens),
        key_tokens=np.array(maps.key_tokens),
        kind=np.array(view.kind.value),
        layer=view.layer,
        head=view.head,
    )
    return written.getvalue()


def from_npz(data: bytes) -> np.ndarray:
    """The weights float32 [query, key] of to_npz()'s bytes."""
    with np.load(io.BytesIO(data), allow_pickle=False) as stored:
        return stored["weights"]
