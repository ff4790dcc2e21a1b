"""Position codes: added to embeddings (Vaswani et al. 2017, section 3.5), or to scores (Raffel et al. 2020, 2.1)."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from attention_atlas.model.config import ModelConfig, PositionCode
from attention_atlas.model.trace.interventions import Positions
from attention_atlas.model.trace.kinds import Side
from attention_atlas.model.trace.language import Refusal


def sinusoidal_encoding(
    positions: Tensor, d_model: int, *, base: float = 10_000.0, dtype: torch.dtype = torch.float64
) -> Tensor:
    """Return the sinusoidal encoding of each position, float32 [length, d_model].

        PE(pos, 2i)   = sin(pos / base^(2i / d_model))
        PE(pos, 2i+1) = cos(pos / base^(2i / d_model))

    Sine and cosine of a pair share the exponent 2i/d_model, so that a shift by k rotates every pair by a fixed angle
    (Vaswani et al. 2017, section 3.5).

    positions: [length], any real numbers. d_model: even. dtype: of the computation; in float32, an angle at position
    4000 is off by 2e-4.
    """
    if d_model < 2 or d_model % 2:
        raise ValueError(f"d_model must be even and at least 2, found {d_model}")
    exponents = torch.arange(0, d_model, 2, dtype=dtype, device=positions.device) / d_model  # [d_model / 2]
    angles = positions.to(dtype)[:, None] / base**exponents  # [length, d_model / 2]
    encoding = torch.stack((angles.sin(), angles.cos()), dim=-1)  # [length, d_model / 2, 2]
    return encoding.flatten(1).float()  # [length, d_model]


def fairseq_encoding(positions: Tensor, d_model: int, *, base: float = 10_000.0) -> Tensor:
    """Return the encoding of tensor2tensor and fairseq, which M2M100 and NLLB use: float32 [length, d_model].

        PE(pos, i)               = sin(pos * exp(-i log(base) / (d_model / 2 - 1)))    for i < d_model / 2
        PE(pos, d_model / 2 + i) = cos of the same angle

    It is computed in float32, as in training: at position 512 float64 would differ by 3.6e-5.
    positions: [length], whole numbers. d_model: even, at least 4.
    """
    if d_model < 4 or d_model % 2:
        raise ValueError(f"d_model must be even and at least 4, found {d_model}")
    half = d_model // 2
    rates = torch.exp(torch.arange(half, device=positions.device).float() * -(math.log(base) / (half - 1)))
    angles = positions.float()[:, None] * rates[None]  # [length, d_model / 2]
    return torch.cat((angles.sin(), angles.cos()), dim=1)  # [length, d_model]


def count_encoding(
    positions: Tensor, d_model: int, *, length: int, base: float, dtype: torch.dtype = torch.float64
) -> Tensor:
    """Return PE(pos) = pos, [length, 1]."""
    return positions.to(dtype)[:, None]


def normalised_count_encoding(
    positions: Tensor, d_model: int, *, length: int, base: float, dtype: torch.dtype = torch.float64
) -> Tensor:
    """Return PE(pos) = pos / (length - 1), from 0 to 1 over the sentence, [length, 1]."""
    return positions.to(dtype)[:, None] / max(1, length - 1)


def binary_encoding(
    positions: Tensor, d_model: int, *, length: int, base: float, dtype: torch.dtype = torch.float64
) -> Tensor:
    """Return PE(pos, i) = bit i of pos, the lowest first, [length, d_model]."""
    bits = torch.arange(min(d_model, 62), device=positions.device)
    encoding = ((positions.long()[:, None] >> bits) & 1).to(dtype)
    return torch.nn.functional.pad(encoding, (0, d_model - len(bits)))


def sine_encoding(
    positions: Tensor, d_model: int, *, length: int, base: float, dtype: torch.dtype = torch.float64, factor: int = 1
) -> Tensor:
    """Return PE(pos, i) = sin(pos / base^(factor i / d_model)): one wave a dimension, no cosines, [length, d_model]."""
    exponents = factor * torch.arange(d_model, dtype=dtype, device=positions.device) / d_model
    return (positions.to(dtype)[:, None] / base**exponents).sin()


def tutorial_encoding(
    positions: Tensor, d_model: int, *, length: int, base: float, dtype: torch.dtype = torch.float64
) -> Tensor:
    """Return a wrong encoding that tutorials copy from one another, [length, d_model].

    PE(pos, i) = sin(pos / base^(2i / d_model)) and PE(pos, i + 1) = cos(pos / base^(2(i + 1) / d_model)) for even i.
    i already steps by two, and the cosine has its own frequency, so that no pair is a rotation.
    """
    exponents = 2 * torch.arange(d_model, dtype=dtype, device=positions.device) / d_model
    angles = positions.to(dtype)[:, None] / base**exponents
    return torch.where(torch.arange(d_model, device=positions.device) % 2 == 0, angles.sin(), angles.cos())


# Codes that no published model uses, for comparison in models trained on the page. The normalised count depends on the
# length of the sentence; a decoder, which does not know its own length in advance, divides by the source's.
CONTRASTS = {
    PositionCode.COUNT: count_encoding,
    PositionCode.NORMALISED: normalised_count_encoding,
    PositionCode.BINARY: binary_encoding,
    PositionCode.SINE: sine_encoding,
    PositionCode.TUTORIAL: tutorial_encoding,
}


def encoding(config: ModelConfig, positions: Tensor, length: int | None = None) -> Tensor:
    """Return the code that a model of this config computes for positions [length]: float32 [length, d_model].

    length: of the sentence, for a code that depends on it; None: config.max_length.
    """
    assert config.adds_positions and config.position_code is not PositionCode.LEARNED
    positions = positions + config.position_offset
    if contrast := CONTRASTS.get(config.position_code):
        rows = contrast(positions, config.d_model, length=length or config.max_length, base=config.position_base)
        return rows.float().expand(-1, config.d_model)  # the same count in every dimension
    if config.position_code is PositionCode.FAIRSEQ:
        return fairseq_encoding(positions, config.d_model, base=config.position_base)
    rows = sinusoidal_encoding(positions, config.d_model, base=config.position_base)
    return rows if config.position_code is PositionCode.INTERLEAVED else torch.cat((rows[:, 0::2], rows[:, 1::2]), 1)


class ComputedPositions(nn.Module):
    """The computed code of a config, for any position; its table is not saved in checkpoints."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        # On the CPU even while the model is built on torch's "meta" device, which has no memory.
        table = encoding(config, torch.arange(config.max_length, device="cpu"))
        self.register_buffer("table", table, persistent=False)

    def forward(
        self, first: int, length: int, positions: Positions = Positions(), lengths: Tensor | None = None
    ) -> Tensor | None:
        """Return the code of positions first .. first + length - 1, [length, d_model]; None if positions are off.

        lengths: the number of tokens of each source, int [batch]; None: `length`. A code that depends on them is
        [batch, length, d_model].
        """
        if not positions.enabled:
            return None
        start = first + positions.shift
        if self.config.position_code is PositionCode.NORMALISED:
            at = torch.arange(start, start + length, device="cpu")
            sentences = [length] if lengths is None else lengths.tolist()
            return torch.stack([encoding(self.config, at, n) for n in sentences]).to(self.table)
        if start >= 0 and start + length <= len(self.table):
            return self.table[start : start + length]
        # Computed on the CPU, because not every device has float64.
        return encoding(self.config, torch.arange(start, start + length, device="cpu")).to(self.table)

    def at(self, positions: Tensor) -> Tensor:
        """Return the code of positions below max_length, int64 [batch, length]: [batch, length, d_model]."""
        return self.table[positions]


class NoPositions(nn.Module):
    """No position code: nothing is added to embeddings."""

    def forward(
        self, first: int, length: int, positions: Positions = Positions(), lengths: Tensor | None = None
    ) -> None:
        """Return None, with the parameters of ComputedPositions.forward()."""

    def at(self, positions: Tensor) -> None:
        """Return None, with the parameter of ComputedPositions.at()."""


class LearnedPositions(nn.Module):
    """One learned row for each position up to config.max_length (Gehring et al. 2017, section 3.1)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.offset = config.position_offset  # earlier rows belong to no position
        weight = torch.empty(config.max_length + config.position_offset, config.d_model)
        if not weight.is_meta:
            nn.init.normal_(weight, std=config.d_model**-0.5)
        self.weight = nn.Parameter(weight)

    @property
    def table(self) -> Tensor:
        """The rows of positions 0 .. max_length - 1, [max_length, d_model]."""
        return self.weight[self.offset :]

    def forward(
        self, first: int, length: int, positions: Positions = Positions(), lengths: Tensor | None = None
    ) -> Tensor | None:
        """Return the code as ComputedPositions.forward() does. Raises a Refusal for positions without a row."""
        if not positions.enabled:
            return None
        start, rows = first + positions.shift, len(self.weight) - self.offset
        if start < 0 or start + length > rows:
            raise Refusal(
                "This model learned vectors for positions 0 to {last} only and has none for {found}.",
                last=rows - 1,
                found=start if start < 0 else start + length - 1,
            )
        return self.table[start : start + length]

    def at(self, positions: Tensor) -> Tensor:
        """Return the code as ComputedPositions.at() does."""
        return self.table[positions]


def position_modules(config: ModelConfig) -> tuple[nn.Module, nn.Module]:
    """Return the codes of source and target positions: one module for both, unless they are learned."""
    if config.position_code is PositionCode.LEARNED:
        return LearnedPositions(config), LearnedPositions(config)
    code = ComputedPositions(config) if config.adds_positions else NoPositions()
    return code, code


def distance_buckets(count: int, reach: int) -> Tensor:
    """Return the bucket, of `count`, of each distance 0 .. reach: int64 [reach + 1].

    The first half of the buckets hold one distance each, the others logarithmically more, and the last one all from
    `reach` on. Computed in float32 as in T5, because some powers of two lie on the edge of a bucket.
    """
    exact = count // 2
    distances = torch.arange(reach + 1, device="cpu")
    logarithmic = torch.log(distances.float() / exact) / math.log(reach / exact) * (count - exact)
    return torch.where(distances < exact, distances, (exact + logarithmic.long()).clamp(max=count - 1))


class RelativePositions(nn.Module):
    """A bias on the scores of self-attention for each head and bucket of distances (Raffel et al. 2020, section 2.1).

    It depends only on the distance between query and key.
    """

    def __init__(self, config: ModelConfig, *, both_ways: bool) -> None:
        """both_ways: half of the buckets are for keys after the query, as in an encoder; else those share one."""
        super().__init__()
        self.both_ways, self.reach = both_ways, config.position_reach
        self.later = config.position_buckets // 2  # first bucket of keys after the query
        count = self.later if both_ways else config.position_buckets
        self.register_buffer("buckets", distance_buckets(count, self.reach), persistent=False)
        heads = config.of(Side.ENCODER if both_ways else Side.DECODER).num_heads
        self.weight = nn.Parameter(torch.zeros(config.position_buckets, heads))

    def bucket(self, distances: Tensor) -> Tensor:
        """Return the bucket of each distance, key position minus query position: int64 of the same shape."""
        if not self.both_ways:
            return self.buckets[(-distances).clamp(0, self.reach)]
        return self.buckets[distances.abs().clamp(max=self.reach)] + (distances > 0) * self.later

    def forward(self, first: int, queries: int, keys: int, positions: Positions = Positions()) -> Tensor | None:
        """Return the bias for queries from position `first` on, [1, heads, query, key]; None if positions are off."""
        if not positions.enabled:
            return None
        at = torch.arange(max(first + queries, keys), device=self.weight.device) + positions.shift
        distances = at[None, :keys] - at[first : first + queries, None]  # [query, key]
        return self.weight[self.bucket(distances)].permute(2, 0, 1)[None]
