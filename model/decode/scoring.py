"""How probable given translations are."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from attention_atlas.model.decode.runs import batched
from attention_atlas.model.nets import blocks
from attention_atlas.model.nets.masks import pad
from attention_atlas.model.nets.places.visit import has_visits
from attention_atlas.model.nets.sweep import Changes
from attention_atlas.model.nets.transformer import Transformer
from attention_atlas.model.trace.interventions import NO_INTERVENTIONS


@torch.inference_mode()
def of_targets(
    model: Transformer,
    sources: Sequence[list[int]],
    targets: Sequence[list[int]],
    *,
    begin_id: int,
    device: torch.device,
    batch_size: int = 64,
    interventions: Changes = NO_INTERVENTIONS,
) -> list[list[float]]:
    """The natural log-probability of each target token y1 .. yT given its source and the tokens before it.
    Seven parameters: the sentences, what begins them, and how they go through the model."""
    results: list[list[float]] = [[] for _ in sources]
    pad_id, vocabulary = model.config.pad_id, model.config.num_target_tokens
    order = sorted((i for i in range(len(sources)) if targets[i]), key=lambda i: len(targets[i]))
    for chosen in batched(order, batch_size):
        inputs = pad([[begin_id, *targets[i][:-1]] for i in chosen], pad_id).to(device)
        output = model(pad([sources[i] for i in chosen], pad_id).to(device), inputs, interventions=interventions)
        wanted = pad([targets[i] for i in chosen], pad_id).to(device)
        if has_visits(interventions):  # which go by positions
            found = output.logits.log_softmax(-1).gather(-1, wanted[..., None])[..., 0]
        else:
            rows, ids = output.hidden.flatten(0, 1), wanted.flatten()
            found = blocks.log_probabilities(output.project, rows, ids, vocabulary)
        for i, row in zip(chosen, found.view(wanted.shape).tolist()):
            results[i] = row[: len(targets[i])]
    return results
