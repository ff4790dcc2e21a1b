"""The panel "Patch": activation patching between this sentence and a second one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from attention_atlas.model.analysis.why.experiments.patching import GRIDS, HeadGrid, PatchEffects, PatchMode, patch_case
from attention_atlas.model.analysis.why.neighbours import make_neighbour_sentences
from attention_atlas.model.trace.language import Refusal
from attention_atlas.viz.maps import labels
from attention_atlas.viz.panels.downloads import EXPORT, about_step, exports, file, question_fields
from attention_atlas.viz.panels.panel import Choice, Panel, Text
from attention_atlas.viz.panels.scene import MAX_TOKENS, Scene
from attention_atlas.viz.wire import blocks, fields
from attention_atlas.viz.wire.file import File
from attention_atlas.viz.wire.question import token_names
from attention_atlas.viz.words import Words, say

PLACES = {
    "decoder stream": say("decoder: residual stream"),
    "encoder stream": say("encoder: residual stream"),
    "decoder self": say("decoder: output of self-attention"),
    "decoder cross": say("decoder: output of cross-attention"),
    "decoder feed": say("decoder: output of the feed-forward"),
    "encoder self": say("encoder: output of self-attention"),
    "encoder feed": say("encoder: output of the feed-forward"),
    "cross heads": say("cross-attention heads"),
    "decoder heads": say("decoder self-attention heads"),
    "encoder heads": say("encoder self-attention heads"),
}
DIRECTIONS = {
    PatchMode.DENOISE.value: say("from this sentence into the second: is it sufficient?"),
    PatchMode.NOISE.value: say("from the second sentence into this one: is it necessary?"),
}
MEANINGS = {
    PatchMode.DENOISE: blocks.note(
        "Measured: the second sentence, with this sentence's activation at one place. 1: that place "
        "alone restores the whole difference. 0: it restores nothing. Values below 0 or above 1 are "
        "not errors."
    ),
    PatchMode.NOISE: blocks.note(
        "Measured: this sentence, with the second sentence's activation at one place. 1: without "
        "that place the whole difference is gone. 0: nothing is lost. Values below 0 or above 1 are "
        "not errors."
    ),
}


def patch(scene: Scene, text: str, place: str, direction: str) -> list[dict]:
    """Draw the sentence's words to click and, given a second sentence, the effect of patching each place."""
    return with_words(
        scene, text, lambda: _effect_blocks(scene, patch_with(scene, text, place, PatchMode(direction)), place)
    )


def with_words(scene: Scene, text: str, compute: Callable[[], list[dict]]) -> list[dict]:
    """Return the words to click and, if there is a second sentence, the computed blocks or their refusal."""
    words = second_sentence(scene, text)
    try:
        return [words, *(compute() if text else ())]
    except Refusal as error:  # keep the words, so that another one can be clicked
        return [words, blocks.text(error.words, tone="bad")]


def patch_with(scene: Scene, text: str, place: str, direction: PatchMode) -> PatchEffects:
    """Measure the effects of GRIDS[place] with a second sentence. A Refusal if it cannot be compared."""
    ids = scene.translator.encode(text, scene.trace.direction)
    if (length := len(ids) + scene.case.decoder_ids.shape[1]) > MAX_TOKENS:
        raise Refusal(
            "The second sentence and the tokens before this one are {n} tokens long; the limit here is {limit} tokens.",
            n=length,
            limit=MAX_TOKENS,
        )
    effects = patch_case(scene.case, scene.translator, scene.trace, text, GRIDS[place], direction)
    return replace(effects, columns=tuple(map(labels.display, effects.columns)))


def _effect_blocks(scene: Scene, effects: PatchEffects, place: str) -> list[dict]:
    """Draw the metric of both sentences and the grid of effects."""
    token, contrast = token_names(scene.trace, scene.question)
    about = f"log p({token})" + ("" if contrast is None else f" − log p({contrast})")
    denoises = effects.direction is PatchMode.DENOISE
    clean, corrupt = (effects.other, effects.base) if denoises else (effects.base, effects.other)
    nats = blocks.note("The two differ by less than 1 nat, too little for shares, so each place shows nats.")
    return [
        blocks.facts(
            (say("This sentence"), blocks.format_effect(clean), about),
            (say("The second sentence, after the same words"), blocks.format_effect(corrupt), about),
        ),
        *([nats] if effects.recovered is None else []),
        _grid(effects, PLACES[place]),
        exports(),
        MEANINGS[effects.direction],
    ]


def as_file(scene: Scene, data: Mapping[str, object], text: str, place: str, direction: str) -> File:
    """Return the effects as a file."""
    effects = patch_with(scene, text, place, PatchMode(direction))
    table = {**question_fields(scene), "second": text, "place": place, **effects.as_plain()}
    return file(data, table, about_step("patch", scene))


def _grid(effects: PatchEffects, name: Words) -> dict:
    """Return a grid of layers by positions or heads: recovered shares, or nats if the runs hardly differ.

    name: its accessible name.
    """
    shares, columns = effects.recovered, effects.columns
    values = effects.metrics - effects.base if shares is None else shares
    limit = 1.0 if shares is not None else float(np.nanmax(np.abs(values), initial=0.0)) or 1.0
    heads = isinstance(effects.grid, HeadGrid)

    def cell(layer: int, column: int) -> dict:
        value, moved = float(values[layer, column]), float(effects.metrics[layer, column] - effects.base)
        where = {"layer": layer + 1, "place": column + 1 if heads else columns[column]}
        if np.isnan(value):
            name = say("Layer {layer}, {place}: the other sentence has no such place.", **where)
            return {"value": None, "text": "", "marks": ["absent"], "name": name}
        share = blocks.compact(value, 2) if abs(value) >= 0.005 else "0"
        text = blocks.format_effect(value) if shares is None else share
        where |= {"n": blocks.format_effect(moved), "share": text}
        names = {  # (whether places are heads, whether cells are shares)
            (True, False): say("Layer {layer}, head {place}: {n} nats.", **where),
            (False, False): say("Layer {layer}, {place}: {n} nats.", **where),
            (True, True): say("Layer {layer}, head {place}: {share} of the way, {n} nats.", **where),
            (False, True): say("Layer {layer}, {place}: {share} of the way, {n} nats.", **where),
        }
        name = names[heads, shares is not None]
        return {"value": round(max(-1.0, min(1.0, value / limit)), 4), "text": text, "marks": [], "name": name}

    rows = [
        {"label": say("layer {n}", n=layer + 1), "cells": [cell(layer, column) for column in range(len(columns))]}
        for layer in range(len(values))
    ]
    return {"type": "grid", "name": name, "corner": "", "columns": list(columns), "rows": rows}


def second_sentence(scene: Scene, text: str) -> dict:
    """Return the block of words to click, each for another word in its place."""
    words = labels.words(scene.trace.source_tokens)
    return {
        "type": "words",
        "about": scene.trace.key,
        "sentence": scene.trace.source_text,
        "second": text,
        "words": [{"text": word, "position": group[0]} for group, word in words],
        "hint": say(
            "Click a word to swap it for a similar one; click again for the next. Or type the second sentence."
        ),
    }


def replace_word(scene: Scene, data: Mapping[str, object], text: str, *_: object) -> str:
    """Return the sentence with the clicked word replaced by the nearest one, or the next nearest with each click.

    data: {position} of the clicked word, or {text}, a sentence from a link.
    """
    if isinstance(sentence := data.get("text"), str):
        return sentence
    sentences = make_neighbour_sentences(scene.translator, scene.trace, fields.read_integer(data, "position"))
    return sentences[(sentences.index(text) + 1) % len(sentences)] if text in sentences else sentences[0]


PANEL = Panel(
    "why-patch",
    "Patch",
    "Change one word, then copy single activations between the two runs: where does the difference arise?",
    say("Vig et al. 2020; Meng et al. 2022"),
    patch,
    controls=(
        Text(say("Second sentence"), scale=4),
        Choice(say("Place"), PLACES, "decoder stream", folded=True, scale=3),
        Choice(say("Copy"), DIRECTIONS, PatchMode.DENOISE.value, folded=True, scale=4),
    ),
    actions={EXPORT: as_file},
    fill_text=replace_word,
)
