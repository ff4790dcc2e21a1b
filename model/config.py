"""The configuration of a Transformer: its sizes and variants, checked when it is created."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from attention_atlas.model.files import value_errors
from attention_atlas.model.trace import is_integer, is_number
from attention_atlas.model.trace.kinds import NamedEnum, Side, coerce_enums

# Upper bounds of a config file, far above anything this project trains: a damaged or hostile file is refused before any
# memory is allocated.
LIMITS = {
    "vocabulary_size": 512_000,  # NLLB-200 has 256,206; fine-tuned ones append languages
    "d_model": 4096,
    "num_heads": 128,
    "num_encoder_layers": 64,
    "num_decoder_layers": 64,
    "d_feedforward": 65_536,  # T5 of 11 billion parameters
    "max_length": 4096,
}
MAX_POSITION_OFFSET = 1024
MAX_HEAD_WIDTH = 1024
# Parts of every published Transformer that a toy can be built without, to show their purpose. Code that needs a part
# refuses a network without it by the part's name (ModelConfig.without).
PARTS = ("look_ahead_mask", "scale_scores", "residual")


def check_whole_number(name: str, value: object, low: int, high: int | None = None) -> None:
    """Raise ValueError, with the field's name, unless a value is a whole number within bounds."""
    if not is_integer(value):
        raise ValueError(f"{name} must be a whole number, found {value!r}")
    if value < low or (high is not None and value > high):
        upper = "" if high is None else f" and at most {high}"
        raise ValueError(f"{name} must be at least {low}{upper}, found {value}")


def check_switches(config: Any) -> None:
    """Raise ValueError, with the field's name, unless the fields whose default is a boolean are booleans."""
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        if isinstance(field.default, bool) and not isinstance(value, bool):
            raise ValueError(f"{field.name} must be true or false, found {value!r}")


def check_fraction(name: str, value: object) -> None:
    """Raise ValueError, with the field's name, unless a value is a number from 0 to below 1."""
    if not is_number(value) or not 0.0 <= value < 1.0:
        raise ValueError(f"{name} must be at least 0 and below 1, found {value!r}")


class Activation(NamedEnum):
    """The activation function between the feed-forward's two matrices (section 3.3)."""

    RELU = "relu"  # max(0, x): the paper's, M2M100, NLLB, mBART-50, opus-mt-tc-big
    SILU = "silu"  # x sigmoid(x), also called swish (Ramachandran et al. 2017): opus-mt
    GELU = "gelu"  # x Phi(x), by the error function (Hendrycks and Gimpel 2016): mBART cc25, BART
    GELU_TANH = "gelu_tanh"  # its approximation by the hyperbolic tangent: T5 v1.1 and its descendants


class Norm(NamedEnum):
    """The normalization of vectors."""

    LAYER = "layer"  # Ba et al. 2016: minus the mean, divided by the standard deviation, times a gain, plus a bias
    RMS = "rms"  # Zhang and Sennrich 2019: divided by the root mean square, times a gain: T5


class PositionCode(NamedEnum):
    """The positional encoding (section 3.5): added to the embedding, unless it is relative."""

    INTERLEAVED = "interleaved"  # the paper's: sines and cosines alternate, wavelengths base^(2i / d_model)
    HALVES = "halves"  # Marian: the same numbers, all sines before all cosines
    FAIRSEQ = "fairseq"  # M2M100, NLLB: halves with wavelengths base^(i / (d_model / 2 - 1)), computed in float32
    LEARNED = "learned"  # mBART: a table of parameters for each side
    RELATIVE = "relative"  # T5: a bias for each head and distance, added to the scores of self-attention
    NONE = "none"  # no positions: the encoder sees a bag of tokens
    # Alternatives for toys (model/nets/positions.py), which no published model uses.
    COUNT = "count"
    NORMALISED = "normalised"
    BINARY = "binary"
    SINE = "sine"
    TUTORIAL = "tutorial"

    @property
    def has_waves(self) -> bool:
        """Whether it consists of pairs of a sine and a cosine of one frequency."""
        return self in (PositionCode.INTERLEAVED, PositionCode.HALVES, PositionCode.FAIRSEQ)


@dataclass(frozen=True)
class ModelConfig:
    """The shape of a Transformer (Vaswani et al. 2017, section 3; table 3 names the symbols).

    The defaults of the fields after `pad_id` are the paper's; other values occur in the families that a comment names.
    Raises ValueError, with the field and its value, for anything that cannot be built.
    """

    vocabulary_size: int
    d_model: int = 256
    num_heads: int = 8
    num_encoder_layers: int = 4
    num_decoder_layers: int = 4
    d_feedforward: int = 1024
    dropout: float = 0.1  # on embeddings and on each sub-layer's output (section 5.4)
    attention_dropout: float = 0.0  # on the attention weights
    feedforward_dropout: float = 0.0  # on the active units of the feed-forward
    norm_first: bool = True  # True: pre-norm; False: post-norm, as in the paper
    max_length: int = 256  # tokens of a side, symbols included, that it was trained for
    position_base: float = 10_000.0  # of the sinusoids' wavelengths (section 3.5)
    pad_id: int = 0
    activation: Activation = Activation.RELU
    position_code: PositionCode = PositionCode.INTERLEAVED
    position_offset: int = 0  # the position of a sentence's first token: 2 in M2M100, NLLB, mBART
    norm_embedding: bool = False  # a layer norm on embedding + position, before the first layer: mBART
    scale_embedding: bool = True  # embeddings times sqrt(d_model) (section 3.4)
    shared_embeddings: bool = True  # one matrix for source and target (section 3.4); Marian may have two
    tied_output: bool = True  # the output projection is the target's matrix (section 3.4)
    logits_bias: bool = False  # a bias for each token's logit: Marian, mBART
    target_vocabulary_size: int | None = None  # None: the source's
    banned_ids: tuple[int, ...] = ()  # tokens that decoding never chooses: Marian's <pad>
    look_ahead_mask: bool = True  # False: in training a row sees later tokens (unlike section 3.2.3)
    scale_scores: bool = True  # scores divided by sqrt(d_k) (section 3.2.1)
    residual: bool = True  # x + f(x) around each sub-layer (section 3.1); False: f(x) alone
    norm: Norm = Norm.LAYER
    norm_epsilon: float = 1e-5  # added to the variance
    biases: bool = True  # of every matrix except the embeddings; False: T5
    head_width: int | None = None  # d_k; None: d_model / num_heads
    gated: bool = False  # the active units are multiplied by a second projection of the input: T5 v1.1
    scale_output: bool = False  # the output projection's input times d_model^-0.5: the first T5
    position_buckets: int = 32  # the number of distances that relative positions distinguish
    position_reach: int = 128  # the distance beyond which they distinguish none
    layer_positions: bool = False  # a table of relative positions in each layer instead of each stack: UMT5
    norm_before_positions: bool = False  # the decoder's norm on embeddings precedes positions: Blenderbot-small
    decoder_num_heads: int | None = None  # None: the encoder's
    decoder_d_feedforward: int | None = None  # None: the encoder's

    def __post_init__(self) -> None:
        for name, limit in LIMITS.items():
            check_whole_number(name, getattr(self, name), 1, limit)
        check_whole_number("pad_id", self.pad_id, 0, self.vocabulary_size - 1)
        for name in ("dropout", "attention_dropout", "feedforward_dropout"):
            check_fraction(name, getattr(self, name))
        check_switches(self)
        coerce_enums(self, activation=Activation, position_code=PositionCode, norm=Norm)
        check_whole_number("position_offset", self.position_offset, 0, MAX_POSITION_OFFSET)
        self._check_target_vocabulary()
        if not isinstance(self.position_base, (int, float)) or not 1.0 < self.position_base <= 1e9:
            raise ValueError(f"position_base must be above 1 and at most 1e9, found {self.position_base!r}")
        if not is_number(self.norm_epsilon) or not 0.0 < self.norm_epsilon <= 1e-2:
            raise ValueError(f"norm_epsilon must be above 0 and at most 0.01, found {self.norm_epsilon!r}")
        for name in ("num_heads", "d_feedforward"):
            if getattr(self, f"decoder_{name}") is not None:
                check_whole_number(f"decoder_{name}", getattr(self, f"decoder_{name}"), 1, LIMITS[name])
        if self.head_width is not None:
            check_whole_number("head_width", self.head_width, 1, MAX_HEAD_WIDTH)
        else:
            for heads in (self.num_heads, self.of(Side.DECODER).num_heads):
                if self.d_model % heads:
                    raise ValueError(f"d_model {self.d_model} is not divisible by num_heads {heads}")
        if self.d_model % 2:
            raise ValueError(f"d_model must be even (sine and cosine come in pairs), found {self.d_model}")

        # An encoder's buckets are halved between keys before and after, and half of those hold one distance each.
        check_whole_number("position_buckets", self.position_buckets, 4, MAX_POSITION_OFFSET)
        check_whole_number("position_reach", self.position_reach, self.position_buckets, LIMITS["max_length"])

    def _check_target_vocabulary(self) -> None:
        if self.target_vocabulary_size is not None:
            check_whole_number("target_vocabulary_size", self.target_vocabulary_size, 1, LIMITS["vocabulary_size"])
            if self.shared_embeddings and self.target_vocabulary_size != self.vocabulary_size:
                raise ValueError(
                    f"one embedding cannot serve {self.vocabulary_size} source and "
                    f"{self.target_vocabulary_size} target tokens: target_vocabulary_size needs "
                    "shared_embeddings false"
                )
        if not isinstance(self.banned_ids, tuple):
            raise ValueError(f"banned_ids must be a list of ids, found {self.banned_ids!r}")
        for token_id in self.banned_ids:
            check_whole_number("banned_ids", token_id, 0, self.num_target_tokens - 1)

    def map_numbers(self, source: int, target: int) -> int:
        """Return the number of weights in all attention maps of a sentence with these numbers of tokens."""
        encoder_heads, decoder_heads = (self.of(side).num_heads for side in Side)
        encoder = encoder_heads * self.num_encoder_layers * source**2
        return encoder + decoder_heads * self.num_decoder_layers * target * (target + source)

    def pass_numbers(self, source: int, target: int) -> int:
        """Return an upper bound on the numbers in memory while a sentence of a batch is decoded and recorded.

        They are its maps twice (the pass's and the trace's), a layer's scores and softmax, each layer's projections,
        residual streams and active units, the decoder's cache, and the logits with their softmax.
        """
        heads, width, *wide = self._widest
        d, longest = max(self.d_model, width), max(source, target)
        # Queries, keys, values; the output of each of 2 sub-layers and the stream after it.
        encoder = source * (7 * d + wide[0])
        # The same of 3 sub-layers; cross keys and values; the cache.
        decoder = target * (10 * d + wide[1]) + (2 * source + 4 * max(target, 16)) * d
        streams = self.num_encoder_layers * encoder + self.num_decoder_layers * decoder
        passing = 3 * heads * longest**2 + longest * (8 * d + 2 * max(wide)) + 4 * self.num_target_tokens
        return 2 * self.map_numbers(source, target) + streams + passing

    def long_text_numbers(self, source: int, target: int) -> int:
        """Return pass_numbers() of a long sentence, for which queries and keys are recorded in place of maps."""
        heads, width, *wide = self._widest
        longest = max(source, target)
        recorded = 2 * self.num_encoder_layers * source + self.num_decoder_layers * (3 * target + source)
        decoding = self.num_decoder_layers * (2 * source + 4 * max(target, 16))  # cross keys and values; the cache
        row = max(self.d_model, width) * 8 + 2 * max(wide)
        bias = 2 * longest**2 * heads if self.position_code is PositionCode.RELATIVE else 0
        passing = 3 * heads * longest**2 + bias + longest * row + 4 * self.num_target_tokens
        return (recorded + decoding) * width + passing

    @property
    def _widest(self) -> tuple[int, int, int, int]:
        """The larger side's number of heads and their total width; each side's feed-forward width."""
        sides = [self.of(side) for side in Side]
        wide = [(1 + self.gated) * side.d_feedforward for side in sides]
        return max(side.num_heads for side in sides), max(side.num_heads * side.d_head for side in sides), *wide

    @property
    def reach(self) -> int:
        """The number of positions that can be encoded: unlimited unless they are learned."""
        return self.max_length if self.position_code is PositionCode.LEARNED else 2**31

    @property
    def num_target_tokens(self) -> int:
        """The size of the target's vocabulary, over which the logits range."""
        return self.vocabulary_size if self.target_vocabulary_size is None else self.target_vocabulary_size

    @property
    def without(self) -> tuple[str, ...]:
        """The PARTS that it lacks. Scaling is none of them with relative positions, which never scale scores (Raffel et
        al. 2020)."""
        return tuple(
            name
            for name in PARTS
            if not getattr(self, name) and not (name == "scale_scores" and self.position_code is PositionCode.RELATIVE)
        )

    @property
    def adds_positions(self) -> bool:
        """Whether positions are vectors added to embeddings."""
        return self.position_code not in (PositionCode.RELATIVE, PositionCode.NONE)

    def of(self, side: Side) -> ModelConfig:
        """Return the config with this side's heads and feed-forward on both sides, from which its layers are built."""
        if self.decoder_num_heads is None and self.decoder_d_feedforward is None:
            return self
        sizes = {}
        if side is Side.DECODER:
            sizes["num_heads"] = self.decoder_num_heads or self.num_heads
            sizes["d_feedforward"] = self.decoder_d_feedforward or self.d_feedforward
        return dataclasses.replace(self, decoder_num_heads=None, decoder_d_feedforward=None, **sizes)

    @property
    def d_head(self) -> int:
        """The width of a head, d_k = d_v: in the paper d_model / num_heads (section 3.2.2). The encoder's, if the sides
        differ."""
        return self.d_model // self.num_heads if self.head_width is None else self.head_width


def from_json(cls: type, values: object):
    """Build a config dataclass from decoded JSON. Raises ValueError naming unknown or missing fields."""
    if not isinstance(values, dict):
        raise ValueError(f"{cls.__name__} must be a JSON object, found {type(values).__name__}")
    with value_errors(f"{cls.__name__} cannot be made of these fields", TypeError):
        return cls(**_tuples(values))


def _tuples(value: object) -> object:
    if isinstance(value, dict):
        return {name: _tuples(item) for name, item in value.items()}
    return tuple(map(_tuples, value)) if isinstance(value, list) else value
