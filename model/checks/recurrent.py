"""torch.nn's GRU with a recurrent network's weights copied in: what model/checks/verify.py compares with."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from attention_atlas.model.checks.evidence import Evidence
from attention_atlas.model.nets.recurrent import GatedUnit
from attention_atlas.model.trace.kinds import AttentionKind, Side
from attention_atlas.model.trace.language import say


def torch_unit(ours: GatedUnit) -> nn.GRU:
    """nn.GRU, one layer in one direction, with our weights."""
    theirs = nn.GRU(ours.read.in_features, ours.recall.in_features, batch_first=True)
    theirs.load_state_dict(
        {
            "weight_ih_l0": ours.read.weight.detach(),
            "bias_ih_l0": ours.read.bias.detach(),
            "weight_hh_l0": ours.recall.weight.detach(),
            "bias_hh_l0": ours.recall.bias.detach(),
        }
    )
    return theirs.to(ours.read.weight.device, ours.read.weight.dtype).eval()


def encoder_states(evidence: Evidence) -> tuple[float, str]:
    """The largest difference of the encoder's states, in both directions."""
    model, memory = evidence.translator.model, evidence.output.memory
    with torch.inference_mode():
        rows = model.token_rows(evidence.source_ids())
        ahead, _ = torch_unit(model.forwards)(rows)
        back, _ = torch_unit(model.backwards)(rows.flip(1))
        error = float((torch.cat((ahead, back.flip(1)), dim=-1) - memory).abs().max())
    return error, say("{n} positions, both directions", n=memory.shape[1])


def decoder_outputs(evidence: Evidence) -> tuple[float, str]:
    """The largest difference of what the output projection reads, where nn.GRU writes over the recorded alignment."""
    model, output = evidence.translator.model, evidence.output
    with torch.inference_mode():
        rows = model.token_rows(torch.tensor([evidence.trace.decoder_ids], device=output.memory.device))
        contexts = _contexts(evidence)
        start = evidence.encoded.start[None]
        states, _ = torch_unit(model.writer)(torch.cat((rows, *contexts), dim=-1), start)
        read = torch.tanh(model.readout(torch.cat((states, rows, *contexts), dim=-1)))
        error = float((read - output.hidden).abs().max())
    return error, say("{n} steps", n=rows.shape[1])


def _contexts(evidence: Evidence) -> list[Tensor]:
    """Weights times values of every step, [1, target, width]; nothing without attention."""
    if AttentionKind.ALIGNMENT not in evidence.output.kinds:
        return []
    record = evidence.output.layers(Side.DECODER)[0].alignment
    return [(record.weights @ record.values)[:, 0]]
