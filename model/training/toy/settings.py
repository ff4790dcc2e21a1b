"""What can be chosen of a toy: the network with its switches, and how it is trained."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from model.config import ModelConfig, PositionCode, RecurrentConfig
from model.trace import is_number, is_whole

MAX_UPDATES, MAX_SECONDS = 2000, 60.0  # of one run
LEARNING_RATE, WARMUP = 3e-3, 30  # of Adam: the peak, and the updates until it is reached
SGD_RATE, MOMENTUM = 0.1, 0.9
CLIP_NORM = 1.0  # longer gradients are cut to this length, so that no switch ends in infinity
MAX_LENGTH = 32  # tokens a side that a toy accepts
CHOICES = {"layers": (1, 2, 3), "heads": (1, 2, 4, 8), "d_model": (16, 32, 64, 128)}


class ToyNetwork(str, Enum):
    """The networks that can be trained here."""

    TRANSFORMER = "transformer"
    GRU = "gru"  # with additive attention (Bahdanau et al. 2015)
    GRU_PLAIN = "gru-plain"  # one vector for the whole source (Sutskever et al. 2014)


class Optimizer(str, Enum):
    """How weights follow their gradients."""

    ADAM = "adam"  # linear warm-up, then the inverse square root (section 5.3)
    SGD = "sgd"  # stochastic gradient descent with momentum, at one rate


@dataclass(frozen=True)
class ToySettings:
    """Each field a choice or a switch of the page; the defaults are a network that learns. What a recurrent network
    does not have (heads, positions, masks, norms, residual connections) it ignores. ValueError for any other value."""

    network: ToyNetwork = ToyNetwork.TRANSFORMER
    layers: int = 2
    heads: int = 4
    d_model: int = 64
    positions: PositionCode = PositionCode.INTERLEAVED
    look_ahead_mask: bool = True
    norm_first: bool = True
    scale_scores: bool = True
    residual: bool = True
    dropout: float = 0.0
    label_smoothing: float = 0.0
    optimizer: Optimizer = Optimizer.ADAM
    count_padding: bool = False  # the loss is a mean over padding, too
    seed: int = 1

    def __post_init__(self) -> None:
        for name, kind in (("network", ToyNetwork), ("positions", PositionCode), ("optimizer", Optimizer)):
            object.__setattr__(self, name, kind(getattr(self, name)))
        if self.positions in (PositionCode.HALVES, PositionCode.FAIRSEQ):
            raise ValueError(
                f"a toy's positions are interleaved, learned, relative or none, found {self.positions.value}"
            )
        for name, choices in CHOICES.items():
            if getattr(self, name) not in choices or isinstance(getattr(self, name), bool):
                raise ValueError(f"{name} is one of {choices}, found {getattr(self, name)!r}")
        for name in ("look_ahead_mask", "norm_first", "scale_scores", "residual", "count_padding"):
            if not isinstance(getattr(self, name), bool):
                raise ValueError(f"{name} is true or false, found {getattr(self, name)!r}")
        for name in ("dropout", "label_smoothing"):
            value = getattr(self, name)
            if not is_number(value) or not 0 <= value <= 0.5:
                raise ValueError(f"{name} is from 0 to 0.5, found {value!r}")
        if not is_whole(self.seed, 0, 999):
            raise ValueError(f"seed is a whole number from 0 to 999, found {self.seed!r}")

    def config(self, vocabulary_size: int) -> ModelConfig | RecurrentConfig:
        """The network's own config for a vocabulary of this size."""
        if self.network is not ToyNetwork.TRANSFORMER:
            attention = self.network is ToyNetwork.GRU
            return RecurrentConfig(vocabulary_size, self.d_model, self.dropout, attention, MAX_LENGTH)
        return ModelConfig(
            vocabulary_size,
            self.d_model,
            self.heads,
            self.layers,
            self.layers,
            2 * self.d_model,
            self.dropout,
            norm_first=self.norm_first,
            max_length=MAX_LENGTH,
            position_code=self.positions,
            look_ahead_mask=self.look_ahead_mask,
            scale_scores=self.scale_scores,
            residual=self.residual,
        )

    def learning_rate_at(self, update: int) -> float:
        """Of update number `update`, from 1."""
        if self.optimizer is Optimizer.SGD:
            return SGD_RATE
        return LEARNING_RATE * min(update / WARMUP, (WARMUP / update) ** 0.5)

    @property
    def ordered(self) -> bool:
        """Whether the encoder can tell in which order its words stand."""
        return self.network is not ToyNetwork.TRANSFORMER or self.positions is not PositionCode.NONE
