"""The named endpoints: what programs can ask of a running app. docs/how-to/api.md shows how; all else is private.

Every answer is one JSON object with "api_version" and "status". "ok": the fields that the endpoint's docstring names.
"error": "error" is "invalid" (the request cannot be answered: change it), "busy" (come back in a moment) or "internal",
and "message" says why in words. Gradio streams both over HTTP 200; only a full queue is an HTTP 503, and a call whose
fields are not those of the endpoint an HTTP 422.
"""

from __future__ import annotations

import base64
import json

import numpy as np

from attention_atlas.model.analysis.lenses.encoder import TOP, encoder_lens, layer_translations
from attention_atlas.model.analysis.why.attribution import answer, check_methods
from attention_atlas.model.analysis.why.experiments import heads, smallest
from attention_atlas.model.analysis.why.experiments.asking import voices
from attention_atlas.model.analysis.why.experiments.patching import Direction, grid_of
from attention_atlas.model.analysis.why.registry import METHODS
from attention_atlas.model.analysis.why.split import parts
from attention_atlas.model.decode.distributions import TOP_TOKENS
from attention_atlas.model.trace import interventions_file
from attention_atlas.model.trace.decoding import to_plain
from attention_atlas.model.trace.kinds import AttentionKind
from attention_atlas.model.trace.translation import TranslationTrace
from attention_atlas.model.trace.why.heads import Replacement, effects_table, sets_table
from attention_atlas.model.trace.why.plain import plain
from attention_atlas.model.trace.why.question import Against
from attention_atlas.viz.export.formats import FORMATS
from attention_atlas.viz.maps.reduce import View, named_by_both, score_map
from attention_atlas.viz.panels.circuit_study import circuit_of, pair_of
from attention_atlas.viz.panels.downloads import question_fields, translation_fields
from attention_atlas.viz.panels.scene import Asked, Scene, Selection
from attention_atlas.viz.panels.why.circuit import as_plain
from attention_atlas.viz.panels.why.patch import patched_with
from attention_atlas.viz.panels.why.smallest import ORDERS
from attention_atlas.viz.server.endpoints import (
    ENDPOINTS,
    Served,
    build,
    endpoint,
    one_of,
    string,
    table,
    token_ids,
    whole,
)
from attention_atlas.viz.server.line import TRANSLATES
from attention_atlas.viz.wire import address

__all__ = ("ENDPOINTS", "build", "table")  # all endpoints are registered once this module is imported

MAX_JSON_NUMBERS = 1_000_000  # of one answer; NPZ has no such limit, since it is ten times smaller
MOST_EDGES = 500  # of a circuit


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
    wanted = None if kind == "all" else one_of("kind", kind, AttentionKind, "all")
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


@endpoint(
    returns="why one token was written and not another: each word's part by several methods, each measured, an exact "
    "split or a proxy"
)
def why(
    served: Served, text: str, step: int = -1, contrast: str = "", methods: list[str] | None = None, direction: str = ""
) -> dict:
    """Why the model wrote one token of its translation and not another: words taken away, logits taken apart.

    Args:
        text: the sentence
        step: which token of the translation, from 0; -1 for the least certain content word
        contrast: another word to compare with; empty for the next most probable (of a word, one with letters)
        methods: names of rows; empty for all
        direction: such as "de-en"; empty for the app's first

    Returns:
        question (step, token, contrast, note); metric: log p(token) - log p(contrast) in nats; columns: words of
        the source, then (from source_columns on) of the prefix; special: which of them are symbols; rows (method,
        evidence: "measured", "exact split" or "proxy", unit, values by column, sum with its error, notes,
        agreement: rank correlation with occlusion under another replacement, null where that row was not asked
        for); parts: the metric as a sum over the decoder's parts; translation and target_tokens.
    """
    about = _scene(served, text, step, contrast, direction)
    found = answer(about.case, check_methods(methods or tuple(METHODS)))
    return {**translation_fields(about), **plain(found), "parts": plain(parts(about.case))}


@endpoint(returns="what that token loses without each head, measured one by one, and what gradients foretold")
def why_heads(
    served: Served, text: str, step: int = -1, contrast: str = "", instead: str = "zero", direction: str = ""
) -> dict:
    """What one token of a translation loses without each attention head, measured: one run for each.

    Args:
        text: the sentence
        step: which token of the translation, from 0; -1 for the least certain content word
        contrast: another word to compare with; empty for the next most probable (of a word, one with letters)
        instead: what is heard of a head that is off: "zero", "mean" (of many sentences) or "resample" (of others)
        direction: such as "de-en"; empty for the app's first

    Returns:
        question and metric as why does; rows (kind, layer, evidence, unit, values: the nats that the metric loses
        without each head; flips: whether another token is then written), first all that is measured, then what the
        heads' gradients foretold (evidence "proxy"); replacement, draws: over how many sentences it is a mean;
        text, translation and target_tokens.
    """
    replacement = one_of("instead", instead, Replacement)
    about = _scene(served, text, step, contrast, direction)
    heard = voices(about.case, about.translator, about.trace, replacement)
    found = heads.measured(about.case, heard), heads.estimated(about.case, heard)
    return plain({**question_fields(about), **effects_table(*found)})


@endpoint(returns="one sentence's activations put into another's run, place by place: how far each brings it")
def why_patch(
    served: Served,
    text: str,
    second: str,
    step: int = -1,
    contrast: str = "",
    place: str = "decoder stream",
    way: str = "denoise",
    direction: str = "",
) -> dict:
    """Put what one sentence's run had at one place into another's, after the same prefix: where is the difference?

    The parameters are a request's fields: all but the two texts may be left out.

    Args:
        text: the sentence
        second: another one, such as the same with one word changed
        step: which token of the translation, from 0; -1 for the least certain content word
        contrast: another word to compare with; empty for the next most probable (of a word, one with letters)
        place: "decoder stream", "encoder stream", "decoder self", "decoder cross", "decoder feed", "encoder
            self", "encoder feed", "cross heads", "decoder heads" or "encoder heads"
        way: "denoise" (this sentence into the second: is it enough?) or "noise" (the second into this one)
        direction: such as "de-en"; empty for the app's first

    Returns:
        question and metric as why does; base and other: the metric of the run that receives and of the one that
        gives; rows (layer, evidence, unit, values: the metric with that place patched, null where the sentences
        have no common place), columns: tokens or heads; recovered: shares of the way from base to other, null
        where they are less than 1 nat apart; text, second, translation and target_tokens.
    """
    grid_of(string("place", place))  # raises
    how = one_of("way", way, Direction)
    about = _scene(served, text, step, contrast, direction)
    found = patched_with(about, string("second", second), place, how)
    return plain({**question_fields(about), "second": second, "place": place, **found.as_plain()})


@endpoint(
    returns="the edges, from head to head, along which the difference to a second sentence reaches that token, and how "
    "much of it they keep alone"
)
def why_circuit(
    served: Served, text: str, second: str, step: int = -1, contrast: str = "", edges: int = 25, direction: str = ""
) -> dict:
    """By which path does what two sentences differ by decide a token? Edges by EAP-IG, tested by running them alone.

    The parameters are a request's fields: all but the two texts may be left out.

    Args:
        text: the sentence
        second: the same with a word changed; where it has more or fewer tokens, only edges from the decoder's
            parts are scored
        step: which token of the translation, from 0; -1 for the least certain content word
        contrast: another word to compare with; empty for the next most probable (of a word, one with letters)
        edges: how many edges, 1 to 500
        direction: such as "de-en"; empty for the app's first

    Returns:
        question and metric as why does; other: the metric of the second sentence; edges (sender, receiver, nats:
        estimated, positive: the edge speaks for the token), the largest first; total: of how many; kept: the share of
        metric - other that they keep alone, measured, and random, that of as many edges drawn by lot; second, text,
        translation and target_tokens.
    """
    if not 1 <= whole("edges", edges) <= MOST_EDGES:
        raise ValueError(f"edges must be 1 to {MOST_EDGES}, found {edges}.")
    about = _scene(served, text, step, contrast, direction)
    return as_plain(about, second, *circuit_of(about, pair_of(about, string("second", second)), edges))


@endpoint(
    returns="each source token in target words after every encoder layer, and what the decoder writes of each layer"
)
def lens(served: Served, text: str, words: int = 3, direction: str = "") -> dict:
    """The encoder read in target words, by a lens that was fitted to the model, and a translation from each layer.

    Args:
        text: the sentence
        words: how many target pieces of each cell, 1 to 10
        direction: such as "de-en"; empty for the app's first

    Returns:
        pieces and shares [layer][source token][word], the embeddings first, null without fitted lenses; a share is how
        clearly the lens points there, a proxy; translations: of each layer's stream in place of the encoder's output;
        source_tokens, text, translation and target_tokens.
    """
    if not 1 <= whole("words", words) <= TOP:
        raise ValueError(f"words must be 1 to {TOP}, found {words}.")
    about = _scene(served, text, 0, "", direction)
    translator, trace = about.translator, about.trace
    found = about.lenses and encoder_lens(translator.model, about.output, about.lenses)
    layers = layer_translations(translator, list(trace.source_ids), trace.direction, trace.interventions)
    pieces = found and [
        [translator.tokenizer.tokens(row) for row in layer] for layer in found.ids[..., :words].tolist()
    ]
    return plain(
        {
            **translation_fields(about),
            "source_tokens": trace.source_tokens,
            "pieces": pieces,
            "shares": found and found.shares[..., :words],
            "translations": [translator.tokenizer.decode(ids) for ids in layers],
        }
    )


@endpoint(returns="the heads with which alone the translation stays the same, verified by decoding again")
def why_smallest(served: Served, text: str, instead: str = "zero", orders: int = 1, direction: str = "") -> dict:
    """The heads with which alone a sentence is still translated into the same words; no single one of them can go.

    Args:
        text: the sentence
        instead: what is heard of a head that is off: "zero" or "mean" (of many sentences)
        orders: how many orders to take heads away in, 1 to 3; each may end elsewhere
        direction: such as "de-en"; empty for the app's first

    Returns:
        sets, one for each order (kept: kind, layer, head of each; heads: of how many; tried: how many sets of heads
        were; verified: decoding again gave the same words); rows (order, kind, layer, values: 1 for a head that is
        needed); replacement; text, translation and target_tokens.
    """
    replacement = one_of("instead", instead, Replacement)
    if replacement is Replacement.RESAMPLE:
        raise ValueError('instead must be "zero" or "mean" here, found "resample".')
    if not 1 <= whole("orders", orders) <= len(ORDERS):
        raise ValueError(f"orders must be 1 to {len(ORDERS)}, found {orders}.")
    about = _scene(served, text, 0, "", direction)
    found = smallest.whole(about.case, about.translator, about.trace)
    heard = voices(found.case, about.translator, about.trace, replacement).draws[0]
    sets = [smallest.smallest_set(found, heard, seed=seed) for seed in ORDERS[:orders]]
    model = about.translator.model
    return plain({**translation_fields(about), **sets_table(sets, replacement, model.num_layers, model.num_heads)})


def _scene(served: Served, text: str, step: int, contrast: str, direction: str) -> Scene:
    translator, trace = served.chosen(direction)[0], served.traced(text, direction)
    at = None if whole("step", step) == -1 else step
    wanted = Asked.of(trace, at, string("contrast", contrast) or Against.RUNNER_UP)
    return Scene(trace, Selection(), translator, asked=wanted, means_cache=served.means_cache)
