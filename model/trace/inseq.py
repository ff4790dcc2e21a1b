"""Read and write attributions in the files of the library inseq (Sarti et al. 2023; FeatureAttributionOutput.save()).

A file holds sentences, each with a method's scores [source, step] and [target, step] and the probability of each step.
Files are written in the format of version 0.7.1, where an array is a safetensors file in base64; the format of 0.6,
where an array is an object of json_tricks, is read, too.

>>> import tempfile
>>> from attention_atlas.model.analysis import why
>>> from attention_atlas.model.translator import Translator
>>> translator = Translator.load("checkpoints/de-en", device="cpu")
>>> trace = translator.translate("Der Hund schläft.")
>>> steps = [why.attribute(translator, trace, step=step, methods=["alti"], words=False) for step in range(3)]
>>> with tempfile.TemporaryDirectory() as folder:
...     to_inseq(f"{folder}/alti.json", trace, steps, "alti")
...     (attribution,) = from_inseq(f"{folder}/alti.json")
>>> attribution.source == trace.source_tokens, attribution.source_scores.shape == (len(trace.source_ids), 3)
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
    """One sentence of an inseq file.

    source, target  tokens
    source_scores   [source, step]; None: not attributed. With a third axis, a score for each embedding dimension
    target_scores   [target, step], with NaN for tokens that a step had not read yet; None: not attributed
    start           the position of the target token of step 0
    step_scores     name -> [step]
    """

    source: tuple[str, ...]
    target: tuple[str, ...]
    source_scores: np.ndarray | None
    target_scores: np.ndarray | None
    start: int
    step_scores: dict[str, np.ndarray]
    method: str = ""

    def columns_of_table(self) -> dict[str, Any]:
        """Return the columns side, token and one for each step; a row for each attributed token.

        ValueError for scores of embedding dimensions.
        """
        sides = [("source", self.source, self.source_scores), ("target", self.target, self.target_scores)]
        attributed = [(side, tokens, scores) for side, tokens, scores in sides if scores is not None]
        if any(scores.ndim != 2 for *_, scores in attributed):
            raise ValueError("these scores are of single embedding dimensions: sum them first")
        steps = np.concatenate([scores for *_, scores in attributed]).T if attributed else ()
        return {
            "side": [side for side, tokens, _ in attributed for _ in tokens],
            "token": [token for _, tokens, _ in attributed for token in tokens],
            **{f"{i} {self.target[i]}": step for i, step in enumerate(steps, self.start)},
        }

    def about(self) -> str:
        """Return the method and both sentences in one line."""
        return f"{self.method}: {' '.join(self.source)} → {' '.join(self.target)}"


def to_inseq(path: str | Path, trace: TranslationTrace, answers: Sequence[Why], method: str) -> None:
    """Write one method's attributions of a translation, as float32.

    answers: results of attribute(.., words=False) for consecutive steps. Like inseq, the file leaves out the decoder's
    begin symbol. ValueError for answers about words, for other steps, and for a method that the answers lack.
    """
    steps = [answer.question.step for answer in answers]
    if not steps or steps != list(range(steps[0], steps[0] + len(steps))):
        raise ValueError(f"an inseq file needs consecutive steps, found {steps}")
    source, target = len(trace.source_ids), len(trace.target_ids)
    scores = np.full((source + target, len(steps)), np.nan, np.float32)
    for column, answer in enumerate(answers):
        values = answer.row(method).values
        if len(values) != source + answer.question.step + 1:
            raise ValueError("an inseq file needs answers of attribute(.., words=False) for this trace")
        scores[:source, column] = values[:source]
        scores[source : source + answer.question.step, column] = values[source + 1 :]  # the tokens before it
    span = slice(steps[0], steps[-1] + 1)
    sequence = {
        "source": _tokens(trace.source_tokens, trace.source_ids),
        "target": _tokens(trace.target_tokens, trace.target_ids),
        "source_attributions": _encode_array(scores[:source]),
        "target_attributions": _encode_array(scores[source:]),
        "step_scores": {"probability": _encode_array(np.exp(trace.log_probability[span]))},
        "sequence_scores": {},
        "attr_pos_start": span.start,
        "attr_pos_end": span.stop,
    }
    info = {
        "attribution_method": method,
        "attribute_target": True,
        "attr_pos_start": span.start,
        "attr_pos_end": span.stop,
        "input_texts": [trace.source_text],
        "generated_texts": [trace.translation],
        "model_name": trace.checkpoint,
        "step_scores": ["probability"],
    }
    output = {"sequence_attributions": [_instance(SEQUENCE, sequence)], "step_attributions": None, "info": info}
    text = json.dumps(_instance(OUTPUT, output), ensure_ascii=False, indent=4)
    replace_file(Path(path), lambda partial: partial.write_text(text, encoding="utf-8"))


def from_inseq(path: str | Path) -> list[Attribution]:
    """Read the sentences of a file of inseq, compressed or not, or of to_inseq().

    ValueError, naming the file, for any other file.
    """
    data = Path(path).read_bytes()
    try:
        output = _unwrap(json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data))
        method = str(output["info"].get("attribution_method", ""))
        return [_read_sequence(sequence, method) for sequence in output["sequence_attributions"]]
    except (ValueError, KeyError, TypeError, AttributeError, OSError, RecursionError, SafetensorError) as error:
        raise ValueError(f"{path} is no file of inseq's attributions: {error!r:.200}") from error


def _read_sequence(sequence: dict, method: str) -> Attribution:
    source, target = (tuple(token["token"] for token in sequence[side]) for side in ("source", "target"))
    source_scores, target_scores = (
        None if (values := sequence.get(f"{side}_attributions")) is None else _read_array(values)
        for side in ("source", "target")
    )
    for tokens, scores in ((source, source_scores), (target, target_scores)):
        if scores is not None and (scores.ndim < 2 or len(scores) != len(tokens)):
            raise ValueError(f"scores of shape {list(scores.shape)} for {len(tokens)} tokens")
    steps = {name: _read_array(values) for name, values in (sequence.get("step_scores") or {}).items()}
    start = sequence.get("attr_pos_start") or 0
    return Attribution(source, target, source_scores, target_scores, start, steps, method)


def _read_array(values: Any) -> np.ndarray:
    """Convert an array to float64: lists, or the "attribution" of a safetensors file in one of inseq's precisions."""
    if not isinstance(values, str):
        return np.asarray(values, np.float64)
    stored = dict(deserialize(base64.b64decode(values, validate=True)))["attribution"]
    dtype, values = stored["dtype"], stored["data"]
    if dtype == "F8_E4M3":
        numbers = _decode_float8(np.frombuffer(values, np.uint8))
    elif dtype in _FLOATS:
        numbers = np.frombuffer(values, _FLOATS[dtype]).astype(np.float64)
    else:
        raise ValueError(f"scores of type {dtype}")
    return numbers.reshape(stored["shape"])


def _decode_float8(codes: np.ndarray) -> np.ndarray:
    """Convert 8-bit floats with 4 bits of exponent and 3 of mantissa (Micikevicius et al. 2022) to float64."""
    exponent, mantissa = (codes >> 3 & 15).astype(np.int64), (codes & 7) / 8
    size = np.where(exponent == 0, mantissa * 2.0**-6, (1 + mantissa) * 2.0 ** (exponent - 7))
    return np.where(codes & 127 == 127, np.nan, np.where(codes & 128, -size, size))


def _instance(type_: list[str], attributes: dict) -> dict:
    return {"__instance_type__": type_, "attributes": attributes}


def _tokens(tokens: Sequence[str], ids: Sequence[int]) -> list[dict]:
    return [_instance(TOKEN, {"token": str(token), "id": i}) for token, i in zip(tokens, ids)]


def _encode_array(values: np.ndarray) -> str:
    return base64.b64encode(save({"attribution": np.ascontiguousarray(values, np.float32)})).decode()


def _unwrap(value: Any) -> Any:
    """Remove json_tricks' wrappers of objects, and of the arrays of version 0.6."""
    if isinstance(value, list):
        return [_unwrap(item) for item in value]
    if not isinstance(value, dict):
        return value
    if "__instance_type__" in value:
        return _unwrap(value["attributes"])
    if "__ndarray__" not in value:
        return {name: _unwrap(item) for name, item in value.items()}
    data, dtype, shape = value["__ndarray__"], np.dtype(value["dtype"]), tuple(value["shape"])
    if dtype.hasobject:
        raise ValueError(f"an array of {dtype}")
    if not isinstance(data, str):
        return np.array(data, dtype).reshape(shape)
    kind, _, text = data.rpartition(":")
    packed = base64.b64decode(text, validate=True)
    numbers = np.frombuffer(gzip.decompress(packed) if kind == "b64.gz" else packed, dtype)
    return numbers.reshape(shape, order="C" if value.get("Corder", True) else "F")
