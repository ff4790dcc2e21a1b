"""The panel that puts one sentence's activations into another's run: where does the difference between them live?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from model.analysis.why.case import Case
from model.analysis.why.experiments.patching import corrupted, patched
from model.analysis.why.neighbours import neighbours
from model.trace.kinds import AttentionKind, Side, SubLayerName
from model.trace.language import Refusal
from model.trace.tokens import is_symbol
from model.trace.why.patches import Direction, Grid, HeadGrid, PatchEffects, StreamGrid, SubLayerGrid
from model.trace.words import word_groups
from viz.export.explained import Explained
from viz.maps import labels
from viz.ui.desk.scene import MAX_TOKENS, Scene
from viz.ui.lab.controls import Choice, Text
from viz.ui.lab.panel import Panel
from viz.ui.lab.taking import EXPORT, about_step, asked, exports, file
from viz.wire import blocks
from viz.wire.experiments.heads import signed
from viz.wire.experiments.patches import patches_block
from viz.wire.payload import key_of
from viz.wire.question import names
from viz.wire.why import patch_dict
from viz.words import Words, say

GRIDS: dict[str, Grid] = {
    "decoder stream": StreamGrid(Side.DECODER),
    "encoder stream": StreamGrid(Side.ENCODER),
    "decoder self": SubLayerGrid(Side.DECODER, SubLayerName.SELF_ATTENTION),
    "decoder cross": SubLayerGrid(Side.DECODER, SubLayerName.CROSS_ATTENTION),
    "decoder feed": SubLayerGrid(Side.DECODER, SubLayerName.FEED_FORWARD),
    "encoder self": SubLayerGrid(Side.ENCODER, SubLayerName.SELF_ATTENTION),
    "encoder feed": SubLayerGrid(Side.ENCODER, SubLayerName.FEED_FORWARD),
    "cross heads": HeadGrid(AttentionKind.CROSS),
    "decoder heads": HeadGrid(AttentionKind.DECODER_SELF),
    "encoder heads": HeadGrid(AttentionKind.ENCODER_SELF),
}
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
    Direction.DENOISE.value: say("this sentence into the second: is it enough?"),
    Direction.NOISE.value: say("the second into this sentence: is it needed?"),
}


@dataclass(frozen=True, eq=False)
class Patched:
    """What was found: both runs, and what stands at each column of the map."""

    clean: Case
    corrupt: Case
    effects: PatchEffects
    columns: list[str]


def shown(scene: Scene, text: str, place: str, direction: str) -> list[dict]:
    """The sentence's words to click, and with a second sentence the map of what each place recovers."""
    words = _words(scene, text)
    if not text:
        return [words]
    try:
        return [words, *_told(scene, patched_with(scene, text, place, Direction(direction)), place)]
    except Refusal as error:  # the words stay, so that another one can be clicked
        return [words, blocks.text(error.words, tone="bad")]


def patched_with(scene: Scene, text: str, place: str, direction: Direction) -> Patched:
    """The map of GRIDS[place] for a second sentence. A Refusal, in words, for one that cannot be compared."""
    clean, grid = scene.case, GRIDS[place]
    other_ids = scene.translator.encode(text, scene.trace.direction)
    corrupt = corrupted(clean, other_ids)
    if (length := len(other_ids) + clean.decoder_ids.shape[1]) > MAX_TOKENS:
        raise Refusal(
            "The second sentence and what was written before this token are {n} tokens long; the limit here "
            "is {limit} tokens.",
            n=length,
            limit=MAX_TOKENS,
        )
    return Patched(
        clean, corrupt, patched(clean, corrupt, grid, direction), _columns(scene, text, other_ids, grid, direction)
    )


def _told(scene: Scene, found: Patched, place: str) -> list[dict]:
    token, contrast = names(scene.trace, scene.question)
    about = f"log p({token})" + ("" if contrast is None else f" − log p({contrast})")
    told = [
        blocks.facts(
            (say("This sentence"), signed(found.clean.metric()), about),
            (say("The second sentence, after the same prefix"), signed(found.corrupt.metric()), about),
        )
    ]
    if found.effects.recovered is None:
        told.append(
            blocks.text(
                say(
                    "The two are less than 1 nat apart: shares of that would be shares of next to "
                    "nothing, so each place shows nats."
                ),
                tone="note",
            )
        )
    return [
        *told,
        patches_block(found.effects, found.columns, PLACES[place]),
        exports(),
        blocks.text(_meaning(found.effects), tone="note"),
    ]


def taken(scene: Scene, data: Mapping[str, object], text: str, place: str, direction: str) -> list[dict]:
    """The map as a file."""
    found = patched_with(scene, text, place, Direction(direction))
    fields = {**asked(scene), "second": text, "place": place, **patch_dict(found.effects, found.columns)}
    return file(data, Explained(fields, ("layer",)), about_step("patch", scene))


def _columns(scene: Scene, text: str, other_ids: list[int], grid: Grid, direction: Direction) -> list[str]:
    """What stands at each column: heads by number, or the tokens of the run that receives."""
    if isinstance(grid, HeadGrid):
        return [str(head + 1) for head in range(scene.translator.config.num_heads)]
    if grid.side is Side.DECODER:
        return [labels.display(token) for token in scene.trace.decoder_inputs[: scene.question.step + 1]]
    if direction is Direction.NOISE:
        return [labels.display(token) for token in scene.trace.source_tokens]
    return [labels.display(token) for token in scene.translator.tokenizer.source_tokens(other_ids, text)]


def _meaning(effects: PatchEffects) -> Words:
    if effects.direction is Direction.DENOISE:
        return say(
            "Measured: the second sentence's run, with what this sentence's had at one place. 1: that place "
            "alone brings the whole difference back, so it is enough. 0: it brings nothing. Below 0 or above 1 "
            "is real."
        )
    return say(
        "Measured: this sentence's run, with what the second one's had at one place. 1: with that place gone "
        "the whole difference is gone, so it is needed. 0: it is not. Below 0 or above 1 is real."
    )


def _words(scene: Scene, text: str) -> dict:
    tokens = scene.trace.source_tokens
    words = [
        {"text": labels.word_label([tokens[i] for i in group]), "position": group[0]}
        for group in word_groups(tokens)
        if not is_symbol(tokens[group[0]])
    ]
    hint = say(
        "Click a word to put another one in its place, the next nearest with each click; or type the second sentence."
    )
    return {
        "type": "words",
        "about": key_of(scene.trace),
        "sentence": scene.trace.source_text,
        "second": text,
        "words": words,
        "hint": hint,
    }


def replaced(scene: Scene, data: Mapping[str, object], text: str, place: str, direction: str) -> str:
    """The sentence with the clicked word changed; clicked again, with the next nearest one. Or the one that a link
    names."""
    if isinstance(given := data.get("text"), str):
        return given
    position = data.get("position")
    if not isinstance(position, int):
        raise ValueError(f"a word has a position, found {position!r}")
    found = neighbours(scene.translator, scene.trace, position)
    return found[(found.index(text) + 1) % len(found)] if text in found else found[0]


PANEL = Panel(
    "why-patch",
    say("Patch"),
    say(
        "Change one word and put single activations of one run into the other: where does the difference between the "
        "two sentences live?"
    ),
    say("Vig et al. 2020; Meng et al. 2022"),
    shown,
    controls=(
        Text(say("Second sentence"), scale=4),
        Choice(say("Place"), PLACES, "decoder stream", folded=True, scale=3),
        Choice(say("Which way"), DIRECTIONS, Direction.DENOISE.value, folded=True, scale=4),
    ),
    acts={EXPORT: taken},
    fills=replaced,
)
