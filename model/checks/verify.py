"""Check the claims that this project makes on one sentence: verify() yields a measured error and a tolerance for each.

Only this folder uses torch.nn's own attention and Transformer layers, as the reference.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch

from attention_atlas.model.checks import claims
from attention_atlas.model.checks.claims import Check
from attention_atlas.model.checks.evidence import Evidence, MapCopy
from attention_atlas.model.config import PositionCode
from attention_atlas.model.nets.transformer import Transformer
from attention_atlas.model.trace.language import Refusal, error_message, say
from attention_atlas.model.trace.translation import TranslationTrace
from attention_atlas.model.translator import Translator

HALF = 1e-2  # on both, where the model runs in half precision
ROUNDING = 1e-6  # of the largest value compared, where that is more than the tolerance: streams have no bound


@dataclass(frozen=True)
class Result:
    """The result of one check.

    error     the largest absolute difference; nan if the check could not be carried out
    passed    error <= tolerance
    detail    what was compared, or why the check could not be carried out
    relative  the error as a share of the largest value compared; None where that means nothing
    """

    name: str
    claim: str
    error: float
    tolerance: float
    passed: bool
    detail: str
    seconds: float
    relative: float | None = None


CHECKS = (
    claims.rows_sum_to_one,
    claims.masked_cells_are_zero,
    claims.trace_is_the_models,
    claims.probabilities_are_the_models,
    claims.nothing_looks_ahead,
    claims.cached_logits,
    claims.cached_weights,
    claims.embedding_is_a_row,
    claims.attention_weights_equal_torch,
    claims.attention_outputs_equal_torch,
    claims.masked_attention_equals_torch,
    claims.masked_weights_equal_torch,
    claims.encoder_layers_equal_torch,
    claims.decoder_layers_equal_torch,
    claims.masked_layers_equal_torch,
    claims.whole_stack_equals_torch,
    claims.padding_changes_nothing,
    claims.loss_ignores_padding,
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
RECURRENT = (claims.encoder_states, claims.decoder_outputs)


def checks_of(translator: Translator) -> tuple[Check, ...]:
    """Return the checks that apply to this translator's network."""
    if isinstance(translator.model, Transformer):
        relative = translator.config.position_code is PositionCode.RELATIVE
        return (*CHECKS, claims.shifting_changes_nothing) if relative else CHECKS
    return (*OF_ANY_NETWORK, *RECURRENT)


def verify(
    translator: Translator,
    trace: TranslationTrace,
    *,
    copies: Mapping[str, tuple[Sequence[MapCopy], float]] | None = None,
    also: Sequence[Check] = (),
) -> Iterator[Result]:
    """Run every check on a trace and yield the results one by one, so that a caller can show progress.

    copies  name -> (copies of the trace's maps, tolerance), such as an export read back or the arrays of a figure; each
            name is one more check
    also    further checks, which come last

    A check that cannot run has failed. Raises ValueError if the trace is of another checkpoint, and Refusal if it has
    interventions.
    """
    if trace.digest != translator.digest:
        raise ValueError(f"the trace is of checkpoint {trace.digest}, this is {translator.digest}")
    if trace.interventions:
        raise Refusal(
            "only the plain model can be verified; this trace was made with {changes}",
            changes=trace.interventions.describe(),
        )
    output = translator.inspect(trace.source_ids, trace.target_ids)
    evidence = Evidence(translator, trace, output, copies or {})
    half = next(translator.model.parameters()).dtype != torch.float32
    for check in checks_of(translator):
        yield _run(check, evidence, max(check.tolerance, HALF if half and check.tolerance else 0.0))
    for name, (maps, tolerance) in evidence.copies.items():
        claim = say("{what} contains the trace's numbers.", what=name)
        check = Check(say("{what} = trace", what=name), claim, tolerance, _check_copies(maps))
        yield _run(check, evidence, tolerance)
    for check in also:
        yield _run(check, evidence, check.tolerance)


def _run(check: Check, evidence: Evidence, tolerance: float) -> Result:
    started = time.perf_counter()
    try:
        error, detail = check.measure(evidence)
    except (ValueError, RuntimeError, IndexError, KeyError) as failure:  # a broken part must show as failing
        error, detail = float("nan"), say("could not be carried out: {why}", why=error_message(failure))
    scale = getattr(evidence, check.scale) if check.scale and error == error else 0.0  # nan has no share
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


def _check_copies(maps: Sequence[MapCopy]) -> Callable[[Evidence], tuple[float, str]]:
    def measure(evidence: Evidence) -> tuple[float, str]:
        if not maps:
            raise ValueError("there is no copy to compare")
        errors = [claims.difference(copy.weights, copy.original(evidence.trace)) for copy in maps]
        return max(errors), say("{n} cells", n=sum(copy.weights.size for copy in maps))

    return measure
