"""The live checks: each claim with its tolerance, and the measure of its error.

A measure takes the Evidence and returns the largest absolute error and a phrase that says what was compared.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from attention_atlas.model.checks import oracle
from attention_atlas.model.checks.evidence import SMOOTHING, Evidence
from attention_atlas.model.nets.blocks import blocks
from attention_atlas.model.trace.interventions import positions_shifted
from attention_atlas.model.trace.kinds import TRANSFORMER_KINDS, AttentionKind, Side
from attention_atlas.model.trace.language import say, say_plural
from attention_atlas.model.training.loss import SummedLoss

MAX_VARIANTS = 16  # prefixes whose future is changed at once; more would only cost time
SHIFT = 7  # positions
WEIGHTS = 1e-5  # tolerance on attention weights and probabilities, float32
LOGITS = 1e-4  # tolerance on logits and residuals


@dataclass(frozen=True)
class Check:
    """One claim and its measure.

    measure  returns the error and what was compared
    scale    the property of Evidence with the largest absolute value compared; None: the error is a count or must be 0
    """

    name: str
    claim: str
    tolerance: float
    measure: Callable[[Evidence], tuple[float, str]]
    scale: str | None = None


def check(
    name: str, claim: str, tolerance: float, scale: str | None = None
) -> Callable[[Callable[[Evidence], tuple[float, str]]], Check]:
    """Decorate a measure, which becomes a Check."""
    return lambda measure: Check(name, claim, tolerance, measure, scale)


@check(say("Rows sum to 1"), say("Each row of every attention map is a distribution."), WEIGHTS, "largest_weight")
def rows_sum_to_one(evidence: Evidence) -> tuple[float, str]:
    errors = {
        kind.value: float(np.abs(evidence.trace.maps(kind).weights.sum(-1, dtype=np.float64) - 1.0).max())
        for kind in evidence.trace.kinds
    }
    rows = sum(evidence.trace.maps(kind).weights[..., 0].size for kind in evidence.trace.kinds)
    return max(errors.values()), say("{n} rows of all layers and heads", n=rows)


@check(say("Masked cells are 0"), say("What a mask hides gets a weight of exactly 0."), 0.0)
def masked_cells_are_zero(evidence: Evidence) -> tuple[float, str]:
    """Check the causal cells of the trace, and the padded keys of a padded batch."""
    weights = evidence.trace.decoder_self.weights
    above = np.triu(np.ones(weights.shape[2:], bool), k=1)
    causal = float(np.abs(weights[..., above]).max(initial=0.0))
    output, length_of_row = evidence.padded_output, evidence.padded[0].shape[1]
    length = len(evidence.trace.source_ids)
    padded = max(
        float(output.weights(kind)[:, 0, ..., length:].abs().max())
        for kind in output.kinds
        if kind is not AttentionKind.DECODER_SELF
    )
    return max(causal, padded), say(
        "{cells} causal cells per head, {keys} padded keys", cells=int(above.sum()), keys=length_of_row - length
    )


@check(
    say("Maps match the model"),
    say("The maps on the page are the ones the model computes, in the same order."),
    WEIGHTS,
    "largest_weight",
)
def trace_is_the_models(evidence: Evidence) -> tuple[float, str]:
    errors = []
    for kind in evidence.trace.kinds:
        second = evidence.output.weights(kind)[:, 0].float().cpu().numpy()
        errors.append(difference(evidence.trace.maps(kind).weights, second))
    return max(errors), say("every map against a second pass over the same ids")


@check(
    say("Probabilities match the model"),
    say("The token probabilities are the ones the model computes."),
    WEIGHTS,
    "largest_probability",
)
def probabilities_are_the_models(evidence: Evidence) -> tuple[float, str]:
    trace, output = evidence.trace, evidence.output
    ids = torch.tensor(np.column_stack((trace.target_ids, trace.top_ids)), device=output.hidden.device).long()
    with torch.inference_mode():
        probabilities = [
            logits.float().softmax(-1).gather(1, ids[part]) for part, logits in evidence.logits(output.hidden[0])
        ]
    chosen, top = np.split(torch.cat(probabilities).cpu().numpy(), [1], axis=1)  # [step, 1], [step, k]
    error = max(difference(top, trace.top_probabilities), difference(chosen[:, 0], np.exp(trace.log_probability)))
    return error, say("{n} candidates of {steps} steps", n=trace.top_ids.size, steps=len(trace.target_ids))


@check(
    say("Nothing looks ahead"),
    say("Changing later tokens changes no earlier row of the decoder."),
    LOGITS,
    "largest_hidden",
)
def nothing_looks_ahead(evidence: Evidence) -> tuple[float, str]:
    """Change the tokens after t, for each t of a batch: row t of the decoder must stay the same."""
    translator, trace = evidence.translator, evidence.trace
    target = torch.tensor(trace.decoder_ids, device=translator.device)
    length = len(target)
    if length < 2:
        return 0.0, say("one row only, so there is nothing ahead")
    cuts = np.unique(np.linspace(1, length - 1, min(MAX_VARIANTS, length - 1)).astype(int)).tolist()
    variants = target.repeat(len(cuts), 1)
    for row, cut in enumerate(cuts):  # every token becomes a different one
        variants[row, cut:] = (variants[row, cut:] + 1 + row) % translator.config.num_target_tokens
    with torch.inference_mode():
        source = evidence.encoded.select(torch.zeros_like(target[: len(cuts)]))
        hidden, _ = translator.model.decode(variants, source)
    error = max(
        float((hidden[row, :cut] - evidence.output.hidden[0, :cut]).abs().max()) for row, cut in enumerate(cuts)
    )
    return error, say("{n} changed futures, every row before the change", n=len(cuts))


@check(
    say("Cached logits = one pass"),
    say("Decoding step by step over the cache gives the logits of one full pass."),
    LOGITS,
    "largest_logit",
)
def cached_logits(evidence: Evidence) -> tuple[float, str]:
    """Compare decoding token by token over the key/value cache with the teacher-forced pass."""
    steps = evidence.cached_steps
    return max(logits for logits, _ in steps), say("{n} cached steps", n=len(steps))


@check(
    say("Cached weights = one pass"),
    say("Decoding over the cache also gives the same attention, row by row."),
    WEIGHTS,
    "largest_weight",
)
def cached_weights(evidence: Evidence) -> tuple[float, str]:
    layers = len(evidence.output.layers(Side.DECODER))
    errors = [weights for _, weights in evidence.cached_steps]
    return max(errors), say("rows of {n} layers, recorded while decoding", n=layers)


@check(
    say("Attention weights = torch's"),
    say("nn.MultiheadAttention with our weights gives the same attention weights."),
    WEIGHTS,
    "largest_weight",
)
def attention_weights_equal_torch(evidence: Evidence) -> tuple[float, str]:
    errors, _ = evidence.oracle_attention
    return max(errors), say("{n} attentions: what the model recorded, and the maps on the page", n=len(errors))


@check(say("Attention output = torch's"), say("Its output matches torch's."), LOGITS, "largest_stream")
def attention_outputs_equal_torch(evidence: Evidence) -> tuple[float, str]:
    _, errors = evidence.oracle_attention
    return max(errors), say("{n} attentions, after the output projection", n=len(errors))


@check(
    say("Encoder layer = torch's"),
    say("nn.TransformerEncoderLayer with our weights gives our residual stream."),
    LOGITS,
    "largest_stream",
)
def encoder_layers_equal_torch(evidence: Evidence) -> tuple[float, str]:
    errors = oracle.layer_errors(evidence.torch_layers, evidence.output, Side.ENCODER)
    return max(errors), say("{n} layers, each with its own recorded input", n=len(errors))


@check(
    say("Decoder layer = torch's"),
    say("nn.TransformerDecoderLayer with our weights gives our residual stream."),
    LOGITS,
    "largest_stream",
)
def decoder_layers_equal_torch(evidence: Evidence) -> tuple[float, str]:
    masked = evidence.translator.config.look_ahead_mask
    errors = oracle.layer_errors(evidence.torch_layers, evidence.output, Side.DECODER, look_ahead_mask=masked)
    return max(errors), say("{n} layers, each with its own recorded input", n=len(errors))


@check(
    say("Padding changes nothing"),
    say("In a batch with a longer sentence the logits stay the same."),
    LOGITS,
    "largest_logit",
)
def padding_changes_nothing(evidence: Evidence) -> tuple[float, str]:
    error = logit_error(evidence, evidence.padded_output.hidden[0, : len(evidence.trace.decoder_ids)])
    return error, say("beside a sentence of {n} tokens", n=evidence.padded[0].shape[1])


@check(
    say("An embedding is a row"),
    say("Looking a token up is multiplying its one-hot vector by the matrix."),
    WEIGHTS,
    "largest_embedding",
)
@torch.inference_mode()
def embedding_is_a_row(evidence: Evidence) -> tuple[float, str]:
    """Compare one-hot vectors times the matrix with the rows that the model looks up, without the scale factor."""
    model, ids = evidence.translator.model, evidence.source_ids()
    matrix = model.embedding.weight
    looked_up = model.token_rows(ids)[0] / model.scale  # [source, d_model]
    error = max(
        float((F.one_hot(ids[0, part], len(matrix)).to(matrix.dtype) @ matrix - looked_up[part]).abs().max())
        for part in blocks(ids.shape[1], len(matrix))
    )
    return error, say("{n} tokens of a vocabulary of {size}", n=ids.shape[1], size=len(matrix))


@check(
    say("Masked attention = torch's"),
    say("Attention output also matches with padding and causal masks combined."),
    LOGITS,
    "largest_stream",
)
def masked_attention_equals_torch(evidence: Evidence) -> tuple[float, str]:
    """Compare what the model added to the stream with nn.MultiheadAttention under the padding and causal masks.

    Only the real tokens of the batch count.
    """
    return max(error for _, error in evidence.masked_errors), _masked_cells(evidence)


@check(
    say("Masked weights = torch's"),
    say("With both masks, every head's weights match torch's."),
    WEIGHTS,
    "largest_weight",
)
def masked_weights_equal_torch(evidence: Evidence) -> tuple[float, str]:
    """Compare the weights of every head under the same masks, masked cells included."""
    return max(error for error, _ in evidence.masked_errors), _masked_cells(evidence)


@check(
    say("Masked layers = torch's"),
    say("In a padded batch, torch's layers give our residual streams, with target and memory padding in the decoder."),
    LOGITS,
    "largest_stream",
)
def masked_layers_equal_torch(evidence: Evidence) -> tuple[float, str]:
    """Compare the stream after every layer with torch's layers under padding and causal masks, at the real tokens."""
    output, masked = evidence.padded_output, evidence.translator.config.look_ahead_mask
    layers = oracle.torch_layers(evidence.translator, output)
    errors = [
        error
        for side in Side
        for error in oracle.layer_errors(layers, output, side, look_ahead_mask=masked, paddings=evidence.paddings)
    ]
    return max(errors), say(
        "{n} layers, {cells} padded tokens", n=len(errors), cells=sum(int(mask.sum()) for mask in evidence.paddings)
    )


def _masked_cells(evidence: Evidence) -> str:
    return say(
        "{n} attentions, {cells} padded tokens",
        n=sum(len(evidence.padded_output.records(kind)) for kind in TRANSFORMER_KINDS),
        cells=sum(int(mask.sum()) for mask in evidence.paddings),
    )


@check(
    say("Whole stack = torch's"),
    say("nn.TransformerEncoder and nn.TransformerDecoder with our weights give our logits."),
    LOGITS,
    "largest_logit",
)
@torch.inference_mode()
def whole_stack_equals_torch(evidence: Evidence) -> tuple[float, str]:
    """Compare the logits of torch's own stacks, run on the inputs of our first layers."""
    translator, output = evidence.translator, evidence.output
    memory, hidden = oracle.whole_stacks(translator, output, evidence.torch_layers)
    error = max(logit_error(evidence, hidden[0]), float((memory - output.memory).abs().max()))
    return error, say(
        "{n} encoder and {m} decoder layers, the last norm, the projection",
        n=len(output.encoder_records),
        m=len(output.decoder_records),
    )


@check(
    say("The loss ignores padding"),
    say("The loss of a padded batch is torch's cross-entropy of its two sentences without padding."),
    LOGITS,
    "torch_loss",
)
@torch.inference_mode()
def loss_ignores_padding(evidence: Evidence) -> tuple[float, str]:
    """Compare the training loss of the padded batch with torch_loss, in nats a token."""
    ours = float(SummedLoss(evidence.translator.model, SMOOTHING)(*evidence.padded)) / evidence.num_targets
    padded = evidence.padded[2].numel() - evidence.num_targets
    return abs(ours - evidence.torch_loss), say("{n} real and {m} padded tokens", n=evidence.num_targets, m=padded)


@check(
    say("Shifting changes nothing"),
    say(
        "Relative positions depend only on the distance between two tokens: shift all of them, and "
        "the logits stay the same."
    ),
    LOGITS,
    "largest_logit",
)
@torch.inference_mode()
def shifting_changes_nothing(evidence: Evidence) -> tuple[float, str]:
    """Compare the logits with those of a pass whose positions are all shifted."""
    target = torch.tensor([evidence.trace.decoder_ids], device=evidence.translator.device)
    shifted = evidence.translator.model(evidence.source_ids(), target, interventions=positions_shifted(SHIFT))
    return logit_error(evidence, shifted.hidden[0]), say("all positions moved by {n}", n=SHIFT)


@check(say("Encoder states = torch's"), say("nn.GRU with our weights gives the same encoder states."), WEIGHTS)
def encoder_states(evidence: Evidence) -> tuple[float, str]:
    """Compare the recurrent encoder's states in both directions with nn.GRU's."""
    model, memory = evidence.translator.model, evidence.output.memory
    with torch.inference_mode():
        rows = model.token_rows(evidence.source_ids())
        forward, _ = oracle.torch_unit(model.forwards)(rows)
        backward, _ = oracle.torch_unit(model.backwards)(rows.flip(1))
        error = float((torch.cat((forward, backward.flip(1)), dim=-1) - memory).abs().max())
    return error, say("{n} positions, both directions", n=memory.shape[1])


@check(say("Decoder outputs = torch's"), say("nn.GRU with our weights gives the same decoder outputs."), LOGITS)
def decoder_outputs(evidence: Evidence) -> tuple[float, str]:
    """Compare the output projection's input with nn.GRU's, which decodes over the recorded alignment."""
    model, output = evidence.translator.model, evidence.output
    with torch.inference_mode():
        rows = model.token_rows(torch.tensor([evidence.trace.decoder_ids], device=output.memory.device))
        contexts = []  # weights times values of every step, [1, target, width]; none without attention
        if AttentionKind.ALIGNMENT in output.kinds:
            record = output.layers(Side.DECODER)[0].alignment
            contexts = [(record.weights @ record.values)[:, 0]]
        start = evidence.encoded.start[None]
        states, _ = oracle.torch_unit(model.writer)(torch.cat((rows, *contexts), dim=-1), start)
        read = torch.tanh(model.readout(torch.cat((states, rows, *contexts), dim=-1)))
        error = float((read - output.hidden).abs().max())
    return error, say_plural("{n} step", "{n} steps", n=rows.shape[1])


@torch.inference_mode()
def logit_error(evidence: Evidence, hidden: Tensor) -> float:
    """Return the largest difference of the logits of hidden [step, d_model] from those of the second pass."""
    pairs = zip(evidence.logits(hidden), evidence.logits(evidence.output.hidden[0]))
    return float(max((first - second).abs().max() for (_, first), (_, second) in pairs))


def difference(a: np.ndarray, b: np.ndarray) -> float:
    """Return the largest absolute difference, infinite for nan. Raises ValueError for different shapes."""
    if a.shape != b.shape:
        raise ValueError(f"shapes differ: {list(a.shape)} and {list(b.shape)}")
    # max() alone would overlook a nan, depending on its place.
    difference = np.abs(np.asarray(a, np.float64) - np.asarray(b, np.float64))
    return float("inf") if np.isnan(difference).any() else float(difference.max(initial=0.0))
