"""Fit the lenses of a model to sentences and its own translations of them.

fit() does it at once. Fitting does it in parts, which may be stored in a folder so that a stopped run continues.
lens_work() fits lenses to the project's own sentences for the page; find_lenses() returns whichever lenses exist.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from attention_atlas.model.analysis.lenses.read import divergence, stream_names
from attention_atlas.model.analysis.lenses.storage import Lenses, load_stored
from attention_atlas.model.analysis.rerun import check_unedited
from attention_atlas.model.analysis.sentences import source_sentences
from attention_atlas.model.config import ModelConfig
from attention_atlas.model.decode.runs import Run
from attention_atlas.model.files import replace_file
from attention_atlas.model.nets.blocks import exact
from attention_atlas.model.serve.work import Parts, Work, finish
from attention_atlas.model.trace.kinds import Side
from attention_atlas.model.translator import Translator

SLOPES = 60  # sentences of each direction for the Jacobians, which take d_model gradients each
BATCH = 12
CHUNK = 16  # dimensions of the last stream whose gradients are taken at once
STEPS = 250  # of Adam for a layer of the tuned lens
ROWS = 192  # in one step
RATE = 1e-3
HELD_OUT = 8  # every eighth row is held out to choose the best map
RIDGES = (1.0, 10.0, 100.0, 1000.0)
EVALUATIONS = 10  # on the held-out rows
# In the page, fewer of everything:
PAGE_SENTENCES, PAGE_SLOPES, PAGE_STEPS, PAGE_BATCH = 40, 8, 60, 4
Arrays = Generator[tuple[int, int], None, dict[str, np.ndarray]]


def all_stream_names(config: ModelConfig) -> tuple[str, ...]:
    """Return the places whose Jacobians are taken: the encoder's streams, then the decoder's, the last one last."""
    return stream_names(config, Side.ENCODER) + stream_names(config, Side.DECODER)


def sum_jacobians(
    run: Run, names: Sequence[str], progress: tuple[int, int] | None = None
) -> Generator[tuple[int, int] | None, None, np.ndarray]:
    """Sum Jacobians of the last of these streams by each of them: float64 [place, d_model, d_model].

    run: with gradients. A position contributes the Jacobian of the sum of the last stream over all target rows, by the
    stream at that position: its effect on everything that is written. A position of the decoder affects only its own
    and later rows. Yields `progress` after each CHUNK of dimensions of the last stream.
    """
    streams = [run[name] for name in names]
    final = streams[-1]
    width = final.shape[-1]
    totals = torch.zeros(len(names), width, width, dtype=torch.float64)
    for start in range(0, width, CHUNK):
        rows = torch.arange(start, min(start + CHUNK, width), device=final.device)
        seeds = final.new_zeros(len(rows), *final.shape)
        seeds[torch.arange(len(rows)), :, :, rows] = run.mask.to(final)
        slopes = torch.autograd.grad(final, streams, seeds, retain_graph=True, is_grads_batched=True)
        for total, slope in zip(totals, slopes):  # [rows, batch, position, d_model]; 0 at padding
            total[start : start + CHUNK] = slope.sum((1, 2))
        yield progress
    return totals.numpy()


def fit_layer(
    project: Callable[[Tensor], Tensor],
    stream: Tensor,
    last: Tensor,
    steps: int = STEPS,
    *,
    progress: tuple[int, int] | None = None,
) -> Generator[tuple[int, int] | None, None, tuple[Tensor, Tensor]]:
    """Fit the tuned lens of one layer (Belrose et al. 2023): W float32 [d_model, d_model] and b [d_model].

    stream, last [row, d_model]: the layer's stream and the last one. project: maps a last stream, before its norm, to
    logits [row, vocabulary]. stream + W stream + b should predict what the last stream predicts, measured by the KL
    divergence. The fit starts from ridge regression, which shrinks W to 0 (the logit lens), and continues with Adam on
    the divergence for `steps` steps. The best map on held-out rows is returned, which may be the logit lens.

    Yields `progress` before each step; different threads may take the steps.
    """
    is_held_out = torch.arange(len(stream), device=stream.device) % HELD_OUT == 0
    with torch.no_grad():
        expected = project(last[is_held_out]).log_softmax(-1)

    def error(w: Tensor, b: Tensor) -> float:
        with torch.no_grad():
            return float(divergence(expected, project(stream[is_held_out] + stream[is_held_out] @ w.T + b)).mean())

    width = stream.shape[-1]
    best = stream.new_zeros(width, width), stream.new_zeros(width)
    best_error = error(*best)
    for ridge in RIDGES:
        yield progress
        candidate = _fit_ridge(stream[~is_held_out], last[~is_held_out], ridge)
        if (new_error := error(*candidate)) < best_error:
            best, best_error = candidate, new_error
    with torch.inference_mode(False):
        w, b = (part.clone().requires_grad_() for part in best)
        optimiser, generator = torch.optim.Adam([w, b], lr=RATE), torch.Generator().manual_seed(0)
    rows = (~is_held_out).nonzero()[:, 0]
    for step in range(steps):
        yield progress
        for group in optimiser.param_groups:
            group["lr"] = RATE * (1 - step / steps)
        sample = rows[torch.randint(len(rows), (ROWS,), generator=generator).to(rows.device)]
        with torch.inference_mode(False), torch.enable_grad():
            with torch.no_grad():
                end = project(last[sample]).log_softmax(-1)
            loss = divergence(end, project(stream[sample] + stream[sample] @ w.T + b)).mean()
            loss.backward()
            optimiser.step()
            optimiser.zero_grad()
        if (step + 1) % max(1, steps // EVALUATIONS) == 0 and (new_error := error(w, b)) < best_error:
            best, best_error = (w.detach().clone(), b.detach().clone()), new_error
    return best


def _fit_ridge(stream: Tensor, last: Tensor, ridge: float) -> tuple[Tensor, Tensor]:
    x, y = exact(stream), exact(last - stream)
    x_mean, y_mean = x.mean(0), y.mean(0)
    x, y = x - x_mean, y - y_mean
    w = torch.linalg.solve(x.T @ x + ridge * torch.eye(x.shape[1], device=x.device, dtype=x.dtype), x.T @ y).T
    return w.to(stream), (y_mean - w @ x_mean).to(stream)


@dataclass(frozen=True, eq=False)
class Fitting:
    """A fit of all lenses, in parts.

    texts   sentences by direction; those longer than the model takes are left out
    slopes  the number of sentences of each direction for the Jacobians, evenly spaced
    steps   steps of Adam for each layer of the tuned lens, which is fitted to all sentences
    batch   sentences in one part; a quarter of it with Jacobians
    folder  where finished parts are stored; None to store nothing
    """

    translator: Translator
    texts: Mapping[str, Sequence[str]]
    slopes: int = SLOPES
    steps: int = STEPS
    batch: int = BATCH
    folder: Path | None = None

    def __post_init__(self) -> None:
        check_unedited(self.translator)
        if not self._batches:
            raise ValueError("there are no sentences to fit lenses to")

    @property
    def sentences(self) -> int:
        return sum(len(lines) for _, lines, _ in self._batches)

    def parts(self) -> Parts[Lenses]:
        """Read the sentences, then fit the tuned lens layer by layer. Yields (parts done, parts in all)."""
        config, rows, weights, slopes, positions = self.translator.config, [], [], 0.0, 0
        layers, total = config.num_decoder_layers, len(self._batches) + config.num_decoder_layers
        for done, batch in enumerate(self._batches):
            part = yield from self._load_or_make(done, total, lambda progress, batch=batch: self._read(batch, progress))
            rows.append(part["rows"])
            if "slopes" in part:
                slopes, positions = slopes + part["slopes"], positions + part["positions"]
            yield done + 1, total
        for done, layer in enumerate(range(layers), len(self._batches)):
            part = yield from self._load_or_make(
                done, total, lambda progress, layer=layer: self._fit_layer(layer, rows, progress)
            )
            weights.append(part)
            yield done + 1, total
        sizes = [config.num_encoder_layers + 1, layers + 1]
        encoder, decoder = torch.from_numpy(slopes / np.repeat(positions, sizes)[:, None, None]).float().split(sizes)
        weight, bias = (torch.from_numpy(np.stack([part[name] for part in weights])) for name in ("weight", "bias"))
        return Lenses(self.translator.digest, self.sentences, encoder, decoder, weight, bias)

    def _load_or_make(self, number: int, total: int, make: Callable[[tuple[int, int]], Arrays]) -> Arrays:
        """Return a part from its file; make it and write the file if there is none."""
        if self.folder is None:
            return (yield from make((number, total)))
        key = repr((self.translator.digest, self._batches, self.steps))
        path = self.folder / hashlib.sha256(key.encode()).hexdigest()[:24] / f"part-{number}.npz"
        if path.is_file():
            with np.load(path, allow_pickle=False) as file:
                return dict(file)
        part, buffer = (yield from make((number, total))), io.BytesIO()
        np.savez(buffer, **part)  # given a path, numpy would append its own suffix
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, lambda partial: partial.write_bytes(buffer.getvalue()))
        return part

    @cached_property
    def _batches(self) -> list[tuple[str, tuple[str, ...], bool]]:
        """Direction, sentences, and whether they are used for the Jacobians."""
        batches = []
        for direction, lines in self.texts.items():
            lines = [line for line in lines if line.strip() and self.translator.fits(line, direction)]
            count = min(self.slopes, len(lines))
            with_slopes = {i * len(lines) // count for i in range(count)}
            for grad in (True, False):
                selected = [line for i, line in enumerate(lines) if (i in with_slopes) == grad]
                size = max(1, self.batch // 4) if grad else self.batch
                batches += [(direction, tuple(selected[i : i + size]), grad) for i in range(0, len(selected), size)]
        return batches

    def _read(self, batch: tuple[str, tuple[str, ...], bool], progress: tuple[int, int]) -> Arrays:
        """Return the decoder's streams [layers + 1, row, d_model] of a batch, and its sums of Jacobians."""
        direction, lines, grad = batch
        decoder, names = stream_names(self.translator.config, Side.DECODER), all_stream_names(self.translator.config)
        run = self.translator.run(lines, names=names if grad else decoder, direction=direction, grad=grad)
        rows = torch.stack([run[name].detach()[run.mask] for name in decoder]).float().cpu().numpy()
        if not grad:
            return {"rows": rows}
        slopes = yield from sum_jacobians(run, names, progress)
        positions = np.array([int(run.source_mask.sum()), int(run.mask.sum())])  # of encoder and decoder
        return {"rows": rows, "slopes": slopes, "positions": positions}

    def _fit_layer(self, layer: int, rows: Sequence[np.ndarray], progress: tuple[int, int]) -> Arrays:
        model = self.translator.model
        streams = torch.from_numpy(np.concatenate([part[[layer, -1]] for part in rows], axis=1))
        weight, bias = yield from fit_layer(
            lambda x: model.project(model.decoder.norm(x)),
            *streams.to(self.translator.device),
            steps=self.steps,
            progress=progress,
        )
        return {"weight": weight.cpu().numpy(), "bias": bias.cpu().numpy()}


def fit(
    translator: Translator,
    texts: Mapping[str, Sequence[str]],
    *,
    slopes: int = SLOPES,
    folder: Path | None = None,
    watch: Callable[[int, int], object] = lambda done, total: None,
) -> Lenses:
    """Fit all lenses to texts by direction (see Fitting).

    watch: called with the number of finished parts and their total. Raises ValueError without texts, and for a network
    that is not a Transformer.
    """
    parts = Fitting(translator, texts, slopes, folder=folder).parts()
    return finish(parts, lambda progress: watch(*progress))


def find_lenses(translator: Translator) -> Lenses | None:
    """Return the lenses stored beside the weights, or those fitted in the page; None if there are neither."""
    stored = load_stored(translator.folder, translator.config, translator.digest)
    return stored or next(filter(None, (lens_work(translator, d).find() for d in translator.directions)), None)


def lens_work(translator: Translator, direction: str) -> Work[Lenses]:
    """Return the work of fitting lenses to the project's own sentences; its result is kept while the model is
    served."""

    def compute() -> Parts[Lenses]:
        texts = {direction: source_sentences(direction)[:PAGE_SENTENCES]}
        return Fitting(translator, texts, PAGE_SLOPES, PAGE_STEPS, PAGE_BATCH).parts()

    return Work(translator, ("lenses", direction), compute)
