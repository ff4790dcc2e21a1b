"""torch.nn's attention, Transformer layers and GRU with our weights copied in: the reference of the live checks."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from attention_atlas.model.analysis.head_loop import find_attention_input
from attention_atlas.model.config import ModelConfig
from attention_atlas.model.nets.attention import MultiHeadAttention
from attention_atlas.model.nets.layer import Layer
from attention_atlas.model.nets.masks import causal_mask
from attention_atlas.model.nets.records import ForwardOutput
from attention_atlas.model.nets.recurrent import GatedUnit
from attention_atlas.model.trace.kinds import Side
from attention_atlas.model.trace.language import Refusal
from attention_atlas.model.trace.translation import TranslationTrace
from attention_atlas.model.translator import Translator

NO_MEMORY = "meta"  # the device of torch's modules until they get our weights


def torch_attention(ours: MultiHeadAttention, bias: Tensor | None = None) -> nn.Module:
    """Return nn.MultiheadAttention with our weights. bias: the position bias of the scores, [1, heads, query, key]."""
    if bias is not None or ours.width != ours.d_model:
        return _Adapted(ours, bias)
    biases = ours.output.bias is not None
    theirs = nn.MultiheadAttention(ours.d_model, ours.num_heads, bias=biases, batch_first=True, device=NO_MEMORY)
    theirs.load_state_dict(_attention_state(ours), assign=True)
    return theirs.eval()


class _Adapted(nn.Module):
    """nn.MultiheadAttention for heads whose total width is not d_model, and for position biases.

    torch's module supports neither. Its own projections are the identity and its inputs are our projections; a position
    bias is a part of its float mask.
    """

    batch_first, in_proj_bias = True, None  # attributes that torch's layers read

    def __init__(self, ours: MultiHeadAttention, bias: Tensor | None) -> None:
        super().__init__()
        self.ours, self.bias = ours, bias
        inner = MultiHeadAttention(ours.width, ours.num_heads, scaled=ours.scaled, biases=False).to(ours.output.weight)
        with torch.no_grad():
            inner.projection.weight.copy_(torch.eye(ours.width).repeat(3, 1))
            inner.output.weight.copy_(torch.eye(ours.width))
        self.theirs = torch_attention(inner)

    def forward(self, query, key, value, *, attn_mask=None, key_padding_mask=None, **rest):
        """Attend as nn.MultiheadAttention.forward does, with its parameters."""
        projected = [
            self.ours.project_rows(x, slice(n * self.ours.width, (n + 1) * self.ours.width))
            for n, x in enumerate((query, key, value))
        ]
        mask = query.new_zeros(len(query), self.ours.num_heads, query.shape[1], key.shape[1])
        if self.bias is not None:
            mask = mask + self.bias
        for hidden in (attn_mask, None if key_padding_mask is None else key_padding_mask[:, None, None]):
            if hidden is not None:
                mask = mask + hidden if hidden.is_floating_point() else mask.masked_fill(hidden, float("-inf"))
        rest.pop("is_causal", None)
        values, weights = self.theirs(*projected, attn_mask=mask.flatten(0, 1), **rest)
        return self.ours.output(values), weights


def torch_layer(ours: Layer, config: ModelConfig, bias: Tensor | None = None) -> nn.Module:
    """Return nn.TransformerEncoderLayer or nn.TransformerDecoderLayer with our weights; bias as in torch_attention().

    Raises Refusal for a layer without residual connections, which torch does not have.
    """
    if not config.residual:
        raise Refusal("torch's layers have residual connections, this network has none")
    decoder = ours.cross_attention is not None
    kind = nn.TransformerDecoderLayer if decoder else nn.TransformerEncoderLayer
    inner = ours.feed_forward
    theirs = kind(
        config.d_model,
        1,  # heads; its attentions are replaced below
        config.of(ours.kind.side).d_feedforward,
        dropout=0.0,
        batch_first=True,
        activation=inner.activation,
        norm_first=config.norm_first,
        bias=config.biases,
        device=NO_MEMORY,
    )
    theirs.linear1, theirs.linear2 = inner.expand, inner.contract
    if inner.gate is not None:  # one product computes both halves, which the activation separates
        theirs.linear1 = _concatenated(inner.expand, inner.gate)
        theirs.activation = lambda both: inner.activation(both.chunk(2, -1)[0]) * both.chunk(2, -1)[1]
    theirs.self_attn = torch_attention(ours.self_attention, bias)
    if decoder:
        theirs.multihead_attn = torch_attention(ours.cross_attention)
    for index, sublayer in enumerate(ours.sublayers):
        setattr(theirs, f"norm{index + 1}", sublayer.norm)
    return theirs.eval()


def _concatenated(first: nn.Linear, second: nn.Linear) -> nn.Linear:
    """Return one linear map whose output is the first's followed by the second's."""
    states = first.state_dict(), second.state_dict()
    both = nn.utils.skip_init(
        nn.Linear, first.in_features, first.out_features + second.out_features, bias=first.bias is not None
    )
    both.load_state_dict({name: torch.cat([state[name] for state in states]) for name in states[0]})
    return both


def _attention_state(ours: MultiHeadAttention) -> dict[str, Tensor]:
    weight, bias = ours.projection.weight.detach(), ours.projection.bias
    if not ours.scaled:  # torch always divides scores by sqrt(d_k): queries multiplied by it undo that
        factor = torch.ones(len(weight)).to(weight)
        factor[: ours.width] = math.sqrt(ours.d_head)
        weight, bias = weight * factor[:, None], None if bias is None else bias * factor
    state = {"in_proj_weight": weight, "out_proj.weight": ours.output.weight.detach()}
    if bias is not None:
        state |= {"in_proj_bias": bias.detach(), "out_proj.bias": ours.output.bias.detach()}
    return state


@torch.inference_mode()
def attention_errors(
    translator: Translator,
    output: ForwardOutput,
    trace: TranslationTrace,
) -> tuple[list[float], list[float]]:
    """Return the errors of weights and of outputs of every attention against nn.MultiheadAttention.

    An error is the largest absolute difference: of weights, from both the recorded and the trace's; of outputs, from
    ours.
    """
    of_weights, of_outputs = [], []
    for kind in trace.kinds:
        weights_of_trace = trace.maps(kind).weights
        for layer in range(len(weights_of_trace)):
            inputs = find_attention_input(translator, output, kind, layer)
            mask = None if inputs.mask is None else ~inputs.mask[0, 0]  # torch's True = may NOT attend
            theirs, weights = torch_attention(inputs.module, inputs.bias)(
                inputs.queries, inputs.memory, inputs.memory, attn_mask=mask, average_attn_weights=False
            )
            recorded = output.attention(kind, layer)
            joined, _ = inputs.module(recorded.queries, recorded.keys, recorded.values, inputs.mask, bias=inputs.bias)
            of_weights.append(
                max(
                    _error(weights, recorded.weights),
                    float(np.abs(weights[0].float().cpu().numpy() - weights_of_trace[layer]).max()),
                )
            )
            of_outputs.append(_error(theirs, joined))
    return of_weights, of_outputs


def torch_layers(translator: Translator, output: ForwardOutput) -> dict[Side, nn.ModuleList]:
    """Return torch's layers of each side, with our weights and the position biases of this pass."""
    stacks = translator.model.encoder, translator.model.decoder
    return {
        stack.side: nn.ModuleList(
            torch_layer(layer, translator.config, record.self_attention.bias)
            for layer, record in zip(stack.layers, output.layers(stack.side))
        )
        for stack in stacks
    }


@torch.inference_mode()
def layer_errors(
    layers: dict[Side, nn.ModuleList],
    output: ForwardOutput,
    side: Side,
    *,
    look_ahead_mask: bool = False,
    paddings: Sequence[Tensor] | None = None,
) -> list[float]:
    """Return the largest difference of the residual stream after each of torch's layers of a side, on our input.

    paddings: which source and which target tokens are padding, bool [batch, length]; they are hidden from torch's
    layers, and their own streams do not count.
    """
    records, inputs = output.layers(side), {}
    real = slice(None)
    if side is Side.DECODER:
        future = ~causal_mask(records[0].before.shape[1], device=output.memory.device)[0, 0]
        inputs = {"memory": output.memory, "tgt_mask": future if look_ahead_mask else None}
    if paddings is not None:
        source, target = paddings
        real = ~(target if side is Side.DECODER else source)
        if side is Side.DECODER:
            inputs |= {"tgt_key_padding_mask": target, "memory_key_padding_mask": source}
        else:
            inputs = {"src_key_padding_mask": source}
    return [
        _error(theirs(record.before, **inputs)[real], record.after[real])
        for theirs, record in zip(layers[side], records)
    ]


@torch.inference_mode()
def whole_stacks(
    translator: Translator, output: ForwardOutput, layers: dict[Side, nn.ModuleList]
) -> tuple[Tensor, Tensor]:
    """Run nn.TransformerEncoder and nn.TransformerDecoder of torch_layers() on the inputs of our first layers.

    Returns the memory [batch, source, d_model] and the decoder's output over that memory [batch, target, d_model].
    """
    model, (encoder_layers, decoder_layers) = translator.model, (layers[side] for side in Side)
    norms = [stack.norm if translator.config.norm_first else None for stack in (model.encoder, model.decoder)]
    encoder = nn.TransformerEncoder(encoder_layers[0], 0, norms[0], enable_nested_tensor=False).eval()
    decoder = nn.TransformerDecoder(decoder_layers[0], 0, norms[1]).eval()
    encoder.layers, decoder.layers = encoder_layers, decoder_layers  # instead of copies of the first layer
    source, target = (output.layers(side)[0].before for side in Side)
    memory = encoder(source)
    future = ~causal_mask(target.shape[1], device=memory.device)[0, 0]
    return memory, decoder(target, memory, tgt_mask=future)


def torch_unit(ours: GatedUnit) -> nn.GRU:
    """Return nn.GRU with one layer in one direction and our weights."""
    theirs = nn.GRU(ours.read.in_features, ours.recall.in_features, batch_first=True)
    matrices = {"ih": ours.read.state_dict(), "hh": ours.recall.state_dict()}
    theirs.load_state_dict(
        {f"{name}_{part}_l0": tensor for part, state in matrices.items() for name, tensor in state.items()}
    )
    return theirs.to(ours.read.weight.device, ours.read.weight.dtype).eval()


def _error(theirs: Tensor, ours: Tensor) -> float:
    return float((theirs - ours).abs().max())
