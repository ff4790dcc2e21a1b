"""The names of a Transformer's places, each with its axes, in the order of the pass."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache

from attention_atlas.model.config import ModelConfig, PositionCode
from attention_atlas.model.trace.interventions import HeadOutput, Stream, SubLayerOutput
from attention_atlas.model.trace.kinds import AttentionKind, Side, SubLayerName

HEADS = ("batch", "heads", "query", "d_head")
# by part of an attention: axes, meaning
ATTENTION = {
    "q": (HEADS, "queries"),
    "k": (("batch", "heads", "key", "d_head"), "keys"),
    "v": (("batch", "heads", "key", "d_head"), "values"),
    "bias": (("1", "heads", "query", "key"), "bias of relative positions on the scores"),
    "scores": (
        ("batch", "heads", "query", "key"),
        "q k^T / sqrt(d_k), or q k^T + bias; the mask is applied afterwards",
    ),
    "pattern": (("batch", "heads", "query", "key"), "attention weights that the values are multiplied by"),
    "z": (HEADS, "output of each head, before W_O"),
    "out": (("batch", "query", "d_model"), "output of the sub-layer, added to the residual stream"),
}
FEED_FORWARD = {
    "pre": (("batch", "position", "d_feedforward"), "hidden units before the activation"),
    "gate": (("batch", "position", "d_feedforward"), "factor of the hidden units after the activation"),
    "post": (("batch", "position", "d_feedforward"), "hidden units after the activation and the gate"),
    "out": (("batch", "position", "d_model"), "output of the sub-layer, added to the residual stream"),
}
STREAM = ("batch", "position", "d_model")
SHORT = {
    SubLayerName.SELF_ATTENTION: "self",
    SubLayerName.CROSS_ATTENTION: "cross",
    SubLayerName.FEED_FORWARD: "ffn",
}
AFTER = {
    None: "resid_pre",
    SubLayerName.SELF_ATTENTION: "resid_mid",
    SubLayerName.CROSS_ATTENTION: "resid_cross",
    SubLayerName.FEED_FORWARD: "resid_post",
}


@dataclass(frozen=True)
class Place:
    """A tensor of a pass that can be read and edited.

    axes   of the tensor; the last but one counts the rows
    about  its meaning
    side   whose tokens the rows belong to: the keys of cross-attention are the encoder's
    """

    name: str
    axes: tuple[str, ...]
    about: str
    side: Side

    @property
    def stack(self) -> Side:
        """The stack that computes it; for keys of cross-attention the decoder."""
        return Side.ENCODER if self.name.startswith(Side.ENCODER.value) else Side.DECODER

    @property
    def has_heads(self) -> bool:
        return len(self.axes) == len(HEADS)


@lru_cache(maxsize=64)
def places(config: ModelConfig) -> tuple[Place, ...]:
    """Return all places of a Transformer of this shape."""
    return tuple(_places(config))


def _places(config: ModelConfig) -> Iterator[Place]:
    for side, layers in ((Side.ENCODER, config.num_encoder_layers), (Side.DECODER, config.num_decoder_layers)):
        yield Place(f"{side.value}.embed", STREAM, "token embeddings, scaled", side)
        if config.adds_positions:
            yield Place(f"{side.value}.pos", ("1", "position", "d_model"), "position code", side)
        for layer in range(layers):
            yield from _layer(config, side, f"{side.value}.{layer}")
        yield Place(f"{side.value}.final", STREAM, "output of the stack, after its last norm", side)
    yield Place("logits", ("batch", "position", "vocabulary"), "logits of the next token", Side.DECODER)


def _layer(config: ModelConfig, side: Side, at: str) -> Iterator[Place]:
    biased = config.position_code is PositionCode.RELATIVE
    yield Place(f"{at}.resid_pre", STREAM, "the residual stream that enters the layer", side)
    for name in SubLayerName:
        if name is SubLayerName.CROSS_ATTENTION and side is Side.ENCODER:
            continue
        parts = FEED_FORWARD if name is SubLayerName.FEED_FORWARD else ATTENTION
        for part, (axes, about) in parts.items():
            if part == "gate" and not config.gated:
                continue
            if part == "bias" and not (biased and name is SubLayerName.SELF_ATTENTION):
                continue
            of_source = name is SubLayerName.CROSS_ATTENTION and part in "kv"
            yield Place(f"{at}.{SHORT[name]}.{part}", axes, about, Side.ENCODER if of_source else side)
        yield Place(f"{at}.{AFTER[name]}", STREAM, f"the residual stream after {name.value.replace('_', ' ')}", side)


@lru_cache(maxsize=256)
def _matching(patterns: tuple[str, ...], config: ModelConfig) -> tuple[tuple[Place, tuple[int, ...]], ...]:
    """Return the places that match a pattern, each with the indices of its patterns."""
    matches = [
        (place, tuple(n for n, pattern in enumerate(patterns) if fnmatchcase(place.name, pattern)))
        for place in places(config)
    ]
    matched = {n for _, numbers in matches for n in numbers}
    for n, pattern in enumerate(patterns):
        if n not in matched:
            names = [place.name for place in places(config)]
            near = difflib.get_close_matches(pattern, names, 3, 0.5) or names[:3]
            raise ValueError(f"no place is called {pattern!r}: there are {', '.join(near)} and others, see places()")
    return tuple((place, numbers) for place, numbers in matches if numbers)


def matching(patterns: Iterable[str], config: ModelConfig) -> tuple[Place, ...]:
    """Return the places that match these names or globs, in the order of the pass.

    Raises ValueError, with similar names, for a pattern that matches no place.
    """
    return tuple(place for place, _ in _matching(tuple(patterns), config))


@lru_cache(maxsize=1024)
def at(prefix: str, patterns: tuple[str, ...], config: ModelConfig) -> dict[str, tuple[Place, tuple[int, ...]]]:
    """Return the matching places PREFIX.part, by part: the place and the indices of its patterns."""
    start = f"{prefix}." if prefix else ""
    return {
        place.name.removeprefix(start): (place, numbers)
        for place, numbers in _matching(patterns, config)
        if place.name.startswith(start) and (prefix or place.name == "logits")
    }


def name_of(place: HeadOutput | SubLayerOutput | Stream) -> str:
    """Return the place of a patch in Interventions."""
    if isinstance(place, HeadOutput):
        cross = place.kind is AttentionKind.CROSS
        return f"{place.kind.side.value}.{place.layer}.{'cross' if cross else 'self'}.z"
    if isinstance(place, SubLayerOutput):
        return f"{place.side.value}.{place.layer}.{SHORT[place.sublayer]}.out"
    return f"{place.side.value}.{place.layer}.{AFTER[place.after]}"
