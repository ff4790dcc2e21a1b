"""Cross-attention at the question's row: mean weights, and weights times the length of the vectors they read."""

from __future__ import annotations

import numpy as np
import torch

from attention_atlas.model.analysis.why.case import Case
from attention_atlas.model.analysis.why.contributions import contribution_vectors
from attention_atlas.model.analysis.why.method import Attribution, Method
from attention_atlas.model.nets.blocks import exact
from attention_atlas.model.trace.kinds import AttentionKind
from attention_atlas.model.trace.language import say
from attention_atlas.model.trace.why.evidence import Evidence, Unit


def mean_weights(case: Case) -> Attribution:
    """Return the mean cross-attention weight over heads, of one layer or over layers; NaN for the prefix.

    Of a recurrent network: its alignment.
    """
    kind = next(kind for kind in (AttentionKind.CROSS, AttentionKind.ALIGNMENT) if kind in case.output.kinds)
    return _over_source(case, exact(case.output.weights(kind)[:, 0, :, -1]).mean(1))


@torch.inference_mode()
def vector_norms(case: Case) -> Attribution:
    """Return the length of the sum over heads of A v W_O for each source token, as shares of the row.

    With post-norm, after the norm's linear part (Kobayashi et al. 2020, section 3; 2021, section 3).
    """
    layers, records = case.model.decoder.layers, case.output.records(AttentionKind.CROSS)
    lengths = contribution_vectors(layers, records, AttentionKind.CROSS, slice(-1, None))[:, 0].norm(dim=-1)
    return _over_source(case, lengths / lengths.sum(-1, keepdim=True))


def _over_source(case: Case, layers: torch.Tensor) -> Attribution:
    """Return the values of the case's layer, or the mean over layers, of values [layers, source]."""
    values = layers.mean(0) if case.cross_layer is None else layers[case.cross_layer]
    note = say("Mean over layers.") if case.cross_layer is None else say("Layer {n}.", n=case.cross_layer + 1)
    prefix = np.full(len(case.columns.prefix_tokens), np.nan)
    return Attribution(case.columns.gather(values.cpu().numpy(), prefix), notes=(note,))


RAW = Method(
    "cross_attention",
    say("cross-attention"),
    Evidence.PROXY,
    Unit.SHARE,
    say("The mean weight that the heads put on the word."),
    say("A weight says where a head looks, not what it takes from there."),
    mean_weights,
    class_agnostic=True,
    by_layer=True,
    applies=lambda model: bool(model.num_layers),  # a recurrent network may have no attention
)
NORMS = Method(
    "norm_based_attention",
    say("norm-based attention"),
    Evidence.PROXY,
    Unit.SHARE,
    say("Weight times the length of the value vector."),
    say("A long vector may point in a direction that does not affect the decision."),
    vector_norms,
    class_agnostic=True,
    by_layer=True,
)
