"""Sparse dictionaries of a stream: a top-k autoencoder (Gao et al. 2024), its training, its file, and its quality.

train() returns a Dictionary; save() and load() keep it beside the weights of its checkpoint. measure_qualities()
measures the loss of the model when a stream is replaced by its reconstruction; project() is the baseline of untrained
directions.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor
from torch.nn.functional import cross_entropy

from attention_atlas.model.decode.runs import Run, batched, run
from attention_atlas.model.files import read_or_none, replace_file
from attention_atlas.model.trace.interventions import NO_INTERVENTIONS, Interventions
from attention_atlas.model.translator import Translator

LEARNING_RATE, ROWS = 1e-3, 512  # rows in one update
DEAD = 100  # updates without an active row after which a unit counts as dead
REVIVED, REVIVED_WEIGHT = 128, 1 / 32  # dead units trained on the residual, and the weight of their loss
RIDGE = 1e-4
BATCH = 32  # sentences in one pass
FILE = "dictionary.safetensors"
ARRAYS = ("encoder", "bias", "directions", "centre")


@dataclass(frozen=True, eq=False)
class Dictionary:
    """x is approximately centre + codes(x) directions, with at most k positive codes in a row. Float32.

    encoder     [unit, d_model]
    bias        [unit]
    directions  [unit, d_model], unit vectors
    centre      [d_model]
    scale       the unit of the codes
    """

    encoder: Tensor
    bias: Tensor
    directions: Tensor
    centre: Tensor
    scale: float
    k: int

    def codes(self, rows: Tensor) -> Tensor:
        """Return the activations [row, unit] of rows [row, d_model], at least 0, in units of the stream."""
        preactivations = ((rows - self.centre) / self.scale) @ self.encoder.T + self.bias
        return self.scale * _keep_largest(preactivations, self.k)

    def __call__(self, rows: Tensor) -> Tensor:
        """Rebuild rows [row, d_model] from their codes."""
        return self.centre + self.codes(rows) @ self.directions


def _keep_largest(preactivations: Tensor, k: int) -> Tensor:
    values, units = preactivations.topk(k)
    return torch.zeros_like(preactivations).scatter(-1, units, values.relu())


def train(
    rows: Tensor,
    size: int,
    k: int,
    steps: int,
    *,
    seed: int = 0,
    watch: Callable[[int], object] = lambda done: None,
) -> Dictionary:
    """Train a dictionary of `size` units, k of them active in a row, on rows [row, d_model].

    Directions keep length 1. Units that have been inactive for DEAD updates learn the residual of the others. watch is
    called with the number of finished updates. Raises ValueError for fewer rows than one update takes.
    """
    if len(rows) < ROWS:
        raise ValueError(f"a dictionary takes {ROWS} rows at the least, found {len(rows)}: give more sentences")
    generator = torch.Generator().manual_seed(seed)
    centre = rows.mean(0)
    scale = float((rows - centre).norm(dim=-1).mean()) / rows.shape[1] ** 0.5
    start = torch.randn(size, rows.shape[1], generator=generator).to(rows)
    directions = (start / start.norm(dim=-1, keepdim=True)).requires_grad_()
    encoder, bias = directions.detach().clone().requires_grad_(), rows.new_zeros(size).requires_grad_()
    optimiser = torch.optim.Adam([encoder, bias, directions], lr=LEARNING_RATE)
    inactive_updates = torch.zeros(size)
    for step in range(steps):
        for group in optimiser.param_groups:
            group["lr"] = LEARNING_RATE * min(1.0, 5 * (1 - step / steps))
        sample = rows[torch.randint(len(rows), (ROWS,), generator=generator).to(rows.device)]
        x = (sample - centre) / scale
        preactivations = x @ encoder.T + bias
        codes = _keep_largest(preactivations, k)
        residual = x - codes @ directions
        loss = residual.pow(2).mean()
        inactive_updates = torch.where((codes > 0).any(0).cpu(), 0, inactive_updates + 1)
        is_dead = inactive_updates > DEAD
        if is_dead.any():
            dead_only = preactivations.masked_fill(~is_dead.to(preactivations.device), float("-inf"))
            revived = _keep_largest(dead_only, min(REVIVED, int(is_dead.sum())))
            loss = loss + REVIVED_WEIGHT * (residual.detach() - revived @ directions).pow(2).mean()
        loss.backward()
        with torch.no_grad():  # keep only the gradient orthogonal to each direction
            directions.grad -= (directions.grad * directions).sum(-1, keepdim=True) * directions
        optimiser.step()
        optimiser.zero_grad()
        with torch.no_grad():
            directions /= directions.norm(dim=-1, keepdim=True)
        watch(step + 1)
    return Dictionary(encoder.detach(), bias.detach(), directions.detach(), centre, scale, k)


def project(directions: Tensor, centre: Tensor, k: int, rows: Tensor) -> Tensor:
    """Rebuild rows [row, d_model] from the k of directions [unit, d_model] that each is most aligned with, by least
    squares: the best reconstruction from directions chosen this way."""
    unit = directions / directions.norm(dim=-1, keepdim=True).clamp_min(1e-8)
    x = rows - centre
    basis = unit[(x @ unit.T).abs().topk(min(k, len(unit))).indices]  # [row, k, d_model]
    gram = basis @ basis.transpose(1, 2) + RIDGE * torch.eye(basis.shape[1], device=rows.device)
    factors = torch.linalg.solve(gram, basis @ x[..., None])
    return centre + (factors * basis).sum(1)


@dataclass(frozen=True)
class Quality:
    """The quality of a reconstruction of a stream.

    recovered  the share of the loss between the stream's mean and the stream itself that the reconstruction recovers
    explained  the share of the variance
    active     the mean number of active units in a row
    dead       the share of units that are never active
    """

    recovered: float
    explained: float
    active: float
    dead: float


@dataclass(frozen=True, eq=False)
class StoredDictionary:
    """The dictionary of a checkpoint.

    layer      of the encoder, from 0, whose output stream it describes
    sentences  the number of sentences it was trained on
    digest     of the weights
    qualities  of the dictionary, of random directions and of neurons
    """

    dictionary: Dictionary
    layer: int
    sentences: int
    digest: str
    qualities: dict[str, Quality] = field(default_factory=dict)


def save(path: Path, stored: StoredDictionary) -> None:
    """Write a dictionary to a file atomically, in float16."""
    dictionary = stored.dictionary
    about = {"layer": stored.layer, "sentences": stored.sentences, "scale": dictionary.scale, "k": dictionary.k}
    qualities = {name: asdict(quality) for name, quality in stored.qualities.items()}
    arrays = {name: getattr(dictionary, name).half().contiguous() for name in ARRAYS}
    metadata = {"digest": stored.digest, "about": json.dumps({**about, "qualities": qualities})}
    replace_file(path, lambda partial: save_file(arrays, partial, metadata))


def load(path: Path, digest: str, width: int) -> StoredDictionary:
    """Read a file written by save(). Raises ValueError if it is damaged, of other weights or of another width."""
    try:
        with safe_open(path, framework="pt") as file:
            metadata, arrays = file.metadata() or {}, [file.get_tensor(name).float() for name in ARRAYS]
        about = json.loads(metadata["about"])
        dictionary = Dictionary(*arrays, scale=float(about["scale"]), k=int(about["k"]))
        qualities = {name: Quality(**quality) for name, quality in about["qualities"].items()}
        layer, sentences, stored_digest = int(about["layer"]), int(about["sentences"]), metadata["digest"]
    except (SafetensorError, OSError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path} is not a file of a dictionary: {error}") from error
    if stored_digest != digest:
        raise ValueError(f"{path} is of other weights ({stored_digest}, here {digest}): run attention-atlas dictionary")
    units = len(dictionary.bias)
    shapes = [tuple(array.shape) for array in arrays]
    if shapes != [(units, width), (units,), (units, width), (width,)] or not all(a.isfinite().all() for a in arrays):
        raise ValueError(f"{path}: {shapes} are not the shapes of a dictionary of width {width}, or not finite")
    return StoredDictionary(dictionary, layer, sentences, stored_digest, qualities)


@lru_cache(maxsize=8)
def load_stored(folder: Path | None, digest: str, width: int) -> StoredDictionary | None:
    """Load the dictionary of a checkpoint's folder. Returns None if there is none, or, with a log entry, if the file is
    damaged or of other weights."""
    return folder and read_or_none(folder / FILE, lambda path: load(path, digest, width))


def read_place(
    translator: Translator,
    place: str,
    ids: Sequence[Sequence[int]],
    interventions: Interventions = NO_INTERVENTIONS,
) -> Run:
    """Record a place of the encoder for source ids. The decoder reads only the token that begins a translation."""
    tokenizer, ends = translator.tokenizer, [[translator.tokenizer.end_id]] * len(ids)
    return run(translator.model, ids, ends, (place,), begin_id=tokenizer.begin_id, interventions=interventions)


def rows_of(translator: Translator, place: str, texts: Sequence[str], direction: str) -> Tensor:
    """Return an encoder's stream at a place for all tokens of texts, float32 [row, d_model]."""
    rows = []
    for part in batched(texts, BATCH):
        batch = read_place(translator, place, [translator.encode(text, direction) for text in part])
        rows.append(batch[place][batch.source_mask])
    return torch.cat(rows)


def measure_qualities(
    translator: Translator,
    place: str,
    dictionary: Dictionary,
    train_rows: Tensor,
    texts: Sequence[tuple[str, str]],
) -> dict[str, Quality]:
    """Measure a dictionary of an encoder layer's stream, as many random directions, and the layer's neurons.

    texts: held-out (direction, text); the loss is that of the model's own translations. train_rows: the rows [row,
    d_model] it was trained on, which decide which units are dead.
    """
    centre, layer = dictionary.centre, int(place.split(".")[1])
    neurons = translator.model.encoder.layers[layer].feed_forward.contract.weight.T.detach()
    generator = torch.Generator().manual_seed(1)
    random = torch.randn(dictionary.directions.shape, generator=generator).to(centre)
    rows = torch.cat([rows_of(translator, place, [text], direction) for direction, text in texts])
    loss = _loss(translator, place, texts, None)
    mean_loss = _loss(translator, place, texts, lambda x: centre.expand_as(x))
    variance = (rows - rows.mean(0)).pow(2).sum()

    def quality(rebuild: Callable[[Tensor], Tensor], active: float, dead: float) -> Quality:
        recovered = (mean_loss - _loss(translator, place, texts, rebuild)) / (mean_loss - loss)
        explained = 1 - float((rows - rebuild(rows)).pow(2).sum() / variance)
        return Quality(*(round(x, 4) for x in (recovered, explained, active, dead)))

    is_active = torch.stack([(dictionary.codes(part) > 0).any(0) for part in train_rows.split(4096)]).any(0)
    active = float((dictionary.codes(rows) > 0).sum(-1).float().mean())
    k = dictionary.k
    return {
        "dictionary": quality(dictionary, active, float((~is_active).float().mean())),
        "random": quality(lambda x: project(random, centre, k, x), float(k), 0.0),
        "neurons": quality(lambda x: project(neurons, centre, k, x), float(min(k, len(neurons))), 0.0),
    }


@torch.inference_mode()
def _loss(
    translator: Translator, place: str, texts: Sequence[tuple[str, str]], rebuild: Callable[[Tensor], Tensor] | None
) -> float:
    """Return the mean cross-entropy of the model's own translations, in nats per token, with the stream rebuilt."""
    changed = translator
    if rebuild is not None:
        changed = translator.edit({place: lambda x, at: rebuild(x.flatten(0, -2)).view_as(x)})
    total, count = 0.0, 0
    for direction, text in texts:
        source = translator.encode(text, direction)
        (target,) = translator.generate([source], direction)
        logits = changed.inspect(source, target).logits[0]
        total += float(cross_entropy(logits, torch.tensor(target, device=logits.device), reduction="sum"))
        count += len(target)
    return total / max(1, count)
