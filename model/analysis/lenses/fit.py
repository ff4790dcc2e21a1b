"""Lenses of a model, made of sentences and its own translations of them, in parts that outlive a process."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import torch

from attention_atlas.model.analysis.again import check_plain
from attention_atlas.model.analysis.lenses import tuned
from attention_atlas.model.analysis.lenses.fitted import Lenses
from attention_atlas.model.analysis.lenses.jacobian import Jacobians
from attention_atlas.model.analysis.lenses.streams import streams
from attention_atlas.model.analysis.parts import Parts
from attention_atlas.model.trace.kinds import Side
from attention_atlas.model.translator import Translator

SLOPES = 60  # sentences of each direction whose slopes are taken: each costs d_model gradients
BATCH = 12


@dataclass(frozen=True, eq=False)
class Fitting:
    """Of texts by direction, each with the model's own translation; texts longer than the model takes are left out.
    slopes: of so many in each direction, evenly drawn, the Jacobians are taken; the tuned lens is fitted to all, in so
    many steps a layer. batch: sentences of a part, of those with slopes a quarter. folder: of what is done so far;
    None: the translator's own."""

    translator: Translator
    texts: Mapping[str, Sequence[str]]
    slopes: int = SLOPES
    steps: int = tuned.STEPS
    batch: int = BATCH
    folder: Path | None = None

    def __post_init__(self) -> None:
        check_plain(self.translator)
        if not self._batches:
            raise ValueError("there are no sentences to fit lenses to")

    @property
    def sentences(self) -> int:
        return sum(len(lines) for _, lines, _ in self._batches)

    @property
    def first(self) -> str:
        """A sentence whose slopes are taken."""
        return self._batches[0][1][0]

    def step(self) -> tuple[int, int]:
        """The next part: some sentences, or a layer of the tuned lens; how many are done, of how many."""
        return self.parts.step(self._part)

    def result(self) -> Lenses:
        """Once all parts are done."""
        *read, weights = self._split()
        config, found = self.translator.config, Jacobians(self.translator.config)
        for part in read:
            if "slopes" in part:
                found.restore(part["slopes"], part["positions"])
        encoder, decoder = (found.means(side) for side in (Side.ENCODER, Side.DECODER))
        matrices, biases = (torch.from_numpy(np.stack([one[name] for one in weights])) for name in ("weight", "bias"))
        assert len(matrices) == config.num_decoder_layers
        return Lenses(self.translator.digest, self.sentences, encoder, decoder, matrices, biases)

    @cached_property
    def parts(self) -> Parts:
        about = repr((self.translator.digest, self._batches, self.steps))
        folder = self.folder or self.translator.scratch / "lenses"
        count = len(self._batches) + self.translator.config.num_decoder_layers
        return Parts(folder / hashlib.sha256(about.encode()).hexdigest()[:24], count)

    @cached_property
    def _batches(self) -> list[tuple[str, tuple[str, ...], bool]]:
        """Direction, sentences, and whether their slopes are taken."""
        found = []
        for direction, lines in self.texts.items():
            lines = [line for line in lines if line.strip() and self.translator.fits(line, direction)]
            spread = _spread(len(lines), self.slopes)
            for grad in (True, False):
                chosen = [line for i, line in enumerate(lines) if (i in spread) == grad]
                size = max(1, self.batch // 4) if grad else self.batch
                found += [
                    (direction, tuple(chosen[start : start + size]), grad) for start in range(0, len(chosen), size)
                ]
        return found

    def _split(self) -> list:
        """What is read of each batch, and at the end the list of layers."""
        parts = list(self.parts.read())
        return [*parts[: len(self._batches)], parts[len(self._batches) :]]

    def _part(self, number: int) -> dict[str, np.ndarray]:
        if number >= len(self._batches):
            return self._layer(number - len(self._batches))
        direction, lines, grad = self._batches[number]
        jacobians, names = Jacobians(self.translator.config), streams(self.translator.config, Side.DECODER)
        run = self.translator.run(lines, names=jacobians.names if grad else names, direction=direction, grad=grad)
        kept = torch.stack([run[name].detach()[run.mask] for name in names]).float().cpu().numpy()
        if not grad:
            return {"rows": kept}
        jacobians.add(run)
        slopes, positions = jacobians.sums()
        return {"rows": kept, "slopes": slopes, "positions": positions}

    def _layer(self, layer: int) -> dict[str, np.ndarray]:
        model = self.translator.model
        read = (part["rows"][[layer, -1]] for _, part in zip(self._batches, self.parts.read()))
        rows = torch.from_numpy(np.concatenate(list(read), axis=1)).to(self.translator.device)
        with torch.inference_mode(False):
            weight, bias = tuned.fit(lambda one: model.project(model.decoder.norm(one)), rows, steps=self.steps)
        return {"weight": weight[0].cpu().numpy(), "bias": bias[0].cpu().numpy()}


def fit(
    translator: Translator,
    texts: Mapping[str, Sequence[str]],
    *,
    slopes: int = SLOPES,
    folder: Path | None = None,
    watch: Callable[[int, int], object] = lambda done, total: None,
) -> Lenses:
    """A Fitting to its end. watch hears how many parts are done, of how many. ValueError for no text, and for a network
    that is no Transformer."""
    fitting = Fitting(translator, texts, slopes, folder=folder)
    done, total = fitting.parts.done, fitting.parts.count
    while done < total:
        watch(done, total)
        done, total = fitting.step()
    watch(done, total)
    return fitting.result()


def _spread(count: int, most: int) -> set[int]:
    """`most` of so many numbers, evenly."""
    return {i * count // min(most, count) for i in range(min(most, count))}
