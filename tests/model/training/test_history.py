"""history.npz: what is recorded, when, and how a killed or a warm-started run goes on."""

from __future__ import annotations

import json

import numpy as np
import pytest

from attention_atlas.model.trace.alignment import content_words
from attention_atlas.model.trace.kinds import Side
from attention_atlas.model.training.history import (
    LEVELS,
    NAME,
    PROBES,
    History,
    Probe,
    copy_probes,
    export,
    is_due,
    read_probes,
)
from tests.conftest import build_tiny_model, make_translator

PROBE = Probe("de-en", "Ein Hund", "a dog")


@pytest.fixture()
def run(tmp_path, tokenizer):
    (tmp_path / PROBES).write_text(json.dumps([vars(PROBE)]))
    return tmp_path


def opened(run, tokenizer, update: int = 0, init=None, before: int = 0) -> History:
    return History.of_run(run, tokenizer, update=update, init=init, before=before)


def recorded(run, tokenizer, model, *updates: int, **options) -> History:
    """Return the history of a run after these records."""
    history = opened(run, tokenizer, **options)
    for update in updates:
        history.record(model, update)
    return history


def updates_of(history: History) -> list[int]:
    return [int(record["updates"]) for record in history.records]


def test_a_run_makes_about_twenty_records():
    for last in (800, 5000, 40_000):
        updates = [update for update in range(last + 1) if is_due(update, last)]
        assert updates[:6] == [0, 1, 2, 4, 8, 16] and updates[-1] == last and 17 <= len(updates) <= 23
    assert [update for update in range(31) if is_due(update, 30)] == [0, 1, 2, 4, 8, 16]


def test_a_record_holds_the_models_maps(run, tokenizer, tiny_model):
    recorded(run, tokenizer, tiny_model, 0)
    with np.load(run / NAME, allow_pickle=False) as file:
        cross, loss = file["maps_cross_0"], file["loss"]
        facts = json.loads(str(file["facts"]))
        assert file["entropy_encoder_self"].shape == (1, 2, 4) and file["largest_cross"].shape == (1, 3, 4)
    source, target = (len(tokenizer.encode(side)) for side in (PROBE.source, PROBE.reference))
    assert cross.dtype == np.uint8 and cross.shape == (1, 3, 4, target + 1, source + 2)
    np.testing.assert_allclose(cross.sum(-1) / LEVELS, 1.0, atol=(source + 2) * 0.5 / LEVELS)
    assert loss.shape == (1, 1) and loss[0, 0] > 0 and facts["probes"] == [vars(PROBE)]


def test_a_record_holds_words_probabilities_and_products_of_states(run, tokenizer, tiny_model):
    recorded(run, tokenizer, tiny_model, 0)
    translator = make_translator(tiny_model, tokenizer)
    trace = translator.trace(PROBE.source, target=PROBE.reference)
    output = translator.inspect(trace)
    with np.load(run / NAME, allow_pickle=False) as file:
        np.testing.assert_allclose(file["log_probability_0"][0], trace.log_probability, atol=1e-5)
        assert file["loss"][0, 0] == pytest.approx(-trace.log_probability.mean(), abs=1e-5)
        for side, tokens in ((Side.ENCODER, trace.source_tokens), (Side.DECODER, trace.target_tokens)):
            states = output.layers(side)[1].after[0].double().numpy()
            words = np.stack([states[list(word)].mean(0) for word in content_words(tokens)])
            words -= words.mean(0)
            np.testing.assert_allclose(file[f"products_{side.value}_0"][0, 1], words @ words.T, rtol=1e-4, atol=1e-4)


def test_values_that_an_earlier_version_did_not_record_are_nan(run, tokenizer, tiny_model):
    history = recorded(run, tokenizer, tiny_model, 0)
    for name in [name for name in history.records[0] if name.startswith(("products", "log_probability"))]:
        del history.records[0][name]
    history.save()
    recorded(run, tokenizer, tiny_model, 1)
    with np.load(run / NAME, allow_pickle=False) as file:
        for name in ("products_encoder_0", "log_probability_0"):
            assert np.isnan(file[name][0]).all() and np.isfinite(file[name][1]).all()


def test_recording_does_not_change_the_model(run, tokenizer):
    model = build_tiny_model(tokenizer).train()
    before = [p.detach().clone() for p in model.parameters()]
    recorded(run, tokenizer, model, 1)
    assert model.training and all((a == b).all() for a, b in zip(before, model.parameters()))


def test_a_resumed_run_drops_records_after_its_saved_state(run, tokenizer, tiny_model):
    recorded(run, tokenizer, tiny_model, 0, 1, 2, 4, before=100)
    resumed = opened(run, tokenizer, update=2)
    assert updates_of(resumed) == [100, 101, 102] and resumed.before == 100


def test_a_warm_start_continues_the_history_of_its_checkpoint(run, tokenizer, tiny_model, tmp_path):
    history = recorded(run, tokenizer, tiny_model, 0, 1, 8)
    later = tmp_path / "later"
    later.mkdir()
    copy_probes(run / PROBES, later)
    second = recorded(later, tokenizer, tiny_model, 0, 4, init=run)
    assert updates_of(second) == [0, 1, 8, 12]
    assert second.is_continuation and not history.is_continuation and opened(later, tokenizer, update=4).is_continuation


def test_a_continued_run_makes_five_records():
    assert [update for update in range(1001) if is_due(update, 1000, is_continuation=True)] == [*range(200, 1001, 200)]


def test_a_warm_start_with_other_probes_starts_a_new_history(run, tokenizer, tiny_model, tmp_path):
    recorded(run, tokenizer, tiny_model, 0, 8)
    later = tmp_path / "later"
    later.mkdir()
    (later / PROBES).write_text(json.dumps([{**vars(PROBE), "source": "Der Tee"}]))
    second = opened(later, tokenizer, init=run)
    assert not second.records and second.before == 8
    second.record(tiny_model, 0)
    assert updates_of(second) == [8] and not second.is_continuation


def test_a_checkpoint_gets_the_digest_of_its_weights(run, tokenizer, tiny_model, tmp_path):
    recorded(run, tokenizer, tiny_model, 3)
    out = tmp_path / "out"
    out.mkdir()
    export(run, out, tiny_model, tokenizer, "0123456789abcdef")
    with np.load(out / NAME, allow_pickle=False) as file:
        assert json.loads(str(file["facts"]))["digest"] == "0123456789abcdef" and file["updates"].tolist() == [3]


def test_a_run_without_probes_has_no_history(tmp_path, tokenizer):
    assert opened(tmp_path, tokenizer) is None


@pytest.mark.parametrize(
    ("probes", "message"),
    [
        ([], "there must be probes"),
        ([{"direction": "de-en"}], "direction, source and reference"),
        ([{**vars(PROBE), "source": "Ein Hund " * 9}], "pieces"),
        ([{**vars(PROBE), "direction": "de-xx"}], "de-xx"),
    ],
)
def test_invalid_probes_are_named_in_the_error(tmp_path, tokenizer, probes, message):
    (tmp_path / "probes.json").write_text(json.dumps(probes))
    with pytest.raises(ValueError, match=message):
        read_probes(tmp_path / "probes.json", tokenizer)


def test_a_history_of_other_sentences_or_a_damaged_one_is_refused(run, tokenizer, tiny_model):
    recorded(run, tokenizer, tiny_model, 0)
    (run / PROBES).write_text(json.dumps([{**vars(PROBE), "source": "Der Tee"}]))
    with pytest.raises(ValueError, match="other sentences"):
        opened(run, tokenizer)
    (run / NAME).write_bytes(b"no zip")
    with pytest.raises(ValueError, match="not a training history"):
        opened(run, tokenizer)
