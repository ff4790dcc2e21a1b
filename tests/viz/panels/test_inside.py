"""The panels of the tab "Inside": numbers read back from their blocks, compared with numpy and torch.

They run on a pre-norm and on a post-norm model.
"""

from __future__ import annotations

import math
import re
from dataclasses import replace

import numpy as np
import pytest
import sacrebleu
import torch
from scipy.signal import periodogram

from attention_atlas.model.analysis import padding
from attention_atlas.model.trace.kinds import AttentionKind
from attention_atlas.model.training.toy import measure
from attention_atlas.viz.maps.labels import display, row_names
from attention_atlas.viz.panels.inside import (
    add_norm,
    attention,
    feed_forward,
    heads,
    kernels,
    masks,
    plain,
    projections,
    race,
    scale,
    space,
)
from attention_atlas.viz.panels.positions import curves, schemes
from attention_atlas.viz.panels.scene import Scene, Selection
from attention_atlas.viz.panels.verify import bleu
from attention_atlas.viz.wire import blocks
from tests.conftest import build_tiny_model, make_translator
from tests.viz.panels.panels import block_of, blocks_of, decode, numbers_of

TEXT = "Der kleine Hund schläft."


@pytest.fixture(scope="module", params=[True, False], ids=["pre-norm", "post-norm"])
def scene(request, tiny_translator, tokenizer) -> Scene:
    translator = tiny_translator
    if not request.param:
        translator = make_translator(build_tiny_model(tokenizer, norm_first=False), tokenizer)
    return Scene(translator.translate(TEXT), Selection(AttentionKind.DECODER_SELF, 2, 3, 1), translator)


def drawn(content: list[dict]) -> dict[str, np.ndarray]:
    """Return the matrices of a panel's maps by title, decoded as by the page."""
    maps = [heatmap for block in blocks_of(content, "maps") for heatmap in block["maps"]]
    return {str(heatmap["title"]): numbers_of(heatmap) for heatmap in maps}


def test_a_heatmap_contains_every_number() -> None:
    values = np.array([[1.0, -2.5, np.nan], [np.inf, -np.inf, 1e-7]])
    heatmap = blocks.heatmap(values, "title", frame=(0, 1, 2, 2))
    np.testing.assert_array_equal(numbers_of(heatmap), np.where(np.isfinite(values), values, np.nan).astype(np.float32))
    assert heatmap["limit"] == 2.5 and heatmap["frame"] == [0, 1, 2, 2]
    assert blocks.heatmap(np.zeros((1, 1)), "title")["limit"] == 1.0


def test_projections_draw_the_stream_and_its_queries_keys_and_values(scene) -> None:
    output, module = scene.output, scene.translator.model.attention(AttentionKind.CROSS, 1)
    content = projections.project(scene, "cross", 2, 3)
    arrays = drawn(content)
    np.testing.assert_allclose(arrays["x, read by K"], output.memory[0].numpy(), atol=1e-5)
    np.testing.assert_allclose(arrays["K = x W_K + b"][:, 16:24], arrays["K of head 3"], atol=1e-6)
    np.testing.assert_allclose(arrays["V of head 3"], output.attention(AttentionKind.CROSS, 1).values[0, 2], atol=1e-5)
    weight = module.projection.weight.detach().numpy()[16:24].T  # the rows of W_Q for head 3, as columns
    np.testing.assert_allclose(arrays["columns of W_Q for head 3"], weight, atol=1e-6)
    framed = content[3]["maps"][2]
    assert framed["frame"] == [0, 16, len(scene.trace.decoder_inputs), 8]
    assert "V from the memory" in content[0]["text"]


def test_a_wide_model_shows_whole_heads_around_the_selected_one() -> None:
    assert projections.window(256, 32, 7) == (0, 256)
    for head in range(16):
        first, last = projections.window(1024, 64, head)
        assert last - first == 256 and first <= 64 * head and 64 * (head + 1) <= last and first % 64 == 0


def test_heads_show_parts_that_sum_to_what_was_added(scene) -> None:
    content = heads.combine_heads(scene, "encoder_self", 2, 3)
    (table,) = blocks_of(content, "table")
    added = scene.output.encoder_records[1].sublayers[0].added[0, 2].numpy()
    parts = np.array([row[3]["values"] for row in table["rows"]])  # four significant digits
    np.testing.assert_allclose(parts.sum(0), added, atol=4e-3)
    np.testing.assert_allclose(table["foot"][3]["values"], added, atol=1e-3)
    shares = [float(row[5]["text"].rstrip("%").replace("−", "-")) for row in table["rows"]]
    assert sum(shares) == pytest.approx(100, abs=0.3) and len(table["rows"]) == 5


def test_the_attention_panel_draws_the_whole_head(scene) -> None:
    content = attention.attention(scene, "", 0, 0, 0)
    matrices, weights = drawn(content), scene.trace.decoder_self.weights[2, 3]
    np.testing.assert_allclose(matrices["softmax"], weights, atol=1e-5)
    scores = matrices["Q Kᵀ / √8"].astype(np.float64)
    open_cells = np.tri(*scores.shape, dtype=bool)
    np.testing.assert_array_equal(np.isnan(matrices["masked"]), ~open_cells)
    expected = torch.tensor(np.where(open_cells, scores, -np.inf)).softmax(-1).numpy()
    np.testing.assert_allclose(expected, weights, atol=1e-5)
    assert "0 cells" not in str(content) and drawn(attention.attention(scene, "cross", 1, 1, 1))["masked"].size


def test_attention_without_weights_is_drawn_beside_a_trained_head(scene) -> None:
    model, ids = scene.translator.model, torch.tensor([scene.trace.source_ids])
    for which, x in (("alone", model.token_rows(ids)), ("placed", model.embed(ids))):
        content = drawn(plain.plain(scene, which, 2, 3))
        x = x[0].detach().double()
        np.testing.assert_allclose(content["softmax(x xᵀ)"], (x @ x.T).softmax(-1).numpy(), atol=1e-5)
        np.testing.assert_allclose(content["softmax(x xᵀ / √d)"], (x @ x.T / 32**0.5).softmax(-1).numpy(), atol=1e-5)
        np.testing.assert_array_equal(content["layer 2, head 3: trained"], scene.trace.encoder_self.weights[1, 2])


def test_the_kernels_panel_draws_weights_that_make_the_curve(scene) -> None:
    for name in ("gaussian", "attention"):
        content = kernels.kernels(scene, name, 5, 20)
        picture = block_of(content[2]["blocks"], "figure")["figure"]
        weights = drawn(content)["weights: a row per query, a column per point"]
        points, _, fit = (decode(trace["y"]) for trace in picture["data"])
        np.testing.assert_allclose(weights @ points, fit, atol=1e-5)
        np.testing.assert_allclose(weights.sum(-1), 1, atol=1e-5)


def test_the_scale_panel_measures_this_head(scene) -> None:
    content = scale.scale(scene, 50, "cross", 1, 2)
    record = scene.output.attention(AttentionKind.CROSS, 0)
    dots = (record.queries[0, 1].double() @ record.keys[0, 1].double().T).numpy()
    in_model = blocks_of(content, "table")[1]["rows"]
    assert in_model[0][1]["text"] == blocks.compact(float(dots.var()))
    assert in_model[1][1]["text"] == blocks.compact(float((dots / 8**0.5).var()))
    assert in_model[1][2]["text"] == blocks.compact(float(scene.trace.cross.weights[0, 1].max(-1).mean()))
    trained = {row[0]: row[1:] for row in blocks_of(content, "table")[2]["rows"]}
    low, high = measure.read()["wide scale_scores"][50]
    assert trained["d_k = 128"][3] == f"{low:.2g} – {high:.2g}" and trained.keys() == {"d_k = 16", "d_k = 128"}
    marks = [note["text"] for part in content[1]["blocks"] for note in part["figure"]["layout"]["annotations"]]
    assert marks[0] == "d_k = 50" and marks[1]["say"] == "this model: {n}" and marks[1]["with"]["n"] == 8


def test_the_race_runs_at_sizes_that_its_heads_divide(scene) -> None:
    for num_heads, d_model, width in ((8, 32, 32), (5, 32, 30), (32, 16, 32)):
        content = race.race(scene, 2, 3, d_model, num_heads, 1)
        sizes = {row[0]: [cell["text"] for cell in row[1:]] for row in blocks_of(content, "table")[0]["rows"]}
        names = ("batch", "length", "d_model", "heads", "d_k")
        expected = ["2", "3", str(width), str(num_heads), str(width // num_heads)]
        assert [sizes[name][1] for name in names] == expected
        assert sizes["d_model"][0] == "32" and sizes["heads"][0] == "4"
        assert float(sizes["relative error"][0]) < 1e-5 and float(sizes["relative error, projected at once"][0]) < 1e-6
        assert any("is not divisible by" in block.get("text", "") for block in content) is (width != d_model)


def test_the_space_panel_lists_neighbours_and_sums_and_refuses_two_words(scene) -> None:
    word = space.longest_piece(scene.trace, scene.translator)
    content = space.embedding_space(scene, word, "")
    assert len(content[1]["blocks"][0]["blocks"][0]["rows"]) == 10
    assert any("single pieces" in str(part) for part in content[1]["blocks"][-1]["blocks"])
    several, summed = space.embedding_space(scene, "Donaudampfschiff", f"{word} − {word} + {word} = Dampfschiff")[1][
        "blocks"
    ][:2]
    assert re.search(r"Donaudampfschiff consists of \d+ pieces here \(.*\); the mean", str(several))
    assert "Rank of Dampfschiff" in str(summed)
    with pytest.raises(ValueError, match="not a word analogy"):
        space.embedding_space(scene, "two words", "")


def test_masks_and_weights_of_a_padded_batch_are_drawn(scene) -> None:
    batch = padding.make_batch_masks(scene.translator, scene.trace)
    sentences = blocks_of(masks.show_masks(scene, "masks", ""), "maps")
    assert len(sentences) == 2
    for i, block in enumerate(sentences):
        content = drawn([block])
        for name, mask in batch.squares(i).items():
            np.testing.assert_array_equal(content[str(masks.TITLES[name][1])], mask)
        assert block["maps"][0]["columns"] == [*map(display, batch.tokens[i])]
        names, expected = block["maps"][-1]["rows"], row_names(scene.trace, AttentionKind.CROSS)
        assert len(names) == len(batch.inputs[i]) and (i or names[: len(expected)] == expected)
    output = padding.run_padded(scene.translator, batch)
    content = drawn([blocks_of(masks.show_masks(scene, "weights", ""), "maps")[1]])
    np.testing.assert_array_equal(content["Cross-attention"], output.attention(AttentionKind.CROSS, 2).weights[1, 3])
    np.testing.assert_array_equal(
        content["Encoder self-attention"], output.attention(AttentionKind.ENCODER_SELF, 1).weights[1, 3]
    )


def test_add_and_norm_shows_the_formula_with_this_tokens_numbers(scene) -> None:
    content = add_norm.add_and_norm(scene, "decoder", 2, 3, 4)
    passed = scene.output.decoder_records[1].sublayers[2]
    with torch.inference_mode():
        read, recorded = passed.norm_input[0, 3].double(), passed.norm(passed.norm_input)[0, 3].tolist()
        gain, bias = passed.norm.gain.double(), passed.norm.bias.double()
        normed = torch.nn.functional.layer_norm(read, (32,), gain, bias, passed.norm.epsilon).tolist()
    read = read.numpy()
    rows = blocks_of(content, "table")[1]["rows"]
    for i, row in enumerate(rows):
        assert row[1]["text"] == blocks.compact(float(read[i]))
        assert (row[6]["text"], row[7]["text"]) == (blocks.compact(normed[i]), blocks.compact(recorded[i]))
    items = content[-1]["items"]
    assert items[0][1] == blocks.compact(float(read.std())) and items[1][1] == blocks.compact(float(read.std(ddof=1)))
    assert blocks.compact(float(read.mean())) in content[3]["text"]
    norm_first = scene.translator.config.norm_first
    assert content[3]["source"].endswith("reads x" if norm_first else "reads the sum x + f(x)")


def test_the_preset_breaks_a_position_code_and_shows_where(scene) -> None:
    content = schemes.schemes(scene, "collision", 64, 64, "10000")
    row = next(row for row in blocks_of(content, "table")[0]["rows"] if row[0] == "sine only")
    assert row[1]["passed"] is False and "closest codes: positions 11 and 344" in row[1]["text"]
    for name in ("sine and cosine", "this model’s own table, 64 positions"):
        assert next(row for row in blocks_of(content, "table")[0]["rows"] if row[0] == name)[1]["passed"] is True


def test_schemes_name_positions_that_share_a_code_with_minus_one(scene) -> None:
    content = schemes.schemes(scene, "", 16, 64, "inf")
    outside = next(table for table in blocks_of(content, "table") if "Error in 32 bits" in table["columns"])
    assert {row[0]: row[1] for row in outside["rows"]}["binary index"] == "the same code as position 15"
    gradients = block_of(content[-1]["blocks"], "table")["rows"]
    assert [cell["text"] for cell in gradients[0][1:]] == ["1.00", "15.0", "63.0"]
    assert gradients[2][0] == "binary index" and gradients[2][-1] == "–", "position 63 has no code"


def test_curves_are_columns_of_the_models_table(scene) -> None:
    table = scene.translator.model.source_positions.table.numpy()
    for which, dimensions in (("sines", [4, 8]), ("cosines", [5, 9]), ("both", [4, 5, 8, 9])):
        picture = curves.curves(scene, which, 2, 2, 20)[1]["figure"]
        drawn_curves = [decode(line["y"]) for line in picture["data"]][: len(dimensions)]
        np.testing.assert_allclose(drawn_curves, table[:20, dimensions].T, atol=1e-6)


def test_bleu_marks_words_and_draws_the_penalty(scene) -> None:
    translation = replace(scene, trace=replace(scene.trace, translation="A small dog sleeps"))
    content = bleu.score(translation, "A small dog is asleep now", 2)
    marked = block_of(content, "marked")["texts"]
    assert marked[0]["words"] == [["A", 2], ["small", 2], ["dog", 2], ["sleeps", 0]]
    assert [n for _, n in marked[1]["words"]] == [2, 2, 2, 0, 0, 0]
    picture = block_of(content, "figure")["figure"]
    penalties = decode(picture["data"][0]["y"])
    expected = [min(1.0, math.exp(1 - 6 / c)) for c in range(1, 13)]
    np.testing.assert_allclose(penalties, expected, atol=1e-6)
    reference = sacrebleu.BLEU(effective_order=True, max_ngram_order=2).sentence_score(
        "A small dog sleeps", ["A small dog is asleep now"]
    )
    facts = block_of(content, "facts")["items"]
    assert facts[0][1] == f"{reference.score:.1f}" and facts[1][1] == f"{reference.bp:.3f}"


@pytest.mark.parametrize(("which", "dimensions"), [("sines", [2, 6, 10, 14]), ("both", [2, 3, 6, 7, 10, 11, 14, 15])])
def test_curves_of_a_learned_table_are_its_columns(tokenizer, which, dimensions) -> None:
    model = build_tiny_model(tokenizer, position_code="learned")
    translator = make_translator(model, tokenizer)
    learned = Scene(translator.translate(TEXT), Selection(), translator)
    assert curves.PANEL.unmet_needs(learned) == ()
    content = curves.PANEL.content(learned, which, 1, 2, 20)
    rows, values = content[-1]["rows"], model.source_positions.weight[:20].detach().numpy()
    assert [row[0] for row in rows] == [f"dimension {i}" for i in dimensions]
    for row, i in zip(rows, dimensions):
        column = values[:, i]
        assert [cell["text"] for cell in row[1:4]] == [
            blocks.compact(float(n)) for n in (column.min(), column.max(), np.abs(np.diff(column)).max())
        ]
        frequencies, power = periodogram(column, detrend="constant")
        assert row[4]["text"] == blocks.compact(float(1 / frequencies[power.argmax()]))
        assert row[5]["share"] == pytest.approx(float(power.max() / power.sum()), abs=1e-3)


@pytest.mark.parametrize(("side", "layer"), [("encoder", 2), ("decoder", 3)])
def test_feed_forward_lists_the_most_active_units_of_each_token(scene, side, layer) -> None:
    content = feed_forward.PANEL.content(scene, side, layer)
    records = scene.output.encoder_records if side == "encoder" else scene.output.decoder_records
    active = records[layer - 1].activations[0].numpy()
    (chart,) = block_of(content, "bars")["charts"]
    shares = [share for _, (share,), _ in chart["rows"]]
    np.testing.assert_allclose(shares, (active > 0).mean(-1), atol=1e-3)
    best = [set(np.argsort(row)[-feed_forward.LISTED :].tolist()) for row in active]
    times = {unit: sum(unit in units for units in best) for unit in set.union(*best)}
    listed = dict(re.findall(r"(\d+) \(× (\d+)\)", str(block_of(content, "facts")["items"][2][2])))
    expected = sorted((count for count in times.values() if count > 1), reverse=True)[:5]
    assert [int(count) for count in listed.values()] == expected
    assert all(times[int(unit)] == int(count) for unit, count in listed.items())
