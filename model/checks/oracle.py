"""torch.nn's own attention and layers with our weights copied in: what model/checks/verify.py compares with."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor, nn

from model.analysis.loop import attention_input
from model.config import ModelConfig
from model.nets.attention import MultiHeadAttention
from model.nets.layer import Layer
from model.nets.masks import causal_mask
from model.nets.records import ForwardOutput
from model.trace.kinds import Side
from model.trace.language import Refusal
from model.trace.translation import TranslationTrace
from model.translator import Translator


def torch_attention(ours: MultiHeadAttention) -> nn.MultiheadAttention:
    """nn.MultiheadAttention with our weights."""
    theirs = nn.utils.skip_init(nn.MultiheadAttention, ours.d_model, ours.num_heads, batch_first=True)
    theirs.load_state_dict(_attention_state(ours))
    return theirs.to(ours.output.weight.device, ours.output.weight.dtype).eval()


def torch_layer(ours: Layer, config: ModelConfig) -> nn.Module:
    """nn.TransformerEncoderLayer or nn.TransformerDecoderLayer with our weights. ValueError, in words, for a layer that
    torch cannot have."""
    if not config.residual:
        raise Refusal("torch's layers have residual connections, this network has none")
    decoder = ours.cross_attention is not None
    kind = nn.TransformerDecoderLayer if decoder else nn.TransformerEncoderLayer
    theirs = nn.utils.skip_init(
        kind,
        config.d_model,
        config.num_heads,
        config.d_feedforward,
        dropout=0.0,
        batch_first=True,
        activation=ours.feed_forward.activation,
        norm_first=config.norm_first,
    )
    state = {f"self_attn.{k}": v for k, v in _attention_state(ours.self_attention).items()}
    if decoder:
        state |= {f"multihead_attn.{k}": v for k, v in _attention_state(ours.cross_attention).items()}
    for name, linear in (("linear1", ours.feed_forward.expand), ("linear2", ours.feed_forward.contract)):
        state |= {f"{name}.weight": linear.weight, f"{name}.bias": linear.bias}
    for index, sublayer in enumerate(ours.sublayers):
        state |= {f"norm{index + 1}.weight": sublayer.norm.weight, f"norm{index + 1}.bias": sublayer.norm.bias}
    theirs.load_state_dict({k: v.detach() for k, v in state.items()})
    return theirs.to(ours.feed_forward.expand.weight.device, ours.feed_forward.expand.weight.dtype).eval()


def _attention_state(ours: MultiHeadAttention) -> dict[str, Tensor]:
    weight, bias = ours.projection.weight.detach(), ours.projection.bias.detach()
    if not ours.scaled:  # torch's attention always divides by sqrt(d_k): queries as many times as long undo that
        factor = torch.ones_like(bias)
        factor[: ours.d_model] = math.sqrt(ours.d_model // ours.num_heads)
        weight, bias = weight * factor[:, None], bias * factor
    return {
        "in_proj_weight": weight,
        "in_proj_bias": bias,
        "out_proj.weight": ours.output.weight.detach(),
        "out_proj.bias": ours.output.bias.detach(),
    }


@torch.inference_mode()
def attention_errors(
    translator: Translator,
    output: ForwardOutput,
    trace: TranslationTrace,
) -> tuple[list[float], list[float]]:
    """For every attention of the model: the largest difference between nn.MultiheadAttention's weights and both the
    recorded ones and the trace's; and the largest one between its output and ours."""
    of_weights, of_outputs = [], []
    for kind in trace.kinds:
        shown = trace.maps(kind).weights
        for layer in range(shown.shape[0]):
            given = attention_input(translator, output, kind, layer)
            mask = None if given.mask is None else ~given.mask[0, 0]  # torch's True = may NOT attend
            theirs, weights = torch_attention(given.module)(
                given.queries, given.memory, given.memory, attn_mask=mask, average_attn_weights=False
            )
            recorded = output.attention(kind, layer)
            joined, _ = given.module(recorded.queries, recorded.keys, recorded.values, given.mask)
            of_weights.append(
                max(
                    _error(weights, recorded.weights),
                    float(np.abs(weights[0].float().cpu().numpy() - shown[layer]).max()),
                )
            )
            of_outputs.append(_error(theirs, joined))
    return of_weights, of_outputs


@torch.inference_mode()
def encoder_layer_errors(translator: Translator, output: ForwardOutput) -> list[float]:
    """For each encoder layer: the largest difference of the residual stream after it, in its own input's terms."""
    errors = []
    for layer, record in zip(translator.model.encoder.layers, output.layers(Side.ENCODER)):
        theirs = torch_layer(layer, translator.config)(record.before)
        errors.append(_error(theirs, record.after))
    return errors


@torch.inference_mode()
def decoder_layer_errors(translator: Translator, output: ForwardOutput) -> list[float]:
    """For each decoder layer, as for the encoder's."""
    errors = []
    for layer, record in zip(translator.model.decoder.layers, output.layers(Side.DECODER)):
        mask = (
            ~causal_mask(record.before.shape[1], device=output.memory.device)[0, 0]
            if translator.config.look_ahead_mask
            else None
        )
        theirs = torch_layer(layer, translator.config)(record.before, output.memory, tgt_mask=mask)
        errors.append(_error(theirs, record.after))
    return errors


@torch.inference_mode()
def whole_stacks(translator: Translator, output: ForwardOutput) -> tuple[Tensor, Tensor]:
    """nn.TransformerEncoder and nn.TransformerDecoder with our weights, from what entered our first layers on: the
    memory [batch, source, d_model], and the decoder's output over that memory [batch, target, d_model]."""
    model, config = translator.model, translator.config

    norms = [stack.norm if config.norm_first else None for stack in (model.encoder, model.decoder)]
    layers = [
        nn.ModuleList(torch_layer(layer, config) for layer in stack.layers) for stack in (model.encoder, model.decoder)
    ]
    encoder = nn.TransformerEncoder(layers[0][0], 1, norms[0], enable_nested_tensor=False).eval()
    decoder = nn.TransformerDecoder(layers[1][0], 1, norms[1]).eval()
    encoder.layers, decoder.layers = layers  # they would make copies of one layer
    read, written = (output.layers(side)[0].before for side in Side)
    memory = encoder(read)
    future = ~causal_mask(written.shape[1], device=memory.device)[0, 0]
    return memory, decoder(written, memory, tgt_mask=future)


def _error(theirs: Tensor, ours: Tensor) -> float:
    return float((theirs - ours).abs().max())
