"""A toy in training: turns of bounded length, each of which does a few updates and may leave a frame."""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property
from itertools import starmap

import torch
import torch.nn.functional as F
from torch import nn

from attention_atlas.model.checkpoint import Checkpoint, Example
from attention_atlas.model.config import from_json
from attention_atlas.model.nets import networks
from attention_atlas.model.text.words import TwoWordTokenizers, WordTokenizer
from attention_atlas.model.trace.language import Refusal
from attention_atlas.model.trace.recipe import ToyRecipe
from attention_atlas.model.training.batches import Batch, Examples, make_batch, plan_batches
from attention_atlas.model.training.toy import corpora, frames, settings
from attention_atlas.model.training.toy.corpora import Pairs
from attention_atlas.model.training.toy.frames import Frame
from attention_atlas.model.training.toy.settings import Optimizer, Start, ToyNetwork, ToySettings
from attention_atlas.model.translator import Translator

BATCH_PAIRS = 16  # of an update
DIRECTION = "source-target"
NAME = "toy"


@dataclass(frozen=True)
class Point:
    """One update: the cross-entropy of its batch, nats a target token without smoothing and padding; the loss that it
    minimised; and the length of the gradient before it was cut."""

    update: int
    loss: float
    minimised: float
    gradient: float


@dataclass(frozen=True, eq=False)
class Turn:
    """What one turn brought. done: why the run ended, in words, or None."""

    points: tuple[Point, ...]
    frames: tuple[Frame, ...]
    done: str | None


class ToyRun:
    """One network on one corpus. On one kind of CPU the same settings and corpus give the same points, frames and
    weights to the last bit, in any process and whatever runs beside it: a run has random numbers of its own, and uses
    one of torch's threads. Not for two threads at a time."""

    def __init__(self, pairs: Pairs, chosen: ToySettings) -> None:
        self.pairs, self.settings = pairs, chosen
        self.tokenizer = (
            TwoWordTokenizers(*zip(*pairs))
            if chosen.separate and chosen.network is ToyNetwork.TRANSFORMER
            else WordTokenizer(side for pair in pairs for side in pair)
        )
        self.update = 0
        self.points: list[Point] = []
        self.frames: list[Frame] = []
        examples = Examples.encode(list(pairs), self.tokenizer, "target", max_length=settings.MAX_LENGTH)
        self.examples = examples
        everything = torch.arange(len(pairs)).numpy()
        self.corpus: Batch = make_batch(examples, everything, self.tokenizer)
        self._plan: list = []
        self._epoch = 0
        self._random = torch.Generator().manual_seed(chosen.seed).get_state()
        with self._own_random():
            self.model = networks.build(chosen.config(*self.tokenizer.sizes)).train()
            if chosen.start is Start.TORCH:
                _as_torch_starts(self.model)
        adam = chosen.optimizer is Optimizer.ADAM
        self.optimizer = (
            torch.optim.Adam(self.model.parameters(), lr=0.0, betas=(0.9, 0.98), eps=1e-9)
            if adam
            else torch.optim.SGD(self.model.parameters(), lr=0.0, momentum=chosen.momentum)
        )

    @classmethod
    def begin(cls, recipe: ToyRecipe) -> ToyRun:
        """Return a run before its first update. ValueError as in parse()."""
        return cls(*parse(recipe))

    @property
    def recipe(self) -> ToyRecipe:
        """The recipe that trains the present weights again."""
        return _recipe(self.pairs, self.settings, self.update)

    def copy(self) -> ToyRun:
        """A run that goes on from here by itself."""
        fixed = (self.pairs, self.settings, self.tokenizer, self.examples, self.corpus, *self.points, *self.frames)
        return deepcopy(self, {id(one): one for one in fixed})

    @cached_property
    def floor(self) -> float:
        """Below which the loss cannot fall (corpora.floor)."""
        return corpora.floor(self.pairs, ordered=self.settings.ordered)

    @property
    def size(self) -> int:
        """Bytes that it holds between turns: weights, the optimiser's moments, and frames."""
        weights = sum(parameter.nbytes for parameter in self.model.parameters())
        return 3 * weights + sum(frame.size for frame in self.frames)

    @property
    def done(self) -> str | None:
        if self.update >= settings.MAX_UPDATES:
            return "updates"
        last = self.points[-settings.SURE :]
        if len(last) == settings.SURE and all(point.loss < self.floor + settings.LEARNT for point in last):
            return "learnt"
        return "diverged" if self.points and not math.isfinite(self.points[-1].minimised) else None

    def turn(self, *, seconds: float = math.inf, updates: int | None = None) -> Turn:
        """Train for so many updates, or at most about so many seconds; at least one update. The first turn of a run
        only takes its first frame."""
        started, points, taken = time.perf_counter(), len(self.points), []
        with self._own_random():
            if not self.frames:
                taken.append(self._frame())
            elif not self.done:
                self._train(started, seconds, updates or settings.MAX_UPDATES, taken)
        return Turn(tuple(self.points[points:]), tuple(taken), self.done)

    def _train(self, started: float, seconds: float, updates: int, taken: list[Frame]) -> None:
        first = self.update
        while True:
            self._step()
            if frames.due(self.update) or self.done:
                taken.append(self._frame())
            enough = time.perf_counter() - started >= seconds or self.update - first >= updates
            if enough or self.done:
                return

    def _step(self) -> None:
        self.update += 1
        batch = self._next_batch()
        for group in self.optimizer.param_groups:
            group["lr"] = self.settings.learning_rate_at(self.update)
        logits = self.model.project(self.model.decode(batch.inputs, self.model.encode(batch.source))[0])
        real = (
            torch.ones_like(batch.outputs, dtype=torch.bool)
            if self.settings.count_padding
            else (batch.outputs != self.tokenizer.pad_id)
        )
        minimised = F.cross_entropy(logits[real], batch.outputs[real], label_smoothing=self.settings.label_smoothing)
        with torch.no_grad():
            plain = F.cross_entropy(
                logits.detach().flatten(0, 1), batch.outputs.flatten(), ignore_index=self.tokenizer.pad_id
            )
        self.optimizer.zero_grad(set_to_none=True)
        minimised.backward()
        gradient = nn.utils.clip_grad_norm_(self.model.parameters(), settings.CLIP_NORM)
        self.optimizer.step()
        self.points.append(Point(self.update, plain.item(), minimised.item(), gradient.item()))

    def _next_batch(self) -> Batch:
        if len(self.pairs) <= BATCH_PAIRS:
            return self.corpus
        if not self._plan:
            self._plan = plan_batches(self.examples, BATCH_PAIRS * 8, seed=self.settings.seed, epoch=self._epoch)
            self._epoch += 1
        return make_batch(self.examples, self._plan.pop(), self.tokenizer)

    def _frame(self) -> Frame:
        found = frames.frame_of(self.model, self.corpus, self.update, end_id=self.tokenizer.end_id)
        self.frames = frames.within([*self.frames, found])
        return found

    @contextmanager
    def _own_random(self) -> Iterator[None]:
        """torch's generator in this run's state and one thread for this thread's operations; afterwards both as they
        were. (With more threads sums are split otherwise, and weights differ.)"""
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            with torch.random.fork_rng(devices=[]):
                torch.set_rng_state(self._random)
                yield
                self._random = torch.get_rng_state()
        finally:
            torch.set_num_threads(threads)

    def opened(self) -> Translator:
        """The network as it is now, as any checkpoint is served. Its digest is that of its recipe and its weights.
        ValueError, in words, for a network without maps."""
        model = deepcopy(self.model).eval()
        if not model.num_layers:
            raise Refusal("This network has no attention: there are no maps of it to look at in the other tabs.")
        digest = hashlib.sha256(json.dumps(self.recipe.to_plain(), sort_keys=True).encode())
        for parameter in model.parameters():
            parameter.requires_grad_(False)
            digest.update(parameter.numpy().tobytes())
        metrics = {"parameters": sum(p.numel() for p in model.parameters()), "scores": []}
        examples = {DIRECTION: tuple(starmap(Example, self.pairs[:6]))}
        found = Checkpoint(
            NAME, model, self.tokenizer, (DIRECTION,), metrics, digest.hexdigest()[:16], examples, recipe=self.recipe
        )
        return Translator(found, torch.device("cpu"))


def parse(recipe: ToyRecipe) -> tuple[Pairs, ToySettings]:
    """Return the corpus and the settings of a recipe. ValueError, in words, for what cannot be trained."""
    if recipe.updates > settings.MAX_UPDATES:
        raise ValueError(f"A run has at most {settings.MAX_UPDATES} updates, found {recipe.updates}.")
    return corpora.read(recipe.corpus), from_json(ToySettings, json.loads(recipe.settings))


def normalise(recipe: ToyRecipe) -> ToyRecipe:
    """Return the recipe in the one form that a toy's own has. ValueError, in words, for what cannot be trained."""
    return _recipe(*parse(recipe), recipe.updates)


def _recipe(pairs: Pairs, chosen: ToySettings, update: int) -> ToyRecipe:
    lines = "\n".join(f" {corpora.BETWEEN} ".join(pair) for pair in pairs)
    return ToyRecipe.of(lines, chosen.to_plain(), update)


def _as_torch_starts(model: nn.Module) -> None:
    """Draw every Linear and Embedding anew, as torch itself does when it makes one. An output matrix of its own is that
    of a Linear."""
    for module in model.modules():
        if isinstance(module, (nn.Linear, nn.Embedding)):
            module.reset_parameters()
    if getattr(model, "output", None) is not None:
        nn.init.kaiming_uniform_(model.output.weight, a=math.sqrt(5))  # as in nn.Linear.reset_parameters
