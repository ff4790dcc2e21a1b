"""Convert a family's tensors to ours: their names, their order, and the names that one matrix may have."""

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
LAYER_TENSOR = re.compile(r"(encoder|decoder)\.layers\.(\d+)\.(.+)\.(weight|bias)")  # of ours
HARMLESS = ("encoder.version", "decoder.version", "._float_tensor", ".embed_positions.weights")  # endings


@dataclass(frozen=True)
class Naming:
    """A family's names of tensors.

    prefix  of all names but those of the output matrix and its bias
    layers  the beginning of a layer's names, with {stack} and {number}
    parts   stack -> our name of a layer's part -> theirs; we concatenate several of theirs
    others  our name of any other module -> theirs
    """

    prefix: str
    layers: str
    parts: Mapping[str, Mapping[str, tuple[str, ...]]]
    others: Mapping[str, str]

    def theirs(self, name: str) -> tuple[str, ...]:
        """Return the family's tensors that one of our tensors is made from."""
        if match := LAYER_TENSOR.fullmatch(name):
            stack, number, part, end = match.groups()
            start = self.layers.format(stack=stack, number=number)
            return tuple(f"{self.prefix}{start}.{theirs}.{end}" for theirs in self.parts[stack][part])
        module, _, end = name.rpartition(".")
        return (f"{self.prefix}{self.others[module]}.{end}",)


# The families of fairseq and Marian. Their files hold k, v, q; our matrix stacks q, k, v.
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
        # final_layer_norm is the feed-forward's norm, in spite of its name.
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
    """The tensors of a file that serve as the source's embedding, the target's, and the output projection.

    shared  whether source and target are one matrix
    tied    whether target and output projection are
    notes   what a user should know about how that was decided
    """

    source: str
    target: str
    head: str
    shared: bool
    tied: bool
    notes: tuple[str, ...] = ()

    def configure(self, config: ModelConfig) -> ModelConfig:
        """Return the config with shared and tied matrices as in the file."""
        return replace(config, shared_embeddings=self.shared, tied_output=self.tied)


def find_embeddings(weights: Weights, *, tied: bool, shared: bool, prefix: str = FAIRSEQ.prefix) -> Embeddings:
    """Resolve the names that one matrix may have in a file.

    tied: tie_word_embeddings, whether the output projection is the target's embedding; shared:
    share_encoder_decoder_embeddings, whether source and target have one. Raises ValueError if a matrix is missing.
    """
    both, encoder, decoder, _ = names = embedding_names(prefix)
    present = [name for name in names if name in weights.shapes]
    if shared and tied and present == [HEAD]:
        return Embeddings(HEAD, HEAD, HEAD, True, True)
    source = _first(present, encoder, both if shared else None, decoder if shared else None)
    target = _first(present, decoder, both if shared else None, encoder if shared else None)
    shared = shared and weights.are_equal(source, target)
    if not tied:
        head = _first(present, HEAD)
        return Embeddings(source, target, head, shared, weights.are_equal(head, target))
    notes = ()
    if HEAD in present and not weights.are_equal(HEAD, target):
        notes = (
            f"{HEAD} differs from {target}, though the config ties them: the embedding is used. Converters before "
            "April 2024 left an output matrix that is not the model's.",
        )
    return Embeddings(source, target, target, shared, True, notes)


def embedding_names(prefix: str) -> tuple[str, str, str, str]:
    """Return the names of the embedding of both sides, the encoder's, the decoder's, and the output matrix."""
    return f"{prefix}{SHARED}", f"{prefix}{ENCODER}", f"{prefix}{DECODER}", HEAD


def _first(present: list[str], *names: str | None) -> str:
    for name in names:
        if name in present:
            return name
    expected = " or ".join(name for name in names if name)
    raise ValueError(f"the weights lack {expected}; of the embeddings they have {', '.join(present) or 'none'}")


def use_stored_positions(config: ModelConfig, weights: Weights) -> tuple[ModelConfig, tuple[str, ...]]:
    """Return the config with learned positions if the file's tables of sines differ from the formula, and a note.

    Files of 2020 store the tables. A table equal to the formula in the file's precision changes nothing.
    """
    stored = [name for name in POSITIONS.values() if name in weights.shapes]
    if config.position_code is PositionCode.LEARNED or not stored:
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


class ConvertedTensors(Mapping[str, Tensor]):
    """Our tensors by name, each converted when it is read, so that a model is never in memory twice."""

    def __init__(self, weights: Weights, sources: dict[str, tuple[str, ...]]) -> None:
        """sources: our name -> the family's tensors that it concatenates."""
        self.weights, self.sources = weights, sources

    def __getitem__(self, name: str) -> Tensor:
        parts = [self.weights[theirs] for theirs in self.sources[name]]
        tensor = parts[0] if len(parts) == 1 else torch.cat(parts)
        return tensor.reshape(-1) if self.sources[name] == (BIAS,) else tensor  # theirs is [1, vocabulary]

    def __iter__(self) -> Iterator[str]:
        return iter(self.sources)

    def __len__(self) -> int:
        return len(self.sources)


def convert(
    weights: Weights,
    config: ModelConfig,
    matrices: Embeddings,
    *,
    naming: Naming = FAIRSEQ,
    ignored: tuple[str, ...] = (),
) -> ConvertedTensors:
    """Return all tensors of a network of this config. ignored: tensors of the file that no longer mean anything.

    Raises ValueError naming tensors that are missing, unknown, or of another shape than the config says.
    """
    renamed = {
        "embedding.weight": (matrices.source,),
        "target_embedding.weight": (matrices.target,),
        "output.weight": (matrices.head,),
        "output_bias": (BIAS,),
    }
    with torch.device("meta"):  # shapes without memory
        state = Transformer(config).state_dict()
    sources = {name: renamed.get(name) or naming.theirs(name) for name in state}
    shapes: dict[str, tuple[int, ...]] = {}
    for name, parts in sources.items():
        rows, *rest = state[name].shape
        shapes |= dict.fromkeys(parts, (1, rows) if parts == (BIAS,) else (rows // len(parts), *rest))
    embeddings = embedding_names(naming.prefix)
    if missing := sorted(set(shapes) - set(weights.shapes)):
        raise ValueError(f"the weights lack {len(missing)} tensors, the first is {missing[0]!r}")
    unknown = set(weights.shapes) - {*ignored, *embeddings} - set(shapes)
    if unknown := sorted(name for name in unknown if not name.endswith(HARMLESS)):
        raise ValueError(
            f"the weights have {len(unknown)} tensors that this family does not, the first is {unknown[0]!r}"
        )
    for name in sorted(shapes):
        if weights.shapes[name] != shapes[name]:
            raise ValueError(f"{name} has shape {list(weights.shapes[name])}, expected {list(shapes[name])}")
    # A small hostile file can claim large tensors that all share the same numbers.
    numbers = sum(math.prod(shapes[name]) for name in set(shapes) - set(embeddings))
    if 2 * numbers > weights.size:  # two bytes each at least
        raise ValueError(f"the config asks for {numbers:,} numbers, the weights' files have {weights.size:,} bytes")
    return ConvertedTensors(weights, sources)
