"""The recurrent network compared with the Transformer: their maps, their most attended words, and time per update."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, replace

import numpy as np
import pytest
import torch

from attention_atlas.model.analysis.formulas.scoring import additive_stages
from attention_atlas.model.analysis.gates import Unit, unit_steps, widths
from attention_atlas.model.analysis.rerun import record_pass
from attention_atlas.model.checks.oracle import torch_unit
from attention_atlas.model.nets.recurrent import Recurrent, RecurrentConfig
from attention_atlas.model.nets.transformer import Transformer
from attention_atlas.model.trace.tokens import is_symbol
from attention_atlas.model.training.pace import measure
from attention_atlas.model.translator import Translator
from attention_atlas.model.translators import Translators
from attention_atlas.viz.panels.heads import units
from attention_atlas.viz.panels.scene import Scene, Selection
from attention_atlas.viz.panels.train import recurrent
from attention_atlas.viz.questions.panels import answer_why
from attention_atlas.viz.words import for_page
from tests.conftest import SENTENCES, make_translator
from tests.viz.panels import panels


@pytest.fixture(scope="module")
def served(tiny_translator, recurrent_checkpoint) -> Translators:
    return Translators([tiny_translator, Translator.load(recurrent_checkpoint, "cpu")])


@pytest.fixture(params=["de-en", "de-en (gru)"])
def scene(request, served) -> Scene:
    translator = served[request.param]
    trace = translator.trace(SENTENCES[0], "de-en", target=translator.encode_target(SENTENCES[1], "de-en"))
    return Scene(trace, Selection().clamp(trace), translator, served=served)


def between_words(weights: np.ndarray, rows: tuple[str, ...], columns: tuple[str, ...]) -> np.ndarray:
    """Merge weights [query, key] of tokens into words, which start at a leading space or a full stop."""

    def groups(tokens: tuple[str, ...]) -> list[list[int]]:
        lengths: list[list[int]] = []
        for at, token in enumerate(tokens):
            if is_symbol(token):
                continue
            lengths.append([at]) if token.startswith("▁") or token == "." else lengths[-1].append(at)
        return lengths

    summed = np.stack([weights[:, group].sum(1) for group in groups(columns)], 1)
    return np.stack([summed[group].mean(0) for group in groups(rows)])


def test_both_networks_read_the_shown_translation(scene, served) -> None:
    other = recurrent.counterpart(scene)
    assert {type(other.model), type(scene.translator.model)} == {Transformer, Recurrent}
    traces = recurrent.read_by_both(scene, other)
    assert traces[type(scene.translator.model)] is scene.trace
    for kind, trace in traces.items():
        translator = next(entry for entry in served.all if type(entry.model) is kind)
        assert translator.tokenizer.decode(list(trace.target_ids)) == scene.trace.translation
        output = translator.inspect(trace.source_ids, trace.target_ids)
        weights = output.weights(output.kinds[-1])[:, 0].numpy()
        score_map = dict(zip((Transformer, Recurrent), recurrent.select_maps(traces, recurrent.MEAN)))[kind]
        expected = between_words(weights.mean((0, 1)), trace.target_tokens, trace.source_tokens)
        np.testing.assert_allclose(score_map.values, expected, atol=1e-5)


def test_the_head_most_like_the_alignment_shares_the_most_weight_with_it(scene) -> None:
    traces = recurrent.read_by_both(scene, recurrent.counterpart(scene))
    ours, sides = traces[Transformer], (traces[Transformer].target_tokens, traces[Transformer].source_tokens)
    aligned = between_words(traces[Recurrent].alignment.weights[0, 0], *sides)
    heads = {
        (layer, head): between_words(ours.cross.weights[layer, head], *sides)
        for layer, head in np.ndindex(ours.cross.weights.shape[:2])
    }
    common = {place: np.minimum(weights, aligned).sum() / len(aligned) for place, weights in heads.items()}
    likest, alignment, title = recurrent.select_maps(traces, recurrent.LIKEST)
    best = max(common, key=common.get)
    np.testing.assert_allclose(likest.values, heads[best], atol=1e-5)
    np.testing.assert_allclose(alignment.values, aligned, atol=1e-5)
    assert recurrent.shared_weight(likest, alignment) == pytest.approx(common[best], abs=1e-5)
    assert title == f"Cross-attention, layer {best[0] + 1}, head {best[1] + 1}"
    telling, _, title = recurrent.select_maps(traces, recurrent.TELLING)
    place = tuple(int(number) - 1 for number in re.findall(r"\d+", title))
    np.testing.assert_allclose(telling.values, heads[place], atol=1e-5)


def test_the_panel_compares_most_attended_words_and_log_probabilities(scene, served) -> None:
    content = recurrent.compare(scene, recurrent.MEAN)
    json.dumps(for_page(content), allow_nan=False)
    other = recurrent.counterpart(scene)
    traces = recurrent.read_by_both(scene, other)
    cards = panels.block_of(content, "cards")["items"]
    assert cards[[Transformer, Recurrent].index(type(scene.translator.model))][1] == scene.trace.translation
    for (_, _, note), kind in zip(cards, (Transformer, Recurrent), strict=True):
        translator = next(entry for entry in served.all if type(entry.model) is kind)
        (total,) = map(sum, translator.log_probabilities([traces[kind].source_ids], [traces[kind].target_ids]))
        assert f"{abs(total):#.3g}".rstrip(".") in note
    maps = recurrent.select_maps(traces, recurrent.MEAN)[:2]
    table = panels.block_of(content, "table")
    assert len(table["rows"]) == len(maps[0].rows)
    for number, (row, ours, theirs) in enumerate(zip(table["rows"], maps[0].values, maps[1].values, strict=True)):
        assert [row[1]["text"], row[3]["text"]] == [maps[0].columns[values.argmax()] for values in (ours, theirs)]
        assert [row[2]["share"], row[4]["share"]] == pytest.approx([ours.max(), theirs.max()], abs=1e-3)
        assert (number in table["marked"]) is bool(ours.argmax() != theirs.argmax())
    agreed = panels.block_of(content, "facts")["items"][0][1]
    assert agreed == f"{len(table['rows']) - len(table['marked'])} of {len(table['rows'])} words"


@pytest.mark.parametrize("name", ["kernels", "position-schemes"])
def test_panels_without_a_model_work_with_either_network(scene, name) -> None:
    panel = panels.named(name)
    assert panel.unmet_needs(scene) == ()
    for values in panels.settings(panel, scene):
        assert panels.contents(panel, scene, *values)[-1]


def test_without_a_second_network_the_panel_shows_only_times_per_update(tiny_translator, served) -> None:
    trace = tiny_translator.translate("Le chien", "en-fr")
    for around in (None, Translators([tiny_translator]), served):
        scene = Scene(trace, Selection(), tiny_translator, served=around)
        for content in (
            recurrent.compare(scene, recurrent.TELLING),
            panels.contents(panels.named("recurrent"), scene, recurrent.TELLING)[-1],
        ):
            assert "needs both a Transformer and a recurrent network" in content[0]["text"]
            assert content[-2]["type"] == "figure"


def test_the_panel_shows_the_measured_medians(scene) -> None:
    measurements = measure.read()
    assert measurements.processor and measurements.rounds >= 3
    assert measurements.lengths == tuple(sorted(measurements.lengths))
    assert max(measurements.parameters.values()) < 1.01 * min(measurements.parameters.values())
    for name, config in measure.CONFIGS.items():
        assert measurements.parameters[name] == measure.Updates(config).parameters
        assert all(0 < low <= middle <= high for low, middle, high in measurements.seconds[name])
    picture = panels.blocks_of(recurrent.compare(scene, recurrent.MEAN), "figure")[-1]["figure"]
    names = (("Transformer", "transformer"), ("recurrent network", "recurrent"))
    for line, (title, name) in zip(picture["data"], names, strict=True):
        assert title in json.dumps(line["name"])
        np.testing.assert_allclose(
            panels.decode(line["y"]), [1e3 * middle for _, middle, _ in measurements.seconds[name]], rtol=1e-5
        )


def test_the_measuring_program_writes_a_file_and_damaged_files_are_refused(tmp_path, capsys) -> None:
    path = tmp_path / "measured.json"
    measure.main(["--lengths", "2", "4", "--tokens", "8", "--rounds", "2", "--out", str(path)])
    measurements = measure.read(path)
    assert measurements.lengths == (2, 4) and measurements.tokens == 8 and measurements.rounds == 2
    assert "recurrent, 2,257,920 parameters: 2: " in capsys.readouterr().err
    for damage in ({"lengths": [2]}, {"seconds": {}}, {"more": 1}):
        path.write_text(json.dumps({**asdict(measurements), **damage}))
        with pytest.raises(ValueError, match=r"measured\.json does not say how long"):
            measure.read(path)


def test_the_stages_of_additive_attention_equal_the_recorded_ones(shipped_translators) -> None:
    translator = shipped_translators[shipped_translators.find("de-en", "gru-de-en").label]
    trace = translator.translate("Der Hund schläft unter dem Tisch.", "de-en")
    output = record_pass(translator, trace)
    model, memory = translator.model, output.memory[0].double()
    for row in range(len(trace.target_ids)):
        stages = additive_stages(model, output, row, trace.decoder_ids)
        embedded = model.embedding.weight[trace.decoder_ids[row]] * model.config.d_model**0.5
        np.testing.assert_allclose(stages.token, embedded.detach().numpy(), atol=1e-5)
        query = model.attention.of_query.weight.double().detach().numpy() @ stages.state
        np.testing.assert_allclose(stages.query, query, atol=1e-5)
        assert stages.error < 1e-5
        np.testing.assert_allclose(stages.recorded, trace.alignment.weights[0, 0, row], atol=1e-6)
        keys = torch.nn.functional.linear(memory, *(p.double() for p in model.attention.of_key.parameters()))
        np.testing.assert_allclose(stages.keys, keys.detach().numpy(), atol=1e-4)
        np.testing.assert_allclose(stages.context, stages.recorded @ memory.numpy(), atol=1e-4)


@pytest.mark.parametrize("checkpoint", ["de-en", "gru-de-en"])
def test_either_network_shows_the_stages_and_both_scores(shipped_translators, checkpoint) -> None:
    translator = shipped_translators[shipped_translators.find("de-en", checkpoint).label]
    trace = translator.translate("Der Hund schläft.", "de-en")
    scene = Scene(trace, Selection().clamp(trace), translator, served=shipped_translators)
    table = panels.block_of(panels.named("additive").content(scene, 2), "table")
    assert len(table["rows"]) > len(["Der", "Hund", "schläft", "."])
    blocks = panels.named("recurrent").content(scene, recurrent.LIKEST)
    (scores,) = (block for block in panels.blocks_of(blocks, "table") if block["columns"][0] == "Test set")
    assert len(scores["rows"]) >= 2
    bare = Scene(trace, Selection().clamp(trace), shipped_translators["de-en"])
    assert [block["type"] for block in panels.named("additive").content(bare, 1)] == ["text"]


@pytest.mark.parametrize("attention", [True, False])
def test_every_panel_of_any_network_draws_a_recurrent_one(tokenizer, attention):
    torch.manual_seed(5)
    config = RecurrentConfig(len(tokenizer), d_model=16, attention=attention, pad_id=tokenizer.pad_id, max_length=64)
    translator = make_translator(Recurrent(config).eval(), tokenizer)
    trace = translator.translate(SENTENCES[0])
    scene = Scene(trace, Selection().clamp(trace), translator, served=Translators([translator]))
    drawn = [panel for panel in panels.EVERY if not panel.unmet_needs(scene)]
    named = {"map", "embedding", "space", "logits", "batch", "gates", "why-tokens", "why-holds"}
    assert named < {panel.name for panel in drawn}
    for panel in drawn:
        if attention or panel.name in named:  # the page cannot open a network without any map
            content = panels.contents(panel, scene, *next(panels.settings(panel, scene)))[-1]
            assert content and json.dumps(for_page(content), allow_nan=False), panel.name
    answer = answer_why(scene)
    assert answer["most"] > len(trace.target_ids) and "refused" not in answer
    lines = panels.block_of(panels.named("why-tokens").content(scene), "matrix")["lines"]
    methods = [line["key"] for line in lines]
    assert ("cross_attention" in methods) is attention and "integrated_gradients" in methods


def test_the_slider_of_units_works_without_a_feed_forward(served):
    translator = served["de-en (gru)"]
    assert units.UNIT.of(translator.translate(SENTENCES[0]), translator) == 1


@torch.inference_mode()
def test_the_gates_are_those_of_torchs_gru(served):
    translator = served["de-en (gru)"]
    trace = translator.translate(SENTENCES[0])
    model, output = translator.model, record_pass(translator, trace)
    source = model.token_rows(torch.tensor([trace.source_ids]))
    contexts = torch.from_numpy(trace.alignment.weights[0]) @ output.memory
    target = torch.cat((model.token_rows(torch.tensor([trace.decoder_ids])), contexts), dim=-1)
    start = model.encode(torch.tensor([trace.source_ids])).start
    for unit, rows, first in (
        (Unit.FORWARDS, source, None),
        (Unit.BACKWARDS, source.flip(1), None),
        (Unit.WRITER, target, start[None]),
    ):
        steps = unit_steps(translator, trace, output, unit)
        expected, _ = torch_unit(getattr(model, unit.value))(rows, first)
        expected = expected[0].flip(0) if unit is Unit.BACKWARDS else expected[0]
        np.testing.assert_allclose(steps.after, expected, atol=1e-5)
        blended = (1 - steps.update) * steps.new + steps.update * steps.before
        np.testing.assert_allclose(steps.after, blended, atol=1e-5)
        assert steps.error < 1e-5


@pytest.mark.parametrize("unit", [unit.value for unit in Unit])
def test_the_panel_draws_the_gates_of_one_token(scene, unit):
    content = panels.named("gates").content(scene, unit, 3)
    json.dumps(for_page(content), allow_nan=False)
    translator, trace = recurrent.recurrent_reading(scene)
    steps = unit_steps(translator, trace, record_pass(translator, trace), Unit(unit))
    parts, tokens = panels.blocks_of(content, "table")
    h, r, z, n, kept, replaced, after = (row[2]["values"] for row in parts["rows"])
    for values, expected in ((h, steps.before), (r, steps.reset), (z, steps.update), (n, steps.new)):
        np.testing.assert_allclose(values, expected[2], rtol=1e-3, atol=1e-6)
    np.testing.assert_allclose(np.add(kept, replaced), after, atol=1e-3)
    assert tokens["marked"] == [2] and len(tokens["rows"]) == len(steps.after)
    assert [row[2]["share"] for row in tokens["rows"]] == pytest.approx(steps.update.mean(-1).tolist(), abs=1e-3)
    bare = Scene(scene.trace, made_by=scene.translator)
    if type(scene.translator.model) is Transformer:
        assert "No recurrent network" in panels.named("gates").content(bare, unit, 1)[0]["text"]


@torch.inference_mode()
@pytest.mark.parametrize("attention", [True, False])
def test_the_map_has_the_shapes_of_real_tensors(served, attention):
    model = served["de-en (gru)"].model
    shapes = widths(model, attention=attention)
    built = Recurrent(replace(model.config, attention=attention)).eval()
    seen = {}
    for name in ("forwards.recall", "backwards.recall", "writer.read", "writer.recall", "readout", "bridge"):
        built.get_submodule(name).register_forward_hook(
            lambda _, inputs, __, name=name: seen.update({name: inputs[0].shape[-1]})
        )
    source = torch.tensor([[20, 21, 22]])
    output = built(source, torch.tensor([[1, 30]]))
    assert seen["forwards.recall"] == seen["backwards.recall"] == shapes.direction
    assert (seen["writer.read"], seen["writer.recall"]) == (shapes.unit_input, shapes.state)
    assert (seen["readout"], seen["bridge"]) == (shapes.readout, shapes.memory)
    assert output.memory.shape[-1] == shapes.memory and output.logits.shape[-1] == shapes.vocabulary
    assert built.token_rows(source).shape[-1] == shapes.embedding and shapes.attention is attention
    assert shapes.parameters == sum(parameter.numel() for parameter in built.parameters())


def test_the_map_begins_with_the_network_of_the_page(served):
    translator = served["de-en (gru)"]
    trace = translator.translate(SENTENCES[0])
    content = panels.named("map").content(Scene(trace, Selection().clamp(trace), translator, served=served))
    json.dumps(for_page(content), allow_nan=False)
    block = panels.block_of(content, "network")
    assert [shapes["attention"] for shapes in block["maps"]] == [True, False]
    assert block["source"] == len(trace.source_ids)
    opened = {to["open"]["panel"] for to in block["opens"].values()}
    assert {"gates", "additive"} < opened and opened <= {panel.name for panel in panels.EVERY}
