"""What is measured for each claim that model/checks/verify.py makes, and by what size of numbers to judge it."""

from __future__ import annotations

import numpy as np
import torch

from attention_atlas.model.checks import oracle
from attention_atlas.model.checks.evidence import Evidence, once
from attention_atlas.model.nets.blocks import blocks
from attention_atlas.model.trace.kinds import AttentionKind, Side
from attention_atlas.model.trace.language import say

MAX_VARIANTS = 16  # prefixes whose future is changed at once; more would only cost time


def rows_sum_to_one(evidence: Evidence) -> tuple[float, str]:
    errors = {
        kind.value: float(np.abs(evidence.trace.maps(kind).weights.sum(-1, dtype=np.float64) - 1.0).max())
        for kind in evidence.trace.kinds
    }
    rows = sum(evidence.trace.maps(kind).weights[..., 0].size for kind in evidence.trace.kinds)
    return max(errors.values()), say("{n} rows of all layers and heads", n=rows)


def masked_cells_are_zero(evidence: Evidence) -> tuple[float, str]:
    """Causal cells of the trace, and padding in a batch made for the purpose."""
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


def trace_is_the_models(evidence: Evidence) -> tuple[float, str]:
    trace = evidence.trace
    error = max(difference(trace.maps(kind).weights, evidence.recomputed(kind)) for kind in trace.kinds)
    return error, say("every map against a second pass over the same ids")


def probabilities_are_the_models(evidence: Evidence) -> tuple[float, str]:
    trace, output = evidence.trace, evidence.output
    ids = torch.tensor(np.column_stack((trace.target_ids, trace.top_ids)), device=output.hidden.device).long()
    with torch.inference_mode():
        found = [
            output.project(output.hidden[0, part]).float().softmax(-1).gather(1, ids[part])
            for part in blocks(len(ids), evidence.translator.config.num_target_tokens)
        ]
    chosen, top = np.split(torch.cat(found).cpu().numpy(), [1], axis=1)  # [step, 1], [step, k]
    error = max(difference(top, trace.top_probabilities), difference(chosen[:, 0], np.exp(trace.log_probability)))
    return error, say("{n} candidates of {steps} steps", n=trace.top_ids.size, steps=len(trace.target_ids))


def nothing_looks_ahead(evidence: Evidence) -> tuple[float, str]:
    """Row t of the decoder must not change when tokens after t do: one batch, a variant for each t."""
    translator, trace = evidence.translator, evidence.trace
    target = torch.tensor(trace.decoder_ids, device=translator.device)
    length = len(target)
    if length < 2:
        return 0.0, say("one row only: there is nothing ahead")
    cuts = np.unique(np.linspace(1, length - 1, min(MAX_VARIANTS, length - 1)).astype(int)).tolist()
    variants = target.repeat(len(cuts), 1)
    for row, cut in enumerate(cuts):  # another token, whatever it is: never the same one
        variants[row, cut:] = (variants[row, cut:] + 1 + row) % translator.config.num_target_tokens
    with torch.inference_mode():
        source = evidence.encoded.select(torch.zeros_like(target[: len(cuts)]))
        hidden, _ = translator.model.decode(variants, source)
    error = max(
        float((hidden[row, :cut] - evidence.output.hidden[0, :cut]).abs().max()) for row, cut in enumerate(cuts)
    )
    return error, say("{n} changed futures, every row before the change", n=len(cuts))


def cached_logits(evidence: Evidence) -> tuple[float, str]:
    """Token by token over the key/value cache against the teacher-forced pass."""
    steps = evidence.cached_steps
    return max(logits for logits, _ in steps), say("{n} cached steps", n=len(steps))


def cached_weights(evidence: Evidence) -> tuple[float, str]:
    layers = len(evidence.output.layers(Side.DECODER))
    errors = [weights for _, weights in evidence.cached_steps]
    return max(errors), say("rows of {n} layers, recorded while decoding", n=layers)


def attention_weights_equal_torch(evidence: Evidence) -> tuple[float, str]:
    found, _ = evidence.oracle_attention
    return max(found), say("{n} attentions: what the model recorded, and the maps on the page", n=len(found))


def attention_outputs_equal_torch(evidence: Evidence) -> tuple[float, str]:
    _, found = evidence.oracle_attention
    return max(found), say("{n} attentions, after the output projection", n=len(found))


def encoder_layers_equal_torch(evidence: Evidence) -> tuple[float, str]:
    found = oracle.encoder_layer_errors(evidence.torch_layers[Side.ENCODER], evidence.output)
    return max(found), say("{n} layers, each on the input that it had", n=len(found))


def decoder_layers_equal_torch(evidence: Evidence) -> tuple[float, str]:
    masked = evidence.translator.config.look_ahead_mask
    found = oracle.decoder_layer_errors(evidence.torch_layers[Side.DECODER], evidence.output, look_ahead_mask=masked)
    return max(found), say("{n} layers, each on the input that it had", n=len(found))


def padding_changes_nothing(evidence: Evidence) -> tuple[float, str]:
    plain, padded, steps = evidence.output, evidence.padded_output, len(evidence.trace.decoder_ids)
    with torch.inference_mode():
        errors = [
            (padded.project(padded.hidden[0, part]) - plain.project(plain.hidden[0, part])).abs().max()
            for part in blocks(steps, evidence.translator.config.num_target_tokens)
        ]
    return float(max(errors)), say("beside a sentence of {n} tokens", n=evidence.padded[0].shape[1])


@once
def largest_weight(evidence: Evidence) -> float:
    return max((float(evidence.trace.maps(kind).weights.max()) for kind in evidence.trace.kinds), default=1.0)


@once
def largest_probability(evidence: Evidence) -> float:
    return float(evidence.trace.top_probabilities.max())


@once
def largest_logit(evidence: Evidence) -> float:
    output = evidence.output
    with torch.inference_mode():
        return max(
            float(output.project(output.hidden[0, part]).abs().max())
            for part in blocks(output.hidden.shape[1], evidence.translator.config.num_target_tokens)
        )


@once
def largest_hidden(evidence: Evidence) -> float:
    """Of the decoder's output, which is of the size of every stream that a norm has read."""
    return float(evidence.output.hidden.abs().max())


@once
def largest_stream(evidence: Evidence) -> float:
    """Of the residual streams after every layer."""
    return max(float(record.after.abs().max()) for side in Side for record in evidence.output.layers(side))


@once
def largest_embedding(evidence: Evidence) -> float:
    return float(torch.linalg.vector_norm(evidence.translator.model.embedding.weight.detach(), torch.inf))


def difference(a: np.ndarray, b: np.ndarray) -> float:
    if a.shape != b.shape:
        raise ValueError(f"shapes differ: {list(a.shape)} and {list(b.shape)}")
    # A nan is a difference: max() alone would let one pass unseen, depending on its place.
    difference = np.abs(np.asarray(a, np.float64) - np.asarray(b, np.float64))
    return float("inf") if np.isnan(difference).any() else float(difference.max(initial=0.0))
