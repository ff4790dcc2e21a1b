"""Decode one token at a time over a key/value cache: StepDecoder, and greedy decoding, which builds on it."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from attention_atlas.model.decode.static import CaptureError, graphs_of
from attention_atlas.model.nets.blocks import argmax
from attention_atlas.model.nets.decoder_step import DecoderStep, LayerQueriesKeys
from attention_atlas.model.nets.layer import SourceMemory, SubLayer
from attention_atlas.model.nets.places.visit import project_logits
from attention_atlas.model.nets.records import LayerRecord
from attention_atlas.model.nets.sweep import Changes, Sweep
from attention_atlas.model.nets.transformer import Transformer
from attention_atlas.model.trace.interventions import NO_INTERVENTIONS

if TYPE_CHECKING:
    from attention_atlas.model.decode.recorded import StepRecorder


class StepDecoder:
    """A batch of growing prefixes over encoded sources, and the logits of each one's next token.

    prefix        int64 [batch, length], from `<s>` on
    logits        float [batch, vocabulary] of the token after the prefix
    records       the decoder's LayerRecords of the positions added last, with record=True
    queries_keys  by layer, the LayerQueriesKeys of the last step; empty where several tokens were read at once, or
                  where the step ran Transformer.decode

    Any token may be appended, not only the most probable one. Each step computes only new rows.

    >>> decoder = StepDecoder(model, model.encode(source_ids), torch.tensor([[begin_id]]))
    >>> decoder.append(decoder.choices.argmax(-1))
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
        """Read prefix, int64 [batch, length] with at least `<s>`, in one pass. A sweep has one row for each prefix."""
        self.model, self.source, self.interventions, self.record = model, source, interventions, record
        model.check(interventions, batch=len(prefix))
        self.cache = model.new_cache()
        self._build_step()
        self.prefix = prefix[:, :0]
        self.logits = prefix.new_empty(0)
        self.records: tuple[LayerRecord, ...] = ()
        self.queries_keys: list[LayerQueriesKeys] = []
        self.extend(prefix)

    def extend(self, ids: Tensor) -> None:
        """Append ids [batch, new] to the prefixes."""
        with torch.inference_mode():
            self.queries_keys = []
            if self.step is not None and ids.shape[1] == 1:
                self.logits = self.step(ids[:, 0], self.source, self.cache, self.queries_keys)
            else:
                hidden, self.records = self.model.decode(
                    ids, self.source, cache=self.cache, interventions=self.interventions, record=self.record
                )
                first = self.prefix.shape[1] + ids.shape[1] - 1
                self.logits = project_logits(self.model, hidden[:, -1:], self.interventions, first=first)[:, 0]
            self.prefix = torch.cat((self.prefix, ids), dim=1)

    @property
    def choices(self) -> Tensor:
        """The logits that decoding chooses by: minus infinity for tokens that this model must never write."""
        banned = self.model.config.banned_ids
        return self.logits.index_fill(-1, self.prefix.new_tensor(banned), float("-inf")) if banned else self.logits

    def append(self, ids: Tensor) -> None:
        """Append one token, ids [batch], to each prefix."""
        self.extend(ids[:, None])

    def reorder(self, rows: Tensor) -> None:
        """Make rows [new_batch] of the prefixes the new batch; row i must keep its source."""
        self.prefix, self.logits = self.prefix.index_select(0, rows), self.logits.index_select(0, rows)
        self.cache.reorder(rows)

    def select(self, rows: Tensor) -> None:
        """Make rows [new_batch] the new batch, each with its own source and its own row of a sweep."""
        self.reorder(rows)
        self.source = self.source.select(rows)
        if isinstance(self.interventions, Sweep) and self.interventions.rows > 1:
            self.interventions = self.interventions.select(rows)
            self._build_step()

    def _build_step(self) -> None:
        """Set `step`, which is None where Transformer.decode has to run this model or these interventions."""
        is_supported = (
            isinstance(self.model, Transformer)
            and not (self.record or self.model.training or has_hooks(self.model))
            and DecoderStep.supports(self.interventions)
        )
        self.step = DecoderStep(self.model, self.interventions) if is_supported else None


def greedy(
    model: Transformer,
    source: SourceMemory,
    limits: list[int],
    *,
    begin_id: int,
    end_id: int,
    interventions: Changes = NO_INTERVENTIONS,
    prefix: Sequence[int] = (),
    forced: Sequence[int] | None = None,
    recorder: StepRecorder | None = None,
) -> list[list[int]]:
    """Take the most probable token at each step, until end_id or the sentence's limit of steps.

    source    an encoded batch
    limits    the number of steps that each sentence may take
    prefix    y1 .. yk that every sentence starts with; it is read in one pass and does not count as steps
    forced    tokens of a single sentence that are taken instead of the most probable ones
    recorder  is called with each step

    Returns each sentence's new ids, without begin_id and prefix; a finished sentence ends in end_id.
    """
    is_plain = not (prefix or forced or interventions or model.training or has_hooks(model))
    if is_plain and (graphs := graphs_of(model, source, len(limits))) is not None:
        with contextlib.suppress(CaptureError):
            return graphs.decode(model, source, limits, begin_id=begin_id, end_id=end_id, recorder=recorder)
    device = source.memory.device
    results: list[list[int]] = [[] for _ in limits]
    alive = list(range(len(limits)))
    start = torch.tensor([[begin_id, *prefix]] * len(limits), device=device)
    decoder = StepDecoder(model, source, start, interventions=interventions)
    while alive:
        best = argmax(decoder.choices) if forced is None else start.new_tensor([forced[len(results[0])]])
        if recorder is not None:
            recorder.add(alive, decoder, best)
        unfinished = []
        for row, (sentence, token) in enumerate(zip(alive, best.tolist())):
            results[sentence].append(token)
            if token != end_id and len(results[sentence]) < limits[sentence]:
                unfinished.append(row)
        if len(unfinished) < len(alive) and unfinished:
            rows = torch.tensor(unfinished, device=device)
            decoder.select(rows)
            best = best.index_select(0, rows)
        alive = [alive[row] for row in unfinished]
        if alive:
            decoder.append(best)
    return results


def has_hooks(model: nn.Module) -> bool:
    """Return whether a module has one of torch's forward hooks, so that a step must call the modules.

    Raises ValueError for a hook on a module that no pass calls: it would be ignored silently.
    """
    modules, is_hooked = [model], False
    for module in modules:  # the list grows; Module.modules() takes several times as long, once for each translation
        is_hooked = is_hooked or module._forward_hooks or module._forward_pre_hooks
        if module._modules:
            modules.extend(part for part in module._modules.values() if part is not None)
    if is_hooked and isinstance(model, Transformer):
        for name, module in model.named_modules():
            if (module._forward_hooks or module._forward_pre_hooks) and (reason := _never_called(name, module)):
                raise ValueError(f"a hook on {name or 'the model itself'} would never be called: {reason}")
    return bool(is_hooked)


def _never_called(name: str, module: nn.Module) -> str:
    """Return why no pass calls a module of a Transformer, and what to use instead; "" if passes call it."""
    if isinstance(module, Transformer):
        return "a translation calls encode() and decode(); hook encoder or decoder"
    if isinstance(module, SubLayer):
        return "hook the module that it stands around, or edit resid_mid, resid_cross or resid_post (translator.edit)"
    if isinstance(module, nn.Embedding):
        return "its matrix is read directly; edit encoder.embed, decoder.embed or logits (translator.edit)"
    if name.endswith("cross_attention.projection") or isinstance(module, nn.ModuleList):
        return "its parts are used one by one; edit cross.q, cross.k or cross.v (translator.edit)"
    return ""
