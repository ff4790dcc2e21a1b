"""Surveys against plain loops, shared between processes, and resumed."""

from __future__ import annotations

import itertools
import json
import shutil

import numpy as np
import pytest
import torch
from scipy.spatial.distance import jensenshannon

from attention_atlas.model.analysis.survey import batch
from attention_atlas.model.analysis.survey import corpus as corpora
from attention_atlas.model.analysis.survey.corpus import Corpus
from attention_atlas.model.analysis.survey.run import SurveyRun
from attention_atlas.model.analysis.why.contributions import project_values
from attention_atlas.model.analysis.why.means import compute_means
from attention_atlas.model.checkpoint import read_survey
from attention_atlas.model.nets.sweep import Sweep
from attention_atlas.model.trace.kinds import AttentionKind
from attention_atlas.model.trace.survey.survey import DirectionSurvey, Survey, to_json
from attention_atlas.model.trace.tokens import is_symbol
from tests.conftest import SENTENCES

ENCODER, DECODER, CROSS = AttentionKind.ENCODER_SELF, AttentionKind.DECODER_SELF, AttentionKind.CROSS
GERMAN, ENGLISH = SENTENCES[0:10:2], SENTENCES[1:10:2]
LINES = [*zip(GERMAN, ENGLISH)]
PAIRS = (*((f"{a} {b}", f"{c} {d}") for (a, c), (b, d) in itertools.product(LINES[:4], LINES)), *LINES * 6)


def corpus(pairs=PAIRS) -> Corpus:
    return Corpus("pairs", lambda: iter(pairs))


def survey_of(translator, **options) -> SurveyRun:
    run = SurveyRun(translator, "de-en", corpus(), window=12, **options)
    run.lines = run.lines[:13]
    run.windows = -(-run.stats.pairs // 12) + 2 + 1
    return run


@pytest.fixture(scope="module", autouse=True)
def few_sequences():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(corpora, "SEQUENCES", 8)
        yield


@pytest.fixture(scope="module")
def measured(tiny_translator) -> tuple[SurveyRun, DirectionSurvey]:
    """A run in one process, and what it measured."""
    run = survey_of(tiny_translator)
    return run, run.result(run.work())


def write(tmp_path, translator, survey) -> dict:
    value = to_json(Survey(translator.name, translator.digest, {"de-en": survey}))
    (tmp_path / "heads.json").write_text(json.dumps(value))
    return value


def test_means_equal_a_plain_loop(tiny_translator, measured):
    _, survey = measured
    assert (survey.sentences, survey.skipped, survey.references) == (50, 0, True)
    previous, end, lengths = [], [], []
    for source, target in PAIRS:
        source_ids = tiny_translator.encode(source, "de-en")
        target_ids = [*tiny_translator.tokenizer.encode(target), tiny_translator.tokenizer.end_id]
        output = tiny_translator.inspect(source_ids, target_ids)
        maps = output.weights(ENCODER)[:, 0].double().numpy()
        tokens = tiny_translator.tokenizer.source_tokens(source_ids, source)
        words = [i for i, token in enumerate(tokens) if not is_symbol(token)]
        previous.append(np.mean([maps[:, :, t, t - 1] for t in words if t - 1 in words], 0))
        cross = output.weights(CROSS)[:, 0].double().numpy()
        end.append(cross[..., -1].mean(-1))
        values = [
            project_values(tiny_translator.model.attention(CROSS, i), record.attention(CROSS))[0]
            for i, record in enumerate(output.records(CROSS))
        ]
        scaled = cross * torch.stack(values).norm(dim=-1).detach().numpy()[:, :, None]
        lengths.append((scaled[..., -1] / scaled.sum(-1)).mean(-1))
    for kind, name, values in ((ENCODER, "previous", previous), (CROSS, "end", end), (CROSS, "end_norm", lengths)):
        estimate = survey.kinds[kind].statistics[name]
        assert estimate.sentences == 50
        np.testing.assert_allclose(estimate.value, np.mean(values, 0), atol=1e-5)
        error = np.std(values, 0) / np.sqrt(50)  # the bootstrap's interval is close to the normal one
        np.testing.assert_allclose(estimate.high - estimate.low, 2 * 1.96 * error, rtol=0.35, atol=1e-4)


def test_one_process_two_processes_and_resumed_ones_give_the_same_survey(tiny_translator, measured, tmp_path):
    expected = write(tmp_path, tiny_translator, measured[1])
    shared = survey_of(tiny_translator, parts=tmp_path / "shared")
    for rank in range(2):
        shared.parts.mkdir(exist_ok=True)
        shared.work(rank, 2)
    assert write(tmp_path, tiny_translator, shared.result()) == expected

    class Killed(BaseException):
        pass

    stopped = survey_of(tiny_translator, parts=tmp_path / "stopped")

    def stop(done):
        raise Killed

    for rank, world in ((0, 1), (1, 2), (0, 2)):
        stopped.gather()
        with pytest.raises(Killed):
            stopped.work(rank, world, watch=stop)
    with pytest.raises(ValueError, match="not measured yet"):
        stopped.result()
    gathered = tmp_path / "stopped" / "de-en-gathered.npz"
    shutil.copy(gathered, gathered.with_name("de-en-9.npz"))  # killed between gathering and deleting
    stopped.gather()
    stopped.work()
    assert write(tmp_path, tiny_translator, stopped.result()) == expected


def test_parts_of_another_setting_are_skipped(tiny_translator, tmp_path):
    first = survey_of(tiny_translator, parts=tmp_path)
    first.gather()
    first.work()
    other = survey_of(tiny_translator, seed=1, parts=tmp_path)
    with pytest.raises(ValueError, match="not measured yet"):
        other.result()


def test_a_survey_is_read_back_from_its_file(tiny_translator, measured, tmp_path):
    write(tmp_path, tiny_translator, measured[1])
    loaded = read_survey(tmp_path / "heads.json", tiny_translator.digest).directions["de-en"]
    for kind, survey in measured[1].kinds.items():
        read = loaded.kinds[kind]
        assert read.head_names() == survey.head_names() and set(read.statistics) == set(survey.statistics)
        for name, estimate in survey.statistics.items():
            np.testing.assert_allclose(read.statistics[name].low, estimate.low, atol=1e-4)
        np.testing.assert_allclose(read.similarity, survey.similarity, atol=1e-3)
        for lines in next(iter(read.examples.values())).values():
            assert lines.shape == (*survey.shape, 3) and lines.min() >= 0 and lines.max() < 13
    assert read_survey(tmp_path / "heads.json", "0" * 16) is None  # of other weights
    assert read_survey(tmp_path / "none.json", "0" * 16) is None
    (tmp_path / "heads.json").write_text('{"format": 1, "directions": {"de-en": {}}}')
    with pytest.raises(ValueError, match="no survey"):
        read_survey(tmp_path / "heads.json", tiny_translator.digest)


def test_examples_have_the_largest_the_smallest_and_typical_values(tiny_translator, measured):
    run, survey = measured[0], measured[1].kinds[ENCODER]
    values = []
    for text in run.lines:
        trace = tiny_translator.translate(text, "de-en")
        maps = trace.encoder_self.weights
        words = [i for i, token in enumerate(trace.source_tokens) if not is_symbol(token)]
        values.append(np.mean([maps[:, :, t, t] for t in words], 0))
    values, rows = np.stack(values), survey.examples["itself"]
    order = np.argsort(-values, axis=0)
    np.testing.assert_array_equal(rows["most"], np.moveaxis(order[:3], 0, -1))
    np.testing.assert_array_equal(rows["least"], np.moveaxis(order[::-1][:3], 0, -1))
    apart = np.abs(values - survey.statistics["itself"].value)
    np.testing.assert_array_equal(rows["typical"][..., 0], apart.argmin(0))


def run_two(translator) -> batch.Pass:
    sources = [translator.encode(text, "de-en") for text in (GERMAN[0], f"{GERMAN[1]} {GERMAN[2]}")]
    targets = [
        [*translator.tokenizer.encode(text), translator.tokenizer.end_id]
        for text in (f"{ENGLISH[0]} {ENGLISH[1]}", ENGLISH[2])
    ]
    return batch.run(translator, sources, targets)


def mean_log_probability(translator, batch_pass, gates, instead=None) -> torch.Tensor:
    with torch.inference_mode():
        sweep = Sweep(gates=gates, replacements=instead or {})
        logits = translator.model(batch_pass.source_ids, batch_pass.decoder_ids, interventions=sweep).logits.double()
    return torch.stack(
        [
            row[:n].log_softmax(-1).gather(-1, ids[:n, None]).mean()
            for row, ids, n in zip(logits, batch_pass.target_ids, batch_pass.target_lengths)
        ]
    )


def test_slopes_equal_central_differences(tiny_translator):
    batch_pass, step = run_two(tiny_translator), 1e-2
    for kind, layers in tiny_translator.model.num_layers.items():
        for layer, head in ((0, 1), (layers - 1, 3)):
            ends = []
            for sign in (1, -1):
                gate = torch.ones(1, layers, 4)
                gate[0, layer, head] += sign * step
                ends.append(mean_log_probability(tiny_translator, batch_pass, {kind: gate}))
            slope = ((ends[0] - ends[1]) / (2 * step)).numpy()
            np.testing.assert_allclose(batch_pass.slopes[kind][:, layer, head], slope, rtol=2e-2, atol=2e-3)


def test_ablations_equal_whole_passes_without_the_head(tiny_translator):
    batch_pass = run_two(tiny_translator)
    means = compute_means(tiny_translator, {"de-en": GERMAN})
    losses = batch.ablation_losses(tiny_translator.model, batch_pass, means)
    plain = mean_log_probability(tiny_translator, batch_pass, {})
    for kind, layers in tiny_translator.model.num_layers.items():
        length = (batch_pass.source_ids if kind is ENCODER else batch_pass.decoder_ids).shape[1]
        instead = {kind: torch.from_numpy(means.by_position(kind, length)[None])}
        for layer, head in itertools.product(range(layers), (0, 2)):
            gate = torch.ones(1, layers, 4)
            gate[0, layer, head] = 0
            lost = (plain - mean_log_probability(tiny_translator, batch_pass, {kind: gate}, instead)).numpy()
            np.testing.assert_allclose(losses[kind][:, layer, head], lost, atol=1e-4)


def test_similarity_equals_scipys_divergence():
    maps = np.random.default_rng(2).dirichlet(np.ones(6), size=(3, 5))
    similarity = batch.similarity(maps, np.ones((5, 6), bool))
    for first, second in itertools.combinations(range(3), 2):
        expected = 1 - np.mean([jensenshannon(maps[first, t], maps[second, t], base=2) ** 2 for t in range(5)])
        np.testing.assert_allclose(similarity[first, second], expected, atol=1e-12)
        assert similarity[first, second] == similarity[second, first]


def test_surveys_without_sentences_or_means_are_refused(tiny_translator):
    with pytest.raises(ValueError, match="no sentence"):
        SurveyRun(tiny_translator, "de-en", corpus([("", ""), ("  ", "x")]))
    with pytest.raises(ValueError, match="attention-atlas means"):
        SurveyRun(tiny_translator, "de-en", corpus(), ablated=3)
    run = SurveyRun(tiny_translator, "de-en", corpus([("Hallo.", ""), ("", ""), ("wort " * 200, "word")]))
    assert (run.stats.pairs, run.stats.skipped, run.stats.references) == (3, 2, False)
