"""Decoding by hand, one token at a time over a key/value cache. Greedy decoding and beam search are built on it."""

from __future__ import annotations

import torch
from torch import Tensor

from attention_atlas.model.nets.layer import SourceMemory
from attention_atlas.model.nets.lean.kept import Kept, kept
from attention_atlas.model.nets.lean.step import DecoderStep, LayerRows
from attention_atlas.model.nets.places.hooks import are_hooked
from attention_atlas.model.nets.places.visit import projected
from attention_atlas.model.nets.records import LayerRecord
from attention_atlas.model.nets.sweep import Changes, Sweep
from attention_atlas.model.nets.transformer import Transformer
from attention_atlas.model.trace.interventions import NO_INTERVENTIONS


class StepDecoder:
    """A batch of growing prefixes over encoded sources, and the distribution of each one's next token.

    prefix   int64 [batch, length], from `<s>` on
    logits   float [batch, vocabulary]: of the token after the prefix
    records  the decoder's LayerRecords of the rows added last, with record=True
    rows     by layer, what the attentions of a single row added last were computed of; empty where several were added,
             and where the model's own path was taken

    Any token may be appended, not only the best; rewind() goes back. Each step costs the model only its new rows.
    """

    def __init__(
        self,
        model: Transformer,
        source: SourceMemory,
        prefix: Tensor,
        *,
        interventions: Changes = NO_INTERVENTIONS,
        record: bool = False,
    ) -> None:
        """prefix: int64 [batch, length], at least `<s>`; it is run in one pass. interventions: the rows of a sweep are
        the batch's."""
        self.model, self.source, self.interventions, self.record = model, source, interventions, record
        model.check(interventions, batch=len(prefix))
        self.cache = model.new_cache()
        self.kept: Kept | None = None
        self.step = self._lean_step()
        self.prefix = prefix[:, :0]
        self.logits = prefix.new_empty(0)
        self.records: tuple[LayerRecord, ...] = ()
        self.rows: list[LayerRows] = []
        self.extend(prefix)

    def extend(self, ids: Tensor) -> None:
        """Append ids [batch, new] to the prefixes."""
        with torch.inference_mode():
            self.rows = []
            if self.step is not None and ids.shape[1] == 1:
                self.logits = self.step(ids[:, 0], self.source, self.cache, self.rows)
            else:
                hidden, self.records = self.model.decode(
                    ids, self.source, cache=self.cache, interventions=self.interventions, record=self.record
                )
                last = hidden[:, -1:]
                self.logits = projected(
                    self.model, last, self.interventions, first=self.prefix.shape[1] + ids.shape[1] - 1
                )[:, 0]
            self.prefix = torch.cat((self.prefix, ids), dim=1)

    @property
    def choices(self) -> Tensor:
        """The logits that decoding chooses by: minus infinity for tokens that this model may never write."""
        banned = self.model.config.banned_ids
        return self.logits.index_fill(-1, self.prefix.new_tensor(banned), float("-inf")) if banned else self.logits

    def append(self, ids: Tensor) -> None:
        """Append one token to each prefix: ids [batch]."""
        self.extend(ids[:, None])

    def rewind(self, length: int) -> None:
        """Go back to the first `length` tokens of each prefix (at least `<s>`)."""
        assert 1 <= length <= self.prefix.shape[1]
        last = self.prefix[:, length - 1 : length]
        self.prefix = self.prefix[:, : length - 1]
        self.cache.truncate(length - 1)
        self.extend(last)

    def reorder(self, rows: Tensor) -> None:
        """Make rows [new_batch] of the prefixes the new batch; row i must keep the source it had."""
        self.prefix, self.logits = self.prefix.index_select(0, rows), self.logits.index_select(0, rows)
        self.cache.reorder(rows)

    def select(self, rows: Tensor) -> None:
        """Make rows [new_batch] the new batch, each with its own source and its own row of a sweep."""
        self.reorder(rows)
        self.source = self.source.select(rows)
        if isinstance(self.interventions, Sweep) and self.interventions.rows > 1:
            self.interventions = self.interventions.select(rows)
            self.step = self._lean_step()

    def _lean_step(self) -> DecoderStep | None:
        """None where the model's own path is to be taken."""
        lean = (
            isinstance(self.model, Transformer)
            and not (self.record or self.model.training or are_hooked(self.model))
            and DecoderStep.supports(self.interventions)
        )
        if not lean:
            return None
        if self.kept is None:
            self.kept = kept(self.model)
        return self.kept.step(self.model, self.interventions)
