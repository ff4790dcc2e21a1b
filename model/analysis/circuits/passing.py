"""A pass in which every receiver has an input of its own."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attention_atlas.model.analysis.circuits.graph import Graph
from attention_atlas.model.nets.attention import MultiHeadAttention, scaled_dot_product
from attention_atlas.model.nets.masks import causal_mask, padding_mask
from attention_atlas.model.nets.transformer import Transformer
from attention_atlas.model.serve.cancellation import raise_if_cancelled
from attention_atlas.model.trace.kinds import Side


@dataclass(eq=False)
class Written:
    """What each sender of a pass wrote: by side, tensors [senders, batch, position, d_model] in parts, in their order;
    of a side without parts nothing can be put elsewhere. constant: what the stream holds besides, the biases of the
    heads' joint output."""

    parts: dict[Side, list[Tensor]] = field(default_factory=lambda: {Side.ENCODER: [], Side.DECODER: []})
    constant: dict[Side, Tensor | float] = field(default_factory=lambda: {Side.ENCODER: 0.0, Side.DECODER: 0.0})

    def of(self, side: Side, senders: int) -> Tensor:
        """The first so many of a side."""
        return torch.cat(self.parts[side])[:senders]


@dataclass(eq=False)
class Passing:
    """One pass. gates [edge], 1: a receiver is given what the sender writes in this pass, 0: what `other` has of it;
    between them a mixture. other: None where all gates are 1. change: by side, what a gate takes away when it closes,
    [senders, batch, position, d_model]; None: what this pass writes, less what the other did."""

    model: Transformer
    graph: Graph
    gates: Tensor | None = None
    other: Written | None = None
    change: dict[Side, Tensor] | None = None
    written: Written = field(default_factory=Written)

    def run(self, source: Tensor, target: Tensor, rows: tuple[Tensor, Tensor] | None = None) -> Tensor:
        """The decoder's output [batch, target, d_model] behind its last norm, for ids [batch, source] and [batch,
        target]. rows: in place of the scaled token embeddings of both sides."""
        raise_if_cancelled()
        model = self.model
        source_rows, target_rows = rows or (model.token_rows(source), model.token_rows(target, decoder=True))
        keys, causal = padding_mask(source, model.config.pad_id), causal_mask(target.shape[1], device=target.device)
        lengths = keys.sum(-1).flatten()  # [batch]
        for side, stack, placed in (
            (Side.ENCODER, model.encoder, model.place(source_rows, lengths=lengths)),
            (Side.DECODER, model.decoder, model.place(target_rows, decoder=True, lengths=lengths)),
        ):
            self.written.parts[side].append(placed[None])
            by_distance = stack.biases(0, placed.shape[1])
            for layer in stack.layers:
                at, norms = f"{side.value}.{layer.index}", [sublayer.norm for sublayer in layer.sublayers]
                mask = keys if side is Side.ENCODER else causal
                added = by_distance[layer.index]
                self._attend(side, f"{at}.self", layer.self_attention, [norms[0]] * 3, mask, added)
                if layer.cross_attention is not None:
                    memory = model.encoder.norm
                    self._attend(side, f"{at}.cross", layer.cross_attention, [norms[1], memory, memory], keys)
                (read,) = self._inputs(f"{at}.ffn")
                self.written.parts[side].append(layer.feed_forward(norms[-1](read))[0][None])
        (read,) = self._inputs("logits")
        return model.decoder.norm(read)

    def _attend(
        self,
        side: Side,
        at: str,
        attention: MultiHeadAttention,
        norms: list[nn.Module],
        mask: Tensor,
        added: Tensor | None = None,
    ) -> None:
        """Six parameters: where, an attention and what it reads; added: to its scores."""
        weights = attention.projection.weight.unflatten(0, (3, attention.num_heads, -1))  # [3, heads, d_head, d_model]
        biases = attention.projection.bias
        biases = [0.0] * 3 if biases is None else biases.unflatten(0, (3, attention.num_heads, 1, -1))
        queries, keys, values = (
            # each [heads, batch, position, d_model] -> [batch, heads, position, d_head]
            torch.einsum("hbtd,hkd->bhtk", norms[i](self._inputs(f"{at}.{letter}")), weights[i]) + biases[i]
            for i, letter in enumerate("qkv")
        )
        context, _ = scaled_dot_product(queries, keys, values, mask, bias=added, scaled=attention.scaled)
        output = attention.output.weight.unflatten(1, (attention.num_heads, -1))  # [d_model, heads, d_head]
        self.written.parts[side].append(torch.einsum("bhtk,dhk->hbtd", context, output))
        if attention.output.bias is not None:
            self.written.constant[side] = self.written.constant[side] + attention.output.bias

    def _inputs(self, part: str) -> Tensor:
        """What each receiver of a part reads, before the norm: [receivers, batch, position, d_model]."""
        readers = self.graph.readers[part]
        now = self.written.of(readers.side, readers.senders)
        whole = now.sum(0) + self.written.constant[readers.side]
        shape = (len(readers.names), *whole.shape)
        taken = None if self.gates is None else self._taken(readers.side, now)
        if taken is None:
            return whole.expand(shape)
        closed = self.gates[readers.edges].view(len(readers.names), readers.senders) - 1
        return whole + (closed @ taken.flatten(1)).view(shape)

    def _taken(self, side: Side, now: Tensor) -> Tensor | None:
        """What closed gates take away of the first len(now) senders; None: nothing can be put in its place."""
        if self.change is not None:
            return self.change[side][: len(now)] if side in self.change else None
        return now - self.other.of(side, len(now)) if self.other.parts[side] else None


def logits_of(model: Transformer, hidden: Tensor, tokens: Tensor) -> Tensor:
    """The logits [batch, k] of tokens int64 [batch, k] at rows hidden [batch, d_model]."""
    hidden = hidden * model.output_scale
    found = torch.einsum("bd,bkd->bk", hidden, F.embedding(tokens, model.output_matrix))
    return found if model.output_bias is None else found + model.output_bias[tokens]
