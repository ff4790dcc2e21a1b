"""Train a toy in turns of bounded length, each of which makes a few updates and may take a frame."""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from itertools import starmap

import torch
import torch.nn.functional as F
from torch import nn

from attention_atlas.model.checkpoint import Checkpoint, Example
from attention_atlas.model.config import from_json
from attention_atlas.model.trace.language import Refusal
from attention_atlas.model.trace.recipe import ToyRecipe
from attention_atlas.model.training.batches import Batch, plan_batches
from attention_atlas.model.training.toy import corpora, frames, mistakes, settings
from attention_atlas.model.training.toy.corpora import Pairs
from attention_atlas.model.training.toy.frames import Frame
from attention_atlas.model.training.toy.settings import Optimizer, Start, ToySettings
from attention_atlas.model.training.toy.tasks import task_of
from attention_atlas.model.translator import Translator

BATCH_PAIRS = 16  # in one update
DIRECTION = "source-target"
NAME = "toy"


@dataclass(frozen=True)
class Point:
    """One update.

    loss       the cross-entropy of its batch, nats per target token without smoothing and padding
    minimised  the loss that was minimised
    gradient   the norm of the gradient before clipping
    """

    update: int
    loss: float
    minimised: float
    gradient: float


@dataclass(frozen=True, eq=False)
class Turn:
    """The results of one turn. done: why the run ended, or None."""

    points: tuple[Point, ...]
    frames: tuple[Frame, ...]
    done: str | None


class ToyRun:
    """The training of one network on one corpus.

    On one kind of CPU, the same settings and corpus give bit-identical points, frames and weights in any process: a run
    has its own random state and uses a single thread of torch. Not thread-safe.
    """

    def __init__(self, pairs: Pairs, toy_settings: ToySettings) -> None:
        self.pairs, self.settings = pairs, toy_settings
        self.task = task_of(pairs, toy_settings)
        self.tokenizer = self.task.tokenizer
        self.update = 0
        self.points: list[Point] = []
        self.frames: list[Frame] = []
        self.corpus: Batch = self.task.batch(torch.arange(len(pairs)).numpy())
        self._plan: list = []
        self._epoch = 0
        self._random = torch.Generator().manual_seed(toy_settings.seed).get_state()
        with self._own_random():
            self.model = self.task.build(toy_settings.config(*self.tokenizer.sizes)).train()
            if not toy_settings.is_standard:
                _make_mistakes(self.model, toy_settings)
            if toy_settings.start is Start.TORCH:
                _initialise_as_torch(self.model)
        adam = toy_settings.optimizer is Optimizer.ADAM
        self.optimizer = (
            torch.optim.Adam(self.model.parameters(), lr=0.0, betas=(0.9, 0.98), eps=1e-9)
            if adam
            else torch.optim.SGD(self.model.parameters(), lr=0.0, momentum=toy_settings.momentum)
        )

    @classmethod
    def begin(cls, recipe: ToyRecipe) -> ToyRun:
        """Return a run before its first update. ValueError as in parse()."""
        return cls(*parse(recipe))

    @property
    def recipe(self) -> ToyRecipe:
        """The recipe that reproduces the current weights."""
        return _recipe(self.pairs, self.settings, self.update)

    def copy(self) -> ToyRun:
        """Return an independent run in the same state."""
        fixed = (self.pairs, self.settings, self.task, self.tokenizer, self.corpus, *self.points, *self.frames)
        return deepcopy(self, {id(value): value for value in fixed})

    @property
    def floor(self) -> float:
        """The smallest possible loss."""
        return self.task.floor

    @property
    def size(self) -> int:
        """The memory between turns in bytes: weights, the optimiser's moments, and frames."""
        weights = sum(parameter.nbytes for parameter in self.model.parameters())
        return 3 * weights + sum(frame.size for frame in self.frames)

    @property
    def done(self) -> str | None:
        if self.update >= self.settings.max_updates:
            return "updates"
        last = self.points[-settings.SURE :]
        if len(last) == settings.SURE and all(point.loss < self.floor + settings.LEARNT for point in last):
            return "learnt"
        return "diverged" if self.points and not math.isfinite(self.points[-1].minimised) else None

    def turn(self, *, seconds: float = math.inf, updates: int | None = None) -> Turn:
        """Train for `updates` updates or about `seconds` seconds, whichever ends first, but for at least one update.
        The first turn of a run only takes its first frame."""
        started, points, first, is_begun = time.perf_counter(), len(self.points), self.update, bool(self.frames)
        new_frames, is_over = [], False
        with self._own_random():
            if not is_begun:
                new_frames.append(self._frame())
            while is_begun and not self.done and not is_over:
                self._step()
                if frames.is_due(self.update) or self.done:
                    new_frames.append(self._frame())
                is_over = time.perf_counter() - started >= seconds or self.update - first == updates
        return Turn(tuple(self.points[points:]), tuple(new_frames), self.done)

    def _step(self) -> None:
        self.update += 1
        batch = self._next_batch()
        for group in self.optimizer.param_groups:
            group["lr"] = self.settings.learning_rate_at(self.update)
        logits = self.model.project(self.model.decode(batch.inputs, self.model.encode(batch.source))[0])
        is_counted = (
            torch.ones_like(batch.outputs, dtype=torch.bool)
            if self.settings.count_padding
            else (batch.outputs != self.tokenizer.pad_id)
        )
        smoothing = self.settings.smoothing
        scores = logits[is_counted].softmax(-1) if self.settings.softmax_twice else logits[is_counted]
        minimised = F.cross_entropy(scores, batch.outputs[is_counted], label_smoothing=smoothing)
        with torch.no_grad():
            plain = F.cross_entropy(
                logits.detach().flatten(0, 1), batch.outputs.flatten(), ignore_index=self.tokenizer.pad_id
            )
        minimised.backward()
        gradient = nn.utils.clip_grad_norm_(self.model.parameters(), settings.CLIP_NORM)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)  # here, so that no gradients are kept between turns
        self.points.append(Point(self.update, plain.item(), minimised.item(), gradient.item()))

    def _next_batch(self) -> Batch:
        if len(self.pairs) <= BATCH_PAIRS:
            return self.corpus
        if not self._plan:
            self._plan = plan_batches(self.task.examples, BATCH_PAIRS * 8, seed=self.settings.seed, epoch=self._epoch)
            self._epoch += 1
        return self.task.batch(self._plan.pop())

    def _frame(self) -> Frame:
        frame = frames.frame_of(
            self.model,
            self.corpus,
            self.update,
            end_id=self.tokenizer.end_id,
            prefixes=self.task.prefixes,
            max_steps=self.task.max_steps,
        )
        self.frames = frames.thin_frames([*self.frames, frame])
        return frame

    @contextmanager
    def _own_random(self) -> Iterator[None]:
        """Use this run's random state and one thread of torch, and restore both afterwards. (With more threads, sums
        are split differently and weights differ.)"""
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            with torch.random.fork_rng(devices=[]):
                torch.set_rng_state(self._random)
                yield
                self._random = torch.get_rng_state()
        finally:
            torch.set_num_threads(threads)

    def opened(self, *, copy: bool = True) -> Translator:
        """Return a translator of the current network. Its digest is that of its recipe and its weights. Raises a
        Refusal for a network without attention, with a mistake in its layers, or that does not translate.

        copy: False: the translator takes the network, and the run must not be used any more.
        """
        if not self.task.opens:
            raise Refusal("This network does not translate, so there is no translation to show in the other tabs.")
        if not self.settings.is_standard:
            raise Refusal("This network has a mistake in its layers, which the other tabs cannot show.")
        if not self.model.num_layers:
            raise Refusal("This network has no attention, so there are no maps to show in the other tabs.")
        model = (deepcopy(self.model) if copy else self.model).eval()
        digest = hashlib.sha256(json.dumps(self.recipe.to_plain(), sort_keys=True).encode())
        for parameter in model.parameters():
            parameter.requires_grad_(False)
            digest.update(parameter.numpy().tobytes())
        metrics = {"parameters": sum(p.numel() for p in model.parameters()), "scores": []}
        examples = {DIRECTION: tuple(starmap(Example, self.pairs[:6]))}
        checkpoint = Checkpoint(
            NAME, model, self.tokenizer, (DIRECTION,), metrics, digest.hexdigest()[:16], examples, recipe=self.recipe
        )
        return Translator(checkpoint, torch.device("cpu"))


def parse(recipe: ToyRecipe) -> tuple[Pairs, ToySettings]:
    """Return the corpus and the settings of a recipe. Raises ValueError for a recipe that cannot be trained."""
    if recipe.updates > settings.MAX_UPDATES:
        raise ValueError(f"A run has at most {settings.MAX_UPDATES} updates, found {recipe.updates}.")
    return corpora.read(recipe.corpus), from_json(ToySettings, json.loads(recipe.settings))


def normalise(recipe: ToyRecipe) -> ToyRecipe:
    """Return a recipe in its canonical form. Raises ValueError for a recipe that cannot be trained."""
    return _recipe(*parse(recipe), recipe.updates)


def _recipe(pairs: Pairs, toy_settings: ToySettings, update: int) -> ToyRecipe:
    lines = "\n".join(f" {corpora.BETWEEN} ".join(pair) for pair in pairs)
    return ToyRecipe.of(lines, toy_settings.to_plain(), update)


def _make_mistakes(model: nn.Module, toy_settings: ToySettings) -> None:
    if toy_settings.norm is not mistakes.ToyNorm.LAYER:
        mistakes.replace_norms(model, toy_settings.norm)
    if toy_settings.hides_itself:
        mistakes.hide_diagonal(model.decoder)


def _initialise_as_torch(model: nn.Module) -> None:
    """Initialise every Linear and Embedding as torch does by default, a separate output matrix like a Linear."""
    for module in model.modules():
        if isinstance(module, (nn.Linear, nn.Embedding)):
            module.reset_parameters()
    if getattr(model, "output", None) is not None:
        nn.init.kaiming_uniform_(model.output.weight, a=math.sqrt(5))  # as in nn.Linear.reset_parameters
