"""Means of heads and embeddings over sentences, in a file beside the weights that they are of.

means.safetensors: source_embedding, target_embedding, <kind>.heads, <kind>.early (see model.trace.why.means), and
the weights' digest and the number of sentences as metadata
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from attention_atlas.model.analysis.again import check_plain
from attention_atlas.model.analysis.sentences import languages, sentences
from attention_atlas.model.files import replace_file
from attention_atlas.model.nets.blocks import with_float64
from attention_atlas.model.nets.masks import pad
from attention_atlas.model.nets.records import ForwardOutput
from attention_atlas.model.trace.directions import parse_direction
from attention_atlas.model.trace.kinds import TRANSFORMER_KINDS, AttentionKind
from attention_atlas.model.trace.tokens import is_symbol
from attention_atlas.model.trace.why.means import EARLY, Means
from attention_atlas.model.translator import Translator

FILE = "means.safetensors"
BATCH = 32


def own_sentences(translator: Translator) -> dict[str, tuple[str, ...]]:
    """Direction -> this project's sentences in its source language, where there are some."""
    found = {direction: parse_direction(direction)[0] for direction in translator.directions}
    return {direction: sentences(language) for direction, language in found.items() if language in languages()}


def asked_sentences(
    translator: Translator, file: Path | None, directions: Sequence[str] | None = None
) -> Mapping[str, Sequence[str]]:
    """By direction, a file's lines, one a sentence, for some directions (None: all of the checkpoint's); without a file
    this project's own. ValueError where there are none."""
    if file is not None:
        lines = file.read_text(encoding="utf-8").splitlines()
        return {translator.check_direction(direction): lines for direction in directions or translator.directions}
    if found := own_sentences(translator):
        return found
    raise ValueError(
        "there are no sentences of this project's own in the source languages of "
        f"{', '.join(translator.directions)}: name a file with --sentences"
    )


def collect(
    translator: Translator, texts: Mapping[str, Sequence[str]], *, watch: Callable[[int], object] = lambda done: None
) -> Means:
    """The end of collecting(). watch hears how many sentences are done."""
    for totals in collecting(translator, texts, batch=BATCH):
        watch(totals.sentences)
    return totals.means(translator.digest)


def collecting(translator: Translator, texts: Mapping[str, Sequence[str]], *, batch: int) -> Iterator[Totals]:
    """Means over texts by direction, each with the model's own translation, batch by batch: after each, the totals of
    all sentences so far. Texts longer than the model takes are left out. Memory does not grow with their number.
    ValueError for no text at all, and for a network that is no Transformer."""
    check_plain(translator)
    totals = Totals()
    for direction, lines in texts.items():
        lines = [line for line in lines if line.strip() and translator.fits(line, direction)]
        for start in range(0, len(lines), batch):
            totals.add(translator, lines[start : start + batch], direction)
            yield totals
    if not totals.sentences:
        raise ValueError("there are no sentences to take means of")


class Totals:
    """Sums over sentences, and how many they are."""

    def __init__(self) -> None:
        self.sentences = 0
        self.rows = {"source": _Mean(), "target": _Mean()}
        self.heads = {kind: _Mean() for kind in TRANSFORMER_KINDS}
        self.early = {kind: [_Mean() for _ in range(EARLY)] for kind in TRANSFORMER_KINDS}

    @torch.inference_mode()
    def add(self, translator: Translator, texts: Sequence[str], direction: str) -> None:
        """More texts of one direction, in one batch."""
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
                self.rows[side].add(rows[words])
        for kind in TRANSFORMER_KINDS:
            self._add_heads(kind, output, sources if kind is AttentionKind.ENCODER_SELF else targets)

    def _add_heads(self, kind: AttentionKind, output: ForwardOutput, rows: list[list[int]]) -> None:
        said = torch.stack([record.attention(kind).head_outputs for record in output.records(kind)])
        said = said.permute(1, 3, 0, 2, 4)  # [batch, query, layers, heads, d_head]
        for sentence, ids in zip(said, rows):
            for position in range(min(EARLY, len(ids))):
                self.early[kind][position].add(sentence[position : position + 1])
            self.heads[kind].add(sentence[EARLY : len(ids)])

    def means(self, digest: str) -> Means:
        """What has been seen so far on average; digest: of the weights that said it."""
        return Means(
            digest,
            self.sentences,
            self.rows["source"].value(),
            self.rows["target"].value(),
            {kind: total.value() for kind, total in self.heads.items()},
            {kind: np.stack([total.value() for total in totals]) for kind, totals in self.early.items()},
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


def save(path: Path, means: Means) -> None:
    """Write them, whole or not at all."""
    arrays = {"source_embedding": means.source_embedding, "target_embedding": means.target_embedding}
    for kind in TRANSFORMER_KINDS:
        arrays |= {f"{kind.value}.heads": means.heads[kind], f"{kind.value}.early": means.early[kind]}
    metadata = {"digest": means.digest, "sentences": str(means.sentences)}
    replace_file(path, lambda partial: save_file(arrays, partial, metadata=metadata))


def load(path: Path, translator: Translator) -> Means:
    """Read a file of save(). ValueError, naming the file, if it is damaged or of other weights."""
    try:
        with safe_open(path, framework="numpy") as file:
            metadata, found = file.metadata() or {}, {name: file.get_tensor(name) for name in file.keys()}
        means = Means(
            metadata["digest"],
            int(metadata["sentences"]),
            found["source_embedding"],
            found["target_embedding"],
            {kind: found[f"{kind.value}.heads"] for kind in TRANSFORMER_KINDS},
            {kind: found[f"{kind.value}.early"] for kind in TRANSFORMER_KINDS},
        )
    except (SafetensorError, OSError, KeyError, ValueError) as error:
        raise ValueError(f"{path} is not a file of means: {error}") from error
    if means.digest != translator.digest:
        raise ValueError(
            f"{path} holds means of other weights ({means.digest}, here {translator.digest}): "
            "run attention-atlas means again"
        )
    for kind, layers in translator.model.num_layers.items():
        own = translator.config.of(kind.side)
        if means.heads[kind].shape != (layers, own.num_heads, own.d_head):
            raise ValueError(f"{path} is of another shape than the model: {means.heads[kind].shape}")
    return means
