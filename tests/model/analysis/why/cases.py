"""Questions about given or random ids, without sentences."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch

from attention_atlas.model.analysis.why.case import Case
from attention_atlas.model.nets.transformer import Transformer
from attention_atlas.model.trace.kinds import TRANSFORMER_KINDS
from attention_atlas.model.trace.why.attribution import Columns, Question

ENCODER, DECODER, CROSS = TRANSFORMER_KINDS
SOURCE, TARGET = [4, 20, 31, 45, 20, 2], [1, 30, 41, 52]
NOWHERE = Columns((), (), (), ())


def case_of(
    model: Transformer,
    source: list[int],
    target: list[int],
    token: int = 40,
    contrast: int | None = 50,
    columns: Columns = NOWHERE,
    **changes,
) -> Case:
    """Return the question why a token follows the decoder inputs `target`. `changes` are fields of Case."""
    question = Question(len(target) - 1, token, str(token), contrast, str(contrast))
    return Case(model, question, torch.tensor([source]), torch.tensor([target]), columns, **changes)


@torch.no_grad()
def measure_rows(case: Case, source: torch.Tensor, target: torch.Tensor) -> float:
    """Return the metric of a pass over these embedded rows, in place of the case's own."""
    return float(case.measure(case.decode(target, case.encode(source)))[0])


def random_cases(model: Transformer, count: int, seed: int = 0) -> Iterator[tuple[list[int], list[int], int, int]]:
    """Yield source ids, decoder inputs, a token and a contrast; 1 to 40 ids a side."""
    random = np.random.default_rng(seed)
    vocabulary = model.config.vocabulary_size
    for _ in range(count):
        source, target = (random.integers(4, vocabulary, random.integers(1, 41)).tolist() for _ in range(2))
        token, contrast = random.choice(vocabulary, 2, replace=False).tolist()
        yield source, target, token, contrast
