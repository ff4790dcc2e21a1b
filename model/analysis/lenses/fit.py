"""Lenses of a model, made of sentences and its own translations of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import torch

from model.analysis.lenses import tuned
from model.analysis.lenses.fitted import Lenses
from model.analysis.lenses.jacobian import Jacobians
from model.analysis.lenses.streams import streams
from model.nets.networks import check_transformer
from model.trace.kinds import Side
from model.translator import Translator

SLOPES = 60  # sentences of each direction whose slopes are taken: each costs d_model gradients
BATCH = 12


def fit(
    translator: Translator,
    texts: Mapping[str, Sequence[str]],
    *,
    slopes: int = SLOPES,
    watch: Callable[[int, int], object] = lambda done, total: None,
) -> Lenses:
    """Of texts by direction, each with the model's own translation; texts longer than the model takes are left out.
    slopes: of so many in each direction, evenly drawn, the Jacobians are taken; the tuned lens is fitted to all. watch
    hears how many sentences are done, of how many. ValueError for no text, and for a network that is no Transformer."""
    check_transformer(translator.model)
    texts = {d: [line for line in lines if line.strip() and translator.fits(line, d)] for d, lines in texts.items()}
    total, done, kept = sum(map(len, texts.values())), 0, []
    if not total:
        raise ValueError("there are no sentences to fit lenses to")
    jacobians, names = Jacobians(translator.config), streams(translator.config, Side.DECODER)
    for direction, lines in texts.items():
        spread = _spread(len(lines), slopes)
        parts = [([lines[i] for i in spread], True), ([lines[i] for i in range(len(lines)) if i not in spread], False)]
        for chosen, grad in parts:
            for start in range(0, len(chosen), BATCH):
                batch = chosen[start : start + BATCH]
                run = translator.run(batch, names=jacobians.names if grad else names, direction=direction, grad=grad)
                if grad:
                    jacobians.add(run)
                kept.append(torch.stack([run[name].detach()[run.mask] for name in names]))
                done += len(batch)
                watch(done, total)
    model = translator.model
    with torch.inference_mode(False):
        weight, bias = tuned.fit(lambda rows: model.project(model.decoder.norm(rows)), torch.cat(kept, dim=1))
    encoder, decoder = (jacobians.means(side) for side in (Side.ENCODER, Side.DECODER))
    return Lenses(translator.digest, total, encoder, decoder, weight.cpu(), bias.cpu())


def _spread(count: int, most: int) -> set[int]:
    """`most` of so many numbers, evenly."""
    return {i * count // min(most, count) for i in range(min(most, count))}
