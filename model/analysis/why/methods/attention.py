"""What cross-attention reads at the row: raw weights, and weights times the length of what is read."""

from __future__ import annotations

import numpy as np
import torch

from attention_atlas.model.analysis.why.case import Case
from attention_atlas.model.analysis.why.contributions import mixed
from attention_atlas.model.analysis.why.method import Answer, Method
from attention_atlas.model.nets.blocks import exact
from attention_atlas.model.trace.kinds import AttentionKind
from attention_atlas.model.trace.language import say
from attention_atlas.model.trace.why.evidence import Evidence, Unit


def raw(case: Case) -> Answer:
    """Mean over heads of the chosen layer's cross-attention weights, or of all layers'. Nothing of the prefix."""
    return _over_source(case, exact(case.output.weights(AttentionKind.CROSS)[:, 0, :, -1]).mean(1))


@torch.inference_mode()
def norms(case: Case) -> Answer:
    """The length of the sum over heads of A v W_O for each source token, with post-norm after the norm's linear part,
    as shares of the row (Kobayashi et al. 2020, section 3; 2021, section 3)."""
    layers = []
    for layer, record in zip(case.model.decoder.layers, case.output.records(AttentionKind.CROSS)):
        lengths = mixed(layer, record, AttentionKind.CROSS)[-1].norm(dim=-1)
        layers.append(lengths / lengths.sum())
    return _over_source(case, torch.stack(layers))


def _over_source(case: Case, layers: torch.Tensor) -> Answer:
    chosen = layers.mean(0) if case.cross_layer is None else layers[case.cross_layer]
    note = say("Mean over layers.") if case.cross_layer is None else say("Layer {n}.", n=case.cross_layer + 1)
    prefix = np.full(len(case.columns.prefix_tokens), np.nan)
    return Answer(case.columns.gather(chosen.cpu().numpy(), prefix), notes=(note,))


RAW = Method(
    "cross_attention",
    say("cross-attention"),
    Evidence.PROXY,
    Unit.SHARE,
    say("The mean weight that heads put on the word."),
    say("A weight says where a head looks, not what it takes from there."),
    raw,
    class_agnostic=True,
    by_layer=True,
)
NORMS = Method(
    "norm_based_attention",
    say("norm-based attention"),
    Evidence.PROXY,
    Unit.SHARE,
    say("Weight times the length of what is read."),
    say("A long vector may point where the decision does not look."),
    norms,
    class_agnostic=True,
    by_layer=True,
)
