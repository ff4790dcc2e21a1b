"""A recurrent encoder-decoder of gated recurrent units (Cho et al. 2014), the Transformer's predecessor.

The encoder reads the source in both directions. The decoder uses additive attention (Bahdanau et al. 2015), or only one
vector of the source (Sutskever et al. 2014). Recurrent has the methods of Transformer, so that training, decoding and
the page treat both alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attention_atlas.model.config import LIMITS, check_fraction, check_switches, check_whole_number
from attention_atlas.model.nets.layer import Dropout
from attention_atlas.model.nets.masks import padding_mask
from attention_atlas.model.nets.products import Linear, linear
from attention_atlas.model.nets.records import AttentionRecord, ForwardOutput, GateRecord, LayerRecord
from attention_atlas.model.nets.sweep import Changes
from attention_atlas.model.nets.transformer import EncoderDecoder
from attention_atlas.model.trace.interventions import NO_INTERVENTIONS
from attention_atlas.model.trace.kinds import AttentionKind, Side
from attention_atlas.model.trace.language import Refusal


@dataclass(frozen=True)
class RecurrentConfig:
    """The shape of a recurrent encoder-decoder. Raises ValueError, with the field, for a value out of range."""

    vocabulary_size: int
    d_model: int = 256  # of embeddings, decoder states and the output
    dropout: float = 0.1  # on embeddings and on the input of the output projection
    attention: bool = True  # False: the decoder sees the source only through its first state
    max_length: int = 256  # tokens on each side, special ones included
    pad_id: int = 0

    def __post_init__(self) -> None:
        for name in ("vocabulary_size", "d_model", "max_length"):
            check_whole_number(name, getattr(self, name), 1, LIMITS[name])
        check_whole_number("pad_id", self.pad_id, 0, self.vocabulary_size - 1)
        check_fraction("dropout", self.dropout)
        check_switches(self)
        if self.d_model % 2:
            raise ValueError(f"d_model must be even (half of it reads in each direction), found {self.d_model}")

    # The same for every recurrent network; code that takes either config reads them as it does ModelConfig's.
    banned_ids = ()  # tokens that decoding must not choose
    reach = 2**31  # positions: a recurrence has no longest sentence
    num_heads = num_encoder_layers = num_decoder_layers = 1
    without = ()  # missing parts of a published network
    shared_embeddings = tied_output = scale_embedding = True
    adds_positions = scale_output = logits_bias = norm_embedding = norm_before_positions = False

    def of(self, side: Side) -> RecurrentConfig:
        """Return this config, which is the shape of both sides (ModelConfig.of())."""
        return self

    def map_numbers(self, source: int, target: int) -> int:
        """Return the numbers of all maps, as ModelConfig.map_numbers() does: one alignment."""
        return source * target

    def pass_numbers(self, source: int, target: int) -> int:
        """Return the numbers of a pass, as ModelConfig.pass_numbers() does: gates, states, scores and logits."""
        d = self.d_model
        return 2 * source * target + (source + target) * 22 * d + source * 8 * d + 4 * self.num_target_tokens

    long_text_numbers = pass_numbers  # the one alignment is small

    @property
    def d_encoder(self) -> int:
        """The width of the encoder's state in one direction."""
        return self.d_model // 2

    @property
    def num_target_tokens(self) -> int:
        return self.vocabulary_size


class GatedUnit(nn.Module):
    """One gated recurrent unit, with torch.nn.GRU's parameters: rows for the reset gate, update gate and new state.

    r = sigmoid(W_r x + U_r h)    z = sigmoid(W_z x + U_z h)    n = tanh(W_n x + r * (U_n h + b_n))
    h' = (1 - z) * n + z * h

    read    the matrices W and their biases: GRU's weight_ih and bias_ih
    recall  the matrices U and their biases: GRU's weight_hh and bias_hh
    """

    def __init__(self, width_in: int, width: int) -> None:
        super().__init__()
        self.read, self.recall = Linear(width_in, 3 * width), Linear(width, 3 * width)
        for matrix in (self.read.weight, self.recall.weight):
            for gate in matrix.chunk(3):
                nn.init.xavier_uniform_(gate)
        nn.init.zeros_(self.read.bias)
        nn.init.zeros_(self.recall.bias)

    def forward(self, projected_input: Tensor, state: Tensor) -> GateRecord:
        """Return the gates and the next state after state [batch, width].

        projected_input: self.read(x), [batch, 3 * width], which can be computed for all positions at once.
        """
        reset_input, update_input, new_input = projected_input.chunk(3, dim=-1)
        reset_state, update_state, new_state = self.recall(state).chunk(3, dim=-1)
        reset, update = torch.sigmoid(reset_input + reset_state), torch.sigmoid(update_input + update_state)
        new = torch.tanh(new_input + reset * new_state)
        after = new + update * (state - new)  # (1 - z) * n + z * h
        return GateRecord(state, reset, update, new, after)


class AdditiveAttention(nn.Module):
    """Attention by softmax of v . tanh(W q + U k) over the keys (Bahdanau et al. 2015, section 3.1, appendix A.1.2)."""

    def __init__(self, query_width: int, key_width: int, width: int) -> None:
        super().__init__()
        self.of_query = Linear(query_width, width, bias=False)
        self.of_key = Linear(key_width, width)
        self.score = Linear(width, 1, bias=False)
        for module in (self.of_query, self.of_key, self.score):
            nn.init.xavier_uniform_(module.weight)
        nn.init.zeros_(self.of_key.bias)

    def forward(self, query: Tensor, keys: Tensor, mask: Tensor | None) -> Tensor:
        """Return the weights [batch, key]; rows sum to 1, and masked cells are exactly 0.

        query  [batch, width], projected by of_query
        keys   [batch, key, width], projected by of_key
        mask   bool [batch, key], True = may attend
        """
        scores = self.score(torch.tanh(query[:, None] + keys))[..., 0]  # [batch, key]
        if mask is not None:
            scores = scores.masked_fill(~mask, float("-inf"))
        return scores.softmax(dim=-1)


@dataclass(frozen=True, eq=False)
class RecurrentMemory:
    """An encoded batch of sources.

    memory   the encoder's states, forward and backward: [batch, source, 2 * d_encoder]
    mask     padding mask [batch, 1, 1, source], True = a token; None where nothing is padded
    start    the decoder's first state, [batch, d_model]
    keys     memory projected by AdditiveAttention.of_key, [batch, source, d_model]; None without attention
    records  one record of both units, if the pass is recorded
    """

    memory: Tensor
    mask: Tensor | None
    start: Tensor
    keys: Tensor | None
    records: tuple[LayerRecord, ...] = ()

    def select(self, rows: Tensor) -> RecurrentMemory:
        """Return the batch rows [new_batch]."""
        mask, keys = (None if t is None else t.index_select(0, rows) for t in (self.mask, self.keys))
        return RecurrentMemory(self.memory.index_select(0, rows), mask, self.start.index_select(0, rows), keys)


@dataclass
class RecurrentCache:
    """The decoder's state [batch, d_model] after the last token; None before the first."""

    state: Tensor | None = None

    def reorder(self, rows: Tensor) -> None:
        """Make the batch rows [new_batch] the new batch."""
        if self.state is not None:
            self.state = self.state.index_select(0, rows)


class Recurrent(EncoderDecoder):
    """A recurrent encoder-decoder with Transformer's interface. One embedding serves source, target and output.

    forwards, backwards  the encoder's units, which read from the left and from the right
    scale                of embeddings, sqrt(d_model): their standard deviation is about 1 in an untrained network
    bridge               makes the decoder's first state of the last states of both
    writer               the decoder's unit, which reads the last token and, with attention, the context
    readout              combines state, token and context into the decoder's output
    """

    def __init__(self, config: RecurrentConfig) -> None:
        super().__init__()
        self.config = config
        self.scale = config.d_model**0.5
        width, memory_width = config.d_model, 2 * config.d_encoder
        weight = torch.empty(config.vocabulary_size, width)
        if not weight.is_meta:
            nn.init.normal_(weight, std=width**-0.5)
        self.embedding = nn.Embedding.from_pretrained(weight, freeze=False)
        self.dropout = Dropout(config.dropout)
        self.forwards, self.backwards = (GatedUnit(width, config.d_encoder) for _ in range(2))
        self.bridge = Linear(memory_width, width)
        self.attention = AdditiveAttention(width, memory_width, width) if config.attention else None
        context_width = memory_width if config.attention else 0
        self.writer = GatedUnit(width + context_width, width)
        self.readout = Linear(width + context_width + width, width)

    # Transformer's names of the output projection.
    output_scale, output_bias = 1.0, None

    @property
    def target_matrix(self) -> Tensor:
        """The embeddings of target tokens, [vocabulary, d_model]."""
        return self.embedding.weight

    output_matrix = target_matrix

    @property
    def num_layers(self) -> dict[AttentionKind, int]:
        """The number of layers of each kind of attention."""
        return {AttentionKind.ALIGNMENT: 1} if self.config.attention else {}

    @property
    def num_heads(self) -> dict[AttentionKind, int]:
        """The number of heads in a layer of each kind of attention."""
        return self.num_layers  # the one layer has one head

    def check(self, interventions: Changes, *, batch: int) -> None:
        """Raise a Refusal for any intervention: there is no head, position or edge to change."""
        if interventions:
            raise Refusal("a recurrent network has no heads, positions or layers of attention to change")

    def new_cache(self) -> RecurrentCache:
        """Return an empty cache of the state."""
        return RecurrentCache()

    def token_rows(self, ids: Tensor, *, decoder: bool = False) -> Tensor:
        """Return embedding * scale of ids [batch, length], of either side: [batch, length, d_model]."""
        return self.dropout(F.embedding(ids, self.embedding.weight) * self.scale)

    def encode(
        self, source_ids: Tensor, *, interventions: Changes = NO_INTERVENTIONS, record: bool = False
    ) -> RecurrentMemory:
        """Encode source_ids [batch, source], padded on the right with pad_id."""
        self.check(interventions, batch=len(source_ids))
        is_token = padding_mask(source_ids, self.config.pad_id)[:, 0, 0]  # [batch, source]
        keys = None if is_token.all() else is_token
        return self.encode_rows(self.token_rows(source_ids), keys, record=record)

    def encode_rows(
        self,
        rows: Tensor,
        keys: Tensor | None = None,
        *,
        interventions: Changes = NO_INTERVENTIONS,
        record: bool = False,
    ) -> RecurrentMemory:
        """Encode rows [batch, source, d_model] in place of token embeddings.

        keys: bool [batch, source], the positions that encoder and decoder read, None: all. Others change no state.
        """
        is_token = keys
        forward = self._run_unit(self.forwards, rows, is_token, range(rows.shape[1]))
        backward = self._run_unit(self.backwards, rows, is_token, reversed(range(rows.shape[1])))[::-1]
        memory = torch.cat([torch.stack([gates.after for gates in unit], 1) for unit in (forward, backward)], dim=-1)
        # Padding leaves a state unchanged, so the last state of each direction has read the whole sentence.
        start = torch.tanh(self.bridge(torch.cat((forward[-1].after, backward[0].after), dim=-1)))
        mask = None if keys is None else keys[:, None, None, :]
        projected = None if self.attention is None else self.attention.of_key(memory)
        units = (_join_gates(forward), _join_gates(backward)) if record else ()
        records = (LayerRecord(None, None, (), None, units=units),) if record else ()
        return RecurrentMemory(memory, mask, start, projected, records)

    @staticmethod
    def _run_unit(unit: GatedUnit, rows: Tensor, is_token: Tensor | None, order: Iterable[int]) -> list[GateRecord]:
        """Return the gates and states [batch, width] of each position, in the order in which the positions are read.

        is_token: bool [batch, source], False for padding, which does not change a state; None: there is none.
        """
        projected = unit.read(rows)
        state, steps = rows.new_zeros(len(rows), unit.recall.in_features), []
        for position in order:
            gates = unit(projected[:, position], state)
            if is_token is not None:
                gates = replace(gates, after=torch.where(is_token[:, position, None], gates.after, state))
            state = gates.after
            steps.append(gates)
        return steps

    def decode(
        self,
        target_ids: Tensor,
        source: RecurrentMemory,
        *,
        cache: RecurrentCache | None = None,
        interventions: Changes = NO_INTERVENTIONS,
        record: bool = False,
    ) -> tuple[Tensor, tuple[LayerRecord, ...]]:
        """Return the decoder's output [batch, new, d_model] for target_ids [batch, new], and a record of its attention
        and its unit.

        With a cache, target_ids are the tokens after those that the cache has read, and it keeps the last state.
        """
        self.check(interventions, batch=len(target_ids))
        return self._decode_rows(self.token_rows(target_ids), source, cache=cache, record=record)

    def decode_last(
        self,
        rows: Tensor,
        source: RecurrentMemory,
        keys: Tensor | None = None,
        *,
        interventions: Changes = NO_INTERVENTIONS,
    ) -> Tensor:
        """Return the decoder's output [batch, d_model] at the last of rows [batch, target, d_model], which are in place
        of token embeddings.

        keys: bool [batch, target], the positions that are read; the others change no state. The last one is read.
        """
        if keys is not None:
            keys = keys.clone()
            keys[:, -1] = True
        return self._decode_rows(rows, source, keys=keys)[0][:, -1]

    def repeat_source(self, output: ForwardOutput, batch: int) -> RecurrentMemory:
        """Return the encoded source of a recorded pass of one sentence for every row of a batch, as views."""
        (gates,) = output.layers(Side.DECODER)[0].units
        projected = None if self.attention is None else self.attention.of_key(output.memory).expand(batch, -1, -1)
        return RecurrentMemory(
            output.memory.expand(batch, -1, -1), None, gates.before[:, 0].expand(batch, -1), projected
        )

    def _decode_rows(
        self,
        rows: Tensor,
        source: RecurrentMemory,
        *,
        keys: Tensor | None = None,
        cache: RecurrentCache | None = None,
        record: bool = False,
    ) -> tuple[Tensor, tuple[LayerRecord, ...]]:
        state = source.start if cache is None or cache.state is None else cache.state
        mask = None if source.mask is None else source.mask[:, 0, 0]
        steps, contexts, weights, queries = [], [], [], []
        for position in range(rows.shape[1]):
            inputs = [rows[:, position]]
            if self.attention is not None:
                queries.append(self.attention.of_query(state))
                weights.append(self.attention(queries[-1], source.keys, mask))  # [batch, source]
                contexts.append((weights[-1][:, None] @ source.memory)[:, 0])
                inputs.append(contexts[-1])
            gates = self.writer(self.writer.read(torch.cat(inputs, dim=-1)), state)
            if keys is not None:
                gates = replace(gates, after=torch.where(keys[:, position, None], gates.after, state))
            state = gates.after
            steps.append(gates)
        if cache is not None:
            cache.state = state
        states = torch.stack([gates.after for gates in steps], 1)
        readout_inputs = (states, rows, *([torch.stack(contexts, 1)] if contexts else []))
        hidden = self.dropout(torch.tanh(self.readout(torch.cat(readout_inputs, dim=-1))))
        return hidden, (_build_record(weights, queries, source, steps),) if record else ()

    def project(self, hidden: Tensor) -> Tensor:
        """Return the logits [.., vocabulary] of hidden [.., d_model]."""
        return linear(hidden, self.embedding.weight)


def _join_gates(steps: Sequence[GateRecord]) -> GateRecord:
    """Return the record of all positions, [batch, length, width], of records of one each."""
    return GateRecord(*(torch.stack([getattr(gates, part.name) for gates in steps], 1) for part in fields(GateRecord)))


def _build_record(
    weights: list[Tensor], queries: list[Tensor], source: RecurrentMemory, steps: list[GateRecord]
) -> LayerRecord:
    """Return the record of the decoder, whose attention counts as one head; weights, queries and gates by position."""
    alignment = None
    if weights:
        alignment = AttentionRecord(
            weights=torch.stack(weights, 1)[:, None],  # [batch, 1, target, source]
            queries=torch.stack(queries, 1)[:, None],
            keys=source.keys[:, None],
            values=source.memory[:, None],
        )
    return LayerRecord(None, None, (), None, alignment, (_join_gates(steps),))
