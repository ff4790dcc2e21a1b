"""Live checks of the claims this project makes, on one sentence: each with its measured error and its tolerance.

The only product module that may touch torch.nn's own attention and Transformer layers: they are the oracle.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from model.checks import oracle, parts, recurrent
from model.checks.evidence import Evidence, Shown
from model.nets.blocks import blocks
from model.nets.transformer import Transformer
from model.trace.kinds import AttentionKind, Side
from model.trace.language import Refusal, say, words_of
from model.trace.translation import TranslationTrace
from model.translator import Translator

WEIGHTS = 1e-5  # tolerance on attention weights and probabilities, float32
LOGITS = 1e-4  # tolerance on logits and residuals
HALF = 1e-2  # on both, where the model runs in half precision
MAX_VARIANTS = 16  # prefixes whose future is changed at once; more would only cost time


@dataclass(frozen=True)
class Result:
    """One check. error: the largest absolute difference found, in the unit that `measured` names; nan where the check
    could not be carried out, and then `detail` says why. relative: the error as a share of the largest value compared;
    None where that means nothing. passed: error <= tolerance."""

    name: str
    claim: str
    error: float
    tolerance: float
    passed: bool
    detail: str
    seconds: float
    relative: float | None = None


@dataclass(frozen=True)
class Check:
    """measure: the error, and on what it was found. scale: the largest absolute value of what is compared, by which the
    error is small or not; None: the error counts something, or must be 0."""

    name: str
    claim: str
    tolerance: float
    measure: Callable[[Evidence], tuple[float, str]]
    scale: Callable[[Evidence], float] | None = None


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
    error = max(_difference(trace.maps(kind).weights, evidence.recomputed(kind)) for kind in trace.kinds)
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
    error = max(_difference(top, trace.top_probabilities), _difference(chosen[:, 0], np.exp(trace.log_probability)))
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
        source = translator.model.encode(evidence.source_ids().expand(len(cuts), -1))
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
    found = oracle.encoder_layer_errors(evidence.translator, evidence.output)
    return max(found), say("{n} layers, each on the input that it had", n=len(found))


def decoder_layers_equal_torch(evidence: Evidence) -> tuple[float, str]:
    found = oracle.decoder_layer_errors(evidence.translator, evidence.output)
    return max(found), say("{n} layers, each on the input that it had", n=len(found))


def padding_changes_nothing(evidence: Evidence) -> tuple[float, str]:
    plain, padded, steps = evidence.output, evidence.padded_output, len(evidence.trace.decoder_ids)
    with torch.inference_mode():
        errors = [
            (padded.project(padded.hidden[0, part]) - plain.project(plain.hidden[0, part])).abs().max()
            for part in blocks(steps, evidence.translator.config.num_target_tokens)
        ]
    return float(max(errors)), say("beside a sentence of {n} tokens", n=evidence.padded[0].shape[1])


def largest_weight(evidence: Evidence) -> float:
    return max((float(evidence.trace.maps(kind).weights.max()) for kind in evidence.trace.kinds), default=1.0)


def largest_probability(evidence: Evidence) -> float:
    return float(evidence.trace.top_probabilities.max())


def largest_logit(evidence: Evidence) -> float:
    output = evidence.output
    with torch.inference_mode():
        return max(
            float(output.project(output.hidden[0, part]).abs().max())
            for part in blocks(output.hidden.shape[1], evidence.translator.config.num_target_tokens)
        )


def largest_hidden(evidence: Evidence) -> float:
    """Of the decoder's output, which is of the size of every stream that a norm has read."""
    return float(evidence.output.hidden.abs().max())


def largest_stream(evidence: Evidence) -> float:
    """Of the residual streams after every layer."""
    return max(float(record.after.abs().max()) for side in Side for record in evidence.output.layers(side))


def largest_embedding(evidence: Evidence) -> float:
    return float(evidence.translator.model.embedding.weight.detach().abs().max())


CHECKS = (
    Check(
        say("Rows sum to 1"),
        say("Each row of every attention map is a distribution."),
        WEIGHTS,
        rows_sum_to_one,
        largest_weight,
    ),
    Check(say("Masked cells are 0"), say("What a mask hides gets a weight of exactly 0."), 0.0, masked_cells_are_zero),
    Check(
        say("Maps are the model's"),
        say("The maps on the page are what the model computes, in their order."),
        WEIGHTS,
        trace_is_the_models,
        largest_weight,
    ),
    Check(
        say("Probabilities are the model's"),
        say("So are the token probabilities."),
        WEIGHTS,
        probabilities_are_the_models,
        largest_probability,
    ),
    Check(
        say("Nothing looks ahead"),
        say("Changing later tokens changes no earlier row of the decoder."),
        LOGITS,
        nothing_looks_ahead,
        largest_hidden,
    ),
    Check(
        say("Cached logits = one pass"),
        say("Decoding step by step over the cache gives the logits of one full pass."),
        LOGITS,
        cached_logits,
        largest_logit,
    ),
    Check(
        say("Cached weights = one pass"),
        say("And the same attention, row by row."),
        WEIGHTS,
        cached_weights,
        largest_weight,
    ),
    Check(
        say("An embedding is a row"),
        say("Looking a token up is multiplying its one-hot vector by the matrix."),
        WEIGHTS,
        parts.embedding_is_a_row,
        largest_embedding,
    ),
    Check(
        say("Attention weights = torch's"),
        say("nn.MultiheadAttention with our weights attends as ours does."),
        WEIGHTS,
        attention_weights_equal_torch,
        largest_weight,
    ),
    Check(
        say("Attention output = torch's"),
        say("And says the same."),
        LOGITS,
        attention_outputs_equal_torch,
        largest_stream,
    ),
    Check(
        say("Masked attention = torch's"),
        say("So it does with padding and the causal mask together, in a padded batch."),
        LOGITS,
        parts.masked_attention_equals_torch,
        largest_stream,
    ),
    Check(
        say("Encoder layer = torch's"),
        say("nn.TransformerEncoderLayer with our weights gives our residual stream."),
        LOGITS,
        encoder_layers_equal_torch,
        largest_stream,
    ),
    Check(
        say("Decoder layer = torch's"),
        say("nn.TransformerDecoderLayer with our weights gives our residual stream."),
        LOGITS,
        decoder_layers_equal_torch,
        largest_stream,
    ),
    Check(
        say("Whole stack = torch's"),
        say("nn.TransformerEncoder and nn.TransformerDecoder with our weights give our logits."),
        LOGITS,
        parts.whole_stack_equals_torch,
        largest_logit,
    ),
    Check(
        say("Padding changes nothing"),
        say("In a batch with a longer sentence the logits stay the same."),
        LOGITS,
        padding_changes_nothing,
        largest_logit,
    ),
    Check(
        say("The loss ignores padding"),
        say("Of a padded batch it is torch's cross-entropy of the two sentences by themselves."),
        LOGITS,
        parts.loss_ignores_padding,
        parts.torchs_loss,
    ),
)


OF_ANY_NETWORK = (
    rows_sum_to_one,
    trace_is_the_models,
    probabilities_are_the_models,
    nothing_looks_ahead,
    cached_logits,
    cached_weights,
    padding_changes_nothing,
)
RECURRENT = (
    Check(
        say("Encoder states = torch's"),
        say("nn.GRU with our weights reads the sentence as ours does."),
        WEIGHTS,
        recurrent.encoder_states,
    ),
    Check(say("Decoder outputs = torch's"), say("And writes as ours does."), LOGITS, recurrent.decoder_outputs),
)


def checks_of(translator: Translator) -> tuple[Check, ...]:
    """The checks that this translator's network can be put to."""
    if isinstance(translator.model, Transformer):
        return CHECKS
    return (*(check for check in CHECKS if check.measure in OF_ANY_NETWORK), *RECURRENT)


def verify(
    translator: Translator,
    trace: TranslationTrace,
    *,
    shown: Mapping[str, tuple[Sequence[Shown], float]] | None = None,
    also: Sequence[Check] = (),
) -> Iterator[Result]:
    """Run every check on a trace, one result at a time, so that a caller can show progress.

    shown: name -> (maps, tolerance): what the program shows elsewhere, such as an export read back or the arrays of a
    figure; each name gets a check of its own against the trace. also: checks made elsewhere, which come last. A check
    that cannot run has failed.
    ValueError if the trace is of another checkpoint, or of a model that was interfered with.
    """
    if trace.digest != translator.digest:
        raise ValueError(f"the trace is of checkpoint {trace.digest}, this is {translator.digest}")
    if trace.interventions:
        raise Refusal(
            "only the plain model can be verified; this trace was made with {changes}",
            changes=trace.interventions.describe(),
        )
    output = translator.inspect(trace.source_ids, trace.target_ids)
    evidence = Evidence(translator, trace, output, shown or {})
    half = next(translator.model.parameters()).dtype != torch.float32
    for check in checks_of(translator):
        yield _carried_out(check, evidence, max(check.tolerance, HALF if half and check.tolerance else 0.0))
    for name, (maps, tolerance) in evidence.shown.items():
        claim = say("{what} holds the trace's own numbers.", what=name)
        check = Check(say("{what} = trace", what=name), claim, tolerance, _shown_check(maps))
        yield _carried_out(check, evidence, tolerance)
    for check in also:
        yield _carried_out(check, evidence, check.tolerance)


def _carried_out(check: Check, evidence: Evidence, tolerance: float) -> Result:
    started = time.perf_counter()
    try:
        error, detail = check.measure(evidence)
    except (ValueError, RuntimeError, IndexError, KeyError) as failure:  # a broken part must show as failing
        error, detail = float("nan"), say("could not be carried out: {why}", why=words_of(failure))
    scale = check.scale(evidence) if check.scale and error == error else 0.0  # nan: there is no error to relate
    return Result(
        check.name,
        check.claim,
        error,
        tolerance,
        bool(error <= tolerance),
        detail,
        time.perf_counter() - started,
        error / scale if scale else None,
    )


def _shown_check(maps: Sequence[Shown]) -> Callable[[Evidence], tuple[float, str]]:
    def measure(evidence: Evidence) -> tuple[float, str]:
        if not maps:
            raise ValueError("nothing was shown")
        errors = [_difference(shown.weights, shown.expected(evidence.trace)) for shown in maps]
        return max(errors), say("{n} cells", n=sum(shown.weights.size for shown in maps))

    return measure


def _difference(a: np.ndarray, b: np.ndarray) -> float:
    if a.shape != b.shape:
        raise ValueError(f"shapes differ: {list(a.shape)} and {list(b.shape)}")
    # A nan is a difference: max() alone would let one pass unseen, depending on its place.
    difference = np.abs(np.asarray(a, np.float64) - np.asarray(b, np.float64))
    return float("inf") if np.isnan(difference).any() else float(difference.max(initial=0.0))
