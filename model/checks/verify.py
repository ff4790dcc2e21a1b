"""Live checks of the claims this project makes, on one sentence: each with its measured error and its tolerance.

The only product module that may touch torch.nn's own attention and Transformer layers: they are the oracle.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from model.checks import oracle
from model.decode.steps import StepDecoder
from model.nets.records import ForwardOutput, LayerRecord
from model.trace.kinds import AttentionKind, Side
from model.trace.translation import TranslationTrace
from model.translator import Translator

WEIGHTS = 1e-5  # tolerance on attention weights and probabilities, float32
LOGITS = 1e-4  # tolerance on logits and residuals
HALF = 1e-2  # on both, where the model runs in half precision
MAX_VARIANTS = 16  # prefixes whose future is changed at once; more would only cost time


@dataclass(frozen=True, eq=False)
class Shown:
    """Weights as some other part of the program shows them: [layers, heads, query, key] of a kind, or of one layer and
    head [query, key]."""

    kind: AttentionKind
    weights: np.ndarray
    layer: int | None = None
    head: int | None = None

    def expected(self, trace: TranslationTrace) -> np.ndarray:
        weights = trace.maps(self.kind).weights
        return weights if self.layer is None else weights[self.layer, self.head]


@dataclass(frozen=True)
class Result:
    """One check. error: the largest absolute difference found, in the unit that `measured` names; nan where the check
    could not be carried out, and then `detail` says why. passed: error <= tolerance."""

    name: str
    claim: str
    error: float
    tolerance: float
    passed: bool
    detail: str
    seconds: float


@dataclass(frozen=True, eq=False)
class Evidence:
    """What the checks read: the trace under test and a second, independent pass of the model over the same ids.

    shown: what other parts of the program show, by name, each with the tolerance that its format allows (a 16-bit
    payload cannot carry more than half a step).
    """

    translator: Translator
    trace: TranslationTrace
    output: ForwardOutput
    shown: Mapping[str, tuple[Sequence[Shown], float]]

    def recomputed(self, kind: AttentionKind) -> np.ndarray:
        """The maps of the second pass: [layers, heads, query, key]."""
        return self.output.weights(kind)[:, 0].float().cpu().numpy()

    @cached_property
    def oracle_attention(self) -> tuple[list[float], list[float]]:
        """Errors of weights and of outputs against torch's attention, one of each an attention."""
        return oracle.attention_errors(self.translator, self.output, self.trace)

    @cached_property
    def cached_steps(self) -> list[tuple[float, float]]:
        """Errors of logits and of weights at each step, decoded over the cache, against the pass at once."""
        model, whole = self.translator.model, self.output
        ids = torch.tensor([self.trace.decoder_ids], device=self.translator.device)
        with torch.inference_mode():
            source = model.encode(_source(self))
            decoder = StepDecoder(model, source, ids[:, :1], record=True)
            errors = []
            for step in range(ids.shape[1]):
                if step:
                    decoder.append(ids[:, step])
                logits = float((decoder.logits[0] - whole.logits[0, step]).abs().max())
                errors.append((logits, _row_error(decoder.records, whole.layers(Side.DECODER), step)))
        return errors


@dataclass(frozen=True)
class Check:
    name: str
    claim: str
    tolerance: float
    measure: Callable[[Evidence], tuple[float, str]]


def rows_sum_to_one(evidence: Evidence) -> tuple[float, str]:
    errors = {kind.value: float(np.abs(evidence.trace.maps(kind).weights.sum(-1, dtype=np.float64) - 1.0).max())
              for kind in evidence.trace.kinds}
    rows = sum(evidence.trace.maps(kind).weights[..., 0].size for kind in evidence.trace.kinds)
    return max(errors.values()), f"{rows:,} rows of all layers and heads"


def masked_cells_are_zero(evidence: Evidence) -> tuple[float, str]:
    """Causal cells of the trace, and padding in a batch made for the purpose."""
    weights = evidence.trace.decoder_self.weights
    above = np.triu(np.ones(weights.shape[2:], bool), k=1)
    causal = float(np.abs(weights[..., above]).max(initial=0.0))
    source, target = _padded_batch(evidence)
    with torch.inference_mode():
        output = evidence.translator.model(source, target, record=True)
    length = len(evidence.trace.source_ids)
    padded = max(float(output.weights(kind)[:, 0, ..., length:].abs().max())
                 for kind in output.kinds if kind is not AttentionKind.DECODER_SELF)
    return max(causal, padded), f"{above.sum()} causal cells a head, {source.shape[1] - length} padded keys"


def trace_is_the_models(evidence: Evidence) -> tuple[float, str]:
    trace = evidence.trace
    error = max(_difference(trace.maps(kind).weights, evidence.recomputed(kind)) for kind in trace.kinds)
    return error, "every map against a second pass over the same ids"


def probabilities_are_the_models(evidence: Evidence) -> tuple[float, str]:
    trace = evidence.trace
    probabilities = evidence.output.logits[0].float().softmax(-1)  # [step, vocabulary]
    top = probabilities.gather(1, torch.tensor(trace.top_ids, device=probabilities.device).long()).cpu().numpy()
    chosen = probabilities[torch.arange(len(trace.target_ids)), list(trace.target_ids)].cpu().numpy()
    error = max(_difference(top, trace.top_probabilities), _difference(chosen, np.exp(trace.log_probability)))
    return error, f"{trace.top_ids.size} candidates of {len(trace.target_ids)} steps"


def nothing_looks_ahead(evidence: Evidence) -> tuple[float, str]:
    """Row t of the decoder must not change when tokens after t do: one batch, a variant for each t."""
    translator, trace = evidence.translator, evidence.trace
    target = torch.tensor(trace.decoder_ids, device=translator.device)
    length = len(target)
    if length < 2:
        return 0.0, "one row only: there is nothing ahead"
    cuts = np.unique(np.linspace(1, length - 1, min(MAX_VARIANTS, length - 1)).astype(int)).tolist()
    variants = target.repeat(len(cuts), 1)
    for row, cut in enumerate(cuts):  # another token, whatever it is: never the same one
        variants[row, cut:] = (variants[row, cut:] + 1 + row) % translator.config.num_target_tokens
    with torch.inference_mode():
        source = translator.model.encode(_source(evidence).expand(len(cuts), -1))
        hidden, _ = translator.model.decode(variants, source)
    error = max(float((hidden[row, :cut] - evidence.output.hidden[0, :cut]).abs().max())
                for row, cut in enumerate(cuts))
    return error, f"{len(cuts)} changed futures, every row before the change"


def cached_logits(evidence: Evidence) -> tuple[float, str]:
    """Token by token over the key/value cache against the teacher-forced pass."""
    return max(logits for logits, _ in evidence.cached_steps), f"{len(evidence.cached_steps)} cached steps"


def cached_weights(evidence: Evidence) -> tuple[float, str]:
    layers = len(evidence.output.layers(Side.DECODER))
    return max(weights for _, weights in evidence.cached_steps), f"rows of {layers} layers, recorded while decoding"


def attention_weights_equal_torch(evidence: Evidence) -> tuple[float, str]:
    found, _ = evidence.oracle_attention
    return max(found), f"{len(found)} attentions: what the model recorded, and the maps on the page"


def attention_outputs_equal_torch(evidence: Evidence) -> tuple[float, str]:
    _, found = evidence.oracle_attention
    return max(found), f"{len(found)} attentions, after the output projection"


def encoder_layers_equal_torch(evidence: Evidence) -> tuple[float, str]:
    found = oracle.encoder_layer_errors(evidence.translator, evidence.output)
    return max(found), f"{len(found)} layers, each on the input that it had"


def decoder_layers_equal_torch(evidence: Evidence) -> tuple[float, str]:
    found = oracle.decoder_layer_errors(evidence.translator, evidence.output)
    return max(found), f"{len(found)} layers, each on the input that it had"


def padding_changes_nothing(evidence: Evidence) -> tuple[float, str]:
    source, target = _padded_batch(evidence)
    with torch.inference_mode():
        logits = evidence.translator.model(source, target).logits
    steps = len(evidence.trace.decoder_ids)
    error = float((logits[0, :steps] - evidence.output.logits[0]).abs().max())
    return error, f"beside a sentence of {source.shape[1]} tokens"


CHECKS = (
    Check("Rows sum to 1", "Each row of every attention map is a distribution.", WEIGHTS, rows_sum_to_one),
    Check("Masked cells are 0", "What a mask hides gets a weight of exactly 0.", 0.0, masked_cells_are_zero),
    Check("Maps are the model's", "The maps on the page are what the model computes, in their order.", WEIGHTS,
          trace_is_the_models),
    Check("Probabilities are the model's", "So are the token probabilities.", WEIGHTS, probabilities_are_the_models),
    Check("Nothing looks ahead", "Changing later tokens changes no earlier row of the decoder.", LOGITS,
          nothing_looks_ahead),
    Check("Cached logits = one pass", "Decoding step by step over the cache gives the logits of one full pass.", LOGITS,
          cached_logits),
    Check("Cached weights = one pass", "And the same attention, row by row.", WEIGHTS, cached_weights),
    Check("Attention weights = torch's", "nn.MultiheadAttention with our weights attends as ours does.", WEIGHTS,
          attention_weights_equal_torch),
    Check("Attention output = torch's", "And says the same.", LOGITS, attention_outputs_equal_torch),
    Check("Encoder layer = torch's", "nn.TransformerEncoderLayer with our weights gives our residual stream.", LOGITS,
          encoder_layers_equal_torch),
    Check("Decoder layer = torch's", "nn.TransformerDecoderLayer with our weights gives our residual stream.", LOGITS,
          decoder_layers_equal_torch),
    Check("Padding changes nothing", "In a batch with a longer sentence the logits stay the same.", LOGITS,
          padding_changes_nothing),
)


def verify(translator: Translator, trace: TranslationTrace, *,
           shown: Mapping[str, tuple[Sequence[Shown], float]] | None = None) -> Iterator[Result]:
    """Run every check on a trace, one result at a time, so that a caller can show progress.

    shown: name -> (maps, tolerance): what the program shows elsewhere, such as an export read back or the arrays of a
    figure; each name gets a check of its own against the trace. A check that cannot run has failed.
    ValueError if the trace is of another checkpoint, or of a model that was interfered with.
    """
    if trace.digest != translator.digest:
        raise ValueError(f"the trace is of checkpoint {trace.digest}, this is {translator.digest}")
    if trace.interventions:
        raise ValueError(f"only the plain model can be verified; this trace was made with "
                         f"{trace.interventions.describe()}")
    output = translator.inspect(trace.source_ids, trace.target_ids)
    evidence = Evidence(translator, trace, output, shown or {})
    half = next(translator.model.parameters()).dtype != torch.float32
    for check in CHECKS:
        yield _carried_out(check, evidence, max(check.tolerance, HALF if half and check.tolerance else 0.0))
    for name, (maps, tolerance) in evidence.shown.items():
        check = Check(f"{name} = trace", f"{name} holds the trace's own numbers.", tolerance, _shown_check(maps))
        yield _carried_out(check, evidence, tolerance)


def number_of_checks(shown: Mapping[str, object] | None = None) -> int:
    return len(CHECKS) + len(shown or {})


def _carried_out(check: Check, evidence: Evidence, tolerance: float) -> Result:
    started = time.perf_counter()
    try:
        error, detail = check.measure(evidence)
    except (ValueError, RuntimeError, IndexError, KeyError) as failure:  # a broken part must show as failing
        error, detail = float("nan"), f"could not be carried out: {failure}"
    return Result(check.name, check.claim, error, tolerance, bool(error <= tolerance), detail,
                  time.perf_counter() - started)


def _row_error(records: tuple[LayerRecord, ...], whole: tuple[LayerRecord, ...], step: int) -> float:
    """Of the one row that each layer recorded at this step, against row `step` of the whole map."""
    errors = []
    for mine, full in zip(records, whole):
        self_row = full.self_attention.weights[:, :, step:step + 1, :step + 1]
        cross_row = full.cross_attention.weights[:, :, step:step + 1]
        errors.append(float((mine.self_attention.weights - self_row).abs().max()))
        errors.append(float((mine.cross_attention.weights - cross_row).abs().max()))
    return max(errors)


def _shown_check(maps: Sequence[Shown]) -> Callable[[Evidence], tuple[float, str]]:
    def measure(evidence: Evidence) -> tuple[float, str]:
        if not maps:
            raise ValueError("nothing was shown")
        errors = [_difference(shown.weights, shown.expected(evidence.trace)) for shown in maps]
        return max(errors), f"{sum(shown.weights.size for shown in maps):,} cells"
    return measure


def _difference(a: np.ndarray, b: np.ndarray) -> float:
    if a.shape != b.shape:
        raise ValueError(f"shapes differ: {list(a.shape)} and {list(b.shape)}")
    # A nan is a difference: max() alone would let one pass unseen, depending on its place.
    difference = np.abs(np.asarray(a, np.float64) - np.asarray(b, np.float64))
    return float("inf") if np.isnan(difference).any() else float(difference.max(initial=0.0))


def _source(evidence: Evidence) -> Tensor:
    return torch.tensor([evidence.trace.source_ids], device=evidence.translator.device)


def _padded_batch(evidence: Evidence) -> tuple[Tensor, Tensor]:
    """The sentence beside one with a few tokens more on both sides: itself, its words written on."""
    trace, pad_id = evidence.trace, evidence.translator.tokenizer.pad_id
    rows = []
    for ids in (trace.source_ids, trace.decoder_ids):
        longer = (*ids, *ids[:5])
        rows.append(torch.tensor([[*ids, *([pad_id] * (len(longer) - len(ids)))], list(longer)],
                                 device=evidence.translator.device))
    return rows[0], rows[1]
