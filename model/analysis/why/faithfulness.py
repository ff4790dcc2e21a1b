"""Whether an attribution holds: remove words in its order and measure the metric, or redraw weights and compare.

`run_trials` tests the methods on one question, for the page. `examine_sentence` and `summarise` make the table of a
checkpoint, faithfulness.json. Words are always removed by another replacement than the method under test uses itself.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path

import numpy as np
import torch

from attention_atlas.model.analysis.why.attribution import compute_rows, measure_agreement
from attention_atlas.model.analysis.why.case import Case, WordChanges, mask_words, open_case, replace_words
from attention_atlas.model.analysis.why.means import Means
from attention_atlas.model.analysis.why.method import Method
from attention_atlas.model.analysis.why.methods import METHODS, methods_of, occlusion, reference_occlusion
from attention_atlas.model.analysis.why.questions import make_question
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
from attention_atlas.model.translator import Translator

FILE = "faithfulness.json"  # in the checkpoint's folder
TABLE_RANDOM_ORDERS = 3  # of each sentence of a table
TRIAL_RANDOM_ORDERS = 5  # of the one sentence of trials
MIN_WORDS = 3  # fewer cannot be ranked
MAX_POINTS = 12  # of a curve
Deletion = Callable[[np.ndarray, np.ndarray], WordChanges]


def load_faithfulness(folder: Path) -> Faithfulness | None:
    """Return the table in a checkpoint's folder, or None. Raises ValueError, naming the file, if it is damaged."""
    path = folder / FILE
    if not path.is_file():
        return None
    try:
        return from_dict(read_json(path))
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def choose_deletion(method: str) -> Deletion:
    """Return how words are removed to judge a method: by the mean embedding; by masks for occlusion by mean."""
    return mask_words if reference_occlusion(method) is occlusion.MASK else replace_words


def measure_curves(
    case: Case, orders: Sequence[tuple[Sequence[int], Deletion]], *, counts: Sequence[int] | None = None
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Measure what the metric loses without the first k columns of each order, and with them alone.

    Returns two arrays float64 [k] for each order, for k of counts (None: 1 .. n). Columns that an order does not name
    (symbols) stay. Each distinct set of words is removed once, so orders that begin or end alike share runs.
    """
    changes = [change for order, delete in orders for change in _delete_along(case, order, delete, counts)]
    joined = WordChanges(*(np.concatenate(side) for side in zip(*((c.source, c.prefix) for c in changes))))
    both = np.concatenate((joined.source, joined.prefix), axis=1)
    _, first, number = np.unique(both, axis=0, return_index=True, return_inverse=True)
    effects = case.measure_effects(joined[first])[number.reshape(-1)]
    parts = np.split(effects, np.cumsum([len(change) for change in changes])[:-1])
    return list(zip(parts[::2], parts[1::2]))


def _delete_along(
    case: Case, order: Sequence[int], delete: Deletion, counts: Sequence[int] | None
) -> tuple[WordChanges, WordChanges]:
    """Return the deletions of the first k columns of an order, and of all others that it names."""
    source, prefix = (np.cumsum(mask[list(order)], axis=0) > 0 for mask in case.columns.masks())
    all_source, all_prefix = source[-1], prefix[-1]
    if counts is not None:
        source, prefix = (mask[np.asarray(counts) - 1] for mask in (source, prefix))
    return delete(source, prefix), delete(all_source & ~source, all_prefix & ~prefix)


def choose_counts(words: int) -> list[int]:
    """Return the numbers of words at which a curve is measured: 1 to all, or a dozen evenly spread."""
    return sorted(set(np.linspace(1, words, min(words, MAX_POINTS)).round().astype(int).tolist()))


def rank_words(values: np.ndarray, ordinary: np.ndarray) -> list[int]:
    """Return the ordinary columns, bool [column], by falling value; those with NaN come last."""
    ranked = np.where(np.isnan(values), -np.inf, values)
    return [int(i) for i in np.argsort(-ranked, kind="stable") if ordinary[i]]


@dataclass(frozen=True, eq=False)
class Trial:
    """The measured metric while words of one question are removed in one order.

    method   whose order; None: the mean over random orders
    counts   numbers of words k, from 0 to all
    without  float64 [k], the metric without the first k words, in nats
    alone    float64 [k], the metric with the first k words alone
    """

    method: str | None
    counts: tuple[int, ...]
    without: np.ndarray
    alone: np.ndarray


def run_trials(case: Case, deletion: Method, *, seed: int = 0) -> Iterator[list[Trial]]:
    """Test random orders and those of all methods; yield groups: measured methods, other quick ones, slow ones.

    deletion: the occlusion by which words are removed; its own order is left out, since it would judge itself. Yields
    nothing for fewer than three words.
    """
    ordinary = ~case.columns.special
    words, random = np.flatnonzero(ordinary), np.random.default_rng(seed)
    if len(words) < MIN_WORDS:
        return
    delete = mask_words if deletion is occlusion.MASK else replace_words
    counts, full = choose_counts(len(words)), case.metric()
    random_orders = [random.permutation(words) for _ in range(TRIAL_RANDOM_ORDERS)]

    def group(method: Method) -> tuple[bool, bool]:
        return method.slow, method.evidence is not Evidence.MEASURED

    tested = [method for method in methods_of(case.model).values() if method is not deletion]
    for _, methods in groupby(sorted(tested, key=group), key=group):
        orders = {name: rank_words(row.values, ordinary) for name, row in compute_rows(case, list(methods)).items()}
        losses = measure_curves(case, [(order, delete) for order in (*random_orders, *orders.values())], counts=counts)
        curves = [
            (full - np.concatenate(([0.0], without)), full - np.concatenate((without[-1:], alone)))
            for without, alone in losses
        ]
        by_method = dict(zip(orders, curves[len(random_orders) :]))
        if random_orders:  # only in the first group
            by_method = {None: np.mean(curves[: len(random_orders)], axis=0), **by_method}
            random_orders = []
        yield [Trial(name, (0, *counts), *curve) for name, curve in by_method.items()]


def score_methods(case: Case, *, seed: int) -> tuple[dict[str, np.ndarray], dict[str, Curves]]:
    """Return every method's values for a case, and its curves less those of random orders of the same words."""
    values = {name: row.values for name, row in compute_rows(case, list(METHODS.values())).items()}
    ordinary = ~case.columns.special
    words, random = np.flatnonzero(ordinary), np.random.default_rng(seed)
    orders = [(rank_words(row, ordinary), choose_deletion(name)) for name, row in values.items()]
    shuffled = [random.permutation(words) for _ in range(TABLE_RANDOM_ORDERS)]
    deletions = (mask_words, replace_words)
    losses = measure_curves(
        case,
        [*orders, *((order, delete) for delete in deletions for order in shuffled)],
        counts=choose_counts(len(words)),
    )
    means = np.array([[part.mean() for part in pair] for pair in losses])  # [order, (without, alone)]
    random_means = dict(zip(deletions, means[len(orders) :].reshape(2, TABLE_RANDOM_ORDERS, 2).mean(1)))
    curves = {}
    for (name, row), (_, delete), (without, alone) in zip(values.items(), orders, means):
        agreement = measure_agreement(case, row, values[reference_occlusion(name).slug])
        random_without, random_alone = random_means[delete]
        curves[name] = Curves(agreement, float(without - random_without), float(alone - random_alone))
    return values, curves


def redraw_weights(model: Transformer, *, seed: int = 0) -> list[tuple[str, Transformer]]:
    """Return copies of the model with weights redrawn as before training, stage by stage from the top (Adebayo 2018).

    The first copy has its last decoder layer redrawn, the next the last two, and so on through the encoder; in the last
    copy all weights are redrawn.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        fresh = Transformer(model.config).to(next(model.parameters())).state_dict()
    stages = [
        (f"{side} layer {layer + 1}", f"{side}.layers.{layer}.")
        for side, stack in (("decoder", model.decoder), ("encoder", model.encoder))
        for layer in reversed(range(len(stack.layers)))
    ]
    models, current = [], copy.deepcopy(model)
    for name, prefix in (*stages, ("everything", "")):
        state = current.state_dict()
        current = copy.deepcopy(current)
        current.load_state_dict({key: fresh[key] if key.startswith(prefix) else value for key, value in state.items()})
        models.append((name, current.eval()))
    return models


@dataclass(frozen=True)
class SentenceScores:
    """The scores of one sentence.

    curves      method -> its curves
    randomised  method -> stage -> the rank correlation of its values with those of the redrawn model
    """

    curves: dict[str, Curves]
    randomised: dict[str, dict[str, float | None]]


def examine_sentence(
    translator: Translator,
    text: str,
    direction: str,
    means: Means | None,
    *,
    stages: Sequence[tuple[str, Transformer]] = (),
    seed: int = 0,
) -> SentenceScores | None:
    """Score all methods on a sentence's least certain content word, against the runner-up.

    stages: of redraw_weights(), to compare values with. Returns None for fewer than three words.
    """
    trace = translator.translate(text, direction)
    case = open_case(translator, trace, make_question(translator, trace), means=means)
    ordinary = ~case.columns.special
    if ordinary.sum() < MIN_WORDS:
        return None
    values, curves = score_methods(case, seed=seed)
    randomised: dict[str, dict[str, float | None]] = {name: {} for name in values}
    for stage, model in stages:
        redrawn = replace(case, model=model, means=None)  # means of the trained embeddings do not fit redrawn ones
        for name, row in values.items():
            randomised[name][stage] = spearman(row[ordinary], METHODS[name](redrawn).values[ordinary])
    return SentenceScores(curves, randomised)


def summarise(sentences: Sequence[SentenceScores]) -> tuple[MethodFaithfulness, ...]:
    """Return medians, means and their intervals over sentences, in the order of METHODS."""
    methods = []
    for name, method in METHODS.items():
        curves = [sentence.curves[name] for sentence in sentences]
        stages = next((s.randomised[name] for s in sentences if s.randomised[name]), {})
        randomised = {}
        for stage in stages:
            interval = bootstrap([s.randomised[name].get(stage) for s in sentences], median=True)
            randomised[stage] = None if interval is None else interval.value
        methods.append(
            MethodFaithfulness(
                name,
                method.evidence.value,
                method.class_agnostic,
                bootstrap([curve.agreement for curve in curves], median=True),
                bootstrap([curve.comprehensiveness for curve in curves]),
                bootstrap([curve.sufficiency for curve in curves]),
                randomised,
            )
        )
    return tuple(methods)
