"""The gated units of a recurrent network on one sentence: their gates, the states that they pass on, and all shapes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

import numpy as np
import torch

from attention_atlas.model.analysis.rerun import record_pass
from attention_atlas.model.nets.records import ForwardOutput
from attention_atlas.model.nets.recurrent import GatedUnit, Recurrent
from attention_atlas.model.trace.kinds import AttentionKind, Side
from attention_atlas.model.trace.translation import TranslationTrace
from attention_atlas.model.translator import Translator


class Unit(str, Enum):
    """A gated unit of the network."""

    FORWARDS = "forwards"  # the encoder's, which reads from the left
    BACKWARDS = "backwards"  # the encoder's, which reads from the right
    WRITER = "writer"  # the decoder's

    @property
    def side(self) -> Side:
        return Side.DECODER if self is Unit.WRITER else Side.ENCODER


@dataclass(frozen=True, eq=False)
class UnitSteps:
    """One gated unit at every position (Cho et al. 2014), each float32 [position, width].

    before         the state h
    reset, update  the gates r = sigmoid(W_r x + U_r h) and z = sigmoid(W_z x + U_z h), biases left out
    new            the candidate n = tanh(W_n x + r * (U_n h))
    after          the new state (1 - z) * n + z * h
    error          the largest difference between these and the same formulas computed from the weights in float64
    """

    before: np.ndarray
    reset: np.ndarray
    update: np.ndarray
    new: np.ndarray
    after: np.ndarray
    error: float


@torch.inference_mode()
def unit_steps(translator: Translator, trace: TranslationTrace, output: ForwardOutput, unit: Unit) -> UnitSteps:
    """Return the gates and states of a unit at every token that it reads.

    trace, output: the translation and its recorded pass. The network must be recurrent.
    """
    model = translator.model
    assert isinstance(model, Recurrent)
    module: GatedUnit = getattr(model, unit.value)
    at = 1 if unit is Unit.BACKWARDS else 0
    gates = output.layers(unit.side)[0].units[at]
    ids = trace.decoder_ids if unit is Unit.WRITER else trace.source_ids
    inputs = model.token_rows(torch.tensor([ids], device=translator.device))
    if unit is Unit.WRITER and model.attention is not None:
        record = output.attention(AttentionKind.ALIGNMENT, 0)
        inputs = torch.cat((inputs, (record.weights @ record.values)[:, 0]), dim=-1)
    parts = {
        name: getattr(gates, name)[0].float().cpu().numpy()
        for name in UnitSteps.__dataclass_fields__
        if name != "error"
    }
    return UnitSteps(**parts, error=_error(module, inputs[0].double().cpu().numpy(), parts))


def _error(module: GatedUnit, inputs: np.ndarray, parts: dict[str, np.ndarray]) -> float:
    read, recall = (
        [(w.double().cpu().numpy(), b.double().cpu().numpy()) for w, b in zip(part.weight.chunk(3), part.bias.chunk(3))]
        for part in (module.read, module.recall)
    )
    h = parts["before"].astype(np.float64)
    (r_in, z_in, n_in), (r_state, z_state, n_state) = (
        [x @ weight.T + bias for weight, bias in matrices] for x, matrices in ((inputs, read), (h, recall))
    )
    reset, update = (1 / (1 + np.exp(-scores)) for scores in (r_in + r_state, z_in + z_state))
    new = np.tanh(n_in + reset * n_state)
    expected = {"reset": reset, "update": update, "new": new, "after": (1 - update) * new + update * h}
    return max(float(np.abs(values - parts[name]).max(initial=0.0)) for name, values in expected.items())


def decoder_states(translator: Translator, trace: TranslationTrace) -> np.ndarray | None:
    """Return the decoder's state before the first step and after each, float32 [step + 1, d_model].

    None for a network that is not recurrent. Raises what record_pass() raises.
    """
    if not isinstance(translator.model, Recurrent):
        return None
    (gates,) = record_pass(translator, trace).layers(Side.DECODER)[0].units
    return torch.cat((gates.before[0, :1], gates.after[0])).float().cpu().numpy()


@dataclass(frozen=True)
class Widths:
    """The widths of the tensors between a recurrent network's parts, read from its weights.

    embedding    of a token
    direction    of the encoder's state in each direction; memory: of both together
    state        of the decoder
    unit_input   of the decoder's unit: the token, and with attention the context
    readout      of the readout's input: the state, the token, and with attention the context
    vocabulary   of the logits
    parameters   of the whole network
    """

    attention: bool
    embedding: int
    direction: int
    memory: int
    state: int
    unit_input: int
    readout: int
    vocabulary: int
    parameters: int


def widths(model: Recurrent, *, attention: bool) -> Widths:
    """Return the widths of a network of this model's sizes, with or without attention."""
    with torch.device("meta"):  # without numbers
        built = Recurrent(replace(model.config, attention=attention))
    return Widths(
        attention,
        built.embedding.embedding_dim,
        built.forwards.recall.in_features,
        built.bridge.in_features,
        built.writer.recall.in_features,
        built.writer.read.in_features,
        built.readout.in_features,
        built.embedding.num_embeddings,
        sum(parameter.numel() for parameter in built.parameters()),
    )
