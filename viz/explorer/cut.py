"""Cutting edges of attention in the explorer: the sentence is translated without them, and the effect is measured."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

from attention_atlas.model.analysis import rerun
from attention_atlas.model.analysis.why.experiments.cutting import CutMode, cut_edges, metric_without_edges
from attention_atlas.model.trace.interventions import Edge
from attention_atlas.model.trace.kinds import AttentionKind
from attention_atlas.model.trace.language import Refusal, Words
from attention_atlas.model.trace.translation import TranslationTrace
from attention_atlas.viz.panels.scene import Scene
from attention_atlas.viz.wire import fields
from attention_atlas.viz.wire.blocks import format_nats, with_minus_sign
from attention_atlas.viz.wire.question import token_names
from attention_atlas.viz.words import say

MOST = 4096  # edges cut at once: a few words in all heads of a layer


def read_edges(data: Mapping[str, object]) -> tuple[frozenset[Edge], CutMode]:
    """Read the edges to cut: {kind, heads: [[layer, head]], queries, keys: positions, how}. ValueError if malformed."""
    kind, how = AttentionKind(data.get("kind")), CutMode(data.get("how"))
    heads = fields.read_list(data, "heads", lambda pair: fields.parse_head((kind, *pair)))
    queries, keys = fields.read_integers(data, "queries"), fields.read_integers(data, "keys")
    count = len(heads) * len(queries) * len(keys)
    if not 0 < count <= MOST:  # checked before the edges are created
        raise ValueError(f"1 to {MOST} edges can be cut at once, found {count}")
    edges = frozenset(Edge(kind, *cell, layer, head) for _, layer, head in heads for cell in product(queries, keys))
    if kind is AttentionKind.DECODER_SELF:
        # A rectangle over the pieces of a word includes cells that the causal mask closes.
        edges = frozenset(edge for edge in edges if edge.key <= edge.query)
        if not edges:
            raise Refusal("There is no such edge: the decoder cannot look ahead.")
    return edges, how


def translate_without(scene: Scene, data: Mapping[str, object]) -> TranslationTrace:
    """Translate the sentence without these edges, in addition to the trace's interventions."""
    trace, (edges, how) = scene.trace, read_edges(data)
    return rerun.retranslate(scene.translator, trace, cut_edges(trace.interventions, edges, how))


def describe_effect(scene: Scene, data: Mapping[str, object], broken: TranslationTrace) -> dict:
    """Return both translations, and the effect on the pinned token after the same prefix, in words.

    broken: the trace of translate_without().
    """
    trace = scene.trace
    same = broken.target_ids == trace.target_ids
    return {
        "same": same,
        "before": trace.translation,
        "after": broken.translation,
        "words": [
            say("The translation stays the same.") if same else say("The translation changes."),
            _effect(scene, data),
        ],
    }


def _effect(scene: Scene, data: Mapping[str, object]) -> Words:
    (edges, how), question = read_edges(data), scene.question
    try:
        case = scene.case
    except Refusal as error:  # too long for the question: the translations are still compared
        return error.words
    before, after = case.metric(), metric_without_edges(case, edges, how)
    token, contrast = token_names(scene.trace, question)
    values = {
        "token": token,
        "before": format_nats(before),
        "after": format_nats(after),
        "change": with_minus_sign(f"{after - before:+.2g}"),
    }
    if contrast is None:
        return say(
            "With the same words written so far, log p(“{token}”) goes from {before} to {after} nats "
            "({change}). Measured.",
            **values,
        )
    return say(
        "With the same words written so far, the lead of “{token}” over “{contrast}” goes from "
        "{before} to {after} nats ({change}). Measured.",
        contrast=contrast,
        **values,
    )
