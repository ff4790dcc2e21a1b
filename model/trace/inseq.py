"""Attributions as `FeatureAttributionOutput.save()` of the library inseq (Sarti et al. 2023) writes them.

Files are written in the form of version 0.7.1, where an array is a safetensors file in base64; those of 0.6, where it
is an object of json_tricks, are read, too. One file holds sentences; each has scores [source, step] and [target, step]
of the method, and what each step's probability was. Importable without torch.

>>> import tempfile
>>> from attention_atlas.model.analysis import why
>>> from attention_atlas.model.translator import Translator
>>> translator = Translator.load("checkpoints/de-en", device="cpu")
>>> trace = translator.translate("Der Hund schläft.")
>>> steps = [why.attribute(translator, trace, step=step, methods=["alti"], words=False) for step in range(3)]
>>> with tempfile.TemporaryDirectory() as folder:
...     to_inseq(f"{folder}/alti.json", trace, steps, "alti")
...     (found,) = from_inseq(f"{folder}/alti.json")
>>> found.source == trace.source_tokens, found.source_scores.shape == (len(trace.source_ids), 3)
(True, True)
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, deserialize
from safetensors.numpy import save

from attention_atlas.model.files import replace_file
from attention_atlas.model.trace.result import Result
from attention_atlas.model.trace.translation import TranslationTrace
from attention_atlas.model.trace.why.attribution import Why

__all__ = ["Attribution", "from_inseq", "to_inseq"]

OUTPUT, SEQUENCE, TOKEN = (
    ["inseq.data.attribution", "FeatureAttributionOutput"],
    ["inseq.data.attribution", "CoarseFeatureAttributionSequenceOutput"],
    ["inseq.utils.typing", "TokenWithId"],
)
_FLOATS = {"F32": np.dtype("<f4"), "F16": np.dtype("<f2")}


@dataclass(frozen=True, eq=False)
class Attribution(Result):
    """One sentence of an inseq file. source, target: tokens. source_scores [source, step], target_scores [target, step]
    (None: not attributed), NaN for what a step had not read yet, with a third axis where inseq had kept the embeddings'
    own; step 0 is the target's token number `start`. step_scores: name -> [step]."""

    source: tuple[str, ...]
    target: tuple[str, ...]
    source_scores: np.ndarray | None
    target_scores: np.ndarray | None
    start: int
    step_scores: dict[str, np.ndarray]
    method: str = ""

    def columns_of_table(self) -> dict[str, Any]:
        """A line for each token that was read: `side`, `token`, then a column a step. ValueError for scores that are
        not one number a token."""
        sides = [("source", self.source, self.source_scores), ("target", self.target, self.target_scores)]
        given = [(side, tokens, scores) for side, tokens, scores in sides if scores is not None]
        if any(scores.ndim != 2 for *_, scores in given):
            raise ValueError("these scores are one for each number of an embedding: sum them first")
        told = {
            "side": [side for side, tokens, _ in given for _ in tokens],
            "token": [token for _, tokens, _ in given for token in tokens],
        }
        steps = np.concatenate([scores for *_, scores in given]).T if given else ()
        return {**told, **{f"{i} {self.target[i]}": step for i, step in enumerate(steps, self.start)}}

    def about(self) -> str:
        """Return the method and both sentences in one line."""
        return f"{self.method}: {' '.join(self.source)} → {' '.join(self.target)}"


def to_inseq(path: str | Path, trace: TranslationTrace, answers: Sequence[Why], method: str) -> None:
    """Write what one method says of a translation. answers: of attribute(.., words=False), for steps that follow one
    another. What the decoder reads first, its begin symbol, is left out, as inseq leaves it out; float32.
    ValueError for answers of words or of other steps, and for a method that was not asked."""
    steps = [answer.question.step for answer in answers]
    if not steps or steps != list(range(steps[0], steps[0] + len(steps))):
        raise ValueError(f"an inseq file is of steps that follow one another, found {steps}")
    source, target = len(trace.source_ids), len(trace.target_ids)
    scores = np.full((source + target, len(steps)), np.nan, np.float32)
    for column, answer in enumerate(answers):
        values = answer.row(method).values
        if len(values) != source + answer.question.step + 1:
            raise ValueError("an inseq file is of pieces: ask attribute(.., words=False) of this very trace")
        scores[:source, column] = values[:source]
        scores[source : source + answer.question.step, column] = values[source + 1 :]  # what was written before
    taken = slice(steps[0], steps[-1] + 1)
    sequence = {
        "source": _tokens(trace.source_tokens, trace.source_ids),
        "target": _tokens(trace.target_tokens, trace.target_ids),
        "source_attributions": _array(scores[:source]),
        "target_attributions": _array(scores[source:]),
        "step_scores": {"probability": _array(np.exp(trace.log_probability[taken]))},
        "sequence_scores": {},
        "attr_pos_start": steps[0],
        "attr_pos_end": steps[-1] + 1,
    }
    info = {
        "attribution_method": method,
        "attribute_target": True,
        "attr_pos_start": steps[0],
        "attr_pos_end": steps[-1] + 1,
        "input_texts": [trace.source_text],
        "generated_texts": [trace.translation],
        "model_name": trace.checkpoint,
        "step_scores": ["probability"],
    }
    output = {"sequence_attributions": [_instance(SEQUENCE, sequence)], "step_attributions": None, "info": info}
    text = json.dumps(_instance(OUTPUT, output), ensure_ascii=False, indent=4)
    replace_file(Path(path), lambda partial: partial.write_text(text, encoding="utf-8"))


def from_inseq(path: str | Path) -> list[Attribution]:
    """The sentences of a file that inseq wrote, compressed or not, or to_inseq(). ValueError, naming the file, for
    anything else."""
    data = Path(path).read_bytes()
    try:
        found = _plain(json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data))
        method = str(found["info"].get("attribution_method", ""))
        return [_attribution(sequence, method) for sequence in found["sequence_attributions"]]
    except (ValueError, KeyError, TypeError, AttributeError, OSError, RecursionError, SafetensorError) as error:
        raise ValueError(f"{path} is no file of inseq's attributions: {error!r:.200}") from error


def _attribution(found: dict, method: str) -> Attribution:
    source, target = (tuple(token["token"] for token in found[side]) for side in ("source", "target"))
    read, written = (_scores(found.get(f"{side}_attributions")) for side in ("source", "target"))
    for tokens, values in ((source, read), (target, written)):
        if values is not None and (values.ndim < 2 or len(values) != len(tokens)):
            raise ValueError(f"scores of shape {list(values.shape)} for {len(tokens)} tokens")
    steps = {name: _numbers(values) for name, values in (found.get("step_scores") or {}).items()}
    return Attribution(source, target, read, written, found.get("attr_pos_start") or 0, steps, method)


def _scores(values: Any) -> np.ndarray | None:
    return None if values is None else _numbers(values)


def _numbers(values: Any) -> np.ndarray:
    """float64 of an array of either version."""
    if isinstance(values, str):
        return _of_safetensors(base64.b64decode(values, validate=True))
    return np.asarray(values, np.float64)


def _of_safetensors(data: bytes) -> np.ndarray:
    """The array "attribution" of a safetensors file, in any of inseq's three precisions."""
    stored = dict(deserialize(data))["attribution"]
    dtype, values = stored["dtype"], stored["data"]
    if dtype == "F8_E4M3":
        numbers = _float8(np.frombuffer(values, np.uint8))
    elif dtype in _FLOATS:
        numbers = np.frombuffer(values, _FLOATS[dtype]).astype(np.float64)
    else:
        raise ValueError(f"scores of type {dtype}")
    return numbers.reshape(stored["shape"])


def _float8(codes: np.ndarray) -> np.ndarray:
    """float64 of 8-bit floats with 4 bits of exponent and 3 of mantissa (Micikevicius et al. 2022)."""
    exponent, mantissa = (codes >> 3 & 15).astype(np.int64), (codes & 7) / 8
    size = np.where(exponent == 0, mantissa * 2.0**-6, (1 + mantissa) * 2.0 ** (exponent - 7))
    return np.where(codes & 127 == 127, np.nan, np.where(codes & 128, -size, size))


def _instance(of: list[str], attributes: dict) -> dict:
    return {"__instance_type__": of, "attributes": attributes}


def _tokens(tokens: Sequence[str], ids: Sequence[int]) -> list[dict]:
    return [_instance(TOKEN, {"token": str(token), "id": i}) for token, i in zip(tokens, ids)]


def _array(values: np.ndarray) -> str:
    return base64.b64encode(save({"attribution": np.ascontiguousarray(values, np.float32)})).decode()


def _plain(value: Any) -> Any:
    """Without what json_tricks puts around objects, and around the arrays of version 0.6."""
    if isinstance(value, list):
        return [_plain(one) for one in value]
    if not isinstance(value, dict):
        return value
    if "__instance_type__" in value:
        return _plain(value["attributes"])
    if "__ndarray__" not in value:
        return {name: _plain(one) for name, one in value.items()}
    data, dtype, shape = value["__ndarray__"], np.dtype(value["dtype"]), tuple(value["shape"])
    if dtype.hasobject:
        raise ValueError(f"an array of {dtype}")
    if not isinstance(data, str):
        return np.array(data, dtype).reshape(shape)
    kind, _, text = data.rpartition(":")
    packed = base64.b64decode(text, validate=True)
    numbers = np.frombuffer(gzip.decompress(packed) if kind == "b64.gz" else packed, dtype)
    return numbers.reshape(shape, order="C" if value.get("Corder", True) else "F")
