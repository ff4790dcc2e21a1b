"""The stages of the picture in the tab Inside: every number is the recorded pass's, and every answer is small."""

from __future__ import annotations

import base64
import gzip
import json
from itertools import cycle

import numpy as np
import pytest
import torch

from attention_atlas.model.trace.address import Address
from attention_atlas.model.trace.kinds import TRANSFORMER_KINDS, AttentionKind, Side
from attention_atlas.model.trace.tokens import tokens_from_spelling
from attention_atlas.model.translator import Translator
from attention_atlas.model.translators import Translators
from attention_atlas.viz.questions import registry
from attention_atlas.viz.questions.registry import Context, ask
from attention_atlas.viz.questions.traces import Traces
from attention_atlas.viz.wire.inside import MAX_ROWS, Rows, lines
from tests.conftest import SENTENCES
from tests.model.families import theirs

LIMIT = 64_000  # bytes of a packed answer
TWENTY = [*SENTENCES, *(" ".join(pair) for pair in zip(SENTENCES, SENTENCES[3:]))][:20]
close = {"rtol": 1e-5, "atol": 1e-5}


@pytest.fixture(scope="module", params=["ours", "marian", "t5"])
def translator(request, tiny_translator, tmp_path_factory) -> Translator:
    if request.param == "ours":
        return tiny_translator
    folder = tmp_path_factory.mktemp(request.param) / "model"
    options = {"own_head": True, "feed_forward_proj": "gated-gelu"} if request.param == "t5" else {}
    getattr(theirs, request.param)(folder, **options).save_pretrained(folder)
    return Translator.load(folder, "cpu")


registry.load_all()


class Asker:
    """Asks for stages of one translation, as the page does."""

    def __init__(self, translator: Translator, text: str) -> None:
        self.translator, direction = translator, translator.directions[0]
        written = translator.translate(text, direction).target_ids[:18]  # a random model may go on for long
        self.trace = translator.trace(text, direction, target=written)
        self.context = Context(translators := Translators([translator]), Traces(translators))
        self.context.traces.add(self.trace)
        self.output = translator.inspect(self.trace.source_ids, self.trace.target_ids)

    def __call__(self, stage: str, **fields: object) -> dict:
        body = {"address": Address.of(self.trace).to_plain(), "fields": {"stage": stage, **fields}}
        answer = json.loads(json.dumps(ask(self.context, "page_inside", body), allow_nan=False))
        assert len(gzip.compress(json.dumps(answer).encode(), 4)) < LIMIT
        return answer["stage"]


def decode(strips: dict) -> np.ndarray:
    cells = np.frombuffer(base64.b64decode(strips["data"]), np.int8).reshape(-1, strips["cells"])
    return cells * strips["unit"]


@pytest.fixture(scope="module")
def askers(translator) -> list[Asker]:
    assert len(TWENTY) == 20
    return [Asker(translator, text) for text in TWENTY]


def test_every_number_of_a_head_is_the_recorded_passes(askers):
    for seed, asker in enumerate(askers):
        draw = np.random.default_rng(seed)
        for kind in TRANSFORMER_KINDS:
            layer, query = draw.integers(2), draw.integers(len(asker.trace.maps(kind).query_tokens))
            record = asker.output.attention(kind, layer)
            head = int(draw.integers(record.weights.shape[1]))
            stage = asker("head", head=[kind.value, int(layer), head], query=int(query))
            keys = slice(stage["first"], stage["first"] + len(stage["weights"]))
            q, k, v = (part[0, head].double().numpy() for part in (record.queries, record.keys, record.values))
            np.testing.assert_allclose(stage["query"], q[query], **close)
            np.testing.assert_allclose(stage["keys"], k[keys], **close)
            np.testing.assert_allclose(stage["values"], v[keys], **close)
            np.testing.assert_allclose(stage["dots"], k[keys] @ q[query], **close)
            weights = record.weights[0, head, query].numpy()
            np.testing.assert_allclose(stage["weights"], weights[keys], **close)
            np.testing.assert_allclose(stage["output"], record.head_outputs[0, head, query], **close)
            powers = np.exp(np.array(stage["scaled"]) - stage["largest"]) * stage["allowed"]
            np.testing.assert_allclose(powers / stage["sum"], weights[keys], **close)
            matrix = asker.translator.model.attention(kind, layer).output.weight.detach()
            width = v.shape[1]
            share = matrix[:, head * width : (head + 1) * width].double() @ torch.tensor(stage["output"]).double()
            assert stage["length"] == pytest.approx(float(share.norm()), rel=1e-5)


def test_a_bias_of_relative_positions_stands_between_scores_and_softmax(askers):
    for asker in askers[:3]:
        record = asker.output.attention(AttentionKind.ENCODER_SELF, 1)
        stage = asker("head", head=["encoder_self", 1, 2], query=1)
        if record.bias is None:
            assert stage["bias"] is None and stage["divided"]
            continue
        np.testing.assert_allclose(stage["bias"], record.bias[0, 2, 1, : len(stage["bias"])], **close)
        np.testing.assert_allclose(stage["scaled"], np.add(stage["dots"], stage["bias"]), **close)


def test_every_number_of_a_layer_is_the_recorded_passes(askers):
    for asker, side, layer in zip(askers, cycle(Side), cycle((0, 1, 1))):
        record = asker.output.layers(side)[layer]
        stage = asker("layer", side=side.value, layer=layer)
        assert stage["shown"] == list(range(record.before.shape[1]))
        for sublayer in record.sublayers:
            part = stage["parts"][sublayer.name.value]
            with torch.inference_mode():
                read = sublayer.read[0]
            for name in ("before", "added", "after"):
                vectors = getattr(sublayer, name)[0]
                np.testing.assert_allclose(part["lengths"][name], vectors.norm(dim=-1), **close)
            np.testing.assert_allclose(part["lengths"]["read"], read.norm(dim=-1), **close)
            added = sublayer.added[0].numpy()
            assert np.abs(decode(part["added"])).max() == pytest.approx(np.abs(added).max(), rel=0.01)
        active = stage["parts"]["feed_forward"]["active"]
        assert active == (record.activations[0] > 0).sum(-1).tolist()
        words = Rows.of(asker.trace.source_tokens if side is Side.ENCODER else asker.trace.decoder_inputs)
        weights = record.self_attention.weights[0].double().numpy()
        for head, sent in enumerate(stage["parts"]["self_attention"]["heads"]):
            for query, key, weight in sent["rows"]:
                block = weights[head][np.ix_(words.groups[query], words.groups[key])]
                assert weight == pytest.approx(block.sum(-1).mean(), abs=1e-5)
            for position, key, weight in sent["pieces"]:
                assert weight == pytest.approx(weights[head][position, list(words.groups[key])].sum(), abs=1e-5)


def test_every_number_of_output_embedding_and_memory_is_the_recorded_passes(askers):
    for seed, asker in enumerate(askers):
        step = seed % len(asker.trace.target_ids)
        logits = asker.output.logits[0, step].double()
        stage = asker("output", step=step)
        best = logits.topk(10)
        np.testing.assert_allclose(stage["logits"], best.values, **close)
        np.testing.assert_allclose(stage["probabilities"], logits.softmax(-1)[best.indices], **close)
        np.testing.assert_allclose(
            np.exp(np.array(stage["logits"]) - stage["log_sum"]), stage["probabilities"], **close
        )
        assert stage["rest"] == pytest.approx(1 - sum(stage["probabilities"]), abs=1e-5)
        assert stage["others"] + 10 == len(logits)
        memory = asker("memory", step=step)
        np.testing.assert_allclose(memory["lengths"], asker.output.memory[0].norm(dim=-1), **close)
        read = asker.output.maps(AttentionKind.CROSS, 0)[:, :, step].double().mean((0, 1))
        words = Rows.of(asker.trace.source_tokens)
        np.testing.assert_allclose(memory["read"], [float(read[list(group)].sum()) for group in words.groups], **close)
        side = list(Side)[seed % 2]
        embedding = asker("embedding", side=side.value)
        assert embedding["ids"] == list(asker.trace.source_ids if side is Side.ENCODER else asker.trace.decoder_ids)


def test_addends_sum_to_the_number_that_is_followed(askers):
    def check(addends: dict) -> None:
        total = sum(value for _, value in addends["largest"]) + addends["rest"] + addends["bias"]
        assert total == pytest.approx(addends["total"], rel=1e-4, abs=1e-5)
        values = [abs(value) for _, value in addends["largest"]]
        assert values == sorted(values, reverse=True)

    for seed, asker in enumerate(askers[:6]):
        kind = TRANSFORMER_KINDS[seed % 3]
        stage = asker("weight", head=[kind.value, 1, 1], query=2, key=1)
        assert stage["weight"] == pytest.approx(float(asker.output.attention(kind, 1).weights[0, 1, 2, 1]), abs=1e-5)
        assert stage["score"]["total"] == pytest.approx(stage["dot"], abs=1e-5)
        check(stage["score"])
        check(stage["values"])
        for part in stage["back"]:
            check(part["query"])
            check(part["key"])
        for part in stage["forward"]:
            check(part["value"])
            check(part["output"])
        token = int(asker.trace.target_ids[1])
        stage = asker("probability", step=1, token=token)
        check(stage["logit"])
        logits = asker.output.logits[0, 1].double()
        assert stage["probability"] == pytest.approx(float(logits.softmax(-1)[token]), abs=1e-5)


def test_pieces_of_words_add_up_and_long_texts_are_pooled():
    tokens = tokens_from_spelling(("▁ein", "▁Apf", "el", "▁fällt", "</s>"))
    weights = np.arange(25, dtype=float).reshape(5, 5) / 100
    rows = Rows.of(tokens)
    sent = lines(weights, rows, rows)
    expected = weights[1:3, 1:3].sum(-1).mean()
    assert [1, 1, pytest.approx(expected)] in sent["rows"]
    assert {position for position, _, _ in sent["pieces"]} == {1, 2}
    long = Rows.of(tokens_from_spelling(f"▁w{i}" for i in range(200)))
    assert long.pooled and len(long.groups) <= MAX_ROWS and sum(map(len, long.groups)) == 200


def test_a_long_sentence_has_windows_and_small_answers(tiny_translator):
    asker = Asker(tiny_translator, "der kleine Hund schläft " * 3)
    count = len(asker.trace.source_ids)
    assert count > 24
    stage = asker("head", head=["cross", 1, 2], query=1, first=count)
    assert stage["first"] == count - 24 and stage["others"]["count"] == count - 24
    weights = asker.output.attention(AttentionKind.CROSS, 1).weights[0, 2, 1]
    assert stage["others"]["weight"] == pytest.approx(float(weights[: count - 24].sum()), abs=1e-5)
    np.testing.assert_allclose(
        stage["output"], asker.output.attention(AttentionKind.CROSS, 1).head_outputs[0, 2, 1], **close
    )
    asker("layer", side="decoder", layer=1)


@pytest.mark.parametrize(
    "fields",
    [
        {"stage": "kitchen"},
        {"stage": "layer", "side": "decoder", "layer": 99},
        {"stage": "layer", "side": "middle", "layer": 0},
        {"stage": "head", "head": ["cross", 0, 99], "query": 0},
        {"stage": "head", "head": ["cross", 0, 0], "query": 999},
        {"stage": "output", "step": -1},
        {"stage": "weight", "head": ["cross", 0, 0], "query": 0, "key": 999},
        {"stage": "probability", "step": 0, "token": 10**9},
    ],
)
def test_what_does_not_exist_is_refused_by_name(tiny_translator, fields):
    asker = Asker(tiny_translator, SENTENCES[0])
    with pytest.raises(ValueError, match="something unknown"):
        asker(**fields)
