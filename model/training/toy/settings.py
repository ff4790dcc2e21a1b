"""The settings of a toy: its network with switches, and its training."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from attention_atlas.model.config import ModelConfig, PositionCode, check_switches
from attention_atlas.model.nets.recurrent import RecurrentConfig
from attention_atlas.model.trace import is_integer, is_number
from attention_atlas.model.trace.kinds import NamedEnum, coerce_enums
from attention_atlas.model.trace.language import Refusal
from attention_atlas.model.training.toy.mistakes import ToyNorm

MAX_UPDATES, LARGE_UPDATES = 2000, 200  # of one run
LEARNT, SURE = 1e-4, 20  # a run ends when the loss was this close to its floor (nats per token) for 20 updates
LEARNING_RATE, WARMUP = 3e-3, 30  # of Adam: the peak, and the updates before it
SGD_RATE = 0.1
CLIP_NORM = 1.0  # keeps runs finite with every switch
MAX_LENGTH = 32  # tokens on each side
CHOICES = {
    "layers": (1, 2, 3, 6),
    "decoder_layers": (0, 1, 2, 3, 6),  # 0: as many as the encoder has
    "heads": (1, 2, 4, 8),
    "d_model": (16, 32, 64, 128, 512),
    "d_ff": (1, 2, 4, 8),  # times d_model
    "rate": (0.01, 1 / 30, 0.1, 0.3, 1, 3, 10),  # times the usual learning rate
    "momentum": (0, 0.5, 0.9, 0.99),  # of SGD
}
LARGE = 512  # d_model of a network of tens of millions of parameters, kept outside of the cache (toys.py)
LARGE_D_FF = 4  # its largest d_ff, times d_model: 44 million parameters with six layers
RATES = ("dropout", "attention_dropout", "feedforward_dropout", "label_smoothing")
FOREIGN = (PositionCode.HALVES, PositionCode.FAIRSEQ)  # codes of published families, not offered for toys


class ToyNetwork(NamedEnum):
    """The networks that a toy can have."""

    TRANSFORMER = "transformer"
    ENCODER = "encoder"  # alone, with a class for each sentence (Devlin et al. 2019)
    DECODER = "decoder"  # alone: the next word of a text (Radford et al. 2018)
    GRU = "gru"  # with additive attention (Bahdanau et al. 2015)
    GRU_PLAIN = "gru-plain"  # one vector for the whole source (Sutskever et al. 2014)


class Optimizer(NamedEnum):
    """The optimisers."""

    ADAM = "adam"  # linear warm-up, then the inverse square root (section 5.3)
    SGD = "sgd"  # stochastic gradient descent with momentum, at one rate


class Start(NamedEnum):
    """The initialisations of matrices."""

    XAVIER = "xavier"  # Glorot and Bengio 2010; embeddings with a standard deviation of d_model^-0.5
    TORCH = "torch"  # the default of torch's Linear and Embedding


@dataclass(frozen=True)
class ToySettings:
    """The settings of a toy, each a control of the page. A recurrent network ignores those that it does not have
    (heads, positions, masks, norms, residual connections). Raises ValueError for a value that the page does not
    offer."""

    network: ToyNetwork = ToyNetwork.TRANSFORMER
    layers: int = 2
    decoder_layers: int = 0
    heads: int = 4
    d_model: int = 64
    d_ff: int = 2
    positions: PositionCode = PositionCode.INTERLEAVED
    look_ahead_mask: bool = True
    norm_first: bool = True
    scale_scores: bool = True
    scale_embedding: bool = True
    residual: bool = True
    biases: bool = True
    separate: bool = False  # a vocabulary and an embedding for each side
    own_output: bool = False  # the output projection has a matrix of its own, not the target embedding
    dropout: float = 0.0
    attention_dropout: float = 0.0
    feedforward_dropout: float = 0.0
    label_smoothing: float = 0.0
    optimizer: Optimizer = Optimizer.ADAM
    rate: float = 1
    warmup: bool = True  # of Adam; False: one rate from the first update on
    momentum: float = 0.9
    start: Start = Start.XAVIER
    count_padding: bool = False  # the loss is a mean over padding, too
    norm: ToyNorm = ToyNorm.LAYER
    softmax_twice: bool = False  # the loss, which applies a softmax, gets probabilities in place of logits
    hides_itself: bool = False  # a decoder row does not see its own token: triu with k = 0 in place of 1
    seed: int = 1

    def __post_init__(self) -> None:
        coerce_enums(self, network=ToyNetwork, positions=PositionCode, optimizer=Optimizer, start=Start, norm=ToyNorm)
        if self.positions in FOREIGN:
            raise ValueError(f"a toy's positions are none of {', '.join(FOREIGN)}, found {self.positions.value}")
        for name, choices in CHOICES.items():
            if getattr(self, name) not in choices or isinstance(getattr(self, name), bool):
                raise ValueError(f"{name} is one of {choices}, found {getattr(self, name)!r}")
        check_switches(self)
        if self.is_large and self.d_ff > LARGE_D_FF:
            raise Refusal(
                "With d_model {width}, d_ff is at most {most} times d_model.", width=self.d_model, most=LARGE_D_FF
            )
        for name in RATES:
            value = getattr(self, name)
            if not is_number(value) or not 0 <= value <= 0.5:
                raise ValueError(f"{name} is from 0 to 0.5, found {value!r}")
        if not is_integer(self.seed, 0, 999):
            raise ValueError(f"seed is a whole number from 0 to 999, found {self.seed!r}")

    def config(self, source: int, target: int) -> ModelConfig | RecurrentConfig:
        """Return the config of the network for vocabularies of these sizes."""
        if self.is_recurrent:
            attention = self.network is ToyNetwork.GRU
            return RecurrentConfig(target, self.d_model, self.dropout, attention, MAX_LENGTH)
        return ModelConfig(
            source,
            self.d_model,
            self.heads,
            self.layers,
            self.decoder_layers or self.layers,
            self.d_ff * self.d_model,
            self.dropout,
            self.attention_dropout,
            self.feedforward_dropout,
            norm_first=self.norm_first,
            max_length=MAX_LENGTH,
            position_code=self.positions,
            look_ahead_mask=self.look_ahead_mask,
            scale_scores=self.scale_scores,
            residual=self.residual,
            scale_embedding=self.scale_embedding,
            biases=self.biases,
            shared_embeddings=source == target and not self.separate,
            tied_output=not self.own_output,
            target_vocabulary_size=None if source == target and not self.separate else target,
        )

    def learning_rate_at(self, update: int) -> float:
        """Return the learning rate of an update, counted from 1."""
        if self.optimizer is Optimizer.SGD:
            return self.rate * SGD_RATE
        if not self.warmup:
            return self.rate * LEARNING_RATE
        return self.rate * LEARNING_RATE * min(update / WARMUP, (WARMUP / update) ** 0.5)

    def to_plain(self) -> dict:
        """Return the settings as JSON-ready values; equal settings give equal JSON."""
        numbers = (*RATES, "rate", "momentum")
        return {name: float(value) if name in numbers else value for name, value in asdict(self).items()}

    @property
    def is_standard(self) -> bool:
        """Whether the network is one that the other tabs know, without a mistake in its layers."""
        transformer = self.network is ToyNetwork.TRANSFORMER
        return not transformer or (self.norm is ToyNorm.LAYER and not self.hides_itself)

    @property
    def is_recurrent(self) -> bool:
        return self.network in (ToyNetwork.GRU, ToyNetwork.GRU_PLAIN)

    @property
    def smoothing(self) -> float:
        """The label smoothing: a classifier has none."""
        return 0.0 if self.network is ToyNetwork.ENCODER else self.label_smoothing

    @property
    def is_large(self) -> bool:
        """Whether a run takes hundreds of megabytes."""
        return self.d_model >= LARGE

    @property
    def max_updates(self) -> int:
        """The number of updates after which a run ends."""
        return LARGE_UPDATES if self.is_large else MAX_UPDATES

    @property
    def ordered(self) -> bool:
        """Whether the encoder knows the order of its words. A count adds the same number to every dimension, which a
        layer norm subtracts with the mean."""
        lost = (PositionCode.COUNT, PositionCode.NORMALISED) if self.norm_first else ()
        return self.is_recurrent or self.positions not in (PositionCode.NONE, *lost)
