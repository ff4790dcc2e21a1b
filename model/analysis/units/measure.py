"""Measure the quality of a dictionary: the loss of the model when a stream is replaced by its reconstruction."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from attention_atlas.model.analysis.units.dictionary import Dictionary, Quality, project
from attention_atlas.model.decode.runs import batched, run
from attention_atlas.model.translator import Translator

BATCH = 32
Reconstruction = Callable[[Tensor], Tensor]  # rows [row, d_model] -> reconstructed rows


def rows_of(translator: Translator, place: str, texts: Sequence[str], direction: str) -> Tensor:
    """Return an encoder's stream at a place for all tokens of texts, float32 [row, d_model]."""
    rows, tokenizer = [], translator.tokenizer
    for part in batched(texts, BATCH):
        ids = [translator.encode(text, direction) for text in part]
        ends = [[tokenizer.end_id]] * len(ids)
        batch = run(translator.model, ids, ends, (place,), begin_id=tokenizer.begin_id)
        rows.append(batch[place][batch.source_mask])
    return torch.cat(rows)


def measure_qualities(
    translator: Translator,
    place: str,
    dictionary: Dictionary,
    train_rows: Tensor,
    texts: Sequence[tuple[str, str]],
) -> dict[str, Quality]:
    """Measure a dictionary of an encoder layer's stream, as many random directions, and the layer's neurons.

    texts: held-out (direction, text); the loss is that of the model's own translations. train_rows: the rows [row,
    d_model] it was trained on, which decide which units are dead.
    """
    centre, layer = dictionary.centre, int(place.split(".")[1])
    neurons = translator.model.encoder.layers[layer].feed_forward.contract.weight.T.detach()
    generator = torch.Generator().manual_seed(1)
    random = torch.randn(dictionary.directions.shape, generator=generator).to(centre)
    rows = torch.cat([rows_of(translator, place, [text], direction) for direction, text in texts])
    loss = _loss(translator, place, texts, None)
    mean_loss = _loss(translator, place, texts, lambda x: centre.expand_as(x))
    variance = (rows - rows.mean(0)).pow(2).sum()

    def quality(rebuild: Reconstruction, active: float, dead: float) -> Quality:
        recovered = (mean_loss - _loss(translator, place, texts, rebuild)) / (mean_loss - loss)
        explained = 1 - float((rows - rebuild(rows)).pow(2).sum() / variance)
        return Quality(*(round(x, 4) for x in (recovered, explained, active, dead)))

    is_active = torch.stack([(dictionary.codes(part) > 0).any(0) for part in train_rows.split(4096)]).any(0)
    active = float((dictionary.codes(rows) > 0).sum(-1).float().mean())
    k = dictionary.k
    return {
        "dictionary": quality(dictionary, active, float((~is_active).float().mean())),
        "random": quality(lambda x: project(random, centre, k, x), float(k), 0.0),
        "neurons": quality(lambda x: project(neurons, centre, k, x), float(min(k, len(neurons))), 0.0),
    }


@torch.inference_mode()
def _loss(
    translator: Translator, place: str, texts: Sequence[tuple[str, str]], rebuild: Reconstruction | None
) -> float:
    """Return the mean cross-entropy of the model's own translations, in nats per token, with the stream rebuilt."""
    changed = translator
    if rebuild is not None:
        changed = translator.edit({place: lambda x, at: rebuild(x.flatten(0, -2)).view_as(x)})
    total, count = 0.0, 0
    for direction, text in texts:
        source = translator.encode(text, direction)
        (target,) = translator.generate([source], direction)
        logits = changed.inspect(source, target).logits[0]
        total += float(cross_entropy(logits, torch.tensor(target, device=logits.device), reduction="sum"))
        count += len(target)
    return total / max(1, count)
