"""Passes with a gate on every edge: an open edge carries this pass's value, a closed one another pass's.

`GatedPass` is one pass. `PairRuns` holds the plain passes of a batch of pairs, scores every edge (EAP, EAP-IG, exact)
and runs sets of edges alone.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attention_atlas.model.analysis.circuits.graph import Graph
from attention_atlas.model.analysis.circuits.pairs import Batch
from attention_atlas.model.nets.attention import MultiHeadAttention, scaled_dot_product
from attention_atlas.model.nets.blocks import exact
from attention_atlas.model.nets.masks import causal_mask, padding_mask
from attention_atlas.model.nets.transformer import Transformer
from attention_atlas.model.serve.cancellation import raise_if_cancelled
from attention_atlas.model.trace.kinds import Side
from attention_atlas.model.translator import Translator


@dataclass(eq=False)
class GatedPass:
    """One pass in which every receiver has an input of its own.

    gates        [edge]; 1: the receiver reads what the sender writes in this pass, 0: what it wrote in `reference`,
                 in between: a mixture. None: all open
    reference    another pass, after run(); None if all gates are 1
    differences  by side, what a closing gate takes away, [senders, batch, position, d_model]; None: this pass's output
                 less the reference's
    parts        by side, what the senders wrote, tensors [senders, batch, position, d_model], in the order of the pass;
                 empty for a side whose values cannot be put into another pass
    constant     by side, what else the stream holds: the biases of the heads' output projections
    """

    model: Transformer
    graph: Graph
    gates: Tensor | None = None
    reference: GatedPass | None = None
    differences: dict[Side, Tensor] | None = None
    parts: dict[Side, list[Tensor]] = field(default_factory=lambda: {side: [] for side in Side}, init=False)
    constant: dict[Side, Tensor | float] = field(default_factory=lambda: dict.fromkeys(Side, 0.0), init=False)

    def run(self, source: Tensor, target: Tensor, rows: tuple[Tensor, Tensor] | None = None) -> Tensor:
        """Return the decoder's output behind its last norm, [batch, target, d_model].

        source, target: ids [batch, source] and [batch, target]. rows: scaled token embeddings of both sides, in place
        of those of the ids.
        """
        raise_if_cancelled()
        model = self.model
        source_rows, target_rows = rows or (model.token_rows(source), model.token_rows(target, decoder=True))
        keys, causal = padding_mask(source, model.config.pad_id), causal_mask(target.shape[1], device=target.device)
        lengths = keys.sum(-1).flatten()  # [batch]
        for side, stack, embedded in (
            (Side.ENCODER, model.encoder, model.place(source_rows, lengths=lengths)),
            (Side.DECODER, model.decoder, model.place(target_rows, decoder=True, lengths=lengths)),
        ):
            self.parts[side].append(embedded[None])
            biases = stack.biases(0, embedded.shape[1])
            for layer in stack.layers:
                prefix, norms = f"{side.value}.{layer.index}", [sublayer.norm for sublayer in layer.sublayers]
                mask = keys if side is Side.ENCODER else causal
                bias = biases[layer.index]
                self._attend(side, f"{prefix}.self", layer.self_attention, [norms[0]] * 3, mask, bias)
                if layer.cross_attention is not None:
                    memory_norm = model.encoder.norm
                    self._attend(
                        side, f"{prefix}.cross", layer.cross_attention, [norms[1], memory_norm, memory_norm], keys
                    )
                (stream,) = self._inputs(f"{prefix}.ffn")
                self.parts[side].append(layer.feed_forward(norms[-1](stream))[0][None])
        (stream,) = self._inputs("logits")
        return model.decoder.norm(stream)

    def _attend(
        self,
        side: Side,
        part: str,
        attention: MultiHeadAttention,
        norms: list[nn.Module],
        mask: Tensor,
        score_bias: Tensor | None = None,
    ) -> None:
        """Run one attention and store each head's output. norms: of its queries, keys and values."""
        weights = attention.projection.weight.unflatten(0, (3, attention.num_heads, -1))  # [3, heads, d_head, d_model]
        biases = attention.projection.bias
        biases = [0.0] * 3 if biases is None else biases.unflatten(0, (3, attention.num_heads, 1, -1))
        queries, keys, values = (
            # each [heads, batch, position, d_model] -> [batch, heads, position, d_head]
            torch.einsum("hbtd,hkd->bhtk", norms[i](self._inputs(f"{part}.{letter}")), weights[i]) + biases[i]
            for i, letter in enumerate("qkv")
        )
        context, _ = scaled_dot_product(queries, keys, values, mask, bias=score_bias, scaled=attention.scaled)
        output = attention.output.weight.unflatten(1, (attention.num_heads, -1))  # [d_model, heads, d_head]
        self.parts[side].append(torch.einsum("bhtk,dhk->hbtd", context, output))
        if attention.output.bias is not None:
            self.constant[side] = self.constant[side] + attention.output.bias

    def _inputs(self, part: str) -> Tensor:
        """Return what each receiver of a part reads, before the norm: [receivers, batch, position, d_model]."""
        group = self.graph.receivers[part]
        written = torch.cat(self.parts[group.side])[: group.num_senders]
        stream = written.sum(0) + self.constant[group.side]
        shape = (len(group.names), *stream.shape)
        differences = None if self.gates is None else self._differences(group.side, written)
        if differences is None:
            return stream.expand(shape)
        closed = self.gates[group.edges].view(len(group.names), group.num_senders) - 1
        return stream + (closed @ differences.flatten(1)).view(shape)

    def _differences(self, side: Side, written: Tensor) -> Tensor | None:
        """Return what closed gates take away from these senders; None if the reference has no values of this side."""
        if self.differences is not None:
            return self.differences[side][: len(written)] if side in self.differences else None
        parts = self.reference.parts[side]
        return written - torch.cat(parts)[: len(written)] if parts else None


class ScoringMethod(str, Enum):
    """How edges are scored.

    EAP     one gradient at the sentence (Syed et al. 2023)
    EAP_IG  the mean gradient on the line from the changed sentence's embeddings to the sentence's (Hanna et al. 2024);
            if the sentences differ in their number of tokens, the mean gradient while all gates open together
    EXACT   each edge cut by itself, one pass per edge
    """

    EAP = "eap"
    EAP_IG = "eap-ig"
    EXACT = "exact"


class PairRuns:
    """The plain passes of a batch of pairs, and gated passes between them.

    A lead is the right token's logit less the contrast's at a pair's deciding row. `lead` and `changed_lead`, float64
    [batch], are those of the sentences and of the changed sentences; `plain` and `changed` are their passes.
    """

    def __init__(self, translator: Translator, graph: Graph, batch: Batch) -> None:
        self.model, self.graph, self.batch = translator.model, graph, batch
        with torch.inference_mode(False), torch.no_grad():
            self.plain, self.changed = GatedPass(self.model, graph), GatedPass(self.model, graph)
            self.lead = self.measure_leads(self.plain.run(batch.source, batch.target))
            self.changed_lead = self.measure_leads(self.changed.run(batch.changed, batch.target))
        if not batch.is_aligned:
            self.changed.parts[Side.ENCODER].clear()

    def measure_leads(self, hidden: Tensor) -> Tensor:
        """Return the leads, float64 [batch], of a decoder output [batch, target, d_model]."""
        logits = exact(compute_logits(self.model, self.batch.last_rows(hidden), self.batch.tokens))
        return logits[:, 0] - logits[:, 1]

    def score_edges(self, method: ScoringMethod, steps: int) -> np.ndarray:
        """Return by how much closing each edge raises the lead: float64 [edge], summed over the batch.

        EAP multiplies what closing puts into the receiver's input by the lead's slope there. steps: of EAP-IG.
        """
        if method is ScoringMethod.EXACT:
            return np.array([self.cut_edge(number) for number in range(len(self.graph))])
        differences = {
            side: torch.cat(self.plain.parts[side]) - torch.cat(parts)
            for side, parts in self.changed.parts.items()
            if parts
        }
        if method is ScoringMethod.EAP:
            return self._slopes(differences)
        levels = [step / steps for step in range(1, steps + 1)]
        if not self.batch.is_aligned:
            return np.mean([self._slopes(None, level=level) for level in levels], axis=0)
        with torch.inference_mode(False), torch.no_grad():
            rows, changed = (self.model.token_rows(ids) for ids in (self.batch.source, self.batch.changed))
            target = self.model.token_rows(self.batch.target, decoder=True)
        lines = ((changed + level * (rows - changed), target) for level in levels)
        return np.mean([self._slopes(differences, on_line) for on_line in lines], axis=0)

    def _slopes(
        self,
        differences: dict[Side, Tensor] | None,
        rows: tuple[Tensor, Tensor] | None = None,
        level: float = 1.0,
    ) -> np.ndarray:
        """Return the leads' negated gradient by every gate, float64 [edge], with all gates at `level`."""
        with torch.inference_mode(False), torch.enable_grad():
            gates = torch.full((len(self.graph),), level, device=self.batch.source.device, requires_grad=True)
            gated = GatedPass(self.model, self.graph, gates, self.changed, differences)
            hidden = gated.run(self.batch.source, self.batch.target, rows)
            (slopes,) = torch.autograd.grad(self.measure_leads(hidden).sum(), gates)
        return -slopes.cpu().double().numpy()

    def cut_edge(self, number: int) -> float:
        """Return what the leads gain in total if one edge carries the changed sentence's value."""
        gates = np.ones(len(self.graph))
        gates[number] = 0
        return float((self.leads_with(gates) - self.lead).sum())

    @torch.no_grad()
    def leads_with(self, gates: np.ndarray) -> Tensor:
        """Return the leads, float64 [batch], under gates [edge]: closed edges carry the changed sentence's values."""
        gates = torch.as_tensor(gates, dtype=torch.float32, device=self.batch.source.device)
        gated = GatedPass(self.model, self.graph, gates, self.changed)
        return self.measure_leads(gated.run(self.batch.source, self.batch.target))


def compute_logits(model: Transformer, hidden: Tensor, tokens: Tensor) -> Tensor:
    """Return the logits [batch, k] of a few tokens int64 [batch, k] at rows hidden [batch, d_model]."""
    logits = torch.einsum("bd,bkd->bk", hidden * model.output_scale, F.embedding(tokens, model.output_matrix))
    return logits if model.output_bias is None else logits + model.output_bias[tokens]
