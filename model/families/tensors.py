"""From a family's tensors to ours: names, order, aliases."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from attention_atlas.model.config import ModelConfig, PositionCode
from attention_atlas.model.families.folder import Weights
from attention_atlas.model.nets.positions import encoding
from attention_atlas.model.nets.transformer import Transformer

SHARED, ENCODER, DECODER = "shared.weight", "encoder.embed_tokens.weight", "decoder.embed_tokens.weight"
HEAD, BIAS = "lm_head.weight", "final_logits_bias"
POSITIONS = {
    side: f"model.{stack}.embed_positions.weight" for side, stack in (("source", "encoder"), ("target", "decoder"))
}
OURS = re.compile(r"(encoder|decoder)\.layers\.(\d+)\.(.+)\.(weight|bias)")
HARMLESS = ("encoder.version", "decoder.version", "._float_tensor", ".embed_positions.weights")  # endings


@dataclass(frozen=True)
class Naming:
    """What a family calls its tensors.

    prefix  of all but the output matrix and its bias
    layers  of a layer, with its {stack} and its {number}
    parts   stack -> our name of a part of a layer -> theirs; several are put one below the other
    others  our name of any other module -> theirs, as prefix or layers begin it
    """

    prefix: str
    layers: str
    parts: Mapping[str, Mapping[str, tuple[str, ...]]]
    others: Mapping[str, str]

    def of(self, ours: str) -> tuple[str, ...]:
        """Theirs of one of our tensors."""
        if found := OURS.fullmatch(ours):
            stack, number, part, end = found.groups()
            start = self.layers.format(stack=stack, number=number)
            return tuple(f"{self.prefix}{start}.{name}.{end}" for name in self.parts[stack][part])
        name, _, end = ours.rpartition(".")
        return (f"{self.prefix}{self.others[name]}.{end}",)


# The families that fairseq and Marian made. The order in their files is k, v, q; our matrix stacks q, k, v.
_SELF = {
    "self_attention.projection": tuple(f"self_attn.{part}_proj" for part in "qkv"),
    "self_attention.output": ("self_attn.out_proj",),
    "feed_forward.expand": ("fc1",),
    "feed_forward.contract": ("fc2",),
    "sublayers.0.norm": ("self_attn_layer_norm",),
}
FAIRSEQ = Naming(
    "model.",
    "{stack}.layers.{number}",
    {
        # The last norm is the feed-forward's, in spite of its name.
        "encoder": _SELF | {"sublayers.1.norm": ("final_layer_norm",)},
        "decoder": _SELF
        | {
            "cross_attention.projection": tuple(f"encoder_attn.{part}_proj" for part in "qkv"),
            "cross_attention.output": ("encoder_attn.out_proj",),
            "sublayers.1.norm": ("encoder_attn_layer_norm",),
            "sublayers.2.norm": ("final_layer_norm",),
        },
    },
    {f"{stack}.norm": f"{stack}.layer_norm" for stack in ("encoder", "decoder")}
    | {f"{stack}.entry": f"{stack}.layernorm_embedding" for stack in ("encoder", "decoder")}
    | {"source_positions": "encoder.embed_positions", "target_positions": "decoder.embed_positions"},
)


@dataclass(frozen=True)
class Embeddings:
    """Which tensor of a file serves as the source's embedding, the target's, and the output projection; whether source
    and target are one matrix (shared), and target and output (tied). notes: what a person should know of how that was
    decided."""

    source: str
    target: str
    head: str
    shared: bool
    tied: bool
    notes: tuple[str, ...] = ()

    def told(self, config: ModelConfig) -> ModelConfig:
        """The config with what the file says of its matrices."""
        return replace(config, shared_embeddings=self.shared, tied_output=self.tied)


def embeddings(weights: Weights, *, tied: bool, shared: bool, prefix: str = FAIRSEQ.prefix) -> Embeddings:
    """Sort out the names that one matrix may have. ValueError if there is none for some purpose.

    tied: tie_word_embeddings, whether the output projection is the target's embedding; shared:
    share_encoder_decoder_embeddings, whether source and target have one.
    """
    both, encoder, decoder, _ = names = embedding_names(prefix)
    found = [name for name in names if name in weights.shapes]
    if shared and tied and found == [HEAD]:
        return Embeddings(HEAD, HEAD, HEAD, True, True)
    source = _first(found, encoder, both if shared else None, decoder if shared else None)
    target = _first(found, decoder, both if shared else None, encoder if shared else None)
    one = shared and weights.same(source, target)
    if not tied:
        head = _first(found, HEAD)
        return Embeddings(source, target, head, one, weights.same(head, target))
    notes = ()
    if HEAD in found and not weights.same(HEAD, target):
        notes = (
            f"{HEAD} differs from {target}, though the config ties them: the embedding is used. Converters before "
            "April 2024 left an output matrix that is not the model's.",
        )
    return Embeddings(source, target, target, one, True, notes)


def embedding_names(prefix: str) -> tuple[str, str, str, str]:
    """What a file may call both sides' embedding, the encoder's, the decoder's, and the output matrix."""
    return f"{prefix}{SHARED}", f"{prefix}{ENCODER}", f"{prefix}{DECODER}", HEAD


def _first(found: list[str], *names: str | None) -> str:
    for name in names:
        if name in found:
            return name
    wanted = " or ".join(name for name in names if name)
    raise ValueError(f"the weights lack {wanted}; of the embeddings they have {', '.join(found) or 'none'}")


def stored_positions(config: ModelConfig, weights: Weights) -> tuple[ModelConfig, tuple[str, ...]]:
    """Files of 2020 hold the tables of sines, and what is stored is what counts. Where it is the formula's, in the
    file's precision, there is nothing to keep. Learned positions are parameters like any others."""
    if config.position_code is PositionCode.LEARNED:
        return config, ()
    stored = [name for name in POSITIONS.values() if name in weights.shapes]
    if not stored:
        return config, ()
    table = encoding(config, torch.arange(config.max_length))
    if all(
        weights.shapes[name] == tuple(table.shape) and torch.equal(weights[name], table.to(weights[name].dtype))
        for name in stored
    ):
        return config, ()
    if len(stored) == 1:
        raise ValueError(f"{stored[0]} is not the table of sines that the family has, and the other side's is missing")
    note = "The stored position tables are not the family's sines: they are kept as learned positions."
    return replace(config, position_code=PositionCode.LEARNED), (note,)


class Ours(Mapping[str, Tensor]):
    """Our tensors by name, each made from theirs when it is asked for: opening a model never holds it twice."""

    def __init__(self, weights: Weights, made_from: dict[str, tuple[str, ...]]) -> None:
        self.weights, self.made_from = weights, made_from

    def __getitem__(self, name: str) -> Tensor:
        parts = [self.weights[theirs] for theirs in self.made_from[name]]
        tensor = parts[0] if len(parts) == 1 else torch.cat(parts)
        return tensor.reshape(-1) if self.made_from[name] == (BIAS,) else tensor  # theirs is [1, vocabulary]

    def __iter__(self) -> Iterator[str]:
        return iter(self.made_from)

    def __len__(self) -> int:
        return len(self.made_from)


def ours(
    weights: Weights,
    config: ModelConfig,
    matrices: Embeddings,
    *,
    naming: Naming = FAIRSEQ,
    ignored: tuple[str, ...] = (),
) -> Ours:
    """All tensors of a network of this config. ignored: names that stand in the file and mean nothing more.

    ValueError that names tensors which are missing, unknown, or of another shape than the config says.
    """
    own = {
        "embedding.weight": (matrices.source,),
        "target_embedding.weight": (matrices.target,),
        "output.weight": (matrices.head,),
        "output_bias": (BIAS,),
    }
    with torch.device("meta"):  # shapes without memory
        state = Transformer(config).state_dict()
    made_from = {name: own.get(name) or naming.of(name) for name in state}
    shapes = {part: _shape(state[name], parts) for name, parts in made_from.items() for part in parts}
    embedded = embedding_names(naming.prefix)
    _check(weights, shapes, {*ignored, *embedded}, embedded)
    return Ours(weights, made_from)


def _shape(tensor: Tensor, parts: tuple[str, ...]) -> tuple[int, ...]:
    """Of each of the parts that a tensor of ours is made from."""
    rows, *rest = tensor.shape
    return (1, rows) if parts == (BIAS,) else (rows // len(parts), *rest)


def _check(weights: Weights, shapes: Mapping[str, tuple[int, ...]], known: set[str], embedded: tuple[str, ...]) -> None:
    """shapes: of what is used; known: what may stand there besides; embedded: which are embeddings."""
    if missing := sorted(set(shapes) - set(weights.shapes)):
        raise ValueError(f"the weights lack {len(missing)} tensors, the first is {missing[0]!r}")
    unknown = sorted(name for name in set(weights.shapes) - known - set(shapes) if not name.endswith(HARMLESS))
    if unknown:
        raise ValueError(
            f"the weights have {len(unknown)} tensors that this family does not, the first is {unknown[0]!r}"
        )
    for name in sorted(shapes):
        if weights.shapes[name] != shapes[name]:
            raise ValueError(f"{name} has shape {list(weights.shapes[name])}, expected {list(shapes[name])}")
    # What no honest file does, one of a few bytes can claim: tensors of any size that all lie on the same numbers.
    numbers = sum(math.prod(shapes[name]) for name in set(shapes) - set(embedded))
    if 2 * numbers > weights.size:  # two bytes each at least
        raise ValueError(f"the config asks for {numbers:,} numbers, the weights' files have {weights.size:,} bytes")
