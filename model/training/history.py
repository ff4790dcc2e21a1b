"""Record a model's maps, states, translations and loss on a few fixed sentences (probes) while it trains.

The records are kept in history.npz: before the first update, after updates 1, 2, 4 and so on, then at even intervals,
about twenty in all. A run that starts from a checkpoint with a history of the same probes continues that history with
five more records; otherwise it starts a new one, whose updates are still counted from that history's last one.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from attention_atlas.model.checkpoint import Checkpoint
from attention_atlas.model.files import read_json, replace_file, value_errors
from attention_atlas.model.nets.transformer import Transformer
from attention_atlas.model.text.interface import TextTokenizer
from attention_atlas.model.trace.alignment import content_words
from attention_atlas.model.trace.directions import parse_direction
from attention_atlas.model.trace.kinds import AttentionKind, Side
from attention_atlas.model.trace.scores import Groups
from attention_atlas.model.translator import Translator

NAME, PROBES = "history.npz", "probes.json"  # in a run's folder
MAX_PIECES = 10  # on each side, without symbols; keeps six probes at twenty updates within 1.5 MB
LAST_DOUBLING, EVEN = 256, 10  # records after updates 0, 1, 2, 4 .. 256, then ten more up to the last
CONTINUED = 5  # records of a run that continues a history; five such runs still fit the page's slider
LEVELS = 255  # the stored value of a weight of 1


@dataclass(frozen=True)
class Probe:
    direction: str
    source: str
    reference: str


def read_probes(path: Path, tokenizer: TextTokenizer) -> tuple[Probe, ...]:
    """Read a JSON list of {"direction", "source", "reference"}. Raises ValueError for another format, or for a side of
    more than MAX_PIECES pieces."""
    values = read_json(path)
    with value_errors(f"{path}: probes are a list of direction, source and reference", TypeError, AttributeError):
        probes = tuple(Probe(**value) for value in values)
        sides = [(side, tokenizer.encode(side)) for probe in probes for side in (probe.source, probe.reference)]
        unknown = {probe.direction for probe in probes if not _has_symbols(tokenizer, probe.direction)}
    if not probes or unknown:
        raise ValueError(f"{path}: there must be probes, in directions the tokenizer has a symbol for, found {unknown}")
    for side, ids in sides:
        if len(ids) > MAX_PIECES:
            raise ValueError(f"{path}: {side!r} has {len(ids)} pieces, at most {MAX_PIECES} are recorded")
    return probes


def _has_symbols(tokenizer: TextTokenizer, direction: str) -> bool:
    source, target = parse_direction(direction)
    try:
        tokenizer.encode_source("", target, source)
    except ValueError:
        return False
    return True


def copy_probes(path: Path | None, run: Path) -> None:
    """Copy the probes into the folder of a new run, where resumed runs read them."""
    if path and not (run / PROBES).exists():
        replace_file(run / PROBES, lambda partial: partial.write_bytes(path.read_bytes()))


def is_due(update: int, last: int, *, is_continuation: bool = False) -> bool:
    """Return whether a run of `last` updates records after this update. is_continuation: the run continues the history
    of another run."""
    doubling, even = (0, CONTINUED) if is_continuation else (LAST_DOUBLING, EVEN)
    if update <= doubling:
        return not is_continuation and update & (update - 1) == 0
    step = max(1, (last - doubling) // even)
    return update == last or ((update - doubling) % step == 0 and last - update >= step // 2)


class History:
    """The records of one run, and their file. before: the number of updates that its initial weights were trained
    for."""

    def __init__(self, path: Path, probes: tuple[Probe, ...], tokenizer: TextTokenizer, *, before: int = 0) -> None:
        self.path, self.probes, self.tokenizer, self.before = path, probes, tokenizer, before
        self.records: list[dict[str, np.ndarray]] = []
        self.digest = ""

    @classmethod
    def of_run(
        cls, run: Path, tokenizer: TextTokenizer, *, update: int, init: Path | None, before: int
    ) -> History | None:
        """Load a run's history up to `update`. At the start of a run, continue the history of the checkpoint `init`, or
        start a new one. Returns None if the run has no probes."""
        if not (run / PROBES).exists():
            return None
        history = cls(run / NAME, read_probes(run / PROBES, tokenizer), tokenizer, before=before)
        if history.path.exists():
            history.load(history.path, up_to=update)
        elif init and (init / NAME).exists():
            records, facts = _records(init / NAME)
            history.before = int(records[-1]["updates"])
            if history.has_probes_of(facts):
                history.records = records
        return history

    @property
    def is_continuation(self) -> bool:
        """Whether the first record belongs to an earlier run."""
        return bool(self.records) and int(self.records[0]["updates"]) < self.before

    def has_probes_of(self, facts: dict) -> bool:
        return facts["probes"] == [vars(probe) for probe in self.probes]

    def load(self, path: Path, *, up_to: int | None = None) -> None:
        """Load the records of a file, up to an update of this run: a killed run may have recorded later ones than its
        saved state. Raises ValueError if the file is damaged or of other probes."""
        self.records, facts = _records(path)
        if not self.has_probes_of(facts):
            raise ValueError(f"{path} recorded other sentences than those of --probes")
        self.before = facts["before"]
        if up_to is not None:
            self.records = [r for r in self.records if r["updates"] <= self.before + up_to]

    def record(self, model: Transformer, update: int) -> None:
        """Add or replace the record after this run's `update`, and save."""
        training = model.training
        values = record_probes(model.eval(), self.probes, self.tokenizer)
        record = {"updates": np.int64(self.before + update), **values}
        model.train(training)
        self.records = [r for r in self.records if r["updates"] != record["updates"]] + [record]
        self.save()

    def save(self) -> None:
        arrays = {  # NaN if an earlier version did not record the value
            name: np.stack([r[name] if name in r else np.full_like(last, np.nan) for r in self.records])
            for name, last in self.records[-1].items()
        }
        tokens = [
            {
                "source": self.tokenizer.tokens(self.tokenizer.encode(probe.source)),
                "target": self.tokenizer.tokens(self.tokenizer.encode(probe.reference)),
            }
            for probe in self.probes
        ]
        facts = json.dumps(
            {
                "probes": [vars(probe) for probe in self.probes],
                "tokens": tokens,
                "before": self.before,
                "levels": LEVELS,
                "digest": self.digest,
            },
            ensure_ascii=False,
        )

        def write(partial: Path) -> None:
            with open(partial, "wb") as file:
                np.savez_compressed(file, facts=np.array(facts), **arrays)

        replace_file(self.path, write)


def read_arrays(path: Path) -> tuple[dict[str, np.ndarray], dict]:
    """Return the arrays [record, ...] and the facts of a file. Raises ValueError if it is damaged."""
    with value_errors(f"{path} is not a training history", OSError, ValueError, KeyError):
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        facts = json.loads(str(arrays.pop("facts")))
    return arrays, facts


def _records(path: Path) -> tuple[list[dict[str, np.ndarray]], dict]:
    arrays, facts = read_arrays(path)
    return [{name: values[i] for name, values in arrays.items()} for i in range(len(arrays["updates"]))], facts


def export(run: Path, out: Path, model: Transformer, tokenizer: TextTokenizer, digest: str) -> None:
    """Write the history of a finished run beside its checkpoint. The last record is replaced by one of the exported
    weights, and their digest is added."""
    if not (run / NAME).is_file():
        return
    history = History(out / NAME, read_probes(run / PROBES, tokenizer), tokenizer)
    history.load(run / NAME)
    history.digest = digest
    history.record(model, int(history.records[-1]["updates"]) - history.before)


@torch.inference_mode()
def record_probes(model: Transformer, probes: tuple[Probe, ...], tokenizer: TextTokenizer) -> dict[str, np.ndarray]:
    """Return one record, teacher-forced on the references except for the translations.

    loss                       float32 [probes], nats per target token
    translation                str [probes], greedy
    maps_<kind>_<probe>        uint8 [layers, heads, query, key], with all symbols
    log_probability_<probe>    float32 [target], of the reference's tokens and `</s>`
    products_<side>_<probe>    float32 [layers, word, word], of a Transformer: inner products of each layer's centred
                               states, averaged over the tokens of a word
    entropy_<kind>             float32 [layers, heads], in bits, the mean over the rows of all probes
    largest_<kind>             float32 [layers, heads], the largest weight of a row, as above
    """
    device = next(model.parameters()).device
    losses, translations, maps, states = [], [], {}, {}
    rows: dict[AttentionKind, list[torch.Tensor]] = {}
    for number, probe in enumerate(probes):
        source_language, target_language = parse_direction(probe.direction)
        target = [*tokenizer.forced_prefix(target_language), *tokenizer.encode(probe.reference)]
        source_ids = tokenizer.encode_source(probe.source, target_language, source_language)
        source = torch.tensor([source_ids], device=device)
        inputs = torch.tensor([[tokenizer.begin_id, *target]], device=device)
        output = model(source, inputs, record=True)
        expected = torch.tensor([*target, tokenizer.end_id], device=device)
        surprise = torch.nn.functional.cross_entropy(output.logits[0].float(), expected, reduction="none").cpu()
        losses.append(surprise.mean().item())
        states[f"log_probability_{number}"] = -surprise.numpy()
        if isinstance(model, Transformer):
            sides = tokenizer.source_tokens(source_ids, probe.source), tokenizer.tokens(expected.tolist())
            for side, tokens in zip((Side.ENCODER, Side.DECODER), sides):
                after = [record.after[0] for record in output.layers(side)]
                states[f"products_{side.value}_{number}"] = _products(after, content_words(tokens))
        for kind in output.kinds:
            weights = output.weights(kind)[:, 0].float().cpu()  # [layers, heads, query, key]
            maps[f"maps_{kind.value}_{number}"] = (weights * LEVELS).round().to(torch.uint8).numpy()
            rows.setdefault(kind, []).append(weights)
        translator = Translator(Checkpoint("", model, tokenizer, (probe.direction,), {}, ""), device)
        translations.append(translator.translate_batch([probe.source])[0])
    record = {
        "loss": np.array(losses, dtype=np.float32),
        "translation": np.array(translations, dtype="U120"),
        **maps,
        **states,
    }
    for kind, weights in rows.items():
        entropy = [-(w * w.clamp_min(1e-12).log2()).sum(-1).mean(-1) for w in weights]  # each [layers, heads]
        record[f"entropy_{kind.value}"] = torch.stack(entropy).mean(0).numpy()
        record[f"largest_{kind.value}"] = torch.stack([w.amax(-1).mean(-1) for w in weights]).mean(0).numpy()
    return record


def _products(layers: Sequence[torch.Tensor], words: Groups) -> np.ndarray:
    pooled = torch.stack([torch.stack([states[list(word)].double().mean(0) for word in words]) for states in layers])
    centred = pooled - pooled.mean(1, keepdim=True)
    return (centred @ centred.transpose(1, 2)).float().cpu().numpy()
