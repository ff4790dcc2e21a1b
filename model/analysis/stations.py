"""One sentence on its way through the model: embeddings, residual stream, norms, feed-forward units, next tokens.

All numbers are read from the records of one teacher-forced pass (Translator.inspect) and returned as numpy arrays.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from attention_atlas.model.nets.blocks import exact
from attention_atlas.model.nets.records import ForwardOutput, LayerRecord, SubLayerRecord
from attention_atlas.model.nets.transformer import Transformer
from attention_atlas.model.trace.interventions import NO_INTERVENTIONS, Interventions
from attention_atlas.model.trace.kinds import SubLayerName
from attention_atlas.model.trace.language import Words, join, say
from attention_atlas.model.translator import Translator

STATION_NAMES = {
    SubLayerName.SELF_ATTENTION: say("self-attention"),
    SubLayerName.CROSS_ATTENTION: say("cross-attention"),
    SubLayerName.FEED_FORWARD: say("feed-forward"),
}


@dataclass(frozen=True, eq=False)
class EmbeddingRows:
    """The embedding of a side's tokens, step by step, float32 [token, d_model].

    scaled     embedding * sqrt(d_model)
    positions  the positional encoding
    added      their sum, which enters the first layer or the norm before it
    error      the largest difference between the first layer's input computed from these and the recorded one
    """

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
    """Return the embedding rows of the source's or the target's ids (sections 3.4 and 3.5).

    side: "source" or "target". interventions: those of the recorded pass.
    """
    model, source = translator.model, side == "source"
    if not isinstance(model, Transformer):  # a recurrent network adds no positions
        rows = _numpy(model.token_rows(torch.tensor(ids, device=translator.device)))
        return EmbeddingRows(rows, np.zeros_like(rows), rows, 0.0)
    stack, code = (model.encoder, model.source_positions) if source else (model.decoder, model.target_positions)
    used = interventions.source_positions if source else interventions.target_positions
    scaled = model.token_rows(torch.tensor(ids, device=translator.device), decoder=not source)
    lengths = torch.tensor([output.memory.shape[1]])
    entered, added_positions = output.layers(stack.side)[0].before[0], code(0, len(ids), used, lengths)
    positions = torch.zeros_like(scaled) if added_positions is None else added_positions.view_as(scaled)
    added = scaled + positions if translator.config.norm_embedding and not stack.norm_before_positions else entered
    error = (stack.enter(scaled, positions) - entered).abs().max()
    return EmbeddingRows(_numpy(scaled), _numpy(positions), _numpy(added), float(error))


def residual_norms(records: tuple[LayerRecord, ...]) -> tuple[list[Words], np.ndarray]:
    """Return the stations of one side's residual stream and the length of its vectors there, float32 [station, token].

    The stations are its input, then each sub-layer of each layer.
    """
    stations, rows = [say("input")], [records[0].before]
    for index, record in enumerate(records):
        for sublayer in record.sublayers:
            stations.append(join((str(index + 1), STATION_NAMES[sublayer.name]), " "))
            rows.append(sublayer.after)
    return stations, _numpy(torch.stack([row[0].norm(dim=-1) for row in rows]))


@dataclass(frozen=True, eq=False)
class AddAndNorm:
    """One sub-layer's residual connection and norm.

    before, added, after  [token], the length of the stream x, of the sub-layer's output f(x), and of the result
    cosine   [token], between x and f(x)
    scale    [token], the factor that the norm multiplies by
    stream   [token, d_model], x
    normed   [token, d_model], the norm's output before gain and bias (mean 0 and variance 1; mean square 1 for an RMS
             norm)
    """

    before: np.ndarray
    added: np.ndarray
    cosine: np.ndarray
    after: np.ndarray
    scale: np.ndarray
    stream: np.ndarray
    normed: np.ndarray


def add_and_norm(record: SubLayerRecord) -> AddAndNorm:
    """Return the residual connection and norm of one sub-layer.

    With pre-norm the result is x + f(norm(x)); with post-norm it is norm(x + f(x)) (Vaswani et al. 2017, section 5.4).
    """
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


@torch.inference_mode()
def stream_vectors(record: SubLayerRecord) -> dict[str, np.ndarray]:
    """Return one sub-layer's vectors, each float32 [token, d_model]: the stream before it, what its function reads and
    adds, and the stream after it."""
    vectors = {"before": record.before, "read": record.read, "added": record.added, "after": record.after}
    return {name: _numpy(vector[0]) for name, vector in vectors.items()}


@dataclass(frozen=True, eq=False)
class NormNumbers:
    """A norm's formula with one token's numbers, in float64.

    A layer norm computes gain * (x - mean) / sqrt(variance + epsilon) + bias (Ba et al. 2016, equation 4); an RMS norm
    the same with mean 0 and no bias (Zhang and Sennrich 2019).

    x, gain, bias, centred, normed, output  [d_model]
    recorded         [d_model], the output of the model's own norm
    mean, variance   over the token's d_model numbers, divided by d_model; for an RMS norm 0 and the mean square
    sample_variance  the same divided by d_model - 1
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
        """The output with the sample variance."""
        return self.gain * self.centred / math.sqrt(self.sample_variance + self.epsilon) + self.bias

    @property
    def error(self) -> float:
        """The largest difference between the output and the recorded one."""
        return float(np.abs(self.output - self.recorded).max())


@torch.inference_mode()
def layer_norm(record: SubLayerRecord, token: int) -> NormNumbers:
    """Return the norm of one sub-layer at one token."""
    read, norm = record.norm_input[0, token], record.norm
    rms = norm.bias is None
    bias = torch.zeros_like(norm.gain) if rms else norm.bias
    x, gain, bias, recorded = (tensor.detach().cpu().double().numpy() for tensor in (read, norm.gain, bias, norm(read)))
    mean = 0.0 if rms else float(x.mean())
    squares = float(((x - mean) ** 2).sum())
    size = len(x)
    return NormNumbers(x, gain, bias, mean, squares / size, squares / (size - 1), norm.epsilon, recorded, rms)


@dataclass(frozen=True, eq=False)
class NextToken:
    """The most probable tokens at one step, and the whole distribution's entropy.

    ids, tokens, logits, probabilities  [count], the most probable tokens
    entropy  of the whole distribution, in bits
    log_sum  log sum exp(logits), so that p = exp(logit - log_sum)
    rest     the probability of all other tokens
    """

    ids: np.ndarray
    tokens: tuple[str, ...]
    logits: np.ndarray
    probabilities: np.ndarray
    entropy: float
    log_sum: float
    rest: float


def next_token(translator: Translator, output: ForwardOutput, step: int, *, count: int = 20) -> NextToken:
    """Return the most probable tokens at one step. Raises ValueError if there is no such step."""
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
