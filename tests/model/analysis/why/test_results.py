"""Tests of results: tables, files, notebook cells, inseq's files, and attribute_batch()."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import numpy as np
import pytest
import safetensors.torch
import torch

from attention_atlas.model.analysis import why
from attention_atlas.model.analysis.why.case import open_case_at
from attention_atlas.model.trace.kinds import AttentionKind
from attention_atlas.model.trace.translation import TranslationTrace
from attention_atlas.model.trace.why.attribution import Why
from attention_atlas.model.trace.why.effects import HeadEffects
from attention_atlas.model.trace.why.evidence import to_jsonable
from tests.conftest import SENTENCES
from tests.model.analysis.why.cases import measure_rows

STEP = 3
FEW = ("occlusion_by_mask", "alti", "cross_attention")


@pytest.fixture(scope="module")
def answers(tiny_translator, trace):
    return (
        why.attribute(tiny_translator, trace, step=STEP, methods=FEW),
        why.split_logit(tiny_translator, trace, step=STEP),
        why.measure_heads(tiny_translator, trace, step=STEP),
        why.patch(tiny_translator, trace, SENTENCES[2], step=STEP),
        why.find_smallest_set(tiny_translator, trace),
    )


def test_saved_results_load_bit_by_bit(answers, tmp_path):
    for answer in answers:
        path = tmp_path / f"{type(answer).__name__}.json"
        answer.save(path)
        reloaded = type(answer).load(path)
        assert to_jsonable(reloaded) == to_jsonable(answer) and type(reloaded) is type(answer)
        reloaded.save(tmp_path / "again.json")
        assert (tmp_path / "again.json").read_bytes() == path.read_bytes()
    loaded = Why.load(tmp_path / "Why.json")
    assert (loaded.columns.special == answers[0].columns.special).all(), "a symbol is still one"
    with pytest.raises(ValueError, match=r"Why\.json is no saved HeadEffects"):
        HeadEffects.load(tmp_path / "Why.json")
    with pytest.raises(ValueError, match="a Why is written as JSON"):
        loaded.save(tmp_path / "why.npz")
    assert not (tmp_path / "why.npz").exists()
    for wrong in ("[]", "{}", json.dumps({"schema": "attention-atlas-result", "version": 1, "result": "Why", "x": 1})):
        (tmp_path / "wrong.json").write_text(wrong)
        with pytest.raises(ValueError, match="is no saved Why"):
            Why.load(tmp_path / "wrong.json")
    (tmp_path / "trace.json").write_text(json.dumps({"schema": "attention-atlas-trace", "version": 2}))
    with pytest.raises(ValueError, match="its schema, version and result are 'attention-atlas-trace', 2 and None"):
        Why.load(tmp_path / "trace.json")


def test_tables_hold_every_number(answers):
    matrix, parts, heads, patched, smallest = (answer.to_frame() for answer in answers)
    assert list(matrix["occlusion_by_mask"]) == list(answers[0].row("occlusion_by_mask").values)
    assert parts["nats"].sum() == pytest.approx(answers[1].sum.found, abs=1e-9)
    cross = heads[(heads.kind == "cross") & (heads.layer == 1)]
    assert list(cross.effect) == list(answers[2].effects[AttentionKind.CROSS][1]) and heads["flips"].dtype == bool
    assert patched.metric.to_numpy().reshape(answers[3].metrics.shape) == pytest.approx(answers[3].metrics, nan_ok=True)
    assert list(patched["at"][: len(answers[3].columns)]) == list(answers[3].columns)
    assert {(*row,) for row in smallest.itertuples(index=False)} == {(k.value, i, h) for k, i, h in answers[4].kept}


def test_results_have_html_for_notebooks(answers, tiny_translator):
    for answer in answers:
        html = answer._repr_html_()
        assert "<table" in html and "<script" not in html and answer.about().split("<")[0] in html
    run = tiny_translator.run([SENTENCES[0]], names=["encoder.final"])
    assert f"<td>encoder.final</td><td>{list(run['encoder.final'].shape)}</td>" in run._repr_html_()


def test_traces_save_by_suffix_and_have_a_table(trace, tmp_path):
    for name in ("trace.json", "trace.npz"):
        trace.save(tmp_path / name)
        reloaded = TranslationTrace.load(tmp_path / name)
        assert (reloaded.cross.weights == trace.cross.weights).all() and reloaded.target_tokens == trace.target_tokens
    frame = trace.to_frame()
    assert list(frame.token) == list(trace.target_tokens)
    assert np.log(frame.probability).sum() == pytest.approx(float(trace.log_probability.sum()), abs=1e-5)


def test_attribute_batch_matches_attribute(tiny_translator, trace):
    mixed = [SENTENCES[1], trace, SENTENCES[2]]
    answers = list(why.attribute_batch(tiny_translator, iter(mixed), methods=FEW, batch_size=2))
    alone = [
        why.attribute(tiny_translator, tiny_translator.translate(one) if isinstance(one, str) else one, methods=FEW)
        for one in mixed
    ]
    for many, one in zip(answers, alone, strict=True):
        assert many.question == one.question
        np.testing.assert_allclose(many.row("alti").values, one.row("alti").values, atol=1e-5)
    stream = why.attribute_batch(tiny_translator, [*SENTENCES[:2], " ", "never read"], methods=FEW, batch_size=1)
    assert next(stream).columns.labels and next(stream).columns.labels
    with pytest.raises(ValueError, match="text 2: The text is empty"):
        next(stream)


def test_attribute_batch_shows_progress(tiny_translator, capsys):
    assert len(list(why.attribute_batch(tiny_translator, SENTENCES[:2], methods=FEW[1:], progress=True))) == 2
    assert "2/2" in capsys.readouterr().err


def test_integrated_gradients_accept_a_baseline(tiny_translator, trace):
    case = open_case_at(tiny_translator, trace, STEP, "boat")
    width = case.source_rows.shape[-1]
    zeros = np.zeros(width, np.float32), np.zeros(case.target_rows.shape[1:], np.float32)
    options = {"step": case.question.step, "contrast": case.question.contrast_id, "methods": ("integrated_gradients",)}
    row = why.attribute(tiny_translator, trace, baseline=zeros, **options).rows[0]
    at_zero = measure_rows(case, torch.zeros_like(case.source_rows), torch.zeros_like(case.target_rows))
    assert row.sum.expected == pytest.approx(case.metric() - at_zero, abs=1e-4) and row.sum.holds
    assert "given baseline" in row.notes[0]
    for invalid in ((np.zeros((2, width)), zeros[0]), zeros[0], np.zeros((9, width)), "zero"):
        with pytest.raises(ValueError, match="a baseline is a pair, of source"):
            why.attribute(tiny_translator, trace, baseline=invalid, **options)


def test_inseq_files_are_written_and_read(tiny_translator, tmp_path):
    trace = tiny_translator.trace("Ein Hund.", target="A dog.")
    steps = range(1, len(trace.target_ids))
    answers = [why.attribute(tiny_translator, trace, step=step, methods=FEW, words=False) for step in steps]
    path = tmp_path / "inseq.json"
    why.to_inseq(path, trace, answers, "alti")
    (attribution,) = why.from_inseq(path)
    assert (attribution.source, attribution.target) == (trace.source_tokens, trace.target_tokens)
    assert attribution.method == "alti" and attribution.start == 1
    source = len(trace.source_ids)
    for column, answer in enumerate(answers):
        values = answer.row("alti").values
        np.testing.assert_allclose(attribution.source_scores[:, column], values[:source], atol=1e-6)
        read = column + 1
        np.testing.assert_allclose(attribution.target_scores[:read, column], values[source + 1 :], atol=1e-6)
        assert np.isnan(attribution.target_scores[read:, column]).all(), "not read yet"
    np.testing.assert_allclose(attribution.step_scores["probability"], np.exp(trace.log_probability[1:]), rtol=1e-6)
    assert list(attribution.to_frame().columns[:3]) == ["side", "token", f"1 {trace.target_tokens[1]}"]
    with pytest.raises(ValueError, match="consecutive steps"):
        why.to_inseq(path, trace, answers[::2], "alti")
    with pytest.raises(ValueError, match="words=False"):
        why.to_inseq(path, trace, [why.attribute(tiny_translator, trace, step=1, methods=FEW)], "alti")


def test_inseq_files_with_lists_and_embedding_scores_are_read(tmp_path):
    """As `save(ndarray_compact=False)` writes them, of a method that keeps each embedding's own numbers."""
    tokens = [
        {"__instance_type__": ["inseq.utils.typing", "TokenWithId"], "attributes": {"token": t, "id": 5}} for t in "ab"
    ]
    array = {"__ndarray__": [[[1.0, 2.0]], [[3.0, NAN]]], "dtype": "float32", "shape": [2, 1, 2], "Corder": True}
    attributes = {"source": tokens, "target": tokens[:1], "source_attributions": array, "target_attributions": None}
    sequence = {"__instance_type__": ["inseq.data.attribution", "GradientFeatureAttributionSequenceOutput"]}
    output = {
        "sequence_attributions": [{**sequence, "attributes": attributes}],
        "info": {"attribution_method": "saliency"},
    }
    path = tmp_path / "out.json"
    path.write_text(json.dumps({"__instance_type__": ["inseq.data.attribution", "X"], "attributes": output}))
    (found,) = why.from_inseq(path)
    assert found.source_scores.shape == (2, 1, 2) and found.target_scores is None and found.method == "saliency"
    with pytest.raises(ValueError, match="sum them first"):
        found.to_frame()
    path.write_text('{"sequence_attributions": 5}')
    with pytest.raises(ValueError, match="no file of inseq's attributions"):
        why.from_inseq(path)


@pytest.mark.parametrize("version", ["0.6", "0.7.1"])
def test_files_written_by_inseq_are_read(version):
    (attribution,) = why.from_inseq(Path(__file__).parent / "inseq" / f"{version}.json")
    assert (attribution.source, attribution.target, attribution.start) == (("▁Ja", "</s>"), ("▁Yes", ".", "</s>"), 1)
    assert attribution.method == "saliency" and attribution.step_scores["probability"].tolist() == [0.5, 0.25]
    assert attribution.source_scores.tolist() == [[0.5, 0.25], [0.125, 0.75]]
    expected = np.array([[0.1, 0.2], [NAN, 0.3], [NAN, NAN]], np.float32)
    np.testing.assert_array_equal(attribution.target_scores, expected.astype(np.float64))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.float8_e4m3fn])
def test_inseq_scores_of_every_precision_are_read(tmp_path, dtype):
    """As `save(scores_precision=..)` writes them."""
    scores = torch.tensor([[-0.4375, 0.0], [448.0, 2.0**-9]]).to(dtype)
    path = _with_scores(tmp_path, safetensors.torch.save({"attribution": scores}))
    np.testing.assert_array_equal(why.from_inseq(path)[0].source_scores, scores.double().numpy())


def test_inseq_files_with_broken_scores_raise_briefly(tmp_path):
    for data in (b"\0" * 30_000, b"5" * 30_000, safetensors.torch.save({"other": torch.zeros(2, 2)})):
        with pytest.raises(ValueError, match="no file of inseq's attributions") as refused:
            why.from_inseq(_with_scores(tmp_path, data))
        assert len(str(refused.value)) < 400 + len(str(tmp_path))


def _with_scores(folder: Path, data: bytes) -> Path:
    """The file of 0.7.1 with other scores of the source."""
    written = json.loads((Path(__file__).parent / "inseq" / "0.7.1.json").read_text(encoding="utf-8"))
    (sequence,) = written["attributes"]["sequence_attributions"]
    sequence["attributes"]["source_attributions"] = base64.b64encode(data).decode()
    path = folder / "scores.json"
    path.write_text(json.dumps(written))
    return path


NAN = float("nan")
