"""Live checks of the claims this project makes, on one sentence: each with its measured error and its tolerance.

The only product module that may touch torch.nn's own attention and Transformer layers: they are the oracle.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch

from attention_atlas.model.checks import claims, parts, recurrent
from attention_atlas.model.checks.evidence import Evidence, Shown
from attention_atlas.model.config import PositionCode
from attention_atlas.model.nets.transformer import Transformer
from attention_atlas.model.trace.language import Refusal, say, words_of
from attention_atlas.model.trace.translation import TranslationTrace
from attention_atlas.model.translator import Translator

WEIGHTS = 1e-5  # tolerance on attention weights and probabilities, float32
LOGITS = 1e-4  # tolerance on logits and residuals
HALF = 1e-2  # on both, where the model runs in half precision
ROUNDING = (
    1e-6  # of the largest value compared, where that is more than the tolerance: streams that nothing keeps small
)


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


CHECKS = (
    Check(
        say("Rows sum to 1"),
        say("Each row of every attention map is a distribution."),
        WEIGHTS,
        claims.rows_sum_to_one,
        claims.largest_weight,
    ),
    Check(
        say("Masked cells are 0"),
        say("What a mask hides gets a weight of exactly 0."),
        0.0,
        claims.masked_cells_are_zero,
    ),
    Check(
        say("Maps are the model's"),
        say("The maps on the page are what the model computes, in their order."),
        WEIGHTS,
        claims.trace_is_the_models,
        claims.largest_weight,
    ),
    Check(
        say("Probabilities are the model's"),
        say("So are the token probabilities."),
        WEIGHTS,
        claims.probabilities_are_the_models,
        claims.largest_probability,
    ),
    Check(
        say("Nothing looks ahead"),
        say("Changing later tokens changes no earlier row of the decoder."),
        LOGITS,
        claims.nothing_looks_ahead,
        claims.largest_hidden,
    ),
    Check(
        say("Cached logits = one pass"),
        say("Decoding step by step over the cache gives the logits of one full pass."),
        LOGITS,
        claims.cached_logits,
        claims.largest_logit,
    ),
    Check(
        say("Cached weights = one pass"),
        say("And the same attention, row by row."),
        WEIGHTS,
        claims.cached_weights,
        claims.largest_weight,
    ),
    Check(
        say("An embedding is a row"),
        say("Looking a token up is multiplying its one-hot vector by the matrix."),
        WEIGHTS,
        parts.embedding_is_a_row,
        claims.largest_embedding,
    ),
    Check(
        say("Attention weights = torch's"),
        say("nn.MultiheadAttention with our weights attends as ours does."),
        WEIGHTS,
        claims.attention_weights_equal_torch,
        claims.largest_weight,
    ),
    Check(
        say("Attention output = torch's"),
        say("And says the same."),
        LOGITS,
        claims.attention_outputs_equal_torch,
        claims.largest_stream,
    ),
    Check(
        say("Masked attention = torch's"),
        say("So it does with padding and the causal mask together, in a padded batch."),
        LOGITS,
        parts.masked_attention_equals_torch,
        claims.largest_stream,
    ),
    Check(
        say("Masked weights = torch's"),
        say("And with both masks every head attends as torch's does."),
        WEIGHTS,
        parts.masked_weights_equal_torch,
        claims.largest_weight,
    ),
    Check(
        say("Encoder layer = torch's"),
        say("nn.TransformerEncoderLayer with our weights gives our residual stream."),
        LOGITS,
        claims.encoder_layers_equal_torch,
        claims.largest_stream,
    ),
    Check(
        say("Decoder layer = torch's"),
        say("nn.TransformerDecoderLayer with our weights gives our residual stream."),
        LOGITS,
        claims.decoder_layers_equal_torch,
        claims.largest_stream,
    ),
    Check(
        say("Whole stack = torch's"),
        say("nn.TransformerEncoder and nn.TransformerDecoder with our weights give our logits."),
        LOGITS,
        parts.whole_stack_equals_torch,
        claims.largest_logit,
    ),
    Check(
        say("Padding changes nothing"),
        say("In a batch with a longer sentence the logits stay the same."),
        LOGITS,
        claims.padding_changes_nothing,
        claims.largest_logit,
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
    claims.rows_sum_to_one,
    claims.trace_is_the_models,
    claims.probabilities_are_the_models,
    claims.nothing_looks_ahead,
    claims.cached_logits,
    claims.cached_weights,
    claims.padding_changes_nothing,
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


OF_RELATIVE_POSITIONS = Check(
    say("Shifting changes nothing"),
    say("Relative positions know only how far apart two tokens are: move all of them, and the logits stay the same."),
    LOGITS,
    parts.shifting_changes_nothing,
    claims.largest_logit,
)


def checks_of(translator: Translator) -> tuple[Check, ...]:
    """The checks that this translator's network can be put to."""
    if isinstance(translator.model, Transformer):
        relative = translator.config.position_code is PositionCode.RELATIVE
        return (*CHECKS, OF_RELATIVE_POSITIONS) if relative else CHECKS
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
    tolerance = max(tolerance, ROUNDING * scale)
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
        errors = [claims.difference(shown.weights, shown.expected(evidence.trace)) for shown in maps]
        return max(errors), say("{n} cells", n=sum(shown.weights.size for shown in maps))

    return measure
