"""Lenses of a model, made of sentences and its own translations of them, in parts."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Generator, Mapping, Sequence
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
from attention_atlas.model.files import replace_file
from attention_atlas.model.serve.work import Parts, finish
from attention_atlas.model.trace.kinds import Side
from attention_atlas.model.translator import Translator

SLOPES = 60  # sentences of each direction whose slopes are taken: each costs d_model gradients
BATCH = 12
Arrays = Generator[tuple[int, int], None, dict[str, np.ndarray]]


@dataclass(frozen=True, eq=False)
class Fitting:
    """Of texts by direction, each with the model's own translation; texts longer than the model takes are left out.
    slopes: of so many in each direction, evenly drawn, the Jacobians are taken; the tuned lens is fitted to all, in so
    many steps a layer. batch: sentences of a part, of those with slopes a quarter. folder: of what is done so far, for
    whoever goes on after a kill; None: nothing is written."""

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

    def parts(self) -> Parts[Lenses]:
        """Read the sentences, then fit the tuned lens layer by layer."""
        layers, rows, weights = self.translator.config.num_decoder_layers, [], []
        slopes, of = Jacobians(self.translator.config), len(self._batches) + layers
        for done, batch in enumerate(self._batches):
            part = yield from self._stored(done, of, lambda progress, batch=batch: self._read(batch, progress))
            rows.append(part["rows"])
            if "slopes" in part:
                slopes.restore(part["slopes"], part["positions"])
            yield done + 1, of
        for done, layer in enumerate(range(layers), len(self._batches)):
            part = yield from self._stored(done, of, lambda progress, layer=layer: self._layer(layer, rows, progress))
            weights.append(part)
            yield done + 1, of
        encoder, decoder = (slopes.means(side) for side in (Side.ENCODER, Side.DECODER))
        matrices, biases = (torch.from_numpy(np.stack([one[name] for one in weights])) for name in ("weight", "bias"))
        return Lenses(self.translator.digest, self.sentences, encoder, decoder, matrices, biases)

    def _stored(self, number: int, of: int, make: Callable[[tuple[int, int]], Arrays]) -> Arrays:
        """Return a part from its file; make and write it where there is none."""
        if self.folder is None:
            return (yield from make((number, of)))
        about = repr((self.translator.digest, self._batches, self.steps))
        path = self.folder / hashlib.sha256(about.encode()).hexdigest()[:24] / f"part-{number}.npz"
        if path.is_file():
            with np.load(path, allow_pickle=False) as file:
                return dict(file)
        part, written = (yield from make((number, of))), io.BytesIO()
        np.savez(written, **part)  # to a path, numpy would add its ending
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, lambda partial: partial.write_bytes(written.getvalue()))
        return part

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

    def _read(self, batch: tuple[str, tuple[str, ...], bool], progress: tuple[int, int]) -> Arrays:
        direction, lines, grad = batch
        jacobians, names = Jacobians(self.translator.config), streams(self.translator.config, Side.DECODER)
        run = self.translator.run(lines, names=jacobians.names if grad else names, direction=direction, grad=grad)
        kept = torch.stack([run[name].detach()[run.mask] for name in names]).float().cpu().numpy()
        if not grad:
            return {"rows": kept}
        for _ in jacobians.adding(run):
            yield progress
        slopes, positions = jacobians.sums()
        return {"rows": kept, "slopes": slopes, "positions": positions}

    def _layer(self, layer: int, rows: Sequence[np.ndarray], progress: tuple[int, int]) -> Arrays:
        model = self.translator.model
        both = torch.from_numpy(np.concatenate([one[[layer, -1]] for one in rows], axis=1)).to(self.translator.device)
        fitting = tuned.fitting(
            lambda one: model.project(model.decoder.norm(one)), *both, steps=self.steps, progress=progress
        )
        weight, bias = yield from fitting
        return {"weight": weight.cpu().numpy(), "bias": bias.cpu().numpy()}


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
    parts = Fitting(translator, texts, slopes, folder=folder).parts()
    return finish(parts, lambda progress: watch(*progress))


def _spread(count: int, most: int) -> set[int]:
    """`most` of so many numbers, evenly."""
    return {i * count // min(most, count) for i in range(min(most, count))}
