"""From the tensors of the families that descend from fairseq and Marian to ours: names, order, aliases."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from model.config import ModelConfig, PositionCode
from model.families.folder import Weights

SHARED, ENCODER, DECODER, HEAD = (
    "model.shared.weight",
    "model.encoder.embed_tokens.weight",
    "model.decoder.embed_tokens.weight",
    "lm_head.weight",
)
BIAS = "final_logits_bias"
POSITIONS = {
    side: f"model.{stack}.embed_positions.weight" for side, stack in (("source", "encoder"), ("target", "decoder"))
}
HARMLESS = ("encoder.version", "decoder.version", "._float_tensor", ".embed_positions.weights")  # endings


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


def embeddings(weights: Weights, *, tied: bool, shared: bool) -> Embeddings:
    """Sort out the names that one matrix may have. ValueError if there is none for some purpose.

    tied: tie_word_embeddings, whether the output projection is the target's embedding; shared:
    share_encoder_decoder_embeddings, whether source and target have one.
    """
    found = [name for name in (SHARED, ENCODER, DECODER, HEAD) if name in weights.shapes]
    if shared and tied and found == [HEAD]:
        return Embeddings(HEAD, HEAD, HEAD, True, True)
    source = _first(found, ENCODER, SHARED if shared else None, DECODER if shared else None)
    target = _first(found, DECODER, SHARED if shared else None, ENCODER if shared else None)
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


def _first(found: list[str], *names: str | None) -> str:
    for name in names:
        if name in found:
            return name
    wanted = " or ".join(name for name in names if name)
    raise ValueError(f"the weights lack {wanted}; of the embeddings they have {', '.join(found) or 'none'}")


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


def ours(weights: Weights, config: ModelConfig, matrices: Embeddings, *, ignored: tuple[str, ...] = ()) -> Ours:
    """All tensors of a network of this config. ignored: names that stand in the file and mean nothing more.

    ValueError that names tensors which are missing, unknown, or of another shape than the config says.
    """
    made_from = _layers(config)
    made_from["embedding.weight"] = (matrices.source,)
    if not config.shared_embeddings:
        made_from["target_embedding.weight"] = (matrices.target,)
    if not config.tied_output:
        made_from["output.weight"] = (matrices.head,)
    if config.logits_bias:
        made_from["output_bias"] = (BIAS,)
    if config.position_code is PositionCode.LEARNED:
        made_from |= {f"{side}_positions.weight": (name,) for side, name in POSITIONS.items()}
    used = {name for names in made_from.values() for name in names}
    known = used | set(ignored) | {SHARED, ENCODER, DECODER, HEAD}
    _check(weights, used, known, _shapes(config, matrices))
    return Ours(weights, made_from)


def _check(weights: Weights, used: set[str], known: set[str], shapes: dict[str, tuple[int, ...]]) -> None:
    if missing := sorted(used - set(weights.shapes)):
        raise ValueError(f"the weights lack {len(missing)} tensors, the first is {missing[0]!r}")
    unknown = sorted(name for name in set(weights.shapes) - known if not name.endswith(HARMLESS))
    if unknown:
        raise ValueError(
            f"the weights have {len(unknown)} tensors that this family does not, the first is {unknown[0]!r}"
        )
    for name in sorted(used):
        if weights.shapes[name] != shapes[name]:
            raise ValueError(f"{name} has shape {list(weights.shapes[name])}, expected {list(shapes[name])}")
    # What no honest file does, one of a few bytes can claim: tensors of any size that all lie on the same numbers.
    numbers = sum(math.prod(shapes[name]) for name in used - {SHARED, ENCODER, DECODER, HEAD})
    if 2 * numbers > weights.size:  # two bytes each at least
        raise ValueError(f"the config asks for {numbers:,} numbers, the weights' files have {weights.size:,} bytes")


# In each stack, ours -> theirs. The order in theirs' files is k, v, q; our matrix stacks q, k, v.
_ENDS = ("weight", "bias")
_LINEAR = {"feed_forward.expand": "fc1", "feed_forward.contract": "fc2"}
_ENCODER_NORMS = ("self_attn_layer_norm", "final_layer_norm")  # the latter is the feed-forward's, in spite of its name
_DECODER_NORMS = ("self_attn_layer_norm", "encoder_attn_layer_norm", "final_layer_norm")


def _layers(config: ModelConfig) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for stack, count, norms in (
        ("encoder", config.num_encoder_layers, _ENCODER_NORMS),
        ("decoder", config.num_decoder_layers, _DECODER_NORMS),
    ):
        attentions = {"self_attention": "self_attn"} | (
            {"cross_attention": "encoder_attn"} if stack == "decoder" else {}
        )
        for end in _ENDS:
            for at in range(count):
                mine, theirs = f"{stack}.layers.{at}", f"model.{stack}.layers.{at}"
                for own, other in attentions.items():
                    found[f"{mine}.{own}.projection.{end}"] = tuple(
                        f"{theirs}.{other}.{part}_proj.{end}" for part in "qkv"
                    )
                    found[f"{mine}.{own}.output.{end}"] = (f"{theirs}.{other}.out_proj.{end}",)
                for own, other in _LINEAR.items():
                    found[f"{mine}.{own}.{end}"] = (f"{theirs}.{other}.{end}",)
                for index, norm in enumerate(norms):
                    found[f"{mine}.sublayers.{index}.norm.{end}"] = (f"{theirs}.{norm}.{end}",)
            if config.norm_first:
                found[f"{stack}.norm.{end}"] = (f"model.{stack}.layer_norm.{end}",)
            if config.norm_embedding:
                found[f"{stack}.entry.{end}"] = (f"model.{stack}.layernorm_embedding.{end}",)
    return found


def _shapes(config: ModelConfig, matrices: Embeddings) -> dict[str, tuple[int, ...]]:
    """What each of their tensors must be."""
    d, wide = config.d_model, config.d_feedforward
    rows = config.max_length + config.position_offset
    shapes = {name: (rows, d) for name in POSITIONS.values()} | {BIAS: (1, config.num_target_tokens)}
    for names in _layers(config).values():
        for name in names:
            square = (d, d) if "_proj" in name else (wide, d) if ".fc1." in name else (d, wide)
            width = wide if ".fc1." in name else d
            shapes[name] = (width,) if name.endswith(".bias") or "norm" in name else square
    shapes |= {matrices.head: (config.num_target_tokens, d), matrices.target: (config.num_target_tokens, d)}
    return shapes | {matrices.source: (config.vocabulary_size, d)}
