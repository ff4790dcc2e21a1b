"""What a recorded pass leaves behind: return values, never hooks or attributes.

>>> from attention_atlas.model.translator import Translator
>>> translator = Translator.load("checkpoints/de-en", device="cpu")
>>> trace = translator.translate("Ja.")
>>> output = translator.inspect(trace.source_ids, trace.target_ids)
>>> output.logits.argmax(-1)[0].tolist() == list(trace.target_ids)
True
>>> output.attention(AttentionKind.CROSS, 0).queries.shape[:3] == (1, 8, len(trace.target_ids))
True
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, fields, is_dataclass
from functools import cached_property
from itertools import chain

import torch
import torch.nn.functional as F
from torch import Tensor

from attention_atlas.model.trace.interventions import LayerEdit
from attention_atlas.model.trace.kinds import AttentionKind, Side, SubLayerName

__all__ = ["AttentionRecord", "ForwardOutput", "LayerRecord", "NormRecord", "SubLayerRecord"]


@dataclass(frozen=True, eq=False)
class AttentionRecord:
    """One attention of one layer: weights [batch, heads, query, key] (softmax, before dropout), the projected queries,
    keys and values [batch, heads, length, d_head], and the plain interventions that it ran with. bias: what relative
    positions added to the scores [1, heads, query, key]; scaled: whether q k^T was divided by sqrt(d_k)."""

    weights: Tensor
    queries: Tensor
    keys: Tensor
    values: Tensor
    edit: LayerEdit = LayerEdit()
    bias: Tensor | None = None
    scaled: bool = True

    @property
    def head_outputs(self) -> Tensor:
        """What each head says, [batch, heads, query, d_head]: weights times values, before gates, patches and W_O."""
        return self.weights @ self.values


@dataclass(frozen=True, eq=False)
class NormRecord:
    """A norm: gain and bias [d_model], epsilon, and whether it stands before its sub-layer's function (pre-norm) or
    after the sum (post-norm). An RMS norm, which does not take the mean away, has no bias."""

    gain: Tensor
    bias: Tensor | None
    epsilon: float
    first: bool

    def __call__(self, x: Tensor) -> Tensor:
        """What the model's own norm makes of x [.., d_model]."""
        if self.bias is None:
            return F.rms_norm(x, self.gain.shape, self.gain, self.epsilon)
        return F.layer_norm(x, self.gain.shape, self.gain, self.bias, self.epsilon)

    def centred(self, x: Tensor) -> Tensor:
        """x [.., d_model] less what the norm takes away before it divides: its mean, or of an RMS norm nothing."""
        return x if self.bias is None else x - x.mean(-1, keepdim=True)


@dataclass(frozen=True, eq=False)
class SubLayerRecord:
    """One function f of a layer, its residual connection and its norm (Vaswani et al. 2017, section 3.1). Each
    [batch, length, d_model]:

    before  the residual stream that comes in
    added   what f adds to it, after interventions
    after   the stream that goes on: before + added with pre-norm, norm(before + added) with post-norm
    residual  False where a network has no residual connection: `before` is then no part of the sum
    """

    name: SubLayerName
    before: Tensor
    added: Tensor
    after: Tensor
    norm: NormRecord
    residual: bool = True

    @property
    def read(self) -> Tensor:
        """What f read: norm(before) with pre-norm, before itself with post-norm."""
        return self.norm(self.before) if self.norm.first else self.before

    @property
    def sum(self) -> Tensor:
        """x + f(x): what goes on with pre-norm, what the norm reads with post-norm."""
        return self.before + self.added if self.residual else self.added

    @property
    def norm_input(self) -> Tensor:
        """What the layer norm read."""
        return self.before if self.norm.first else self.sum

    @property
    def norm_scale(self) -> Tensor:
        """1 / standard deviation [batch, length] by which the norm multiplied; of an RMS norm 1 / root mean square."""
        # Computed when asked for, as all above: a translation records, and most never look at these.
        return (self.norm.centred(self.norm_input.float()).square().mean(-1) + self.norm.epsilon).rsqrt()


@dataclass(frozen=True, eq=False)
class LayerRecord:
    """What one layer did. A network without self-attention or a feed-forward has None there, and no sub-layers; only a
    recurrent one has an alignment.

    sublayers    in the order that the residual stream passes them
    activations  the feed-forward's hidden units after the activation, the paper's ReLU or another
                 [batch, length, d_feedforward]
    """

    self_attention: AttentionRecord | None
    cross_attention: AttentionRecord | None
    sublayers: tuple[SubLayerRecord, ...]
    activations: Tensor | None
    alignment: AttentionRecord | None = None

    @property
    def before(self) -> Tensor:
        """The residual stream that enters the layer [batch, length, d_model]."""
        return self.sublayers[0].before

    @property
    def after(self) -> Tensor:
        """The residual stream that leaves it."""
        return self.sublayers[-1].after

    def sublayer(self, name: SubLayerName) -> SubLayerRecord:
        """The sub-layer of this name. ValueError, in words, where the layer has none."""
        for record in self.sublayers:
            if record.name == name:
                return record
        has = ", ".join(record.name.value for record in self.sublayers)
        raise ValueError(f"this layer has the sub-layers {has}; found {getattr(name, 'value', name)!r}")

    def attention(self, kind: AttentionKind) -> AttentionRecord | None:
        """The attention of this kind; None where the layer has none."""
        if kind is AttentionKind.ALIGNMENT:
            return self.alignment
        return self.cross_attention if kind is AttentionKind.CROSS else self.self_attention


@dataclass(frozen=True, eq=False)
class ForwardOutput:
    """memory [batch, source, d_model], the encoder's output; hidden [batch, target, d_model], what the output
    projection reads; project: that projection, hidden [.., d_model] -> logits [.., vocabulary]; one record a layer, or
    none without record=True."""

    project: Callable[[Tensor], Tensor]
    memory: Tensor
    hidden: Tensor
    encoder_records: tuple[LayerRecord, ...] = ()
    decoder_records: tuple[LayerRecord, ...] = ()

    @cached_property
    def logits(self) -> Tensor:
        """[batch, target, vocabulary], computed when asked for: of 100 sentences of 100 tokens over 256,000 they are
        10 GB. Who needs less projects rows of `hidden`, some at a time (model.nets.blocks)."""
        with torch.inference_mode() if self.hidden.is_inference() else nullcontext():
            return self.project(self.hidden)

    @property
    def nbytes(self) -> int:
        """Bytes of all tensors of the pass, without the logits."""
        records = (self.memory, self.hidden, self.encoder_records, self.decoder_records)
        storages = {storage.data_ptr(): storage for storage in (one.untyped_storage() for one in _tensors(records))}
        return sum(storage.nbytes() for storage in storages.values())

    @property
    def kinds(self) -> tuple[AttentionKind, ...]:
        """The attentions that were recorded."""
        return tuple(
            kind for kind in AttentionKind if any(layer.attention(kind) is not None for layer in self._side(kind.side))
        )

    def layers(self, side: Side) -> tuple[LayerRecord, ...]:
        """The records of one stack's layers. ValueError if the pass was not recorded."""
        found = self._side(side)
        if not found:
            raise ValueError(f"the {Side(side).value} was not recorded: this needs a recorded pass (record=True)")
        return found

    def records(self, kind: AttentionKind) -> tuple[LayerRecord, ...]:
        """The layers that an attention of this kind stands in. ValueError if the pass was not recorded."""
        return self.layers(AttentionKind(kind).side)

    def layer(self, kind: AttentionKind, layer: int) -> LayerRecord:
        """The layer, counted from 0, that an attention of this kind stands in. ValueError if there is none."""
        found = self.records(kind)
        if not 0 <= layer < len(found):
            raise ValueError(f"{kind.value} has layers 0 to {len(found) - 1}, found {layer}")
        return found[layer]

    def attention(self, kind: AttentionKind, layer: int) -> AttentionRecord:
        """One attention. ValueError if the layer does not exist or the pass was not recorded."""
        return self.layer(kind, layer).attention(kind)

    def weights(self, kind: AttentionKind) -> Tensor:
        """Every map of a kind: [layers, batch, heads, query, key]. ValueError if the pass was not recorded."""
        return torch.stack([record.attention(kind).weights for record in self.records(kind)])

    def maps(self, kind: AttentionKind, row: int) -> Tensor:
        """Every map of a kind of one row of the batch: [layers, heads, query, key]."""
        return torch.stack([record.attention(kind).weights[row] for record in self.records(kind)])

    def head_outputs(self, kind: AttentionKind) -> Tensor:
        """What every head says, before W_O: [batch, layers, heads, query, d_head], as a sweep's `instead` has it.
        ValueError if the pass was not recorded."""
        return torch.stack([record.attention(kind).head_outputs for record in self.records(kind)], dim=1)

    def _side(self, side: Side) -> tuple[LayerRecord, ...]:
        return self.encoder_records if side == Side.ENCODER else self.decoder_records


def _tensors(value: object) -> Iterator[Tensor]:
    """Yield the tensors of nested tuples and records."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, tuple):
        yield from chain.from_iterable(map(_tensors, value))
    elif is_dataclass(value):
        yield from chain.from_iterable(_tensors(getattr(value, one.name)) for one in fields(value))
