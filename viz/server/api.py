"""The named endpoints, which programs call on a running app. docs/how-to/api.md shows how; other routes are private.

Every answer is one JSON object with "api_version" and "status". "ok": the fields that the endpoint's docstring names.
"error": "error" is "invalid" (the request cannot be answered: change it), "busy" (come back in a moment) or "internal",
and "message" says why in words. Both come with HTTP status 200, except that a full queue is a 503 and a call with
unknown or missing fields a 422.
"""

from __future__ import annotations

import base64
import json

import numpy as np

from attention_atlas.model.analysis.lenses.read import TOP, encoder_lens, layer_translations
from attention_atlas.model.analysis.why.attribution import attribute_case, check_methods
from attention_atlas.model.analysis.why.experiments import heads, smallest
from attention_atlas.model.analysis.why.experiments.heads import make_ablation_values
from attention_atlas.model.analysis.why.experiments.patching import PatchMode, find_grid
from attention_atlas.model.analysis.why.methods import METHODS
from attention_atlas.model.analysis.why.split import split_case
from attention_atlas.model.decode.distributions import TOP_TOKENS
from attention_atlas.model.trace import interventions_file
from attention_atlas.model.trace.decoding import to_plain
from attention_atlas.model.trace.kinds import AttentionKind
from attention_atlas.model.trace.translation import TranslationTrace
from attention_atlas.model.trace.why.attribution import Against
from attention_atlas.model.trace.why.effects import Replacement, effects_table, sets_table
from attention_atlas.model.trace.why.evidence import to_jsonable
from attention_atlas.viz.export.formats import FORMATS
from attention_atlas.viz.maps.reduce import View, label_rows_by_both, score_map
from attention_atlas.viz.panels.downloads import question_fields, translation_fields
from attention_atlas.viz.panels.scene import PageQuestion, Scene, Selection
from attention_atlas.viz.panels.why.circuit import as_plain, pair_with, score_edges
from attention_atlas.viz.panels.why.patch import patch_with
from attention_atlas.viz.panels.why.smallest import ORDERS
from attention_atlas.viz.server.endpoints import (
    ENDPOINTS,
    EndpointContext,
    build,
    check_range,
    endpoint,
    read_enum,
)
from attention_atlas.viz.wire import address

__all__ = ("ENDPOINTS", "build")  # importing this module registers all endpoints

MAX_JSON_NUMBERS = 1_000_000  # in one answer; NPZ, ten times smaller, has no limit
MAX_EDGES = 500  # of a circuit


@endpoint(lane="translate")
def translate(context: EndpointContext, text: str, direction: str = "", beam: int = 1) -> dict:
    """Translate one sentence.

    Args:
        text: the sentence, at most 10,000 characters and as many tokens as the model accepts
        direction: such as "de-en"; empty for the app's first
        beam: the width of the search, 1 to 8; 1 is greedy decoding

    Returns:
        translation, direction, finished (false: stopped by its length), source_ids, source_tokens, target_ids,
        target_tokens; for each target token probabilities, ranks (from 1) and entropies (of its step, in bits);
        log_probability (natural, of the whole translation); decoding (width of the search, length_penalty, and how
        many of the first target tokens were given); interventions, {} for none; seconds, device, checkpoint, digest;
        link, which opens this page at the translation, without the interventions where they are too long for one.
    """
    trace = context.translate(text, direction, beam)
    return {**describe(trace), "link": address.fragment(trace)}


@endpoint(lane="model")
def attention(
    context: EndpointContext,
    text: str,
    kind: str = "all",
    layer: int = 0,
    head: int = 0,
    format: str = "json",
    direction: str = "",
) -> dict:
    """Translate one sentence and return attention maps, exact to the last bit of every float32.

    Args:
        text: the sentence
        kind: "encoder_self", "decoder_self" or "cross" for one map, of a recurrent model "alignment"; "all" for every
            map of every layer and head
        layer: of one map, from 0
        head: of one map, from 0
        format: "json", "npz" for a NumPy archive in base64, or another of the page's export formats
        direction: such as "de-en"; empty for the app's first

    Returns:
        One map: weights [query][key], query_tokens (for the decoder the tokens READ), key_tokens, kind, layer, head.
        All maps: the trace in the project's own schema. JSON is in "map" or "trace", another format in a field of its
        name: text formats as text, others in base64.
    """
    map_kind = None if kind == "all" else read_enum("kind", kind, AttentionKind, "all")
    formats = [name for name, known in FORMATS.items() if (known.trace if map_kind is None else known.map)]
    if format not in formats:
        raise ValueError(f"Unknown format {format!r}: there are {', '.join(formats)}.")
    trace = context.translate(text, direction)
    if map_kind is None:
        return _all_maps(trace, format)
    return _single_map(trace, map_kind, layer, head, format)


@endpoint(lane="model")
def step(
    context: EndpointContext, text: str, prefix: list[int] | None = None, candidates: int = 10, direction: str = ""
) -> dict:
    """Return the most probable next tokens after a prefix of the translation. Append an id to the prefix to go on.

    Args:
        text: the sentence to translate
        prefix: ids of the translation's first tokens; empty for the start
        candidates: how many, 1 to 10
        direction: such as "de-en"; empty for the app's first

    Returns:
        prefix, prefix_tokens, candidates (id, token, probability; most probable first), entropy (bits), end_id (the
        candidate that ends the sentence).
    """
    check_range("candidates", candidates, TOP_TOKENS)
    translator, code = context.select(direction)
    end = translator.tokenizer.end_id
    ids = prefix or []
    # The last row of the trace holds the distribution after the prefix, whichever token is forced there.
    trace = translator.trace(text, code, target=[*ids, end], interventions=context.interventions)
    rows = zip(trace.top_ids[-1].tolist(), trace.top_tokens[-1], trace.top_probabilities[-1].tolist())
    ranked = [{"id": i, "token": token, "probability": p} for i, token, p in rows]
    return {
        "prefix": ids,
        "prefix_tokens": list(trace.target_tokens[:-1]),
        "candidates": ranked[:candidates],
        "entropy": float(trace.entropy[-1]),
        "end_id": end,
    }


@endpoint(lane="model")
def score(context: EndpointContext, text: str, target: str, direction: str = "") -> dict:
    """Score a given translation token by token (teacher forcing).

    Args:
        text: the sentence
        target: the translation to score
        direction: such as "de-en"; empty for the app's first

    Returns:
        the fields of translate, without link, for this target; log_probability is natural, of the whole target and
        its end.
    """
    translator, code = context.select(direction)
    return describe(translator.trace(text, code, target=target, interventions=context.interventions))


def describe(trace: TranslationTrace) -> dict:
    """Return a trace's JSON-ready fields without its maps."""
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


def _single_map(trace: TranslationTrace, kind: AttentionKind, layer: int, head: int, form: str) -> dict:
    maps = trace.maps(kind)
    for name, index, size in (("layer", layer, maps.num_layers), ("head", head, maps.num_heads)):
        if not 0 <= index < size:
            raise ValueError(f"{kind.value} has {name}s 0 to {size - 1}, found {index}.")
    view = View(kind, layer, head)
    return _file(
        "map", form, FORMATS[form].map.write(trace, view, label_rows_by_both(score_map(trace, view), trace, view))
    )


def _file(subject: str, form: str, data: bytes) -> dict:
    media_type = FORMATS[form].media_type
    if media_type == "application/json":
        return {subject: json.loads(data)}
    return {form: data.decode() if media_type.startswith("text/") else base64.b64encode(data).decode("ascii")}


@endpoint(lane="model")
def why(
    context: EndpointContext,
    text: str,
    step: int = -1,
    contrast: str = "",
    methods: list[str] | None = None,
    direction: str = "",
) -> dict:
    """Explain why the model wrote one token of its translation rather than another.

    Args:
        text: the sentence
        step: which token of the translation, from 0; -1 for the least certain content word
        contrast: another word to compare with; empty for the next most probable (of a word, one with letters)
        methods: names of attribution methods; empty for all
        direction: such as "de-en"; empty for the app's first

    Returns:
        question (step, token, contrast, note); metric: log p(token) - log p(contrast) in nats; columns: words of
        the source, then (from source_columns on) of the prefix; special: which of them are symbols; rows (method,
        evidence: "measured", "exact split" or "proxy", unit, values by column, sum with its error, notes,
        agreement: rank correlation with occlusion under another replacement, null where that row was not asked
        for); parts: the metric as a sum over the decoder's parts; translation and target_tokens.
    """
    scene = _scene(context, text, step, contrast, direction)
    attributions = attribute_case(scene.case, check_methods(methods or tuple(METHODS)))
    return {**translation_fields(scene), **to_jsonable(attributions), "parts": to_jsonable(split_case(scene.case))}


@endpoint(lane="model")
def why_heads(
    context: EndpointContext, text: str, step: int = -1, contrast: str = "", instead: str = "zero", direction: str = ""
) -> dict:
    """Measure what one token of a translation loses without each attention head, one run per head.

    Args:
        text: the sentence
        step: which token of the translation, from 0; -1 for the least certain content word
        contrast: another word to compare with; empty for the next most probable (of a word, one with letters)
        instead: what replaces the output of a head that is off: "zero", "mean" (over many sentences) or "resample"
            (the outputs in other sentences)
        direction: such as "de-en"; empty for the app's first

    Returns:
        question and metric as in why; rows (kind, layer, evidence, unit, values: the nats that the metric loses
        without each head; flips: whether another token is then written), first the measured rows, then those
        predicted from gradients (evidence "proxy"); replacement; draws: the number of sentences averaged over;
        text, translation and target_tokens.
    """
    replacement = read_enum("instead", instead, Replacement)
    scene = _scene(context, text, step, contrast, direction)
    values = make_ablation_values(scene.case, scene.translator, scene.trace, replacement)
    effects = heads.measure_all_heads(scene.case, values), heads.estimate_heads(scene.case, values)
    return to_jsonable({**question_fields(scene), **effects_table(*effects)})


@endpoint(lane="model")
def why_patch(
    context: EndpointContext,
    text: str,
    second: str,
    step: int = -1,
    contrast: str = "",
    place: str = "decoder stream",
    way: str = "denoise",
    direction: str = "",
) -> dict:
    """Patch one sentence's activations into another's run, place by place, after the same prefix.

    Args:
        text: the sentence
        second: another one, such as the same with one word changed
        step: which token of the translation, from 0; -1 for the least certain content word
        contrast: another word to compare with; empty for the next most probable (of a word, one with letters)
        place: "decoder stream", "encoder stream", "decoder self", "decoder cross", "decoder feed", "encoder
            self", "encoder feed", "cross heads", "decoder heads" or "encoder heads"
        way: "denoise" (from this sentence into the second: is it sufficient?) or "noise" (from the second into this
            one: is it necessary?)
        direction: such as "de-en"; empty for the app's first

    Returns:
        question and metric as in why; base and other: the metric of the run that is patched and of the run that
        the activations come from; rows (layer, evidence, unit, values: the metric with that place patched, null
        where the sentences have no common place); columns: tokens or heads; recovered: (patched - base) / (other -
        base), null where base and other are less than 1 nat apart; text, second, translation and target_tokens.
    """
    find_grid(place)  # raises ValueError
    patch_direction = read_enum("way", way, PatchMode)
    scene = _scene(context, text, step, contrast, direction)
    effects = patch_with(scene, second, place, patch_direction)
    return to_jsonable({**question_fields(scene), "second": second, "place": place, **effects.as_plain()})


@endpoint(lane="model")
def why_circuit(
    context: EndpointContext,
    text: str,
    second: str,
    step: int = -1,
    contrast: str = "",
    edges: int = 25,
    direction: str = "",
) -> dict:
    """Find the edges along which the difference between two sentences decides a token: EAP-IG, tested by running them
    alone.

    Args:
        text: the sentence
        second: the same with a word changed; where it has more or fewer tokens, only edges from the decoder's
            parts are scored
        step: which token of the translation, from 0; -1 for the least certain content word
        contrast: another word to compare with; empty for the next most probable (of a word, one with letters)
        edges: how many edges, 1 to 500
        direction: such as "de-en"; empty for the app's first

    Returns:
        question and metric as in why; other: the metric of the second sentence; edges (sender, receiver, nats:
        estimated, positive where the edge favours the token), the largest first; total: the number of all edges;
        kept: the share of metric - other that the edges keep alone, measured; random: that of as many random edges;
        second, text, translation and target_tokens.
    """
    check_range("edges", edges, MAX_EDGES)
    scene = _scene(context, text, step, contrast, direction)
    pair = pair_with(scene, second)
    return as_plain(scene, second, score_edges(scene.translator, pair), pair, edges)


@endpoint(lane="model")
def lens(context: EndpointContext, text: str, words: int = 3, direction: str = "") -> dict:
    """Read the encoder's layers in target words with a lens fitted to the model, and translate from each layer.

    Args:
        text: the sentence
        words: how many target pieces of each cell, 1 to 10
        direction: such as "de-en"; empty for the app's first

    Returns:
        pieces and shares [layer][source token][word], the embeddings first, null without fitted lenses; a share says
        how clearly the lens points there (a proxy); translations: the decoder's, with each layer's stream in place of
        the encoder's output; source_tokens, text, translation and target_tokens.
    """
    check_range("words", words, TOP)
    scene = _scene(context, text, 0, "", direction)
    translator, trace = scene.translator, scene.trace
    lens_words = scene.lenses and encoder_lens(translator.model, scene.output, scene.lenses)
    layers = layer_translations(translator, list(trace.source_ids), trace.direction, trace.interventions)
    pieces = lens_words and [
        [translator.tokenizer.tokens(row) for row in layer] for layer in lens_words.ids[..., :words].tolist()
    ]
    return to_jsonable(
        {
            **translation_fields(scene),
            "source_tokens": trace.source_tokens,
            "pieces": pieces,
            "shares": lens_words and lens_words.shares[..., :words],
            "translations": [translator.tokenizer.decode(ids) for ids in layers],
        }
    )


@endpoint(lane="model")
def why_smallest(
    context: EndpointContext, text: str, instead: str = "zero", orders: int = 1, direction: str = ""
) -> dict:
    """Find a minimal set of heads that still translates a sentence into the same words.

    Args:
        text: the sentence
        instead: what replaces the output of a head that is off: "zero" or "mean" (over many sentences)
        orders: the number of orders to remove heads in, 1 to 3; each may find another set
        direction: such as "de-en"; empty for the app's first

    Returns:
        sets, one for each order (kept: kind, layer and head of each; heads: the number of all heads; tried: the number
        of sets tried; verified: whether decoding again gave the same words); rows (order, kind, layer, values: 1 for
        a head in the set); replacement; text, translation and target_tokens.
    """
    replacement = read_enum("instead", instead, Replacement)
    if replacement is Replacement.RESAMPLE:
        raise ValueError('instead must be "zero" or "mean" here, found "resample".')
    check_range("orders", orders, len(ORDERS))
    scene = _scene(context, text, 0, "", direction)
    whole = smallest.open_translation(scene.case, scene.translator, scene.trace)
    values = make_ablation_values(whole.case, scene.translator, scene.trace, replacement).draws[0]
    sets = [smallest.shrink_to_end(whole, values, seed=seed) for seed in ORDERS[:orders]]
    model = scene.translator.model
    return to_jsonable(
        {**translation_fields(scene), **sets_table(sets, replacement, model.num_layers, model.num_heads)}
    )


def _scene(context: EndpointContext, text: str, step: int, contrast: str, direction: str) -> Scene:
    """Translate a text and ask about one of its tokens; step -1 for the least certain content word."""
    translator, trace = context.select(direction)[0], context.translate(text, direction)
    at = None if step == -1 else step
    question = PageQuestion.of(trace, at, contrast or Against.RUNNER_UP)
    return Scene(trace, Selection(), translator, page_question=question)
