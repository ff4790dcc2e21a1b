"""The networks that a checkpoint may hold. A new network is a module of model/nets and an entry of NETWORKS."""

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

    config   a frozen dataclass of JSON values that raises ValueError for what cannot be built. It has vocabulary_size,
             num_target_tokens, pad_id, banned_ids, max_length and reach, and the methods map_numbers, pass_numbers and
             long_text_numbers, which say how large a sentence becomes; panels read more of a Transformer's
    network  a module made from that config alone, also on torch's "meta" device, with Transformer's encode, decode,
             new_cache, project, read, forward and check, and for questions about words token_rows, encode_rows,
             decode_last, repeat_source, target_matrix and output_matrix. Its ForwardOutput holds its records; a kind of
             attention that it does not have is absent there and in every trace
    """

    config: type
    network: type[nn.Module]


DEFAULT = "transformer"
NETWORKS: dict[str, Network] = {  # by the name in config.json
    DEFAULT: Network(ModelConfig, Transformer),
    "gru": Network(RecurrentConfig, Recurrent),
}


AnyNetwork = Transformer | Recurrent


def build(config: object) -> AnyNetwork:
    """Return a new network of this config with random weights."""
    entry = next(entry for entry in NETWORKS.values() if type(config) is entry.config)
    return entry.network(config)


def named(name: object) -> Network:
    """Return the network of this name. Raises ValueError if there is none."""
    if not isinstance(name, str) or name not in NETWORKS:
        raise ValueError(f"there is no network {name!r}: there are {', '.join(map(repr, NETWORKS))}")
    return NETWORKS[name]


def check_transformer(model: nn.Module) -> None:
    """Raise a Refusal unless the model is a Transformer."""
    if not isinstance(model, Transformer):
        raise Refusal("This model is not a Transformer, but this question is about a Transformer's parts.")


def name_of(model: nn.Module) -> str:
    """Return the name of this network in config.json. Raises ValueError if NETWORKS does not have it."""
    for name, entry in NETWORKS.items():
        if type(model) is entry.network:
            return name
    raise ValueError(f"{type(model).__name__} is not among the networks {', '.join(map(repr, NETWORKS))}")
