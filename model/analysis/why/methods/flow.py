"""How much of each word reaches the question's row through all layers: ALTI+ and attention rollout."""

from __future__ import annotations

import numpy as np
import torch

from attention_atlas.model.analysis.why.case import Case
from attention_atlas.model.analysis.why.contributions import alti_flow
from attention_atlas.model.analysis.why.method import Attribution, Method
from attention_atlas.model.trace.flow import decoder_rollout, rollout
from attention_atlas.model.trace.kinds import AttentionKind
from attention_atlas.model.trace.language import say
from attention_atlas.model.trace.why.evidence import Evidence, Sum, Unit

TOLERANCE = 1e-6


@torch.inference_mode()
def alti(case: Case) -> Attribution:
    """Return ALTI+: contributions rolled out to the words of both sides (Ferrando et al. 2022, sections 2.2, 2.3)."""
    return _make_attribution(case, alti_flow(case.model, case.output)[-1, -1])


def attention_rollout(case: Case) -> Attribution:
    """Return attention rollout to the words of both sides (Abnar and Zuidema 2020)."""
    encoder, decoder, cross = (
        case.output.weights(kind)[:, 0].cpu().double().numpy()  # [layers, heads, query, key]
        for kind in (AttentionKind.ENCODER_SELF, AttentionKind.DECODER_SELF, AttentionKind.CROSS)
    )
    return _make_attribution(case, decoder_rollout(decoder, cross, rollout(encoder)[-1])[-1, -1])


def _make_attribution(case: Case, row: np.ndarray) -> Attribution:
    """Sum a row of shares, float64 [source + prefix], over the columns."""
    source = len(case.columns.source_tokens)
    values = case.columns.gather(row[:source], row[source:])
    share = float(row[:source].sum())
    return Attribution(
        values,
        Sum(1.0, float(values.sum()), TOLERANCE),
        (say("{source} from the source, {prefix} from the prefix.", source=f"{share:.0%}", prefix=f"{1 - share:.0%}"),),
    )


ALTI = Method(
    "alti",
    say("ALTI+"),
    Evidence.PROXY,
    Unit.SHARE,
    say("How close each layer's output is to what each word contributes to it."),
    say("It shows whose vectors arrive, not whether they support this token."),
    alti,
    class_agnostic=True,
)
ROLLOUT = Method(
    "attention_rollout",
    say("attention rollout"),
    Evidence.PROXY,
    Unit.SHARE,
    say("Attention matrices multiplied over the layers, with half the weight on the residual."),
    say("The residual's share is closer to four fifths than to one half, and heads are averaged away."),
    attention_rollout,
    class_agnostic=True,
)
