"""The named endpoints: what programs can ask of a running app. README.md shows how; everything else is private.

Every answer is one JSON object with "api_version" and "status". "ok": the fields that the endpoint's docstring names.
"error": "error" is "invalid" (the request cannot be answered: change it), "busy" (come back in a moment) or "internal",
and "message" says why in words. Gradio streams both over HTTP 200; only a full queue is an HTTP 503, and a call whose
fields are not those of the endpoint an HTTP 422.
"""

from __future__ import annotations

import base64
import json

import numpy as np

from model.decode.distributions import TOP_TOKENS
from model.trace import interventions_file
from model.trace.decoding import to_plain
from model.trace.kinds import AttentionKind
from model.trace.translation import TranslationTrace
from viz.export.formats import FORMATS
from viz.maps.reduce import View, named_by_both, score_map
from viz.server.answers import string, token_ids, whole
from viz.server.endpoints import Served, endpoint
from viz.server.line import TRANSLATES
from viz.wire import address

MAX_JSON_NUMBERS = 1_000_000  # of one answer; NPZ has no such limit, since it is ten times smaller


@endpoint(
    returns="translation, tokens and ids of both sides, probabilities, ranks, entropies, how it was decoded",
    **TRANSLATES,
)
def translate(served: Served, text: str, direction: str = "", beam: int = 1) -> dict:
    """Translate one sentence.

    Args:
        text: the sentence, at most 10,000 characters and as many tokens as the model takes
        direction: such as "de-en"; empty for the app's first
        beam: the width of the search, 1 to 8; 1 is greedy decoding

    Returns:
        translation, direction, finished (false: stopped by its length), source_ids, source_tokens, target_ids,
        target_tokens; for each target token probabilities, ranks (from 1) and entropies (of its step, in bits);
        log_probability (natural, of the whole translation); decoding (width of the search, length_penalty, and how
        many of the first target tokens were given); interventions, {} for none; seconds, device, checkpoint, digest;
        link, which opens this page at the translation, without the interventions where they are too long for one.
    """
    trace = served.traced(text, direction, beam)
    return {**described(trace), "link": address.opening(trace)}


@endpoint(returns="one map, or with kind `all` the whole trace; JSON, NPZ in base64, CSV of a map, HTML of a trace")
def attention(
    served: Served,
    text: str,
    kind: str = "all",
    layer: int = 0,
    head: int = 0,
    format: str = "json",
    direction: str = "",
) -> dict:
    """Translate one sentence and return attention maps, exact to the last bit of every float32.

    The parameters are a request's fields: all but the text may be left out.

    Args:
        text: the sentence
        kind: "encoder_self", "decoder_self" or "cross" for one map, of a recurrent model "alignment"; "all" for every
            map of every layer and head
        layer: of one map, from 0
        head: of one map, from 0
        format: "json", "npz" for a NumPy archive in base64, or another format that the page can export
        direction: such as "de-en"; empty for the app's first

    Returns:
        One map: weights [query][key], query_tokens (for the decoder those READ), key_tokens, kind, layer, head. All:
        the trace in the project's own schema. JSON stands under "map" or "trace", any other format under its own name:
        a text as it is, all else in base64.
    """
    wanted = None if kind == "all" else _kind(kind)
    able = [name for name, form in FORMATS.items() if (form.trace if wanted is None else form.map)]
    if format not in able:
        raise ValueError(f"Unknown format {format!r}: there are {', '.join(able)}.")
    trace = served.traced(text, direction)
    if wanted is None:
        return _all_maps(trace, format)
    return _one_map(trace, wanted, whole("layer", layer), whole("head", head), format)


@endpoint(returns="the most probable next tokens after the prefix")
def step(served: Served, text: str, prefix: list[int] | None = None, candidates: int = 10, direction: str = "") -> dict:
    """The most probable next tokens after a prefix of the translation. Append one's id to the prefix to go on.

    Args:
        text: the sentence to translate
        prefix: ids of the translation's first tokens; empty for the start
        candidates: how many, 1 to 10
        direction: such as "de-en"; empty for the app's first

    Returns:
        prefix, prefix_tokens, candidates (id, token, probability; most probable first), entropy (bits), end_id (the
        candidate that ends the sentence).
    """
    if not 1 <= whole("candidates", candidates) <= TOP_TOKENS:
        raise ValueError(f"candidates must be 1 to {TOP_TOKENS}, found {candidates}.")
    translator, code = served.chosen(direction)
    end = translator.tokenizer.end_id
    ids = token_ids("prefix", prefix or [])
    # The last row of a forced decode predicts what follows the prefix, whatever is put there.
    trace = translator.trace(string("text", text), code, target=[*ids, end], interventions=served.interventions)
    rows = zip(trace.top_ids[-1].tolist(), trace.top_tokens[-1], trace.top_probabilities[-1].tolist())
    found = [{"id": i, "token": token, "probability": p} for i, token, p in rows]
    return {
        "prefix": ids,
        "prefix_tokens": list(trace.target_tokens[:-1]),
        "candidates": found[:candidates],
        "entropy": float(trace.entropy[-1]),
        "end_id": end,
    }


@endpoint(returns="what `translate` returns, of the given target")
def score(served: Served, text: str, target: str, direction: str = "") -> dict:
    """How probable the model finds a given translation, token by token (teacher forcing).

    Args:
        text: the sentence
        target: the translation to score
        direction: such as "de-en"; empty for the app's first

    Returns:
        What translate returns but the link, of this target; log_probability is natural, of the whole target and its
        end.
    """
    translator, code = served.chosen(direction)
    return described(
        translator.trace(
            string("text", text), code, target=string("target", target), interventions=served.interventions
        )
    )


def described(trace: TranslationTrace) -> dict:
    """A trace in brief: everything but its maps."""
    return {
        "translation": trace.translation,
        "direction": trace.direction,
        "finished": trace.finished,
        "source_ids": list(trace.source_ids),
        "source_tokens": list(trace.source_tokens),
        "target_ids": list(trace.target_ids),
        "target_tokens": list(trace.target_tokens),
        "probabilities": np.exp(trace.log_probability).tolist(),
        "ranks": trace.chosen_rank.tolist(),
        "entropies": trace.entropy.tolist(),
        "log_probability": float(trace.log_probability.sum()),
        "decoding": to_plain(trace.decoding),
        "interventions": interventions_file.to_plain(trace.interventions),
        "seconds": trace.seconds,
        "device": trace.device,
        "checkpoint": trace.checkpoint,
        "digest": trace.digest,
    }


def _all_maps(trace: TranslationTrace, form: str) -> dict:
    numbers = sum(trace.maps(kind).weights.size for kind in trace.kinds)
    if FORMATS[form].media_type == "application/json" and numbers > MAX_JSON_NUMBERS:
        raise ValueError(
            f"All maps of this sentence are {numbers:,} numbers; JSON is limited to {MAX_JSON_NUMBERS:,}. "
            'Ask for format "npz", or for one map.'
        )
    return _file("trace", form, FORMATS[form].trace.write(trace, None))


def _one_map(trace: TranslationTrace, kind: AttentionKind, layer: int, head: int, form: str) -> dict:
    maps = trace.maps(kind)
    for name, index, size in (("layer", layer, maps.num_layers), ("head", head, maps.num_heads)):
        if not 0 <= index < size:
            raise ValueError(f"{kind.value} has {name}s 0 to {size - 1}, found {index}.")
    view = View(kind, layer, head)
    return _file("map", form, FORMATS[form].map.write(trace, view, named_by_both(score_map(trace, view), trace, view)))


def _file(subject: str, form: str, data: bytes) -> dict:
    media_type = FORMATS[form].media_type
    if media_type == "application/json":
        return {subject: json.loads(data)}
    return {form: data.decode() if media_type.startswith("text/") else base64.b64encode(data).decode("ascii")}


def _kind(name: str) -> AttentionKind:
    try:
        return AttentionKind(name)
    except ValueError as error:
        names = ", ".join(kind.value for kind in AttentionKind)
        raise ValueError(f"Unknown kind {name!r}: there are {names} and all.") from error
