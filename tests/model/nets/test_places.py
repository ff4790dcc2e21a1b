"""Named places: captured tensors equal a recomputation, and edits act alike in passes, steps, beams and batches."""

from __future__ import annotations

import json
import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from attention_atlas.model.analysis import why
from attention_atlas.model.decode.runs import Run
from attention_atlas.model.nets.places.registry import matching, places
from attention_atlas.model.nets.sweep import PatchValue, Sweep
from attention_atlas.model.trace import interventions_file, storage
from attention_atlas.model.trace.edits import Ablate, Add, Replace, Scale
from attention_atlas.model.trace.interventions import Interventions, Patch, Stream
from attention_atlas.model.trace.kinds import TRANSFORMER_KINDS
from attention_atlas.model.translator import Translator
from tests.conftest import SENTENCES

TEXT, SHORT = SENTENCES[0], "Der Hund schläft."
WIDE = np.linspace(-3, 3, 32)


@pytest.fixture(scope="module")
def translator(tiny_checkpoint) -> Translator:
    return Translator.load(tiny_checkpoint, "cpu")


@pytest.fixture(scope="module")
def every(translator):
    """A run of two sentences that captures every place."""
    return translator.run([TEXT, "Hund."], names=["*"])


def test_places_have_the_documented_names_and_shapes(translator, every):
    config = translator.config
    assert len(places(replace(config, num_encoder_layers=4, num_decoder_layers=4))) == 143
    assert [place.name for place in translator.places()] == list(every.names)
    source, target = every.source_mask.shape[1], every.mask.shape[1]
    sizes = {"heads": 4, "d_head": 8, "d_model": 32, "d_feedforward": 48, "vocabulary": config.vocabulary_size}
    sizes |= {"batch": 2, "1": 1}
    for place in translator.places():
        rows = source if place.side.value == "encoder" else target
        keys = source if "cross" in place.name or place.name.startswith("encoder") else target
        expected = [sizes.get(axis) or (keys if axis == "key" else rows) for axis in place.axes]
        assert list(every[place.name].shape) == expected, place


def test_captured_tensors_equal_a_recomputation_from_the_weights(translator, every):
    """Recompute each place from those before it, by torch's functions and the model's weights."""
    model, run = translator.model, every
    with torch.no_grad():
        for side, stack, positions in (
            ("encoder", model.encoder, model.source_positions),
            ("decoder", model.decoder, model.target_positions),
        ):
            x = run[f"{side}.embed"] + run[f"{side}.pos"]
            close(run[f"{side}.pos"][0], positions(0, x.shape[1]))
            for number, layer in enumerate(stack.layers):
                at = f"{side}.{number}"
                close(run[f"{at}.resid_pre"], x)
                names = ["self", "cross"] if side == "decoder" else ["self"]
                after = {"self": "resid_mid", "cross": "resid_cross"}
                for name, sublayer in zip(names, layer.sublayers):
                    module = layer.self_attention if name == "self" else layer.cross_attention
                    read = sublayer.norm(x)
                    of = read if name == "self" else run["encoder.final"]
                    weights, biases = module.projection.weight.chunk(3), module.projection.bias.chunk(3)
                    for part, rows, weight, bias in zip("qkv", (read, of, of), weights, biases):
                        close(run[f"{at}.{name}.{part}"], module.split_heads(F.linear(rows, weight, bias)))
                    q, k, v = (run[f"{at}.{name}.{part}"] for part in "qkv")
                    close(run[f"{at}.{name}.scores"], q @ k.transpose(-1, -2) / math.sqrt(8), 1e-5)
                    pattern = run[f"{at}.{name}.pattern"]
                    assert torch.allclose(pattern.sum(-1), torch.ones(()), atol=1e-5)
                    ratio = (pattern.clamp_min(1e-30).log() - run[f"{at}.{name}.scores"])[pattern > 1e-6]
                    assert ratio.isfinite().all()
                    close(run[f"{at}.{name}.z"], pattern @ v)
                    out = module.output(run[f"{at}.{name}.z"].transpose(1, 2).flatten(2))
                    close(run[f"{at}.{name}.out"], out)
                    x = x + run[f"{at}.{name}.out"]
                    close(run[f"{at}.{after[name]}"], x)
                hidden = layer.feed_forward.expand(layer.sublayers[-1].norm(x))
                close(run[f"{at}.ffn.pre"], hidden)
                close(run[f"{at}.ffn.post"], hidden.relu())
                close(run[f"{at}.ffn.out"], layer.feed_forward.contract(hidden.relu()))
                x = x + run[f"{at}.ffn.out"]
                close(run[f"{at}.resid_post"], x)
            close(run[f"{side}.final"], stack.norm(x))
        close(run["logits"], model.project(run["decoder.final"]), 1e-5)
    output = translator.inspect(run.source_ids[0], run.target_ids[0])
    for kind in TRANSFORMER_KINDS:
        name = f"{kind.side.value}.1.{'cross' if kind.value == 'cross' else 'self'}.pattern"
        weights = output.attention(kind, 1).weights[0]
        close(run[name][0][:, : weights.shape[1], : weights.shape[2]], weights, 1e-5)


def close(actual, expected, tolerance=1e-6):
    scale = max(1.0, float(expected.abs().max()))
    torch.testing.assert_close(actual, expected, atol=tolerance * scale, rtol=0)


def bits(trace) -> list[bytes]:
    arrays = [trace.maps(kind).weights for kind in trace.kinds]
    return [a.tobytes() for a in (*arrays, trace.top_probabilities, trace.log_probability, trace.entropy)]


def test_an_edit_that_adds_nothing_changes_no_bit(translator):
    plain = translator.translate(SHORT)
    names = [place.name for place in translator.places()]
    for nothing in (Add(0.0), Scale(1.0), lambda x, at: x):
        steered = translator.edit({name: nothing for name in names})
        assert bits(steered.translate(SHORT)) == bits(plain)
        searches = [t.beam([plain.source_ids], width=3)[0].hypotheses for t in (steered, translator)]
        assert searches[0] == searches[1]
        actual = steered.inspect(plain)
        assert torch.equal(actual.logits, translator.inspect(plain).logits)


@pytest.mark.parametrize("name", ["decoder.1.self.scores", "decoder.*.cross.pattern"])
def test_an_edit_function_may_write_into_its_tensor(translator, name):
    into, beside = (translator.edit({name: edit}) for edit in (lambda x, at: x.mul_(0.5), lambda x, at: x * 0.5))
    assert bits(into.translate(TEXT)) == bits(beside.translate(TEXT)) != bits(translator.translate(TEXT))


EDITS = {
    "steering": {"decoder.1.resid_post": Add(WIDE, strength=0.5)},
    "one position": {
        "decoder.2.resid_mid": Add(WIDE, positions=(2,)),
        "encoder.1.resid_post": Ablate(positions=(0, 3)),
    },
    "heads": {"decoder.*.cross.z": Ablate(heads=(1, 2)), "encoder.0.self.q": Scale(2.0, heads=(0,))},
    "keys": {"decoder.0.cross.k": Scale(0.5), "decoder.1.self.v": Add(np.ones(8)), "encoder.*.self.k": Scale(1.2)},
    "inside": {"decoder.*.cross.pattern": Scale(0.5), "decoder.1.self.scores": Scale(0.3)},
    "units": {"decoder.0.ffn.pre": Add(np.ones(48)), "*.1.ffn.post": Scale(1.5)},
    "ends": {"encoder.embed": Scale(1.1), "decoder.pos": Scale(0.5), "decoder.final": Scale(1.2)},
    "logits": {"logits": Add(np.linspace(-1, 1, 350)), "decoder.embed": Replace(WIDE, positions=(1,))},
    "rows": {"decoder.0.resid_pre": Replace(np.stack([WIDE, -WIDE]), positions=(1, 3))},
    "function": {"decoder.2.resid_post": lambda x, at: x + at.positions[:, None] * 0.2 * torch.sin(x)},
}


@pytest.mark.parametrize("name", EDITS)
def test_edits_have_the_same_effect_in_steps_beams_batches_and_passes(translator, name):
    steered = translator.edit(EDITS[name])
    trace = steered.translate(SHORT)
    output = steered.inspect(trace)
    log_p = output.logits[0].log_softmax(-1)
    of_trace = log_p[range(len(trace.target_ids)), trace.target_ids]
    np.testing.assert_allclose(of_trace, trace.log_probability, atol=1e-5)
    plain = translator.inspect(trace).logits[0].log_softmax(-1)
    assert (log_p - plain).abs().max() > 1e-3, "it does something"
    (actual,) = steered.beam([trace.source_ids], width=1)
    assert actual.hypotheses[0].ids == trace.target_ids
    wide = steered.beam([trace.source_ids], width=4)[0].hypotheses[0]
    scored = steered.log_probabilities([list(trace.source_ids)], [list(wide.ids)])[0]
    assert sum(scored) == pytest.approx(wide.log_probability, abs=1e-4)
    for other in steered.trace_batch(["Ein rotes Boot.", SHORT, "Hund."]):
        single = steered.translate(other.source_text)
        assert other.target_ids == single.target_ids
        np.testing.assert_allclose(other.log_probability, single.log_probability, atol=1e-5)
    assert steered.translate_batch([SHORT]) == [trace.translation]
    assert steered.trace(SHORT, target=trace.target_ids).log_probability.tobytes() == trace.log_probability.tobytes()


def test_edits_and_interventions_with_edits_are_equal(translator):
    plain = translator.translate(TEXT)
    off = translator.inspect(plain, interventions=Interventions(heads_off=[("cross", 1, 2)]))
    edit = translator.edit({"decoder.1.cross.z": Ablate(heads=(2,))}).inspect(plain)
    assert torch.equal(off.logits, edit.logits)
    clean = translator.run(["Heute scheint die Sonne."], names=["decoder.1.resid_post"])
    rows = clean["decoder.1.resid_post"][:, 1:3]
    patch = Patch(Stream("decoder", 1, "feed_forward"), (1, 2))
    sweep = Sweep(Interventions(patches=[patch]), values={patch: PatchValue(rows)})
    patched = translator.inspect(plain, interventions=sweep)
    edit = translator.edit({"decoder.1.resid_post": Replace(rows[0], positions=(1, 2))})
    assert torch.equal(patched.logits, edit.inspect(plain).logits)


def test_edits_of_an_edited_translator_compose(translator):
    place, text = "decoder.1.ffn.out", TEXT
    half, quarter = Scale(0.5), Scale(0.25)
    twice = translator.edit({place: half}).edit({place: half})
    expected = bits(translator.edit({place: quarter}).translate(text))
    assert bits(twice.translate(text)) == expected
    functions = translator.edit({place: lambda x, at: x / 2}).edit({place: lambda x, at: x / 2})
    assert bits(functions.translate(text)) == expected
    mixed = translator.edit({place: half}).edit({"logits": lambda x, at: x}).edit({place: half})
    assert bits(mixed.translate(text)) == expected


def test_a_trace_of_an_edited_translator_is_not_edited_twice(translator):
    place, half = "decoder.1.ffn.out", Scale(0.5)
    once, twice = translator.edit({place: half}), translator.edit({place: half}).edit({place: half})
    for edited in (once, twice, once.edit({"logits": lambda x, at: x})):
        trace = edited.translate(SHORT)
        for given in (edited.changes, Interventions(edits={place: half})):
            assert bits(edited.translate(SHORT, interventions=given)) == bits(trace)
    more = once.translate(SHORT, interventions=twice.changes)
    assert bits(more) == bits(twice.translate(SHORT))


def test_a_trace_is_read_with_its_own_tokens(translator):
    """The ids of a trace may differ from those of its text."""
    text, place = "Hund.", "decoder.1.resid_post"
    letters = [*map(translator.tokenizer.pieces.index, ("▁", "d", "o", "g")), translator.tokenizer.end_id]
    trace = translator.trace(text, target=letters)
    assert translator.encode_target(trace.translation) != letters
    runs = [
        translator.run(trace, names=[place]),
        translator.run([trace], names=[place]),
        translator.run([text], [trace], names=[place]),
        translator.run([trace.source_ids], [letters], names=[place]),
    ]
    for run in runs:
        assert run.target_ids == (trace.target_ids,) and run.source_ids == (trace.source_ids,)
        assert run.tokens == runs[0].tokens and torch.equal(run[place], runs[0][place])
    mixed = translator.run([text, trace, TEXT], names=[place])
    own = translator.run([text, TEXT], names=[place]).target_ids
    assert mixed.target_ids == (own[0], trace.target_ids, own[1])
    expected = translator.inspect(trace.source_ids, letters)
    for actual in (translator.inspect(trace), translator.inspect(text, trace), translator.inspect(trace, letters)):
        assert torch.equal(actual.logits, expected.logits)
    scores = translator.log_probabilities([trace])
    np.testing.assert_allclose(scores[0], trace.log_probability, atol=1e-5)
    assert scores == translator.log_probabilities([text], [letters]) == translator.log_probabilities([text], [trace])
    typed, encoded = (translator.log_probabilities([text], [dog]) for dog in ("dog", translator.encode_target("dog")))
    assert typed == encoded
    with pytest.raises(ValueError, match="only a trace"):
        translator.inspect(text)
    with pytest.raises(ValueError, match="only traces"):
        translator.log_probabilities([text])
    for wrong in ([5, 6], [None], 5):
        with pytest.raises(ValueError, match=r"list|sentence"):
            translator.run(wrong, names=[place])


def test_a_trace_stores_plain_edits_and_describes_functions(translator):
    trace = translator.edit(EDITS["rows"]).translate(TEXT)
    for back in (storage.from_json(storage.to_json(trace)), storage.from_npz(storage.to_npz(trace))):
        assert back.interventions == trace.interventions
        repeated = translator.translate(TEXT, interventions=back.interventions)
        assert bits(repeated) == bits(trace)
    assert json.dumps(interventions_file.to_plain(trace.interventions))
    trace = translator.edit(EDITS["function"]).translate(TEXT)
    assert trace.interventions.in_words == "decoder.2.resid_post edited by a function"
    assert storage.from_json(storage.to_json(trace)).interventions == trace.interventions
    with pytest.raises(ValueError, match="known in words only"):
        translator.translate(TEXT, interventions=trace.interventions)
    with pytest.raises(ValueError, match="are missing when a pass is taken apart"):
        why.attribute(translator, translator.edit(EDITS["rows"]).translate(TEXT))
    with pytest.raises(ValueError, match="its edits would be missing"):
        why.measure_heads(translator.edit(EDITS["rows"]), translator.translate(TEXT))
    swept = translator.translate(TEXT, interventions=Sweep(gates={TRANSFORMER_KINDS[2]: torch.ones(1, 3, 4)}))
    assert "gates on heads of cross" in storage.from_npz(storage.to_npz(swept)).interventions.in_words


@pytest.mark.long
def test_edits_in_twenty_threads_do_not_affect_each_other(translator):
    edits = [{"decoder.2.resid_post": Add(WIDE, strength=0.1 * i)} for i in range(10)]
    edits += [{"decoder.2.resid_post": lambda x, at, i=i: x + 0.05 * i * x.roll(1, -1)} for i in range(10)]
    expected = [translator.edit(edit).translate(TEXT).log_probability for edit in edits]
    with ThreadPoolExecutor(20) as pool:
        actual = list(pool.map(lambda edit: translator.edit(edit).translate(TEXT).log_probability, edits * 2))
    for single, other in zip(actual, expected * 2):
        assert single.shape == other.shape
        np.testing.assert_allclose(single, other, atol=1e-5)
    assert len({array.tobytes() for array in expected}) > 15


def test_gradients_flow_to_captured_tensors(translator):
    steered = translator.edit({"decoder.1.resid_post": Scale(1.5)})
    run = steered.run([TEXT], names=["encoder.embed", "decoder.*.resid_post", "logits"], grad=True)
    target = run["logits"][0, 2, 7]
    slopes = torch.autograd.grad(target, [run["encoder.embed"], run["decoder.0.resid_post"]])
    assert all(slope.abs().sum() > 0 for slope in slopes)


@pytest.mark.parametrize("edit", [Replace(WIDE), lambda x, at: torch.linspace(-3, 3, 32).expand_as(x)])
@pytest.mark.parametrize("place", ["encoder.embed", "encoder.final", "decoder.0.resid_post"])
def test_gradients_start_at_a_replaced_tensor(translator, place, edit):
    """No gradient flows further back, and the slope equals a finite difference."""
    steered = translator.edit({place: edit})

    def of(edited: Translator) -> Run:
        return edited.run([TEXT], ["Two children"], names=[place, "logits"], grad=True)

    run = of(steered)
    (slope,) = torch.autograd.grad(run["logits"][0, 1, 7], run[place])
    step = 1e-2 * slope / slope.norm()
    less, more = (
        of(steered.edit({place: lambda x, at, step=step: x + step}))["logits"][0, 1, 7].item() for step in (-step, step)
    )
    assert (more - less) / 2e-2 == pytest.approx(slope.norm().item(), rel=1e-2)


def test_many_sentences_stream_in_bounded_memory(translator):
    texts = [SENTENCES[i % len(SENTENCES)] for i in range(30)]
    whole = translator.run(texts, names=["decoder.1.resid_post"])
    parts = list(translator.runs(iter(texts), names=["decoder.1.resid_post"], max_bytes=20_000))
    assert len(parts) > 3 and sum(map(len, parts)) == len(texts)
    assert all(part["decoder.1.resid_post"].nbytes <= 20_000 for part in parts)
    row = 0
    for part in parts:
        for tensor, mask in zip(part["decoder.1.resid_post"], part.mask):
            expected = whole["decoder.1.resid_post"][row][whole.mask[row]]
            torch.testing.assert_close(tensor[mask], expected, atol=1e-5, rtol=0)
            row += 1
    frame = whole.to_frame("decoder.1.resid_post")
    assert len(frame) == int(whole.mask.sum()) and list(frame.columns[:3]) == ["sentence", "position", "token"]
    every = translator.run(texts[:2], names=["*.resid_post"]).to_frame()
    assert list(every.columns[:4]) == ["place", "sentence", "position", "token"]
    layers = ("encoder.0", "encoder.1", "decoder.0", "decoder.1", "decoder.2")
    assert list(every.place.unique()) == [f"{layer}.resid_post" for layer in layers]
    with pytest.raises(ValueError, match=r"name one place: \['decoder.0.ffn.post', 'encoder.final'\] have not"):
        translator.run(texts[:2], names=["decoder.0.ffn.post", "encoder.final"]).to_frame()
    traces = translator.traces(iter(texts[:5]), batch_size=2)
    assert [trace.translation for trace in traces] == translator.translate_batch(texts[:5])


@pytest.mark.parametrize(
    ("edits", "words"),
    [
        ({"decoder.9.resid_post": Scale(2.0)}, "no place is called 'decoder.9.resid_post'"),
        ({"decoder.0.resid_post": Scale(2.0, heads=(0,))}, "has no heads of its own"),
        ({"decoder.0.self.z": Scale(2.0, heads=(4,))}, "heads are 0 to 3, found 4"),
        ({3: Scale(2.0)}, "a place must be given by its name, found 3"),
        ({"decoder.0.self.z": 3}, "must be Add, Replace, Scale, Ablate or a function"),
    ],
)
def test_impossible_edits_are_refused(translator, edits, words):
    with pytest.raises(ValueError, match=words):
        translator.edit(edits)


@pytest.mark.parametrize("edit", [lambda x, at: x * float("nan"), Scale(1e300)], ids=["function", "plain"])
def test_an_edit_that_gives_nan_raises_an_error_with_its_place(translator, edit):
    for place in ("encoder.1.ffn.out", "decoder.1.resid_post"):
        with pytest.raises(ValueError, match=f"the edit of {place} gives numbers that are not finite"):
            translator.edit({place: edit}).translate(TEXT)
    forbidden = translator.edit({"logits": lambda x, at: x.index_fill(-1, torch.tensor([5]), float("-inf"))})
    assert 5 not in forbidden.translate(TEXT).target_ids


def test_an_edit_must_keep_shape_and_dtype(translator):
    for place, edit, words in (
        ("decoder.0.resid_post", lambda x, at: x[..., :1], "must give a tensor of"),
        ("decoder.0.resid_post", Add(np.ones(5)), "a value of width 5"),
        ("encoder.0.resid_post", Scale(0.0, positions=(90,)), r"an edit of encoder\.0\.resid_post is at position 90"),
    ):
        with pytest.raises(ValueError, match=words):
            translator.edit({place: edit}).translate(TEXT)
    with pytest.raises(ValueError, match="as many positions as rows"):
        Add(np.ones((2, 32)), positions=(1,))


def test_torch_hooks_are_called_or_refused_with_the_modules_name(tokenizer, tiny_checkpoint):
    """Decoding and the recorded pass after it both call the hooks."""
    translator = Translator.load(tiny_checkpoint, "cpu")
    plain = translator.translate(SHORT)
    layer = translator.model.decoder.layers[2]

    def double(module, inputs, output):
        return (1.5 * output[0], *output[1:]) if isinstance(output, tuple) else 1.5 * output

    parts = layer.feed_forward, layer.cross_attention, layer.sublayers[1].norm, layer.self_attention.output
    for module in (layer, *parts):
        doubled = module.register_forward_hook(double)
        trace = translator.translate(SHORT)
        output = translator.inspect(trace)
        log_p = output.logits[0].log_softmax(-1)[range(len(trace.target_ids)), trace.target_ids]
        np.testing.assert_allclose(trace.log_probability, log_p.detach(), atol=1e-5)
        doubled.remove()
        assert bits(translator.translate(SHORT)) == bits(plain)
    for module, name in (
        (layer.cross_attention.projection, r"decoder\.layers\.2\.cross_attention\.projection"),
        (layer.sublayers[0], r"decoder\.layers\.2\.sublayers\.0"),
        (translator.model.embedding, "embedding"),
        (translator.model, "the model itself"),
    ):
        hook = module.register_forward_pre_hook(lambda *_: None)
        with pytest.raises(ValueError, match=f"a hook on {name} would never be called"):
            translator.translate(TEXT)
        hook.remove()


def test_globs_match_places_in_the_order_of_the_pass(translator):
    names = [place.name for place in matching(["decoder.*.resid_post", "encoder.0.self.?"], translator.config)]
    assert names[:4] == ["encoder.0.self.q", "encoder.0.self.k", "encoder.0.self.v", "encoder.0.self.z"]
    assert names[4:] == [f"decoder.{i}.resid_post" for i in range(3)]


@pytest.mark.parametrize(
    "damage",
    [
        lambda edit: edit.pop("place"),
        lambda edit: edit.update(kind="explode"),
        lambda edit: edit.update(strength="much"),
        lambda edit: edit.update(colour="red"),
        lambda edit: edit["value"].update(float32="?"),
        lambda edit: edit["value"].update(shape=[31]),
        lambda edit: edit.update(positions=[-1]),
        lambda edit: edit.update(heads=3),
    ],
)
def test_a_damaged_file_of_edits_raises_an_error(damage):
    (plain,) = interventions_file.to_plain(Interventions(edits={"logits": Add(WIDE)}))["edits"]
    damage(plain)
    with pytest.raises(ValueError, match="edit"):
        interventions_file.from_plain({"edits": [plain]})
