"""Direct logit attribution: exact, for pre-norm and post-norm, with the norms' scales held as they were.

Pre-norm (Elhage et al. 2021; Ferrando et al. 2023): the residual stream is a sum of what was written to it, and the
final norm, its scale held, is linear. Post-norm: what enters before norm k passes all norms from k on; one vector,
carried backwards through their transposes, reads every part.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from attention_atlas.model.analysis.why.case import Case
from attention_atlas.model.analysis.why.metric import direction
from attention_atlas.model.analysis.why.vectors import Norm, output_by_head, transposed, used_weights
from attention_atlas.model.nets.attention import MultiHeadAttention
from attention_atlas.model.nets.blocks import exact
from attention_atlas.model.nets.records import AttentionRecord
from attention_atlas.model.trace.kinds import AttentionKind, Side
from attention_atlas.model.trace.why.parts import Parts

KINDS = (AttentionKind.DECODER_SELF, AttentionKind.CROSS)


@torch.inference_mode()
def parts(case: Case) -> Parts:
    """Split the question's logit difference over the parts of the decoder's row (see Parts). Sums in float64."""
    aim = direction(case.model, case.question)
    walk = _Walk(case, aim.vector)
    walk.through_final_norm()
    for index in reversed(range(len(case.model.decoder.layers))):
        walk.through_layer(index)
    token = exact(case.target_rows[0, -1])
    code = case.model.target_positions(0, case.decoder_ids.shape[1], case.interventions.target_positions)
    position = torch.zeros_like(token) if code is None else exact(code[-1])
    entered = walk.vector  # of what the first layer reads
    early = case.model.decoder.norm_before_positions
    walk.through_entry(token if early else token + position)
    return Parts(
        question=case.question,
        token=float(walk.vector @ token),
        position=float((entered if early else walk.vector) @ position),
        keys={kind: _stacked(walk.keys[kind]) for kind in KINDS},
        feed_forward=_stacked(walk.feed_forward),
        output_biases={kind: _stacked(walk.output_biases[kind]) for kind in KINDS},
        norm_biases=_stacked(walk.norm_biases),
        constant=aim.constant,
        expected=float(aim(case.output.hidden[0, -1])),
    )


class _Walk:
    """Backwards through the decoder at the last row: `vector` reads what stands in the residual stream there."""

    def __init__(self, case: Case, vector: Tensor) -> None:
        self.case, self.decoder, self.vector = case, case.model.decoder, vector
        self.records = case.output.layers(Side.DECODER)
        self.norm_biases: list[Tensor] = []
        self.feed_forward: list[Tensor] = []
        self.keys: dict[AttentionKind, list[Tensor]] = {kind: [] for kind in KINDS}
        self.output_biases: dict[AttentionKind, list[Tensor]] = {kind: [] for kind in KINDS}

    def through_final_norm(self) -> None:
        if not isinstance(self.decoder.norm, nn.Identity):
            self._through(self.decoder.norm, self.records[-1].after[0, -1])

    def through_entry(self, read: Tensor) -> None:
        """The norm on embeddings, where a family has one, on what it read at the last row [d_model]."""
        if not isinstance(self.decoder.entry, nn.Identity):
            self._through(self.decoder.entry, read)

    def through_layer(self, index: int) -> None:
        layer, record = self.decoder.layers[index], self.records[index]
        attentions = {kind: (self.case.model.attention(kind, index), record.attention(kind)) for kind in KINDS[::-1]}
        around_self, around_cross, around_feed_forward = zip(
            layer.sublayers, (passed.norm_input for passed in record.sublayers)
        )
        self._enter(*around_feed_forward)
        self.feed_forward.append(self.vector @ exact(layer.feed_forward.contract(record.activations[0, -1])))
        for (kind, (attention, found)), around in zip(attentions.items(), (around_cross, around_self)):
            self._enter(*around)
            self.keys[kind].append(by_key(attention, found, self.vector))
            self.output_biases[kind].append(self._of_bias(attention.output))

    def _enter(self, sublayer: nn.Module, norm_input: Tensor) -> None:
        if not sublayer.norm_first:
            self._through(sublayer.norm, norm_input[0, -1])

    def _through(self, norm: Norm, read: Tensor) -> None:
        self.norm_biases.append(self._of_bias(norm))
        self.vector = transposed(norm, self.vector, read)

    def _of_bias(self, module: nn.Module) -> Tensor:
        """What is read of a module's bias: 0 where it has none."""
        bias = getattr(module, "bias", None)
        return self.vector.new_zeros(()) if bias is None else self.vector @ exact(bias)


def by_key(attention: MultiHeadAttention, record: AttentionRecord, vector: Tensor) -> Tensor:
    """vector . (A v W_O) for the last row of each head by key: float64 [heads, key]. vector [d_model]."""
    reading = vector @ output_by_head(attention)  # [heads, d_head]
    values = torch.einsum("hjk,hk->hj", exact(record.values[0]), reading)
    return used_weights(record)[0, :, -1] * values


def _stacked(backwards: list[Tensor]) -> np.ndarray:
    return torch.stack(backwards[::-1]).cpu().numpy() if backwards else np.zeros(0)
