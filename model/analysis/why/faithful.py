"""Does a row hold? Words taken away in its order, by another replacement than the one it was made with; and what is
left of it when weights are redrawn."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path

import numpy as np
import torch

from attention_atlas.model.analysis.why.attribution import agree, answers
from attention_atlas.model.analysis.why.case import Case, open_case
from attention_atlas.model.analysis.why.method import Method
from attention_atlas.model.analysis.why.methods import occlusion
from attention_atlas.model.analysis.why.passes.change import Change, masked, replaced
from attention_atlas.model.analysis.why.pinned import ask
from attention_atlas.model.analysis.why.registry import METHODS, other_occlusion
from attention_atlas.model.files import read_json
from attention_atlas.model.nets.transformer import Transformer
from attention_atlas.model.trace.why.evidence import Evidence
from attention_atlas.model.trace.why.faithfulness import (
    Curves,
    Faithfulness,
    MethodFaithfulness,
    bootstrap,
    from_dict,
    spearman,
)
from attention_atlas.model.trace.why.means import Means
from attention_atlas.model.translator import Translator

FILE = "faithfulness.json"  # in the checkpoint's folder
RANDOM_ORDERS = 3  # of each sentence, where many sentences are told
SHOWN_ORDERS = 5  # where one is
LEAST_WORDS = 3
POINTS = 12  # of a curve at most
Deletion = Callable[[np.ndarray, np.ndarray], Change]


def read(folder: Path) -> Faithfulness | None:
    """The table of a checkpoint's folder, of whatever weights; None if it has none. ValueError if it is damaged."""
    path = folder / FILE
    if not path.is_file():
        return None
    try:
        return from_dict(read_json(path))
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def deletion(method: str) -> Deletion:
    """How words are taken away to judge a method: by the mean embedding; occlusion by the mean, by the mask."""
    return masked if other_occlusion(method) is occlusion.MASK else replaced


def curves(
    case: Case, order: Sequence[int], how: Deletion, *, counts: Sequence[int] | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Columns taken away in an order: what the metric loses without the first k, and with the first k alone, for k of
    counts (None: 1 .. n), float64 [k] each. Columns that the order does not name (symbols) stay."""
    (found,) = all_curves(case, [(order, how)], counts=counts)
    return found


def all_curves(
    case: Case, orders: Sequence[tuple[Sequence[int], Deletion]], *, counts: Sequence[int] | None = None
) -> list[tuple[np.ndarray, np.ndarray]]:
    """curves() of each order. Orders that begin or end with the same words share runs: each set of words is taken away
    once, and many of them in one batch."""
    wanted = [change for order, how in orders for change in _taken(case, order, how, counts)]
    joined = Change(*map(np.concatenate, zip(*(change.parts for change in wanted))))
    _, first, place = np.unique(np.concatenate(joined.parts, axis=1), axis=0, return_index=True, return_inverse=True)
    effects = case.effects(joined[first])[place.reshape(-1)]
    parts = np.split(effects, np.cumsum([len(change) for change in wanted])[:-1])
    return list(zip(parts[::2], parts[1::2]))


def _taken(case: Case, order: Sequence[int], how: Deletion, counts: Sequence[int] | None) -> tuple[Change, Change]:
    source, prefix = (np.cumsum(mask[list(order)], axis=0) > 0 for mask in case.columns.masks())
    all_source, all_prefix = source[-1], prefix[-1]
    if counts is not None:
        source, prefix = (mask[np.asarray(counts) - 1] for mask in (source, prefix))
    return how(source, prefix), how(all_source & ~source, all_prefix & ~prefix)


def points(words: int) -> list[int]:
    """Numbers of words at which a curve is measured: all from 1 on, or a dozen evenly spread."""
    return sorted(set(np.linspace(1, words, min(words, POINTS)).round().astype(int).tolist()))


@dataclass(frozen=True, eq=False)
class Trial:
    """One order of the words of one question, put to the test. method: whose order; None: the mean of random ones.

    counts       numbers of words k, from 0 to all of them
    left, kept   the metric without the first k, and with the first k alone, in nats, float64 [k]; measured
    """

    method: str | None
    counts: tuple[int, ...]
    left: np.ndarray
    kept: np.ndarray


def trials(case: Case, by: Method, *, seed: int = 0) -> Iterator[list[Trial]]:
    """Random orders and those of what is measured, then of all else that is soon there, then of slow methods: each
    group at once, so that equal sets of words share runs. Words are taken away as the occlusion `by` does it; its own
    order is left out, since it would judge itself. Nothing for fewer than three words, which cannot be ranked."""
    ordinary, how = ~case.columns.special, masked if by is occlusion.MASK else replaced
    words, random = np.flatnonzero(ordinary), np.random.default_rng(seed)
    if len(words) < LEAST_WORDS:
        return
    counts, whole = points(len(words)), case.metric()
    chance = [random.permutation(words) for _ in range(SHOWN_ORDERS)]

    def group(method: Method) -> tuple[bool, bool]:
        return method.slow, method.evidence is not Evidence.MEASURED

    for _, some in groupby(sorted((one for one in METHODS.values() if one is not by), key=group), key=group):
        orders = {name: order_of(row.values, ordinary) for name, row in answers(case, list(some)).items()}
        tried = all_curves(case, [(order, how) for order in (*chance, *orders.values())], counts=counts)
        lines = [
            (whole - np.concatenate(([0.0], without)), whole - np.concatenate((without[-1:], alone)))
            for without, alone in tried
        ]
        found = dict(zip(orders, lines[len(chance) :]))
        if chance:
            found, chance = {None: np.mean(lines[: len(chance)], axis=0), **found}, []
        yield [Trial(name, (0, *counts), *one) for name, one in found.items()]


def order_of(values: np.ndarray, ordinary: np.ndarray) -> list[int]:
    """The ordinary columns, bool [column], by falling value; those that a method says nothing of come last."""
    ranked = np.where(np.isnan(values), -np.inf, values)
    return [int(i) for i in np.argsort(-ranked, kind="stable") if ordinary[i]]


def judge(case: Case, *, seed: int) -> tuple[dict[str, np.ndarray], dict[str, Curves]]:
    """Every method's values for a case, and its curves less those of random orders of the same words."""
    ordinary = ~case.columns.special
    values = {name: row.values for name, row in answers(case, list(METHODS.values())).items()}
    words, random = np.flatnonzero(ordinary), np.random.default_rng(seed)
    orders = [(order_of(mine, ordinary), deletion(name)) for name, mine in values.items()]
    shuffled = [random.permutation(words) for _ in range(RANDOM_ORDERS)]
    tried = all_curves(
        case, [*orders, *((order, how) for how in (masked, replaced) for order in shuffled)], counts=points(len(words))
    )
    means = np.array([[part.mean() for part in one] for one in tried])  # [order, (without, alone)]
    chance = dict(zip((masked, replaced), means[len(orders) :].reshape(2, RANDOM_ORDERS, 2).mean(1)))
    found = {}
    for (name, mine), (_, how), (without, alone) in zip(values.items(), orders, means):
        agreement = agree(mine, values[other_occlusion(name).slug], ordinary)
        found[name] = Curves(agreement, float(without - chance[how][0]), float(alone - chance[how][1]))
    return values, found


def redrawn(model: Transformer, *, seed: int = 0) -> list[tuple[str, Transformer]]:
    """The model with its weights drawn anew, stage by stage from the top: the first stage alone, the first two, .. all
    of them. Each as fresh as before training. The decoder goes first, then the encoder, the embeddings last."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        fresh = Transformer(model.config).to(next(model.parameters())).state_dict()
    stages = [
        (f"decoder layer {layer + 1}", f"decoder.layers.{layer}.")
        for layer in reversed(range(len(model.decoder.layers)))
    ]
    stages += [
        (f"encoder layer {layer + 1}", f"encoder.layers.{layer}.")
        for layer in reversed(range(len(model.encoder.layers)))
    ]
    found, current = [], copy.deepcopy(model)
    for name, prefix in (*stages, ("everything", "")):
        state = current.state_dict()
        current = copy.deepcopy(current)
        current.load_state_dict({key: fresh[key] if key.startswith(prefix) else value for key, value in state.items()})
        found.append((name, current.eval()))
    return found


@dataclass(frozen=True)
class Sentence:
    """What one sentence gave: curves by method; by method and stage the correlation with a redrawn model's values."""

    curves: dict[str, Curves]
    randomised: dict[str, dict[str, float | None]]


def examine(
    translator: Translator,
    text: str,
    direction: str,
    means: Means | None,
    *,
    stages: Sequence[tuple[str, Transformer]] = (),
    seed: int = 0,
) -> Sentence | None:
    """One sentence, its least certain content word against the runner-up. None for fewer than three words, which cannot
    be ranked. stages: of redrawn(), where its values are compared with theirs, too. More than five parameters: the
    sentence, what it is judged with, and what is repeated with other weights are told apart by name."""
    trace = translator.translate(text, direction)
    case = open_case(translator, trace, ask(translator, trace), means=means)
    ordinary = ~case.columns.special
    if ordinary.sum() < LEAST_WORDS:
        return None
    values, found = judge(case, seed=seed)
    randomised: dict[str, dict[str, float | None]] = {name: {} for name in values}
    for stage, model in stages:
        # Means of the trained embeddings say nothing of redrawn ones.
        other = replace(case, model=model, means=None)
        for name, mine in values.items():
            randomised[name][stage] = spearman(mine[ordinary], METHODS[name](other).values[ordinary])
    return Sentence(found, randomised)


def summarise(sentences: Sequence[Sentence]) -> tuple[MethodFaithfulness, ...]:
    """Medians, means and their intervals over sentences, in the methods' order."""
    found = []
    for name, method in METHODS.items():
        mine = [sentence.curves[name] for sentence in sentences]
        stages = next((s.randomised[name] for s in sentences if s.randomised[name]), {})
        randomised = {}
        for stage in stages:
            middle = bootstrap([s.randomised[name].get(stage) for s in sentences], median=True)
            randomised[stage] = None if middle is None else middle.value
        found.append(
            MethodFaithfulness(
                name,
                method.evidence.value,
                method.class_agnostic,
                bootstrap([one.agreement for one in mine], median=True),
                bootstrap([one.comprehensiveness for one in mine]),
                bootstrap([one.sufficiency for one in mine]),
                randomised,
            )
        )
    return tuple(found)
