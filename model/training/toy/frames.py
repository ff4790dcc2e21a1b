"""Frames: the outputs of a toy on its corpus after an update, and the attention maps of a few pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from attention_atlas.model.decode.steps import StepDecoder, greedy
from attention_atlas.model.nets.masks import pad
from attention_atlas.model.nets.networks import AnyNetwork
from attention_atlas.model.trace.kinds import TRANSFORMER_KINDS, AttentionKind
from attention_atlas.model.training.batches import Batch

MAPPED = 6  # pairs, from the first, whose maps are kept
LEVELS = 255  # the stored value of a weight of 1
EVERY, GROWTH = 10, 10  # a frame every ten updates, later after every tenth of the updates so far
MAX_BYTES = 9_000_000  # of one run's frames, so that two runs stay within 20 MB
DECODED = "decoder_self_decoded"  # a further kind of map: the self-attention during decoding, row by row


@dataclass(frozen=True, eq=False)
class Frame:
    """The state of a toy after `update` updates.

    outputs  the greedy ids of each pair, ending in `</s>` unless the length limit stopped it
    loss     nats per target token over the whole corpus, without dropout, smoothing or padding
    maps     for each mapped pair, kind -> uint8 [layers, heads, query, key]; teacher-forced on the target, except
             DECODED, whose rows are those of the output
    """

    update: int
    outputs: tuple[tuple[int, ...], ...]
    loss: float
    maps: tuple[dict[str, np.ndarray], ...]

    @property
    def size(self) -> int:
        """The number of bytes of the maps."""
        return sum(weights.nbytes for pair in self.maps for weights in pair.values())


def is_due(update: int) -> bool:
    """Return whether a frame is taken after this update; about fifty are within a thousand updates."""
    return update % EVERY == 0 if update <= EVERY * GROWTH else update % (update // GROWTH // EVERY * EVERY) == 0


def thin_frames(frames: Sequence[Frame], limit: int = MAX_BYTES) -> list[Frame]:
    """Leave out every other frame until they fit into `limit` bytes; the first and the last stay."""
    frames = list(frames)
    while len(frames) > 3 and sum(frame.size for frame in frames) > limit:
        frames = [*frames[:-1:2], frames[-1]]
    return frames


@torch.inference_mode()
def frame_of(
    model: AnyNetwork,
    batch: Batch,
    update: int,
    *,
    end_id: int,
    prefixes: Sequence[tuple[int, ...]] = (),
    max_steps: int | None = None,
) -> Frame:
    """Take a frame of the whole corpus, padded in one batch. The mode of the model (training or not) is restored.

    prefixes   by row, the first ids of the output, which decoding continues; (): nothing is given
    max_steps  of decoding; None: twice the length of the target
    """
    training = model.training
    model.eval()
    begin_id = int(batch.inputs[0, 0])
    rows = min(MAPPED, len(batch.source))
    is_token = batch.outputs != model.config.pad_id
    source = model.encode(batch.source)
    logits = model.project(model.decode(batch.inputs, source)[0])
    loss = torch.nn.functional.cross_entropy(logits[is_token].float(), batch.outputs[is_token])
    limits = [max_steps or min(2 * int(length), model.config.max_length - 1) for length in is_token.sum(1)]
    if any(prefixes):
        outputs = [
            [*prefix, *_continue(model, source.select(torch.tensor([row])), limits[row], begin_id, end_id, prefix)]
            for row, prefix in enumerate(prefixes)
        ]
    else:
        outputs = greedy(model, source, limits, begin_id=begin_id, end_id=end_id)
    lengths = [((batch.source[row] != model.config.pad_id).sum(), is_token[row].sum()) for row in range(rows)]
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


def _continue(
    model: AnyNetwork, source: object, limit: int, begin_id: int, end_id: int, prefix: tuple[int, ...]
) -> list[int]:
    """Return the ids that continue a prefix in one sentence, of at most `limit` ids in all."""
    (ids,) = greedy(model, source, [limit - len(prefix)], begin_id=begin_id, end_id=end_id, prefix=prefix)
    return ids


def decoded_self(model: AnyNetwork, source_ids: torch.Tensor, output: Sequence[int], begin_id: int) -> np.ndarray:
    """Return the decoder's self-attention during decoding, when no later token exists: uint8 [layers, heads, query,
    key], 0 above the diagonal. output: y1 .. yT; rows read `<s>` y1 .. y(T-1)."""
    inputs = pad([[begin_id, *output[:-1]]], model.config.pad_id)
    decoder = StepDecoder(model, model.encode(source_ids[None]), inputs[:, :1], record=True)
    layers, heads = len(decoder.records), model.num_heads[AttentionKind.DECODER_SELF]
    maps = np.zeros((layers, heads, inputs.shape[1], inputs.shape[1]), np.uint8)
    for step in range(inputs.shape[1]):
        if step:
            decoder.append(inputs[:, step])
        for layer, record in enumerate(decoder.records):
            maps[layer, :, step, : step + 1] = _quantise(record.self_attention.weights[0, :, -1])
    return maps


def _cut(weights: torch.Tensor, kind: AttentionKind, source: int, target: int) -> np.ndarray:
    """Remove the padding from the weights [layers, heads, query, key] of one pair."""
    encoder, decoder, *_ = TRANSFORMER_KINDS
    queries, keys = source if kind is encoder else target, target if kind is decoder else source
    return _quantise(weights[:, :, :queries, :keys])


def _quantise(weights: torch.Tensor) -> np.ndarray:
    return (weights.float() * LEVELS).round().to(torch.uint8).numpy()
