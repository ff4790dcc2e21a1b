"""What the steps of a decode leave behind: what each token was chosen by, and the queries and keys from which every map
of the decoder follows without another pass."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import torch
from torch import Tensor

from attention_atlas.model.decode.distributions import Choices
from attention_atlas.model.decode.steps import StepDecoder
from attention_atlas.model.nets.attention import attention_weights
from attention_atlas.model.nets.decoder_step import LayerRows
from attention_atlas.model.nets.layer import SourceMemory
from attention_atlas.model.nets.masks import causal_mask
from attention_atlas.model.nets.places.visit import Visit, visit
from attention_atlas.model.nets.sweep import Changes, Sweep
from attention_atlas.model.nets.transformer import Transformer
from attention_atlas.model.trace.kinds import TRANSFORMER_KINDS, AttentionKind, Side, SubLayerName


class Steps:
    """The steps of a batch of sentences as a decode takes them."""

    def __init__(self, sentences: int, *, maps: bool) -> None:
        """maps: whether what they follow from is kept."""
        self.choices = Choices(sentences)
        self.sentences: list[int] = []  # of each row that was read, in the order of the steps
        self.rows: list[Sequence[LayerRows]] = []  # by step; empty where a step left none
        self._maps = maps

    def add(self, sentences: list[int], decoder: StepDecoder, chosen: Tensor) -> None:
        """A step of some of the sentences, which are the decoder's batch, and the tokens that were taken, int64
        [sentences]."""
        self.choices.add(sentences, decoder.logits, chosen)
        if self._maps:
            self.sentences += sentences
            self.rows.append(decoder.rows)

    def maps(self, model: Transformer, source: SourceMemory, changes: Changes) -> SteppedMaps | None:
        """The maps of every sentence, over encoded sources with records; None where the steps do not say all: where one
        read several tokens at once or left nothing, and where a whole pass would look ahead, as no step does."""
        if not self._maps or not all(self.rows) or not model.config.look_ahead_mask:
            return None
        return SteppedMaps(self, model, source, changes)


class SteppedMaps:
    """The maps of a decode by kind and sentence, as ForwardOutput has those of a pass."""

    def __init__(self, steps: Steps, model: Transformer, source: SourceMemory, changes: Changes) -> None:
        self.steps, self.model, self.source = steps, model, source
        self.changes: Changes = changes
        self.owners = torch.tensor(steps.sentences)
        layers, config = model.decoder.layers, model.config
        places = [visit(changes, f"{Side.DECODER.value}.{layer.index}", 0, config) for layer in layers]
        self.plain = all(found is None for found in (*places, *model.decoder.biases(0, 1, changes)))
        # An accelerator would be launched and waited for at each sentence. Edits stand on the device that they were
        # made for.
        self.device = torch.device("cpu") if self.plain else source.memory.device

    @property
    def kinds(self) -> tuple[AttentionKind, ...]:
        return TRANSFORMER_KINDS

    def maps(self, kind: AttentionKind, row: int) -> Tensor:
        """Every map of a kind of one sentence: [layers, heads, query, key]."""
        if kind is AttentionKind.ENCODER_SELF:
            return torch.stack([weights[row] for weights in self._encoder])
        changes = self.changes
        if isinstance(changes, Sweep) and changes.rows > 1:
            changes = changes.select(torch.tensor([row]))
        of_layers = self._cross if kind is AttentionKind.CROSS else self._self
        read = (self.owners == row).nonzero()[:, 0]
        layers = self.model.decoder.layers
        with torch.inference_mode():
            if self.plain:
                return of_layers(slice(None), row, read, None, None)
            places = [visit(changes, f"{Side.DECODER.value}.{layer.index}", 0, self.model.config) for layer in layers]
            biases = self.model.decoder.biases(0, len(read), changes)
            if all(place is None for place in places) and all(bias is None for bias in biases):
                return of_layers(slice(None), row, read, None, None)
            each = zip(range(len(layers)), places, biases)
            return torch.cat([of_layers(slice(n, n + 1), row, read, place, bias) for n, place, bias in each])

    def _self(self, layers: slice, row: int, read: Tensor, place: Visit | None, bias: Tensor | None) -> Tensor:
        """The maps of self-attention of several layers, [layers, heads, query, key]. place, bias: of one alone."""
        at = None if place is None else place.within(SubLayerName.SELF_ATTENTION)
        queries, keys = self._of("queries", layers, read), self._of("keys", layers, read)
        if at is not None and bias is not None:
            bias = at("bias", bias)
        mask = causal_mask(queries.shape[2], device=queries.device)
        scaled = self.model.decoder.layers[0].self_attention.scaled
        return attention_weights(queries, keys, mask, bias=bias, scaled=scaled, at=at)

    def _cross(self, layers: slice, row: int, read: Tensor, place: Visit | None, bias: Tensor | None) -> Tensor:
        """Those of cross-attention, which has no bias."""
        at = None if place is None else place.within(SubLayerName.CROSS_ATTENTION)
        keys, mask = self._source
        keys, mask = keys[layers, row], None if mask is None else mask[row : row + 1]
        queries = self._of("cross_queries", layers, read)
        keys = keys if at is None else at("k", keys)
        return attention_weights(queries, keys, mask, scaled=self.model.decoder.layers[0].cross_attention.scaled, at=at)

    def _of(self, part: str, layers: slice, read: Tensor) -> Tensor:
        """What one sentence's steps left in layers, after whatever changed it: [layers, heads, step, d_head]. read: its
        rows among those of all steps."""
        return self._parts[part][layers].index_select(1, read.to(self.device)).transpose(1, 2)

    @cached_property
    def _parts(self) -> dict[str, Tensor]:
        """By name, the rows of all steps one after the other: [layers, row, heads, d_head]."""
        layers = range(len(self.model.decoder.layers))
        return {
            name: torch.stack(
                [torch.cat([step[layer][number] for step in self.steps.rows])[:, :, 0] for layer in layers]
            ).to(self.device)
            for number, name in enumerate(LayerRows._fields)
        }

    @cached_property
    def _encoder(self) -> list[Tensor]:
        """By layer, the maps of its self-attention: [sentence, heads, query, key]."""
        return [record.self_attention.weights.to(self.device) for record in self.source.records]

    @cached_property
    def _source(self) -> tuple[Tensor, Tensor | None]:
        """What cross-attention reads: keys [layers, sentence, heads, source, d_head], and the sources' mask."""
        keys = torch.stack([self.source.keys_values(layer)[0] for layer in self.model.decoder.layers])
        return keys.to(self.device), None if self.source.mask is None else self.source.mask.to(self.device)
