"""What a toy makes of its corpus at some of its updates: outputs, and every map of a few pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from attention_atlas.model.decode.greedy import greedy
from attention_atlas.model.decode.steps import StepDecoder
from attention_atlas.model.nets.masks import pad
from attention_atlas.model.nets.networks import AnyNetwork
from attention_atlas.model.trace.kinds import TRANSFORMER_KINDS, AttentionKind
from attention_atlas.model.training.batches import Batch

MAPPED = 6  # pairs whose maps are kept: the first ones
LEVELS = 255  # a weight of 1
EVERY, GROWTH = 10, 10  # a frame each ten updates, later each tenth part of those done
MAX_BYTES = 9_000_000  # of one run's frames: two runs and what surrounds them stay within 20 MB
DECODED = "decoder_self_decoded"  # beside the kinds: self-attention as decoding saw it, row by row


@dataclass(frozen=True, eq=False)
class Frame:
    """After `update` updates. outputs: for each pair the greedy ids, `</s>` last unless stopped by length. loss: nats a
    target token over the whole corpus, without dropout, smoothing or padding. maps: of each mapped pair, kind -> uint8
    [layers, heads, query, key]; teacher-forced on the target, but for DECODED, whose rows are the output's."""

    update: int
    outputs: tuple[tuple[int, ...], ...]
    loss: float
    maps: tuple[dict[str, np.ndarray], ...]

    @property
    def size(self) -> int:
        """Bytes of its maps."""
        return sum(weights.nbytes for pair in self.maps for weights in pair.values())


def due(update: int) -> bool:
    """Whether a frame is taken after this update: about fifty by the thousandth."""
    return update % EVERY == 0 if update <= EVERY * GROWTH else update % (update // GROWTH // EVERY * EVERY) == 0


def within(frames: Sequence[Frame], limit: int = MAX_BYTES) -> list[Frame]:
    """The frames, with every other one left out until they fit; the first and the last stay."""
    kept = list(frames)
    while len(kept) > 3 and sum(frame.size for frame in kept) > limit:
        kept = [*kept[:-1:2], kept[-1]]
    return kept


@torch.inference_mode()
def frame_of(model: AnyNetwork, batch: Batch, update: int, *, end_id: int) -> Frame:
    """A frame of the whole corpus, padded in one batch. The model is left in the mode that it was in."""
    training = model.training
    model.eval()
    begin_id = int(batch.inputs[0, 0])
    rows = min(MAPPED, len(batch.source))
    real = batch.outputs != model.config.pad_id
    source = model.encode(batch.source)
    logits = model.project(model.decode(batch.inputs, source)[0])
    loss = torch.nn.functional.cross_entropy(logits[real].float(), batch.outputs[real])
    limits = [min(2 * int(length), model.config.max_length - 1) for length in real.sum(1)]
    outputs = greedy(model, source, limits, begin_id=begin_id, end_id=end_id)
    lengths = [((batch.source[row] != model.config.pad_id).sum(), real[row].sum()) for row in range(rows)]
    recorded = model(batch.source[:rows], batch.inputs[:rows], record=True)
    maps = [
        {kind.value: _cut(recorded.weights(kind)[:, row], kind, *map(int, lengths[row])) for kind in recorded.kinds}
        for row in range(rows)
    ]
    if getattr(model.config, "look_ahead_mask", True) is False:
        for row in range(rows):
            maps[row][DECODED] = decoded_self(model, batch.source[row, : int(lengths[row][0])], outputs[row], begin_id)
    model.train(training)
    return Frame(update, tuple(map(tuple, outputs)), float(loss), tuple(maps))


def decoded_self(model: AnyNetwork, source_ids: torch.Tensor, output: Sequence[int], begin_id: int) -> np.ndarray:
    """The decoder's self-attention as decoding saw it, where no later token exists: uint8 [layers, heads, query, key],
    0 above the diagonal. output: y1 .. yT; rows read `<s>` y1 .. y(T-1)."""
    inputs = pad([[begin_id, *output[:-1]]], model.config.pad_id)
    decoder = StepDecoder(model, model.encode(source_ids[None]), inputs[:, :1], record=True)
    layers, heads = len(decoder.records), model.num_heads[AttentionKind.DECODER_SELF]
    found = np.zeros((layers, heads, inputs.shape[1], inputs.shape[1]), np.uint8)
    for step in range(inputs.shape[1]):
        if step:
            decoder.append(inputs[:, step])
        for layer, record in enumerate(decoder.records):
            found[layer, :, step, : step + 1] = _levels(record.self_attention.weights[0, :, -1])
    return found


def _cut(weights: torch.Tensor, kind: AttentionKind, source: int, target: int) -> np.ndarray:
    """Without padding: weights [layers, heads, query, key] of one pair."""
    queries, keys = _lengths(kind, source, target)
    return _levels(weights[:, :, :queries, :keys])


def _lengths(kind: AttentionKind, source: int, target: int) -> tuple[int, int]:
    encoder, decoder, *_ = TRANSFORMER_KINDS
    return source if kind is encoder else target, target if kind is decoder else source


def _levels(weights: torch.Tensor) -> np.ndarray:
    return (weights.float() * LEVELS).round().to(torch.uint8).numpy()
