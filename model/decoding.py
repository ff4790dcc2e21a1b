"""Greedy decoding and decoding by hand: token ids only, over one step-by-step decoder (beam search: model/beam.py)."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from model.attention import KeyValueCache
from model.data import pad
from model.decoder_step import DecoderStep
from model.intervention import NO_INTERVENTIONS, Interventions
from model.transformer import ForwardOutput, LayerRecord, SourceMemory, Transformer


class StepDecoder:
    """A batch of growing prefixes over encoded sources, and the distribution of each one's next token.

    prefix   int64 [batch, length], from `<s>` on
    logits   float [batch, vocabulary]: of the token after the prefix
    records  the decoder's LayerRecords of the rows added last, with record=True

    Any token may be appended, not only the best; rewind() goes back. Each step costs the model only its new rows.
    """

    def __init__(
        self, model: Transformer, source: SourceMemory, prefix: Tensor, *,
        interventions: Interventions = NO_INTERVENTIONS, record: bool = False,
    ) -> None:
        """prefix: int64 [batch, length], at least `<s>`; it is run in one pass."""
        self.model, self.source, self.interventions, self.record = model, source, interventions, record
        self.cache = KeyValueCache(model.config.num_decoder_layers)
        lean = not (interventions.on_edges or record or model.training)
        self.step = DecoderStep(model, interventions) if lean else None
        self.prefix = prefix[:, :0]
        self.logits = prefix.new_empty(0)
        self.records: tuple[LayerRecord, ...] = ()
        self.extend(prefix)

    def extend(self, ids: Tensor) -> None:
        """Append ids [batch, new] to the prefixes."""
        with torch.inference_mode():
            if self.step is not None and ids.shape[1] == 1:
                self.logits = self.step(ids[:, 0], self.source, self.cache)
            else:
                hidden, self.records = self.model.decode(
                    ids, self.source, cache=self.cache, interventions=self.interventions, record=self.record)
                self.logits = self.model.project(hidden[:, -1])
            self.prefix = torch.cat((self.prefix, ids), dim=1)

    def append(self, ids: Tensor) -> None:
        """Append one token to each prefix: ids [batch]."""
        self.extend(ids[:, None])

    def rewind(self, length: int) -> None:
        """Go back to the first `length` tokens of each prefix (at least `<s>`)."""
        assert 1 <= length <= self.prefix.shape[1]
        last = self.prefix[:, length - 1:length]
        self.prefix = self.prefix[:, :length - 1]
        self.cache.truncate(length - 1)
        self.extend(last)

    def reorder(self, rows: Tensor) -> None:
        """Make rows [new_batch] of the prefixes the new batch; row i must keep the source it had."""
        self.prefix, self.logits = self.prefix.index_select(0, rows), self.logits.index_select(0, rows)
        self.cache.reorder(rows)

    def select(self, rows: Tensor) -> None:
        """Make rows [new_batch] the new batch, each with its own source."""
        self.reorder(rows)
        self.source = self.source.select(rows)


Seen = list[tuple[list[int], Tensor]]  # of each step: the sentences that went on, their logits [sentences, vocabulary]


def most_probable(logits: Tensor) -> Tensor:
    """logits [batch, vocabulary] -> the largest one's id in each row, int64 [batch]."""
    if logits.device.type == "cpu" and logits.dtype == torch.float32:
        return torch.from_numpy(logits.numpy().argmax(-1))  # ten times faster than torch's
    return logits.argmax(-1)


def greedy(
    model: Transformer, source: SourceMemory, limits: list[int], *, begin_id: int, end_id: int,
    prefix: Sequence[int] = (), interventions: Interventions = NO_INTERVENTIONS, seen: Seen | None = None,
) -> list[list[int]]:
    """The most probable token at each step until end_id or the sentence's limit of steps.

    prefix: y1 .. yk, after which every sentence goes on; they are read in one pass and are no steps.
    seen: an empty list that receives what each step chose by.
    Returns each sentence's new ids, without begin_id or prefix; one that finished ends in end_id.
    """
    batch = len(limits)
    device = source.memory.device
    results: list[list[int]] = [[] for _ in range(batch)]
    alive = list(range(batch))
    start = torch.tensor([[begin_id, *prefix]] * batch, device=device)
    decoder = StepDecoder(model, source, start, interventions=interventions)
    while alive:
        best = most_probable(decoder.logits)
        if seen is not None:
            seen.append((alive, decoder.logits))
        going = []
        for row, (sentence, token) in enumerate(zip(alive, best.tolist())):
            results[sentence].append(token)
            if token != end_id and len(results[sentence]) < limits[sentence]:
                going.append(row)
        if len(going) < len(alive) and going:
            rows = torch.tensor(going, device=device)
            decoder.select(rows)
            best = best.index_select(0, rows)
        alive = [alive[row] for row in going]
        if alive:
            decoder.append(best)
    return results


def greedy_with_records(
    model: Transformer, source: SourceMemory, limits: list[int], *, begin_id: int, end_id: int,
    prefix: Sequence[int] = (), interventions: Interventions = NO_INTERVENTIONS,
) -> tuple[list[list[int]], ForwardOutput]:
    """greedy(), with the prefix in front of the new ids, then one recorded teacher-forced pass over them, which gives
    every map.

    The logits [batch, longest, vocabulary] of the new ids are not computed again: they are those that each token was
    chosen by. Rows after a sentence's end are 0.
    """
    seen: Seen = []
    found = greedy(model, source, limits, begin_id=begin_id, end_id=end_id, prefix=prefix,
                   interventions=interventions, seen=seen)
    first = seen[0][1]
    if len(found) == 1:
        logits = torch.stack([logits for _, logits in seen], dim=1)
    else:
        logits = first.new_zeros(len(found), len(seen), first.shape[-1])
        for step, (sentences, chosen_by) in enumerate(seen):
            logits[sentences, step] = chosen_by
    found = [[*prefix, *ids] for ids in found]
    return found, _recorded(model, source, found, logits, begin_id, interventions)


def forced_with_records(model: Transformer, source: SourceMemory, ids: Sequence[int], *, begin_id: int,
                        ) -> ForwardOutput:
    """What greedy_with_records gives for one sentence, of y1 .. yT that are given. One step for each of them, too: its
    own ids then give what it gave to the last digit, and not only to what float32 leaves of sums in another order."""
    decoder = StepDecoder(model, source, torch.tensor([[begin_id]], device=source.memory.device))
    logits = [decoder.logits]
    for token in ids[:-1]:
        decoder.append(decoder.prefix.new_tensor([token]))
        logits.append(decoder.logits)
    return _recorded(model, source, [list(ids)], torch.stack(logits, dim=1), begin_id, NO_INTERVENTIONS)


def _recorded(model: Transformer, source: SourceMemory, found: list[list[int]], logits: Tensor, begin_id: int,
              interventions: Interventions) -> ForwardOutput:
    inputs = pad([[begin_id, *ids[:-1]] for ids in found], model.config.pad_id).to(logits.device)
    return model.read(source, inputs, interventions=interventions, record=True, logits=logits)
