"""The records of a pass: every attention, sub-layer and norm of every layer, as return values.

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

__all__ = ["AttentionRecord", "ForwardOutput", "GateRecord", "LayerRecord", "NormRecord", "SubLayerRecord"]


@dataclass(frozen=True, eq=False)
class AttentionRecord:
    """One attention of one layer.

    weights  [batch, heads, query, key], of the softmax, before dropout
    queries, keys, values  projected, [batch, heads, length, d_head]
    edit     the interventions on this attention, without tensors
    bias     what relative positions add to the scores, [1, heads, query, key]
    scaled   whether q k^T was divided by sqrt(d_head)
    """

    weights: Tensor
    queries: Tensor
    keys: Tensor
    values: Tensor
    edit: LayerEdit = LayerEdit()
    bias: Tensor | None = None
    scaled: bool = True

    @property
    def head_outputs(self) -> Tensor:
        """Each head's output [batch, heads, query, d_head]: weights times values, before gates, patches and W_O."""
        return self.weights @ self.values


@dataclass(frozen=True, eq=False)
class NormRecord:
    """A norm's gain and bias [d_model] and epsilon. An RMS norm, which subtracts no mean, has no bias.

    first: True for pre-norm, before the sub-layer's function; False for post-norm, after the residual sum.
    """

    gain: Tensor
    bias: Tensor | None
    epsilon: float
    first: bool

    def __call__(self, x: Tensor) -> Tensor:
        """Return the norm of x [.., d_model]."""
        if self.bias is None:
            return F.rms_norm(x, self.gain.shape, self.gain, self.epsilon)
        return F.layer_norm(x, self.gain.shape, self.gain, self.bias, self.epsilon)

    def centred(self, x: Tensor) -> Tensor:
        """Return x [.., d_model] before the norm divides: minus its mean, or x itself for an RMS norm."""
        return x if self.bias is None else x - x.mean(-1, keepdim=True)


@dataclass(frozen=True, eq=False)
class SubLayerRecord:
    """One function f of a layer, its residual connection and its norm (Vaswani et al. 2017, section 3.1).

    before    the residual stream before it, [batch, length, d_model]
    added     f's output after interventions, [batch, length, d_model]
    after     the stream after it: before + added with pre-norm, norm(before + added) with post-norm
    residual  False in a network without residual connections, where the sum is `added` alone
    """

    name: SubLayerName
    before: Tensor
    added: Tensor
    after: Tensor
    norm: NormRecord
    residual: bool = True

    @property
    def read(self) -> Tensor:
        """The input of f: norm(before) with pre-norm, before with post-norm."""
        return self.norm(self.before) if self.norm.first else self.before

    @property
    def sum(self) -> Tensor:
        """The residual sum x + f(x): `after` with pre-norm, the norm's input with post-norm."""
        return self.before + self.added if self.residual else self.added

    @property
    def norm_input(self) -> Tensor:
        """The input of the norm."""
        return self.before if self.norm.first else self.sum

    @property
    def norm_scale(self) -> Tensor:
        """The norm's factor [batch, length]: 1 / standard deviation, or 1 / root mean square for an RMS norm."""
        # A property, because every translation is recorded and few are examined that far.
        return (self.norm.centred(self.norm_input.float()).square().mean(-1) + self.norm.epsilon).rsqrt()


@dataclass(frozen=True, eq=False)
class GateRecord:
    """A gated recurrent unit (model.nets.recurrent.GatedUnit) at one position [batch, width], or at all [batch, length,
    width].

    before         the state h that it had
    reset, update  the gates r and z
    new            the candidate n
    after          the state that it leaves, (1 - z) * n + z * h
    """

    before: Tensor
    reset: Tensor
    update: Tensor
    new: Tensor
    after: Tensor


@dataclass(frozen=True, eq=False)
class LayerRecord:
    """One layer of a pass. Attentions and parts that a network does not have are None; it then has no sub-layers.

    sublayers    in the order of the residual stream
    activations  the feed-forward's hidden units after the activation, [batch, length, d_feedforward]
    alignment    the attention of a recurrent network
    units        its gated units: the encoder's from the left and from the right, or the decoder's
    """

    self_attention: AttentionRecord | None
    cross_attention: AttentionRecord | None
    sublayers: tuple[SubLayerRecord, ...]
    activations: Tensor | None
    alignment: AttentionRecord | None = None
    units: tuple[GateRecord, ...] = ()

    @property
    def before(self) -> Tensor:
        """The residual stream before the layer, [batch, length, d_model]."""
        return self.sublayers[0].before

    @property
    def after(self) -> Tensor:
        """The residual stream after the layer, [batch, length, d_model]."""
        return self.sublayers[-1].after

    def sublayer(self, name: SubLayerName) -> SubLayerRecord:
        """Return the sub-layer of this name. Raises ValueError if the layer has none."""
        for record in self.sublayers:
            if record.name == name:
                return record
        has = ", ".join(record.name.value for record in self.sublayers)
        raise ValueError(f"this layer has the sub-layers {has}; found {getattr(name, 'value', name)!r}")

    def attention(self, kind: AttentionKind) -> AttentionRecord | None:
        """Return the attention of this kind; None if the layer has none."""
        if kind is AttentionKind.ALIGNMENT:
            return self.alignment
        return self.cross_attention if kind is AttentionKind.CROSS else self.self_attention


@dataclass(frozen=True, eq=False)
class ForwardOutput:
    """The result of a forward pass.

    project  the output projection: hidden [.., d_model] -> logits [.., vocabulary]
    memory   the encoder's output, [batch, source, d_model]
    hidden   the decoder's output, [batch, target, d_model]
    encoder_records, decoder_records  one LayerRecord a layer with record=True, else empty
    """

    project: Callable[[Tensor], Tensor]
    memory: Tensor
    hidden: Tensor
    encoder_records: tuple[LayerRecord, ...] = ()
    decoder_records: tuple[LayerRecord, ...] = ()

    @cached_property
    def logits(self) -> Tensor:
        """The logits [batch, target, vocabulary], computed when they are first read.

        100 sentences of 100 tokens over a vocabulary of 256,000 have 10 GB of logits: project some rows of `hidden` at
        a time instead (model.nets.blocks).
        """
        with torch.inference_mode() if self.hidden.is_inference() else nullcontext():
            return self.project(self.hidden)

    @property
    def nbytes(self) -> int:
        """The bytes of all tensors of the pass, without the logits."""
        records = (self.memory, self.hidden, self.encoder_records, self.decoder_records)
        storages = {
            storage.data_ptr(): storage for storage in (tensor.untyped_storage() for tensor in _tensors(records))
        }
        return sum(storage.nbytes() for storage in storages.values())

    @property
    def kinds(self) -> tuple[AttentionKind, ...]:
        """The recorded kinds of attention."""
        return tuple(
            kind for kind in AttentionKind if any(layer.attention(kind) is not None for layer in self._side(kind.side))
        )

    def layers(self, side: Side) -> tuple[LayerRecord, ...]:
        """Return the records of one stack's layers. Raises ValueError if the pass was not recorded."""
        records = self._side(side)
        if not records:
            raise ValueError(f"the {Side(side).value} was not recorded: this needs a recorded pass (record=True)")
        return records

    def records(self, kind: AttentionKind) -> tuple[LayerRecord, ...]:
        """Return the records of the layers that have an attention of this kind, as layers() does."""
        return self.layers(AttentionKind(kind).side)

    def layer(self, kind: AttentionKind, layer: int) -> LayerRecord:
        """Return one of records(), counted from 0. Raises ValueError if the layer does not exist."""
        records = self.records(kind)
        if not 0 <= layer < len(records):
            raise ValueError(f"{kind.value} has layers 0 to {len(records) - 1}, found {layer}")
        return records[layer]

    def attention(self, kind: AttentionKind, layer: int) -> AttentionRecord:
        """Return one attention. Raises ValueError if the layer does not exist or the pass was not recorded."""
        return self.layer(kind, layer).attention(kind)

    def weights(self, kind: AttentionKind) -> Tensor:
        """Return every map of a kind, [layers, batch, heads, query, key]. Raises ValueError if it was not recorded."""
        return torch.stack([record.attention(kind).weights for record in self.records(kind)])

    def maps(self, kind: AttentionKind, row: int) -> Tensor:
        """Return every map of a kind of one batch row, [layers, heads, query, key]."""
        return torch.stack([record.attention(kind).weights[row] for record in self.records(kind)])

    def head_outputs(self, kind: AttentionKind) -> Tensor:
        """Return every head's output before W_O, [batch, layers, heads, query, d_head], as a sweep's `instead` has it.

        Raises ValueError if the pass was not recorded.
        """
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
        yield from chain.from_iterable(_tensors(getattr(value, field.name)) for field in fields(value))
