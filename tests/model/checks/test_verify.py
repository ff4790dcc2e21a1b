"""The live checks: every planted fault is detected, and a correct trace passes."""

from __future__ import annotations

import random
from dataclasses import replace
from functools import partial
from itertools import product

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from attention_atlas.model.checks import claims, oracle, verify
from attention_atlas.model.nets import attention, transformer
from attention_atlas.model.nets.cache import LayerCache
from attention_atlas.model.nets.layer import Layer
from attention_atlas.model.nets.transformer import Transformer
from attention_atlas.model.trace.interventions import positions_off
from attention_atlas.model.trace.kinds import TRANSFORMER_KINDS, AttentionKind
from attention_atlas.model.trace.maps import AttentionMaps
from attention_atlas.viz.figures.attention import plot_grid
from attention_atlas.viz.wire import payload, readback
from attention_atlas.viz.wire.codecs import ROOT
from tests.conftest import SENTENCES

DRAWN_TOLERANCE = 1e-6  # float32


def failures(translator, trace, **options) -> set[str]:
    return {result.name for result in verify.verify(translator, trace, **options) if not result.passed}


def unmasked(weights: np.ndarray) -> np.ndarray:
    """Return weights as without a mask: positive everywhere, with rows that sum to 1."""
    spread = weights + 0.05
    return (spread / spread.sum(-1, keepdims=True)).astype(np.float32)


FAULTS = {
    "transposed": lambda w: np.ascontiguousarray(w.swapaxes(-1, -2)),
    "shifted": lambda w: np.roll(w, 1, axis=-1),
    "unnormalised": lambda w: w * np.float32(1.01),
    "permuted heads": lambda w: np.roll(w, 1, axis=-3),
    "mask off": unmasked,
}


def planted(trace, kind: AttentionKind, fault: str):
    """Return the trace with a fault in the maps of one kind, without the checks of its constructor."""
    weights = FAULTS[fault](trace.maps(kind).weights)
    maps = AttentionMaps.__new__(AttentionMaps)
    tokens = (trace.maps(kind).query_tokens, trace.maps(kind).key_tokens)
    for name, value in zip(("weights", "query_tokens", "key_tokens"), (weights, *tokens)):
        object.__setattr__(maps, name, value)
    faulty = object.__new__(type(trace))
    for name in trace.__dataclass_fields__:
        object.__setattr__(faulty, name, maps if name == kind.value else getattr(trace, name))
    return faulty


def test_a_correct_trace_passes_every_check(tiny_translator, trace) -> None:
    results = list(verify.verify(tiny_translator, trace))
    assert len(results) == len(verify.CHECKS) == len({r.name for r in results})
    for result in results:
        assert result.passed and 0 <= result.error <= result.tolerance and result.detail and result.claim


@pytest.mark.parametrize("kind", TRANSFORMER_KINDS)
@pytest.mark.parametrize("fault", FAULTS)
def test_faults_in_the_trace(tiny_translator, trace, kind, fault) -> None:
    failed = failures(tiny_translator, planted(trace, kind, fault))
    assert "Maps match the model" in failed and "Attention weights = torch's" in failed
    if fault == "unnormalised":
        assert "Rows sum to 1" in failed
    if fault == "mask off" and kind is AttentionKind.DECODER_SELF:
        assert "Masked cells are 0" in failed


def test_faults_in_the_traces_probabilities(tiny_translator, trace) -> None:
    faulty = planted(trace, AttentionKind.CROSS, "shifted")
    object.__setattr__(faulty, "cross", trace.cross)
    object.__setattr__(faulty, "top_probabilities", trace.top_probabilities[:, ::-1])
    assert failures(tiny_translator, faulty) == {"Probabilities match the model"}


def faulty_attention(fault: str):
    """Return the softmax of model.nets.attention with a fault; it transposes only square maps."""
    true = attention._softmax

    def weights(scores, mask):
        if fault == "mask off":
            return true(scores, None)
        softmax = true(scores, mask)
        if fault == "transposed" and softmax.shape[-1] != softmax.shape[-2]:
            return softmax
        return torch.from_numpy(np.ascontiguousarray(FAULTS[fault](softmax.numpy())))

    return weights


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_in_the_attention(tiny_translator, trace, monkeypatch, fault) -> None:
    monkeypatch.setattr(attention, "_softmax", faulty_attention(fault))
    failed = failures(tiny_translator, trace)  # a trace from before the fault
    assert "Attention weights = torch's" in failed and "Attention output = torch's" in failed
    assert {"Encoder layer = torch's", "Decoder layer = torch's"} & failed
    made_with_it = tiny_translator.translate(trace.source_text)
    if fault in ("unnormalised", "transposed"):  # such maps are refused when they are first read
        with pytest.raises(ValueError, match="sums to 1"):
            _ = made_with_it.maps(AttentionKind.ENCODER_SELF).weights
        return
    assert "Attention weights = torch's" in failures(tiny_translator, made_with_it)
    if fault == "mask off":
        masked = {"Masked cells are 0", "Nothing looks ahead", "Padding changes nothing", "Cached weights = one pass"}
        assert masked <= failures(tiny_translator, made_with_it)


def test_faults_in_the_layers_and_the_cache(tiny_translator, trace, monkeypatch) -> None:
    honest = LayerCache.extend

    def forgetful(self, start, keys, values):
        extended = honest(self, start, keys, values)
        return extended if start < 2 else tuple(x.roll(1, dims=2) if i else x for i, x in enumerate(extended))

    monkeypatch.setattr(LayerCache, "extend", forgetful)
    assert "Cached logits = one pass" in failures(tiny_translator, trace)
    monkeypatch.undo()
    layer = tiny_translator.model.encoder.layers[1].sublayers[0]
    monkeypatch.setattr(layer, "leave", lambda x, output: (x + 0.9 * output, x))
    assert {"Encoder layer = torch's"} <= failures(tiny_translator, trace)


def copies_of(maps: dict[AttentionKind, np.ndarray]) -> list[verify.MapCopy]:
    return [verify.MapCopy(kind, weights) for kind, weights in maps.items()]


def sent(maps: dict[AttentionKind, np.ndarray]) -> tuple[list[verify.MapCopy], float]:
    return copies_of(maps), readback.PAYLOAD_TOLERANCE


def test_faults_in_the_payload(tiny_translator, trace) -> None:
    copies = {}
    for kind, fault in product(TRANSFORMER_KINDS, FAULTS):
        packed = payload.payload(trace)
        for block in packed["blocks"]:
            if block["kind"] == kind.value:
                block["data"] = ROOT.encode(np.minimum(FAULTS[fault](trace.maps(kind).weights), 1.0))
        copies[f"{kind.value} {fault}"] = sent(readback.payload_maps(packed["blocks"], packed["kinds"]))
    assert failures(tiny_translator, trace, copies=copies) == {f"{name} = trace" for name in copies}


def test_a_correct_drawing_passes(tiny_translator, trace) -> None:
    head = readback.drawn_head(trace, AttentionKind.CROSS, 2, 3)
    copies = {
        "The drawing": (copies_of(readback.drawn_maps(trace)), DRAWN_TOLERANCE),
        "The heatmap": ([verify.MapCopy(AttentionKind.CROSS, head, layer=2, head=3)], DRAWN_TOLERANCE),
    }
    assert not failures(tiny_translator, trace, copies=copies)


def test_faults_in_the_drawing(tiny_translator, trace) -> None:
    """Of whole maps and of one head."""
    copies = {}
    for kind, fault in product(TRANSFORMER_KINDS, FAULTS):
        figure = plot_grid(trace, kind)
        maps = readback.grid_maps(figure, trace, kind)
        faulty = FAULTS[fault](maps.astype(np.float32))
        layers, heads, rows, columns = maps.shape
        z = np.array(figure.data[0].z, np.float64)
        tiles = z.reshape(layers, z.shape[0] // layers, heads, z.shape[1] // heads)
        # Transposed cross-attention does not fit its frame: it is drawn as far as it does.
        fits = faulty[..., :rows, :columns]
        tiles[:, : fits.shape[2], :, : fits.shape[3]] = fits.transpose(0, 2, 1, 3)
        figure.data[0].z = z
        drawn = readback.grid_maps(figure, trace, kind)
        copies[f"{kind.value} {fault}"] = (copies_of({kind: drawn}), DRAWN_TOLERANCE)
    for fault, spoil in FAULTS.items():
        head = verify.MapCopy(AttentionKind.DECODER_SELF, spoil(trace.decoder_self.weights)[1, 2], layer=1, head=2)
        copies[f"head {fault}"] = ([head], DRAWN_TOLERANCE)
    assert failures(tiny_translator, trace, copies=copies) == {f"{name} = trace" for name in copies}


def test_a_thinned_grid_is_not_read_back(hand_made_trace, monkeypatch) -> None:
    monkeypatch.setattr(readback, "SIDE", 5)
    with pytest.raises(ValueError, match="at most 5 tokens"):
        readback.drawn_maps(hand_made_trace)


def test_a_check_that_cannot_run_has_failed(tiny_translator, trace) -> None:
    results = list(verify.verify(tiny_translator, trace, copies={"Nothing": ((), 1.0)}))
    assert not results[-1].passed and np.isnan(results[-1].error) and "no copy to compare" in results[-1].detail
    blank = verify.MapCopy(AttentionKind.CROSS, np.full_like(trace.cross.weights, np.nan))
    assert failures(tiny_translator, trace, copies={"Blank": ([blank], 1.0)}) == {"Blank = trace"}


def test_only_a_plain_trace_of_this_checkpoint_is_verified(tiny_translator, trace) -> None:
    for field, value, words in (
        ("digest", "f" * 16, "checkpoint ffff"),
        ("interventions", positions_off(), "source positions off"),
    ):
        other = planted(trace, AttentionKind.CROSS, "shifted")
        object.__setattr__(other, field, value)
        with pytest.raises(ValueError, match=words):
            next(verify.verify(tiny_translator, other))


@pytest.mark.parametrize("count", [8, pytest.param(200, marks=pytest.mark.endure)])
def test_correct_traces_raise_no_false_alarm(tiny_translator, count) -> None:
    random_words = random.Random(17)
    words = [word.strip(".") for sentence in SENTENCES for word in sentence.split()]
    words += ["Ärger", "42", "😀", "</s>", "?"]
    for _ in range(count):
        text = " ".join(random_words.choices(words, k=random_words.randint(1, 12)))
        clean = tiny_translator.translate(text)
        assert not failures(tiny_translator, clean, copies={"The payload": sent(readback.sent_maps(clean))}), text


def test_a_token_looked_up_in_another_row_is_detected(tiny_translator, trace, monkeypatch) -> None:
    honest = Transformer.token_rows
    monkeypatch.setattr(Transformer, "token_rows", lambda self, ids, **options: honest(self, ids.flip(1), **options))
    assert "An embedding is a row" in failures(tiny_translator, trace)


def test_attention_to_padding_is_detected(tiny_translator, trace, monkeypatch) -> None:
    monkeypatch.setattr(
        transformer, "padding_mask", lambda ids, pad_id: torch.ones_like(ids, dtype=torch.bool)[:, None, None]
    )
    masked = {"Masked attention = torch's", "Masked layers = torch's", "The loss ignores padding"}
    assert masked <= failures(tiny_translator, trace)


def test_a_decoder_layer_that_ignores_the_memorys_padding_is_detected(tiny_translator, trace, monkeypatch) -> None:
    honest = Layer.forward

    def forward(self, x, mask, source=None, **options):
        return honest(self, x, mask, source and replace(source, mask=None), **options)

    monkeypatch.setattr(Layer, "forward", forward)
    assert "Masked layers = torch's" in failures(tiny_translator, trace)


def test_a_loss_that_counts_padding_is_detected(tiny_translator, trace, monkeypatch) -> None:
    def of_all(model, smoothing):
        loss = partial(F.cross_entropy, label_smoothing=smoothing, reduction="sum")
        return lambda source, inputs, outputs: loss(model(source, inputs).logits.flatten(0, 1), outputs.flatten())

    monkeypatch.setattr(claims, "SummedLoss", of_all)
    assert failures(tiny_translator, trace) == {"The loss ignores padding"}


def test_a_stack_of_other_layers_is_detected(tiny_translator, trace, monkeypatch) -> None:
    """Torch's stack has the first encoder layer in every place."""
    honest, first = oracle.torch_layer, tiny_translator.model.encoder.layers[0]
    monkeypatch.setattr(
        oracle, "torch_layer", lambda layer, *rest: honest(first if layer.cross_attention is None else layer, *rest)
    )
    stacks = {"Encoder layer = torch's", "Masked layers = torch's", "Whole stack = torch's"}
    assert failures(tiny_translator, trace) == stacks


def test_errors_are_related_to_the_largest_value_compared(tiny_translator, trace) -> None:
    by_name = {result.name: result for result in verify.verify(tiny_translator, trace)}
    for check in verify.CHECKS:
        result = by_name[check.name]
        assert (result.relative is None) is (check.scale is None)
        assert result.relative is None or result.relative <= 1e-4
    logits = tiny_translator.inspect(trace).logits
    cached = by_name["Cached logits = one pass"]
    assert cached.relative == pytest.approx(cached.error / float(logits.abs().max()))
