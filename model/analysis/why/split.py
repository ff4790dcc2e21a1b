"""Direct logit attribution: split a token's logit exactly over the decoder's parts, with the norms' scales held fixed.

With pre-norm (Elhage et al. 2021; Ferrando et al. 2023) the residual stream is a sum of what was written to it, and the
final norm with a fixed scale is linear. With post-norm, what enters before norm k passes all norms from k on: one
vector, carried backwards through the transposed norms, reads every part.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from attention_atlas.model.analysis.why.case import Case, linear_metric, open_case_at
from attention_atlas.model.analysis.why.contributions import (
    applied_weights,
    apply_transposed_norm,
    split_output_matrix,
)
from attention_atlas.model.nets.attention import MultiHeadAttention
from attention_atlas.model.nets.blocks import exact
from attention_atlas.model.nets.records import AttentionRecord
from attention_atlas.model.trace.kinds import AttentionKind, Side
from attention_atlas.model.trace.translation import TranslationTrace
from attention_atlas.model.trace.why.attribution import Against, Parts
from attention_atlas.model.translator import Translator

KINDS = (AttentionKind.DECODER_SELF, AttentionKind.CROSS)


def split_logit(
    translator: Translator,
    trace: TranslationTrace,
    *,
    step: int | None = None,
    contrast: str | int | Against = Against.RUNNER_UP,
) -> Parts:
    """Split the logit of one written token exactly over the decoder's parts (direct logit attribution).

    step, contrast: as in attribute(). Raises ValueError for a question that cannot be asked.
    """
    return split_case(open_case_at(translator, trace, step, contrast))


@torch.inference_mode()
def split_case(case: Case) -> Parts:
    """Split the question's logit difference over the parts of the decoder's row (see Parts), in float64."""
    vector, constant = linear_metric(case.model, case.question)
    walk = _BackwardWalk(case, vector)
    walk.through_norm(walk.decoder.norm, walk.records[-1].after[0, -1])
    for index in reversed(range(len(case.model.decoder.layers))):
        walk.through_layer(index)
    token = exact(case.target_rows[0, -1])
    positions = case.model.target_positions(0, case.decoder_ids.shape[1], case.interventions.target_positions)
    position = torch.zeros_like(token) if positions is None else exact(positions[-1])
    first_layer_vector = walk.vector
    norm_before_positions = case.model.decoder.norm_before_positions
    walk.through_norm(walk.decoder.entry, token if norm_before_positions else token + position)
    return Parts(
        question=case.question,
        token=float(walk.vector @ token),
        position=float((first_layer_vector if norm_before_positions else walk.vector) @ position),
        keys={kind: _stack_reversed(walk.keys[kind]) for kind in KINDS},
        feed_forward=_stack_reversed(walk.feed_forward),
        output_biases={kind: _stack_reversed(walk.output_biases[kind]) for kind in KINDS},
        norm_biases=_stack_reversed(walk.norm_biases),
        constant=constant,
        expected=float(exact(case.output.hidden[0, -1]) @ vector) + constant,
    )


class _BackwardWalk:
    """A walk backwards through the decoder's last row; `vector` reads the residual stream at the present point."""

    def __init__(self, case: Case, vector: Tensor) -> None:
        self.case, self.decoder, self.vector = case, case.model.decoder, vector
        self.records = case.output.layers(Side.DECODER)
        self.norm_biases: list[Tensor] = []
        self.feed_forward: list[Tensor] = []
        self.keys: dict[AttentionKind, list[Tensor]] = {kind: [] for kind in KINDS}
        self.output_biases: dict[AttentionKind, list[Tensor]] = {kind: [] for kind in KINDS}

    def through_layer(self, index: int) -> None:
        layer, record = self.decoder.layers[index], self.records[index]
        self_block, cross_block, feed_forward_block = zip(
            layer.sublayers, (sublayer.norm_input for sublayer in record.sublayers)
        )
        self._through_post_norm(*feed_forward_block)
        self.feed_forward.append(self.vector @ exact(layer.feed_forward.contract(record.activations[0, -1])))
        for kind, block in ((AttentionKind.CROSS, cross_block), (AttentionKind.DECODER_SELF, self_block)):
            attention = self.case.model.attention(kind, index)
            self._through_post_norm(*block)
            self.keys[kind].append(split_by_key(attention, record.attention(kind), self.vector))
            self.output_biases[kind].append(self._read_bias(attention.output))

    def through_norm(self, norm: nn.Module, norm_input: Tensor) -> None:
        """Pass a norm. norm_input: what it read at the last row [d_model]."""
        if not isinstance(norm, nn.Identity):
            self.norm_biases.append(self._read_bias(norm))
            self.vector = apply_transposed_norm(norm, self.vector, norm_input)

    def _through_post_norm(self, sublayer: nn.Module, norm_input: Tensor) -> None:
        if not sublayer.norm_first:
            self.through_norm(sublayer.norm, norm_input[0, -1])

    def _read_bias(self, module: nn.Module) -> Tensor:
        """Return the part of a module's bias; 0 if it has none."""
        bias = getattr(module, "bias", None)
        return self.vector.new_zeros(()) if bias is None else self.vector @ exact(bias)


def split_by_key(attention: MultiHeadAttention, record: AttentionRecord, vector: Tensor) -> Tensor:
    """Return vector . (A v W_O) of the last row by head and key: float64 [heads, key]. vector: [d_model]."""
    reading = vector @ split_output_matrix(attention)  # [heads, d_head]
    values = torch.einsum("hjk,hk->hj", exact(record.values[0]), reading)
    return applied_weights(record)[0, :, -1] * values


def _stack_reversed(values: list[Tensor]) -> np.ndarray:
    return torch.stack(values[::-1]).cpu().numpy() if values else np.zeros(0)
