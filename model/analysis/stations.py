"""The way of one sentence through the model: what happens at each station. Numpy out.

Everything is read from the records of one teacher-forced pass (Translator.inspect).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from attention_atlas.model.nets.blocks import exact
from attention_atlas.model.nets.records import ForwardOutput, LayerRecord, SubLayerRecord
from attention_atlas.model.trace.interventions import NO_INTERVENTIONS, Interventions
from attention_atlas.model.trace.kinds import Side, SubLayerName
from attention_atlas.model.trace.language import Words, join, say
from attention_atlas.model.translator import Translator

STATION_NAMES = {
    SubLayerName.SELF_ATTENTION: say("self-attention"),
    SubLayerName.CROSS_ATTENTION: say("cross-attention"),
    SubLayerName.FEED_FORWARD: say("feed-forward"),
}


@dataclass(frozen=True, eq=False)
class EmbeddingRows:
    """Rows of a side's embedding for some tokens, and what becomes of them. float32 [token, d_model] each:
    scaled = embedding * sqrt(d_model); positions, what is added; added, the sum that enters the first layer, or the
    norm before it. error: the largest difference between what these three say enters the first layer, and what did."""

    scaled: np.ndarray
    positions: np.ndarray
    added: np.ndarray
    error: float


@torch.inference_mode()
def embedding_rows(
    translator: Translator,
    ids: tuple[int, ...],
    output: ForwardOutput,
    *,
    side: str,
    interventions: Interventions = NO_INTERVENTIONS,
) -> EmbeddingRows:
    """Of the source's or the target's ids (sections 3.4 and 3.5). side: "source" or "target"; interventions: those that
    the pass ran with."""
    model, source = translator.model, side == "source"
    matrix, code, stack, records, used = (
        (
            model.embedding.weight,
            model.source_positions,
            model.encoder,
            output.layers(Side.ENCODER),
            interventions.source_positions,
        )
        if source
        else (
            model.target_matrix,
            model.target_positions,
            model.decoder,
            output.layers(Side.DECODER),
            interventions.target_positions,
        )
    )
    scaled = torch.embedding(matrix, torch.tensor(ids, device=translator.device)) * model.scale
    lengths = torch.tensor([output.memory.shape[1]])
    entered, added_positions = records[0].before[0], code(0, len(ids), used, lengths)
    positions = torch.zeros_like(scaled) if added_positions is None else added_positions.view_as(scaled)
    added = scaled + positions if translator.config.norm_embedding and not stack.norm_before_positions else entered
    error = (stack.enter(scaled, positions) - entered).abs().max()
    return EmbeddingRows(_numpy(scaled), _numpy(positions), _numpy(added), float(error))


@dataclass(frozen=True, eq=False)
class ResidualNorms:
    """The length of the residual stream's vectors: float32 [station, token], stations in the order they are passed."""

    stations: tuple[Words, ...]
    norms: np.ndarray


def residual_norms(records: tuple[LayerRecord, ...]) -> ResidualNorms:
    """Of the encoder or the decoder: the input, then after each sub-layer of each layer."""
    stations, rows = [say("input")], [records[0].before]
    for index, record in enumerate(records):
        for sublayer in record.sublayers:
            stations.append(join((str(index + 1), STATION_NAMES[sublayer.name]), " "))
            rows.append(sublayer.after)
    return ResidualNorms(tuple(stations), _numpy(torch.stack([row[0].norm(dim=-1) for row in rows])))


@dataclass(frozen=True, eq=False)
class AddAndNorm:
    """One sub-layer's residual connection and norm, per token [token]: the length of the stream x before, the length of
    what the sub-layer adds, f(x), the cosine between the two, the length after, and the factor the norm multiplied by.

    stream, normed [token, d_model]: x, and the norm's output before gain and bias (mean 0, variance 1; of an RMS norm
    mean square 1).
    """

    before: np.ndarray
    added: np.ndarray
    cosine: np.ndarray
    after: np.ndarray
    scale: np.ndarray
    stream: np.ndarray
    normed: np.ndarray


def add_and_norm(record: SubLayerRecord) -> AddAndNorm:
    """Of one sub-layer. With pre-norm the norm reads the stream x, and x + f(norm(x)) goes on; with post-norm it reads
    the sum x + f(x), and its output goes on (Vaswani et al. 2017, section 5.4)."""
    before, added, after, read, scale = (
        x[0].float() for x in (record.before, record.added, record.after, record.norm_input, record.norm_scale)
    )
    normed = record.norm.centred(read) * scale[:, None]
    return AddAndNorm(
        _numpy(before.norm(dim=-1)),
        _numpy(added.norm(dim=-1)),
        _numpy(torch.cosine_similarity(before, added, dim=-1)),
        _numpy(after.norm(dim=-1)),
        _numpy(scale),
        _numpy(before),
        _numpy(normed),
    )


@dataclass(frozen=True, eq=False)
class NormNumbers:
    """A norm's formula with one token's numbers, float64: a layer norm's, gain * (x - mean) / sqrt(variance + epsilon)
    + bias (Ba et al. 2016, equation 4), or an RMS norm's, the same with 0 for the mean and without a bias (Zhang and
    Sennrich 2019).

    x, gain, bias, centred, normed, output  [d_model]; recorded, what the model's own norm makes of x
    mean, variance   of the token's d_model numbers, all of them: the squares are divided by d_model. Of an RMS norm 0,
                     and the mean square
    sample_variance  the same divided by d_model - 1, as of a sample from more numbers
    rms              whether it is an RMS norm
    """

    x: np.ndarray
    gain: np.ndarray
    bias: np.ndarray
    mean: float
    variance: float
    sample_variance: float
    epsilon: float
    recorded: np.ndarray
    rms: bool = False

    @property
    def centred(self) -> np.ndarray:
        return self.x - self.mean

    @property
    def normed(self) -> np.ndarray:
        return self.centred / math.sqrt(self.variance + self.epsilon)

    @property
    def output(self) -> np.ndarray:
        return self.gain * self.normed + self.bias

    @property
    def sample_output(self) -> np.ndarray:
        """What the sample's variance would give."""
        return self.gain * self.centred / math.sqrt(self.sample_variance + self.epsilon) + self.bias

    @property
    def error(self) -> float:
        """The largest difference of the output from the model's own."""
        return float(np.abs(self.output - self.recorded).max())


@torch.inference_mode()
def layer_norm(record: SubLayerRecord, token: int) -> NormNumbers:
    """Of the norm of one sub-layer, at one token."""
    read, norm = record.norm_input[0, token], record.norm
    rms = norm.bias is None
    bias = torch.zeros_like(norm.gain) if rms else norm.bias
    x, gain, bias, recorded = (tensor.detach().cpu().double().numpy() for tensor in (read, norm.gain, bias, norm(read)))
    mean = 0.0 if rms else float(x.mean())
    squares = float(((x - mean) ** 2).sum())
    size = len(x)
    return NormNumbers(x, gain, bias, mean, squares / size, squares / (size - 1), norm.epsilon, recorded, rms)


@dataclass(frozen=True, eq=False)
class ActiveUnits:
    """A feed-forward's hidden units: for each token its most active ones, and how many are active at all.

    units int [token, k], values float32 [token, k], most active first; share float32 [token]: units above 0.
    """

    units: np.ndarray
    values: np.ndarray
    share: np.ndarray


def active_units(record: LayerRecord, count: int = 8) -> ActiveUnits:
    """Of one layer (section 3.3, after the ReLU)."""
    active = record.activations[0].float()  # [token, d_feedforward]
    values, units = active.topk(min(count, active.shape[-1]), dim=-1)
    return ActiveUnits(units.cpu().numpy(), _numpy(values), _numpy((active > 0).float().mean(-1)))


@dataclass(frozen=True, eq=False)
class NextToken:
    """The distribution of the token after one step, its best `count`: ids, tokens, logits and probabilities [count].

    entropy: bits, of the whole distribution. log_sum: log sum exp(logits), so that p = exp(logit - log_sum). rest: the
    probability of all tokens not listed.
    """

    ids: np.ndarray
    tokens: tuple[str, ...]
    logits: np.ndarray
    probabilities: np.ndarray
    entropy: float
    log_sum: float
    rest: float


def next_token(translator: Translator, output: ForwardOutput, step: int, *, count: int = 20) -> NextToken:
    """Logits and softmax at one step. ValueError if there is no such step."""
    steps = output.hidden.shape[1]
    if not 0 <= step < steps:
        raise ValueError(f"steps are 0 to {steps - 1}, found {step}")
    with torch.inference_mode():
        logits = exact(output.project(output.hidden[0, step]))
    log_probabilities = logits.log_softmax(-1)
    probabilities = log_probabilities.exp()
    best, ids = logits.topk(min(count, len(logits)))
    return NextToken(
        ids.cpu().numpy(),
        translator.tokenizer.tokens(ids.tolist()),
        best.cpu().numpy(),
        probabilities[ids].cpu().numpy(),
        -float((probabilities * log_probabilities).sum()) / math.log(2),
        float(logits.logsumexp(-1)),
        float(1.0 - probabilities[ids].sum()),
    )


def _numpy(tensor: Tensor) -> np.ndarray:
    return tensor.float().cpu().numpy()
