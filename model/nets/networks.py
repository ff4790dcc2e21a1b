"""The networks that a checkpoint of ours may hold. A further one is a module and an entry here."""

from __future__ import annotations

from dataclasses import dataclass

from torch import nn

from attention_atlas.model.config import ModelConfig
from attention_atlas.model.nets.recurrent import Recurrent, RecurrentConfig
from attention_atlas.model.nets.transformer import Transformer
from attention_atlas.model.trace.language import Refusal


@dataclass(frozen=True)
class Network:
    """How a checkpoint's config becomes a network.

    config   a frozen dataclass of JSON's values that raises ValueError for what cannot be built. Everything here reads
             vocabulary_size, num_target_tokens, pad_id, banned_ids, max_length and reach, and asks map_numbers,
             pass_numbers and held_numbers how large a sentence becomes; panels read more of a Transformer's
    network  a module that is made from that config alone, also on torch's memoryless "meta" device, and does what
             Transformer does: encode, decode, new_cache, project, read, forward and check. Its ForwardOutput holds what
             it recorded; a kind of attention that it does not have is absent there and in every trace
    """

    config: type
    network: type[nn.Module]


DEFAULT = "transformer"
NETWORKS: dict[str, Network] = {  # by what config.json calls it
    DEFAULT: Network(ModelConfig, Transformer),
    "gru": Network(RecurrentConfig, Recurrent),
}


AnyNetwork = Transformer | Recurrent


def build(config: object) -> AnyNetwork:
    """A new network of this config, its weights drawn at random."""
    entry = next(entry for entry in NETWORKS.values() if type(config) is entry.config)
    return entry.network(config)


def named(name: object) -> Network:
    """The network of this name. ValueError, in words, if there is none."""
    if not isinstance(name, str) or name not in NETWORKS:
        raise ValueError(f"there is no network {name!r}: there are {', '.join(map(repr, NETWORKS))}")
    return NETWORKS[name]


def check_transformer(model: nn.Module) -> None:
    """A Refusal for another network than a Transformer: for what takes one apart."""
    if not isinstance(model, Transformer):
        raise Refusal("This model is not a Transformer: this question is answered in terms of a Transformer's parts.")


def name_of(model: nn.Module) -> str:
    """What config.json calls this network. ValueError if it stands in no entry."""
    for name, entry in NETWORKS.items():
        if type(model) is entry.network:
            return name
    raise ValueError(f"{type(model).__name__} is not among the networks {', '.join(map(repr, NETWORKS))}")
