"""How much of each word reaches the row through all layers: ALTI+, and attention rollout."""

from __future__ import annotations

import numpy as np
import torch

from attention_atlas.model.analysis.why.case import Case
from attention_atlas.model.analysis.why.contributions import decoder_contributions, encoder_contributions
from attention_atlas.model.analysis.why.method import Answer, Method
from attention_atlas.model.trace.flow import decoder_flow, decoder_rollout, encoder_flow, rollout
from attention_atlas.model.trace.kinds import AttentionKind
from attention_atlas.model.trace.language import say
from attention_atlas.model.trace.why.evidence import Evidence, Sum, Unit

TOLERANCE = 1e-6


@torch.inference_mode()
def alti(case: Case) -> Answer:
    """Contributions rolled out from the row to the words of both sides (Ferrando et al. 2022, sections 2.2 and 2.3)."""
    encoder = encoder_flow(encoder_contributions(case.model, case.output))[-1]
    found = decoder_flow(*decoder_contributions(case.model, case.output), encoder)[-1, -1]
    return _shared(case, found)


def attention_rollout(case: Case) -> Answer:
    """Attention rollout from the row to the words of both sides (Abnar and Zuidema 2020)."""
    output = case.output
    encoder, own, cross = (
        output.weights(kind)[:, 0].cpu().double().numpy()  # [layers, heads, query, key]
        for kind in (AttentionKind.ENCODER_SELF, AttentionKind.DECODER_SELF, AttentionKind.CROSS)
    )
    return _shared(case, decoder_rollout(own, cross, rollout(encoder)[-1])[-1, -1])


def _shared(case: Case, row: np.ndarray) -> Answer:
    source = len(case.columns.source_tokens)
    values = case.columns.gather(row[:source], row[source:])
    share = float(row[:source].sum())
    return Answer(
        values,
        Sum(1.0, float(values.sum()), TOLERANCE),
        (say("{source} from the source, {prefix} from the prefix.", source=f"{share:.0%}", prefix=f"{1 - share:.0%}"),),
    )


ALTI = Method(
    "alti",
    say("ALTI+"),
    Evidence.PROXY,
    Unit.SHARE,
    say("How near each layer's output is to what each word put into it."),
    say("It says whose vectors arrive, not whether they speak for this token."),
    alti,
    class_agnostic=True,
)
ROLLOUT = Method(
    "attention_rollout",
    say("attention rollout"),
    Evidence.PROXY,
    Unit.SHARE,
    say("Attention multiplied through the layers, half of each residual."),
    say("The residual's share is closer to four fifths than to one half, and heads are averaged away."),
    attention_rollout,
    class_agnostic=True,
)
