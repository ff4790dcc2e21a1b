"""Mean head outputs and mean embeddings over sentences: the replacements of ablations and occlusions.

`compute_means` runs a model over texts; `save_means` and `load_means` keep the result beside the weights, in
means.safetensors: source_embedding, target_embedding, <kind>.heads and <kind>.early, with the weights' digest and the
number of sentences as metadata. `means_work` computes missing ones for the page.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from attention_atlas.model.analysis.rerun import check_unedited
from attention_atlas.model.analysis.sentences import has_sentences, source_sentences
from attention_atlas.model.files import read_or_none, replace_file
from attention_atlas.model.nets.blocks import with_float64
from attention_atlas.model.nets.masks import pad
from attention_atlas.model.serve.work import Parts, Work
from attention_atlas.model.trace.kinds import TRANSFORMER_KINDS, AttentionKind
from attention_atlas.model.trace.tokens import is_symbol
from attention_atlas.model.translator import Translator

FILE = "means.safetensors"
BATCH_SIZE = 32
EARLY = 3  # positions 0, 1 and 2 have means of their own: begin symbols and first words differ from all others
SERVED_SENTENCES = 100  # that a server takes means over: the same ones in every process
SERVED_BATCH_SIZE = 8


@dataclass(frozen=True, eq=False)
class Means:
    """Means over sentences.

    digest                              of the weights
    sentences                           how many sentences
    source_embedding, target_embedding  float32 [d_model], of scaled token embeddings, without positions and symbols
    heads                               kind -> float32 [layers, heads, d_head], of head outputs before the projection
    early                               kind -> float32 [3, layers, heads, d_head], the same at positions 0, 1 and 2
    """

    digest: str
    sentences: int
    source_embedding: np.ndarray
    target_embedding: np.ndarray
    heads: dict[AttentionKind, np.ndarray]
    early: dict[AttentionKind, np.ndarray]

    def by_position(self, kind: AttentionKind, length: int) -> np.ndarray:
        """Return each head's mean output at each position: [layers, heads, length, d_head]."""
        layers, heads, width = self.heads[kind].shape
        outputs = np.broadcast_to(self.heads[kind][:, :, None], (layers, heads, length, width)).copy()
        first = min(EARLY, length)
        outputs[:, :, :first] = np.moveaxis(self.early[kind][:first], 0, 2)
        return outputs


def project_sentences(translator: Translator) -> dict[str, tuple[str, ...]]:
    """Return this project's sentences by direction, for the source languages that it has sentences in."""
    directions = filter(has_sentences, translator.directions)
    return {direction: source_sentences(direction) for direction in directions}


def choose_sentences(
    translator: Translator, file: Path | None, directions: Sequence[str] | None = None
) -> Mapping[str, Sequence[str]]:
    """Return a file's lines for each direction; without a file, this project's sentences.

    directions: None for all of the checkpoint's. Raises ValueError if there are no sentences.
    """
    if file is not None:
        lines = file.read_text(encoding="utf-8").splitlines()
        return {translator.check_direction(direction): lines for direction in directions or translator.directions}
    if by_direction := project_sentences(translator):
        return by_direction
    raise ValueError(
        "this project has no sentences in the source languages of "
        f"{', '.join(translator.directions)}: name a file with --sentences"
    )


def compute_means(
    translator: Translator, texts: Mapping[str, Sequence[str]], *, progress: Callable[[int], object] = lambda done: None
) -> Means:
    """Return the means over texts by direction. progress: called with the number of sentences done after each batch."""
    for totals in accumulate_means(translator, texts, batch_size=BATCH_SIZE):
        progress(totals.sentences)
    return totals.means(translator.digest)


def accumulate_means(
    translator: Translator, texts: Mapping[str, Sequence[str]], *, batch_size: int
) -> Iterator[MeanTotals]:
    """Read texts by direction, each with the model's own translation; yield the totals so far after each batch.

    Texts that are too long for the model are left out. Raises ValueError if no text remains, and for a network that is
    not a Transformer.
    """
    check_unedited(translator)
    totals = MeanTotals()
    for direction, lines in texts.items():
        lines = [line for line in lines if line.strip() and translator.fits(line, direction)]
        for start in range(0, len(lines), batch_size):
            totals.add(translator, lines[start : start + batch_size], direction)
            yield totals
    if not totals.sentences:
        raise ValueError("there are no sentences to take means of")


class MeanTotals:
    """Running sums over sentences."""

    def __init__(self) -> None:
        self.sentences = 0
        self.sums: dict[object, _Mean] = defaultdict(_Mean)  # by side, by kind, and by kind and early position

    @torch.inference_mode()
    def add(self, translator: Translator, texts: Sequence[str], direction: str) -> None:
        """Add texts of one direction, in one batch."""
        tokenizer, model = translator.tokenizer, translator.model
        self.sentences += len(texts)
        sources = [translator.encode(text, direction) for text in texts]
        targets = [[tokenizer.begin_id, *ids[:-1]] for ids in translator.generate(sources, direction)]
        source_ids, target_ids = (pad(ids, model.config.pad_id).to(translator.device) for ids in (sources, targets))
        output = model(source_ids, target_ids, record=True)
        for row, (text, source, target) in enumerate(zip(texts, sources, targets)):
            for side, ids, tokens in (
                ("source", source_ids, tokenizer.source_tokens(source, text)),
                ("target", target_ids, tokenizer.tokens(target)),
            ):
                words = torch.tensor([not is_symbol(token) for token in tokens], device=ids.device)
                rows = model.token_rows(ids[row : row + 1, : len(tokens)], decoder=side == "target")[0]
                self.sums[side].add(rows[words])
        for kind in TRANSFORMER_KINDS:
            rows = sources if kind is AttentionKind.ENCODER_SELF else targets
            for sentence, ids in zip(output.head_outputs(kind), rows):  # [layers, heads, query, d_head]
                by_query = sentence[:, :, : len(ids)].movedim(2, 0)
                for position, outputs in enumerate(by_query[:EARLY]):
                    self.sums[kind, position].add(outputs[None])
                self.sums[kind].add(by_query[EARLY:])

    def means(self, digest: str) -> Means:
        """Return the means of all sentences so far. digest: of the weights."""
        return Means(
            digest,
            self.sentences,
            self.sums["source"].value(),
            self.sums["target"].value(),
            {kind: self.sums[kind].value() for kind in TRANSFORMER_KINDS},
            {kind: np.stack([self.sums[kind, i].value() for i in range(EARLY)]) for kind in TRANSFORMER_KINDS},
        )


class _Mean:
    """The mean of many rows, summed in float64."""

    def __init__(self) -> None:
        self.total: torch.Tensor | float = 0.0
        self.count = 0

    def add(self, rows: torch.Tensor) -> None:
        self.total = self.total + with_float64(rows).sum(0, dtype=torch.float64)
        self.count += len(rows)

    def value(self) -> np.ndarray:
        return (self.total / max(1, self.count)).float().cpu().numpy()


def save_means(path: Path, means: Means) -> None:
    """Write means to a file, atomically."""
    arrays = {"source_embedding": means.source_embedding, "target_embedding": means.target_embedding}
    for kind in TRANSFORMER_KINDS:
        arrays |= {f"{kind.value}.heads": means.heads[kind], f"{kind.value}.early": means.early[kind]}
    metadata = {"digest": means.digest, "sentences": str(means.sentences)}
    replace_file(path, lambda partial: save_file(arrays, partial, metadata=metadata))


def load_means(path: Path, translator: Translator) -> Means:
    """Read a file of save_means(). Raises ValueError, naming the file, if it is damaged or of other weights."""
    try:
        with safe_open(path, framework="numpy") as file:
            metadata, arrays = file.metadata() or {}, {name: file.get_tensor(name) for name in file.keys()}
        means = Means(
            metadata["digest"],
            int(metadata["sentences"]),
            arrays["source_embedding"],
            arrays["target_embedding"],
            {kind: arrays[f"{kind.value}.heads"] for kind in TRANSFORMER_KINDS},
            {kind: arrays[f"{kind.value}.early"] for kind in TRANSFORMER_KINDS},
        )
    except (SafetensorError, OSError, KeyError, ValueError) as error:
        raise ValueError(f"{path} is not a file of means: {error}") from error
    if means.digest != translator.digest:
        raise ValueError(
            f"{path} holds means of other weights ({means.digest}, here {translator.digest}): "
            "run attention-atlas means again"
        )
    for kind, layers in translator.model.num_layers.items():
        config = translator.config.of(kind.side)
        if means.heads[kind].shape != (layers, config.num_heads, config.d_head):
            raise ValueError(f"{path} is of another shape than the model: {means.heads[kind].shape}")
    return means


def load_stored_means(translator: Translator) -> Means | None:
    """Return the means in the checkpoint's folder, or None.

    A damaged file, or one of other weights, is logged and counts as none.
    """
    folder = translator.folder
    return folder and read_or_none(folder / FILE, lambda path: load_means(path, translator))


def find_means(translator: Translator, direction: str) -> Means | None:
    """Return the means stored beside the weights, or those computed in the page; None if there are neither."""
    return load_stored_means(translator) or means_work(translator, direction).find()


def means_work(translator: Translator, direction: str) -> Work[Means]:
    """Return the work of computing means over SERVED_SENTENCES of the project's own sentences; its result is kept while
    the model is served."""

    def compute() -> Parts[Means]:
        texts = source_sentences(direction)
        texts = texts[:: max(1, len(texts) // SERVED_SENTENCES)][:SERVED_SENTENCES]
        for totals in accumulate_means(translator, {direction: texts}, batch_size=SERVED_BATCH_SIZE):
            yield totals.sentences, len(texts)
        return totals.means(translator.digest)

    return Work(translator, ("means", direction), compute)
