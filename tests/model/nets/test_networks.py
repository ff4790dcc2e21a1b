"""A further network is a module and an entry: one with a single alignment map and no self-attention translates."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from attention_atlas.model import checkpoint
from attention_atlas.model.nets import networks
from attention_atlas.model.nets.attention import attention_weights
from attention_atlas.model.nets.layer import SourceMemory
from attention_atlas.model.nets.masks import padding_mask
from attention_atlas.model.nets.records import AttentionRecord, ForwardOutput, LayerRecord
from attention_atlas.model.trace import storage
from attention_atlas.model.trace.interventions import NO_INTERVENTIONS, positions_off
from attention_atlas.model.trace.kinds import AttentionKind
from attention_atlas.model.translator import Translator
from tests.conftest import SENTENCES


@dataclass(frozen=True)
class RecurrentConfig:
    vocabulary_size: int
    width: int = 16
    pad_id: int = 0
    max_length: int = 64

    def __post_init__(self) -> None:
        if self.width < 1:
            raise ValueError(f"width must be at least 1, found {self.width}")

    reach = 64
    num_target_tokens = property(lambda self: self.vocabulary_size)
    banned_ids = ()

    def map_numbers(self, source: int, target: int) -> int:
        return source * target

    def pass_numbers(self, source: int, target: int) -> int:
        return 2 * source * target + self.width * (source + target)

    held_numbers = pass_numbers


class Prefix:
    """What a recurrent decode keeps here: the ids themselves."""

    def __init__(self) -> None:
        self.ids: Tensor | None = None

    def truncate(self, length: int) -> None:
        self.ids = self.ids[:, :length]

    def reorder(self, rows: Tensor) -> None:
        self.ids = self.ids.index_select(0, rows)


class Recurrent(nn.Module):
    """One recurrence reads, another writes and looks back once a step (after Bahdanau et al. 2015, section 3)."""

    def __init__(self, config: RecurrentConfig) -> None:
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(config.vocabulary_size, config.width)
        self.reads, self.writes = (nn.Linear(2 * config.width, config.width) for _ in range(2))

    def check(self, interventions, *, batch: int) -> None:
        if interventions:
            raise ValueError(f"a recurrent network cannot do this: {interventions.describe()}")

    def new_cache(self) -> Prefix:
        return Prefix()

    def _states(self, cell: nn.Linear, ids: Tensor) -> Tensor:
        state, states = self.embedding.weight.new_zeros(len(ids), self.config.width), []
        for row in self.embedding(ids).unbind(1):
            state = torch.tanh(cell(torch.cat((row, state), dim=-1)))
            states.append(state)
        return torch.stack(states, dim=1)

    def encode(self, source_ids, *, interventions=NO_INTERVENTIONS, record=False) -> SourceMemory:
        return SourceMemory(self._states(self.reads, source_ids), padding_mask(source_ids, self.config.pad_id))

    def decode(self, target_ids, source, *, cache=None, interventions=NO_INTERVENTIONS, record=False):
        new = target_ids.shape[1]
        if cache is not None:
            target_ids = cache.ids = target_ids if cache.ids is None else torch.cat((cache.ids, target_ids), dim=1)
        states = self._states(self.writes, target_ids)[:, -new:]
        queries, keys = states[:, None], source.memory[:, None]
        weights = attention_weights(queries, keys, source.mask)  # [batch, 1, query, key]
        looked = AttentionRecord(weights, queries, keys, keys)
        records = (LayerRecord(None, looked, (), None),) if record else ()
        return states + (weights @ keys)[:, 0], records

    def project(self, hidden: Tensor) -> Tensor:
        return hidden @ self.embedding.weight.T

    def read(self, source, target_ids, *, interventions=NO_INTERVENTIONS, record=False) -> ForwardOutput:
        hidden, records = self.decode(target_ids, source, record=record)
        return ForwardOutput(self.project, source.memory, hidden, (), records)

    def forward(self, source_ids, target_ids, *, interventions=NO_INTERVENTIONS, record=False) -> ForwardOutput:
        return self.read(self.encode(source_ids), target_ids, record=record)


@pytest.fixture()
def folder(monkeypatch, tokenizer, tmp_path):
    """A checkpoint of the registered network."""
    monkeypatch.setitem(networks.NETWORKS, "recurrent", networks.Network(RecurrentConfig, Recurrent))
    torch.manual_seed(2)
    model = Recurrent(RecurrentConfig(len(tokenizer), pad_id=tokenizer.pad_id))
    checkpoint.save(tmp_path / "recurrent", model, tokenizer, ("de-en",), half=False)
    return tmp_path / "recurrent"


def test_its_checkpoint_loads_by_its_name(folder):
    assert json.loads((folder / checkpoint.CONFIG).read_text())["network"] == "recurrent"
    loaded = checkpoint.load(folder).model
    assert type(loaded) is Recurrent and loaded.config.width == 16 and not loaded.training


def test_it_translates_and_its_traces_hold_the_one_kind_of_map(folder):
    translator = Translator.load(folder, device="cpu")
    alone = [translator.translate(text) for text in SENTENCES[:3]]
    for trace in alone:
        assert trace.kinds == (AttentionKind.CROSS,) and trace.encoder_self is None
        assert trace.cross.weights.shape == (1, 1, len(trace.target_ids), len(trace.source_ids))
        output = translator.inspect(trace.source_ids, trace.target_ids)
        assert output.kinds == trace.kinds
        np.testing.assert_allclose(output.weights(AttentionKind.CROSS)[:, 0].numpy(), trace.cross.weights, atol=1e-6)
        assert output.logits[0].argmax(-1).tolist() == list(trace.target_ids)  # greedy over its own cache
        assert storage.from_npz(storage.to_npz(trace)).kinds == trace.kinds
    for one, many in zip(alone, translator.trace_batch(SENTENCES[:3])):
        assert one.target_ids == many.target_ids
    assert translator.beam([alone[0].source_ids], width=2)[0].hypotheses
    with pytest.raises(ValueError, match="a recurrent network cannot do this: source positions off"):
        translator.translate(SENTENCES[0], interventions=positions_off())
    with pytest.raises(ValueError, match="recurrent has no encoder_self attention"):
        alone[0].maps(AttentionKind.ENCODER_SELF)


def test_a_network_that_stands_in_no_entry_is_refused_in_words(folder, tmp_path, monkeypatch, tokenizer):
    other = shutil.copytree(folder, tmp_path / "other")
    written = json.loads((other / checkpoint.CONFIG).read_text())
    (other / checkpoint.CONFIG).write_text(json.dumps(written | {"network": "convolutional"}))
    with pytest.raises(ValueError, match=r"config\.json: there is no network 'convolutional': .*'recurrent'"):
        checkpoint.load(other)
    (other / checkpoint.CONFIG).write_text(json.dumps(written | {"model": {"vocabulary_size": 5, "width": 0}}))
    with pytest.raises(ValueError, match="width must be at least 1"):
        checkpoint.load(other)
    model = checkpoint.load(folder).model
    monkeypatch.delitem(networks.NETWORKS, "recurrent")
    with pytest.raises(ValueError, match="Recurrent is not among the networks 'transformer'"):
        checkpoint.save(tmp_path / "unknown", model, tokenizer, ("de-en",))
