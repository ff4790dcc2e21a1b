"""The page's menu of directions, models of many languages, and what the page says about imported models."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from attention_atlas.model import checkpoint
from attention_atlas.model.translator import Translator
from attention_atlas.model.translators import Translators
from attention_atlas.viz import directions, shell
from attention_atlas.viz.panels import registry
from attention_atlas.viz.questions.header import route_of
from attention_atlas.viz.wire.summary import invitation, summarise
from tests.model.families import theirs


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("many") / "nllb"
    theirs.nllb(path).save_pretrained(path)
    (path / "README.md").write_text("---\nlicense: cc-by-nc-4.0\n---\n", encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def served(folder, tiny_translator) -> Translators:
    return Translators([Translator.load(folder, "cpu"), tiny_translator])


def test_a_model_of_many_languages_is_one_entry_and_serves_any_pair(served) -> None:
    entries = directions.entries(served)
    assert [getattr(menus, "key", menus) for menus, _ in entries] == ["nllb", "German → English", "English → French"]
    many = served.all[0]
    assert len(many.languages) == 202 and len(many.directions) <= 60
    assert many.directions[0] == "eng_Latn-deu_Latn", "English first"
    assert "zul_Latn-ace_Arab" not in many.directions
    route = directions.route_of(served, entries[0][1], "zul_Latn-ace_Arab")
    assert (route.direction, route.checkpoint) == ("zul_Latn-ace_Arab", "nllb")
    assert served[route.label] is many and directions.entry_of(served, route) == entries[0][1]
    trace = many.translate("Der kleine Hund", route.direction)
    assert trace.source_tokens[0] == "zul_Latn" and trace.target_tokens[0] == "ace_Arab"
    menus = directions.menus(served, route)
    assert (menus["source"], menus["target"]) == ("zul_Latn", "ace_Arab") and "mask" not in menus["targets"]
    assert directions.menus(served, served.route("de-en")) is None
    # Another entry ignores the selected pair of languages; an unknown pair falls back to the first direction.
    assert directions.route_of(served, "de-en", "zul_Latn-ace_Arab").direction == "de-en"
    assert directions.route_of(served, entries[0][1], "zul_Latn-xx").direction == many.directions[0]


def test_entries_of_recurrent_networks_are_labelled(tiny_translator, recurrent_checkpoint, tmp_path) -> None:
    shutil.copytree(recurrent_checkpoint, tmp_path / "second")
    recurrent = [Translator.load(folder, "cpu") for folder in (recurrent_checkpoint, tmp_path / "second")]
    labels = {
        value: str(getattr(labels, "key", labels))
        for labels, value in directions.entries(Translators([tiny_translator, *recurrent]))
    }
    assert labels["de-en"] == "German → English" and labels["de-en (gru)"] == "German → English (recurrent)"
    assert labels["de-en (second)"].endswith("(second)")
    alone = directions.entries(Translators(recurrent[:1]))
    assert [labels.key for labels, _ in alone] == ["German → English (recurrent)"]


def test_links_find_any_pair_of_languages(served) -> None:
    assert served.find("zul_Latn-ace_Arab", "nllb").checkpoint == "nllb"
    assert served.find("zul_Latn-ace_Arab", "gone").checkpoint == "nllb"
    assert served.find("de-en", "tiny").checkpoint == "tiny" and served.find("xx-yy", "nllb") is None
    with pytest.raises(ValueError, match="Unknown direction"):
        served["zul_Latn-zul_Latn"]


def test_the_languages_of_an_imported_model_are_saved(folder, tmp_path) -> None:
    loaded = checkpoint.load(folder)
    checkpoint.save(tmp_path / "ours", loaded.model, loaded.tokenizer, loaded.directions, languages=loaded.languages)
    reloaded = checkpoint.load(tmp_path / "ours")
    assert reloaded.languages == loaded.languages and reloaded.directions == loaded.directions


def test_example_sentences_are_in_the_source_language(served, tiny_translator) -> None:
    examples = [example.text for example in tiny_translator.examples["de-en"]]
    assert directions.sentences(served, served.route("de-en")) == examples
    assert (
        directions.sentences(served, directions.route_of(served, "eng_Latn-deu_Latn", "deu_Latn-zul_Latn")) == examples
    )
    assert directions.sentences(served, directions.route_of(served, "eng_Latn-deu_Latn", "zul_Latn-deu_Latn")) == []


def test_the_cost_of_a_large_model_is_shown_before_translating(served, monkeypatch) -> None:
    many = served.all[0]
    assert directions.describe_route(served, served.routes[0])["offer"]["cost"] is None
    monkeypatch.setattr(directions, "LARGE", 100)
    route = directions.describe_route(served, served.routes[0])["offer"]["cost"]
    decoder = sum(weight.numel() for weight in many.model.decoder.parameters())
    assert many.model.step_numbers == decoder + many.config.num_target_tokens * many.config.d_model
    assert route.values["read"] == f"{4e-6 * many.model.step_numbers:.0f}" and "parameters" in route


LACKING = ["Units", "Phenomena", "By distance"]


def test_an_imported_model_has_its_origin_and_its_unavailable_panels(served, tiny_translator, tmp_path) -> None:
    many = served.all[0]
    trace = many.translate("Der Hund", "deu_Latn-eng_Latn")
    about = summarise(trace, many, registry.lacking(trace, many))["about"]
    assert about["origin"] == "Third-party model: nllb. Licence according to its model card: cc-by-nc-4.0."
    assert [entry["panel"] for entry in about["lacking"]] == LACKING  # no sentences, no pairs, no relative positions
    assert invitation(many)["about"]["origin"] == about["origin"]
    assert invitation(tiny_translator)["about"]["origin"] is None
    theirs.mbart(tmp_path / "mbart").save_pretrained(tmp_path / "mbart")
    learned = Translator.load(tmp_path / "mbart", "cpu")
    trace = learned.translate("Der Hund", "de_DE-en_XX")
    lacking = registry.lacking(trace, learned)
    assert [entry["panel"] for entry in lacking] == [*LACKING[:-1], "Rotation", "By distance"]
    assert "not pairs of sines and cosines" in lacking[2]["why"]
    assert "not stated" in summarise(trace, learned, lacking)["about"]["origin"]


def test_an_example_that_is_too_long_is_named(tiny_checkpoint, tmp_path) -> None:
    folder, text = tmp_path / "talkative", "Hund und " * 600
    shutil.copytree(tiny_checkpoint, folder)
    checkpoint.write_json(folder / checkpoint.EXAMPLES, {"de-en": [{"text": text}]})
    with pytest.raises(ValueError, match=f"the example '{text}' of talkative: The text is .* tokens long"):
        shell.build(Translators.load(tmp_path, "cpu"))


def test_a_link_without_a_known_direction_uses_the_first_model(served) -> None:
    for data in ({}, {"text": "Der Hund", "checkpoint": "nobody's"}, {"direction": "xx-yy"}):
        assert route_of(served, data) is served.routes[0]
    assert route_of(served, {"entry": "en-fr"}).direction == "en-fr"


def test_a_text_in_another_language_suggests_a_direction(tiny_translator, recurrent_checkpoint):
    served = Translators([tiny_translator, Translator.load(recurrent_checkpoint, "cpu")])
    english, german, french = "My sister paints a red boat.", "Meine Schwester malt ein Boot.", "Le chien dort ici."
    assert directions.mismatch(served, tiny_translator.translate(german, "de-en")) is None
    hint = directions.mismatch(served, tiny_translator.translate(english, "de-en"))
    assert (
        str(hint["text"])
        == "This text looks like English, but the selected direction translates from another language."
    )
    assert hint["switch"]["link"] == {"text": english, "direction": "en-fr", "checkpoint": "tiny"}
    hint = directions.mismatch(served, tiny_translator.translate(german, "en-fr"))
    assert hint["switch"]["link"]["direction"] == "de-en", "into the language that was to be read"
    assert directions.mismatch(served, tiny_translator.translate(french, "de-en"))["switch"] is None
