"""What is lost if a stream is replaced by what a dictionary says of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from attention_atlas.model.analysis.units.sparse import Dictionary, projected
from attention_atlas.model.decode.runs import run
from attention_atlas.model.translator import Translator

BATCH = 32
Rebuilt = Callable[[Tensor], Tensor]  # rows [row, d_model] -> the same, rebuilt


@dataclass(frozen=True)
class Quality:
    """recovered: the share of the loss between a stream's mean and the stream itself that rebuilt rows win back;
    explained: of the variance; active: units that speak for a row; dead: the share of units that speak for none."""

    recovered: float
    explained: float
    active: float
    dead: float


def rows_of(translator: Translator, place: str, texts: Sequence[str], direction: str) -> Tensor:
    """An encoder's place over all tokens of texts, float32 [row, d_model]."""
    return torch.cat([one[place][one.source_mask] for one in _read(translator, texts, direction, place)])


def _read(translator: Translator, texts: Sequence[str], direction: str, place: str):
    for start in range(0, len(texts), BATCH):
        ids = [translator.encode(text, direction) for text in texts[start : start + BATCH]]
        ends = [[translator.tokenizer.end_id]] * len(ids)
        yield run(translator.model, ids, ends, (place,), begin_id=translator.tokenizer.begin_id)


def qualities(
    translator: Translator, place: str, found: Dictionary, seen: Tensor, texts: Sequence[tuple[str, str]]
) -> dict[str, Quality]:
    """Of a dictionary of an encoder layer's stream, of as many directions drawn by lot, and of that layer's neurons, on
    texts (direction, text) that it was not trained with: how probable the model's own translations stay. seen: the rows
    [row, d_model] that it was trained with, on which units are dead or not."""
    centre, layer = found.centre, int(place.split(".")[1])
    neurons = translator.model.encoder.layers[layer].feed_forward.contract.weight.T.detach()
    drawn = torch.randn(found.directions.shape, generator=torch.Generator().manual_seed(1)).to(centre)
    by_lot = lambda rows: projected(drawn, centre, found.k, rows)  # noqa: E731
    of_neurons = lambda rows: projected(neurons, centre, found.k, rows)  # noqa: E731
    rows = torch.cat([rows_of(translator, place, [text], direction) for direction, text in texts])
    whole, none = _loss(translator, place, texts, None), _loss(translator, place, texts, lambda x: centre.expand_as(x))
    spread = (rows - rows.mean(0)).pow(2).sum()

    def quality(rebuilt: Rebuilt, active: float, dead: float) -> Quality:
        lost = _loss(translator, place, texts, rebuilt)
        left = float((rows - rebuilt(rows)).pow(2).sum() / spread)
        return Quality(*(round(x, 4) for x in ((none - lost) / (none - whole), 1 - left, active, dead)))

    return {
        "dictionary": quality(found, float((found.codes(rows) > 0).sum(-1).float().mean()), dead(found, seen)),
        "random": quality(by_lot, float(found.k), 0.0),
        "neurons": quality(of_neurons, float(min(found.k, len(neurons))), 0.0),
    }


def dead(found: Dictionary, rows: Tensor) -> float:
    """The share of units that speak for no row."""
    spoke = [(found.codes(part) > 0).any(0) for part in rows.split(4096)]
    return float((~torch.stack(spoke).any(0)).float().mean())


@torch.inference_mode()
def _loss(translator: Translator, place: str, texts: Sequence[tuple[str, str]], rebuilt: Rebuilt | None) -> float:
    """Mean cross-entropy of the model's own translations, in nats a token."""
    instead = lambda x, at: rebuilt(x.flatten(0, -2)).view_as(x)  # noqa: E731
    changed = translator if rebuilt is None else translator.edit({place: instead})
    total, count = 0.0, 0
    for direction, text in texts:
        source = translator.encode(text, direction)
        (target,) = translator.generate([source], direction)
        logits = changed.inspect(source, target).logits[0]
        total += float(cross_entropy(logits, torch.tensor(target, device=logits.device), reduction="sum"))
        count += len(target)
    return total / max(1, count)
