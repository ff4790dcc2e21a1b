"""The tab "Why" without a browser: its headline, matrix, tests and parts agree with the library; refusals."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from attention_atlas.model.analysis.why.attribution import attribute
from attention_atlas.model.analysis.why.case import mask_words, measure_removal, open_case
from attention_atlas.model.analysis.why.methods import METHODS, attention, occlusion
from attention_atlas.model.analysis.why.questions import default_step, make_question
from attention_atlas.model.trace.language import Refusal
from attention_atlas.model.trace.why.attribution import Against
from attention_atlas.model.trace.why.effects import Losses
from attention_atlas.viz.maps import labels
from attention_atlas.viz.panels import registry
from attention_atlas.viz.panels.scene import MAX_TOKENS, PageQuestion, Scene, Selection, read_question
from attention_atlas.viz.panels.why import holds, parts, tokens
from attention_atlas.viz.questions.panels import answer_why
from attention_atlas.viz.wire.blocks import format_nats
from attention_atlas.viz.wire.question import (
    EVEN,
    _compare,
    format_ratio,
    headline,
    losses_payload,
    token_text,
)
from tests.viz.panels.panels import block_of

TEXT = "Der kleine Hund schläft unter dem Tisch."


def ask_why(translator, trace, question: PageQuestion) -> dict:
    """Return the answer to a question of the page."""
    return answer_why(Scene(trace, made_by=translator, page_question=question))


def number(text: str) -> float:
    return float(text.replace("−", "-"))


def test_a_word_is_compared_with_the_most_probable_other_word(tiny_translator, trace) -> None:
    step = next(i for i, token in enumerate(trace.target_tokens) if token.strip("▁").isalpha())
    rows = [*trace.top_tokens]
    others = [i for i, token in enumerate(rows[step]) if trace.top_ids[step][i] != trace.target_ids[step]]
    rows[step] = tuple("'" if i == others[0] else "▁Boot" for i in range(len(rows[step])))
    marked = replace(trace, top_tokens=tuple(rows))
    question = PageQuestion.of(marked, step).question(tiny_translator, marked)
    assert question.contrast_id == trace.top_ids[step][others[1]], "the more probable apostrophe is no word"
    plain = replace(marked, top_tokens=tuple(tuple("'" for _ in row) for row in rows))
    for written in (plain, replace(marked, target_tokens=tuple("!" for _ in trace.target_tokens))):
        assert (
            PageQuestion.of(written, step).question(tiny_translator, written).contrast_id
            == trace.top_ids[step][others[0]]
        )


def test_a_question_stays_while_the_translation_up_to_its_step_stays(tiny_translator, trace) -> None:
    question = PageQuestion.of(trace, 3, "Boot")
    assert question.for_trace(trace) == question
    ids = list(trace.target_ids)
    same = tiny_translator.trace(TEXT, "de-en", target=[*ids[:4], ids[0]])
    assert question.for_trace(same) == question, "tokens after the question's step do not matter"
    for other in (
        tiny_translator.trace(TEXT, "de-en", target=[*ids[:3], ids[3] + 1]),
        tiny_translator.translate("Der Hund", "de-en"),
    ):
        assert question.for_trace(other) == PageQuestion.of(other, default_step(other))
    assert hash(question) == hash(PageQuestion.of(trace, 3, "Boot"))  # as gr.State has it


def test_the_default_question_about_a_long_sentence_is_within_the_limit(trace) -> None:
    """The default question is within the limit, or about the least certain word if the source alone exceeds it."""
    read, least = len(trace.source_ids), default_step(trace)
    assert default_step(trace, 0) == least == default_step(trace, read + least + 1)
    for most in range(read + 1, read + len(trace.target_ids) + 1):
        step = default_step(trace, most)
        assert step == least or read + step + 1 <= most
    assert default_step(trace, read + 1) in (0, least)


def test_questions_of_the_page_are_validated(trace) -> None:
    before = PageQuestion.of(trace, 2, Against.NOTHING)
    assert read_question({"step": 4, "token": 7}, trace, before) == PageQuestion.of(trace, 4, 7)
    assert read_question({"step": 4, "text": "Boot", "id": 9}, trace, before).contrast == "Boot"
    assert read_question({"step": 4}, trace, before) == PageQuestion.of(trace, 4, Against.NOTHING), "as before"
    assert read_question({"step": 4}, trace, PageQuestion.of(trace, 2, 7)).contrast is Against.RUNNER_UP
    for step in (-1, 999, "2", True, None):
        assert read_question({"step": step, "alone": True}, trace, before) == before


@pytest.mark.parametrize("step", [0, 3])
def test_the_headline_has_measured_numbers(tiny_translator, trace, step) -> None:
    answer = ask_why(tiny_translator, trace, PageQuestion.of(trace, step))
    token, rival = trace.target_ids[step], PageQuestion.of(trace, step).question(tiny_translator, trace).contrast_id
    p = dict(zip(trace.top_ids[step].tolist(), trace.top_probabilities[step].tolist()))
    lead = float(trace.log_probability[step]) - math.log(p[rival])
    assert answer["headline"][0].values.get("n", EVEN) == format_ratio(lead) and answer["contrast_id"] == rival
    effects = attribute(tiny_translator, trace, step=step, contrast=rival, methods=[occlusion.MASK.slug])
    ordinary = np.where(effects.columns.special, -np.inf, effects.rows[0].values)
    words = next(words for words in answer["headline"] if "word" in words.values or words.startswith("No single word"))
    if ordinary.max() > 0:
        assert words.values["word"] == effects.columns.labels[int(ordinary.argmax())]
        left = lead - float(ordinary.max())
        assert words.values.get("m", words.values.get("n", EVEN)) == format_ratio(left)
        assert answer["exact"].values["n"] == format_nats(lead) and answer["exact"].values["m"] == format_nats(left)
    else:
        assert words.startswith("No single word")
    assert token not in [contrast["id"] for contrast in answer["contrasts"]] and len(answer["contrasts"]) == 5
    assert [entry["text"] for entry in answer["tokens"]] == [labels.display(token) for token in trace.target_tokens]


@pytest.mark.parametrize(
    ("value", "words"),
    [(0.0, "1.0"), (-1.2, "3.3"), (5.3, "200"), (6.62, "750"), (9.0, "8\u202f100"), (800.0, "> 10⁶")],
)
def test_nats_are_said_as_how_many_times_as_likely(value, words) -> None:
    assert format_ratio(value) == words


@pytest.mark.parametrize(
    ("metric", "left", "sentences"),
    [
        (1.2, 0.9, ["“a” is 3.3 times as likely as “b”; without “w”, only 2.5 times."]),
        (1.2, -0.9, ["“a” is 3.3 times as likely as “b”.", "Without “w”, “b” is 2.5 times as likely as “a”."]),
        (1.2, 0.01, ["“a” is 3.3 times as likely as “b”.", "Without “w”, both are equally likely."]),
        (0.02, -0.9, ["“a” and “b” are equally likely.", "Without “w”, “b” is 2.5 times as likely as “a”."]),
        (-0.02, -0.9, ["“a” and “b” are equally likely.", "Without “w”, “b” is 2.5 times as likely as “a”."]),
        (-0.9, -1.2, ["“b” is 2.5 times as likely as “a”; without “w”, 3.3 times."]),
    ],
)
def test_equal_probabilities_are_said_to_be_equal(metric, left, sentences) -> None:
    assert _compare({"token": "a", "contrast": "b", "word": "w"}, metric, left) == sentences


def test_a_word_that_both_alternatives_need_gets_its_own_sentence(tiny_translator, trace) -> None:
    """The metric alone would name another word, or say that this word lowers the token's probability."""
    case = open_case(tiny_translator, trace, make_question(tiny_translator, trace, 3))
    lost = occlusion.measure_losses(case)
    for losses, contrast in ((lost.of_metric, Against.RUNNER_UP), (lost.of_log_p, Against.NOTHING)):
        alone = attribute(tiny_translator, trace, step=3, contrast=contrast, methods=[occlusion.MASK.slug])
        np.testing.assert_allclose(losses, alone.rows[0].values, atol=1e-5)
    one, other = np.flatnonzero(~case.columns.special)[:2]
    of_metric, of_log_p = np.zeros((2, len(case.columns)))
    of_metric[one], of_log_p[other], of_metric[other] = 0.5, 8.0, -0.25

    def made() -> Losses:
        return replace(lost, metric=2.0, log_p=math.log(0.8), of_metric=of_metric, of_log_p=of_log_p)

    sentences = headline(trace, case.question, made(), case.columns)
    assert sentences[0].values["word"] == case.columns.labels[one] and len(sentences) == 2
    assert sentences[1].values == {
        **sentences[1].values,
        "word": case.columns.labels[other],
        "p": "80%",
        "q": "<0.1%",
        "r": "11%",
        "s": "<0.1%",
    }
    of_log_p[other] = 0.5
    assert len(headline(trace, case.question, made(), case.columns)) == 1


def test_the_picture_shows_the_effect_of_removing_each_word(tiny_translator, trace) -> None:
    question = make_question(tiny_translator, trace, 3)
    case = open_case(tiny_translator, trace, question)
    lost = occlusion.measure_losses(case)
    payload = losses_payload(question, lost, case.columns, tiny_translator.tokenizer.tokens(lost.ids.ravel().tolist()))
    assert [word["text"] for word in payload["words"]] == list(case.columns.labels)
    for column in (0, 2, len(case.columns) - 1):
        alone, word = measure_removal(case, column, mask_words), payload["words"][column]
        probable = dict(zip(alone.ids, alone.probabilities[1]))
        assert word["p"] == pytest.approx(probable[question.token_id], abs=1e-6)
        assert word["loss"] == pytest.approx(alone.before - alone.after, abs=1e-5)
        best = max(p for token, p in probable.items() if token != question.token_id)
        assert len(word["instead"]) == 2 and word["instead"][0][1] == pytest.approx(best, abs=1e-6)
    assert payload["p"] == pytest.approx(float(np.exp(trace.log_probability[3])), abs=1e-5)


def test_without_a_contrast_it_is_the_log_probability(tiny_translator, trace) -> None:
    answer = ask_why(tiny_translator, trace, PageQuestion.of(trace, 3, Against.NOTHING))
    assert answer["contrast"] is None and answer["exact"].values["n"] == format_nats(float(trace.log_probability[3]))
    p = float(np.exp(trace.log_probability[3]))
    assert answer["headline"][0].values["p"] == (f"{p:.0%}" if p >= 0.1 else f"{p:.1%}" if p >= 0.001 else "<0.1%")
    assert "is not log p" in answer["metric"]
    content = parts.parts(
        Scene(trace, Selection(), tiny_translator, page_question=PageQuestion.of(trace, 3, Against.NOTHING))
    )
    assert "minus the mean logit of the vocabulary" in content[0]["text"]


def test_the_matrix_has_every_methods_scores_and_loads_slow_ones_separately(tiny_translator, scene) -> None:
    grid = block_of(tokens.tokens(scene), "matrix")
    why = attribute(tiny_translator, scene.trace, step=3)
    assert [line["key"] for line in grid["lines"]] == list(METHODS)
    assert [column["text"] for column in grid["columns"]] == list(why.columns.labels)
    assert sum(count for _, count in grid["groups"]) == len(why.columns)
    answer = ask_why(tiny_translator, scene.trace, scene.page_question)["headline"][-1]
    assert answer.values.get("word") in (None, grid["columns"][grid["sight"]]["text"])
    for line in grid["lines"]:
        method = METHODS[line["key"]]
        if line["cells"] is None:
            assert method.slow
            (line,) = tokens.compute_row(scene, {"row": line["key"]})
        row = why.row(line["key"])
        percent = row.unit.value == "share"
        for cell, value in zip(line["cells"], row.values, strict=True):
            assert (cell is None) == bool(np.isnan(value))
            if cell:
                displayed = number(cell["text"].removesuffix("%")) / (100 if percent else 1)
                assert displayed == pytest.approx(value, abs=0.0051 if abs(value) < 1 else 0.051)
                assert cell["share"] == 0 or np.sign(cell["share"]) == np.sign(value)
        assert line["evidence"] == method.evidence.value
        assert ("the same for any contrast" in str(line["margins"][0])) == method.class_agnostic
        agreement = why.agreement[line["key"]]
        assert number(line["margins"][1][0]["text"]) == pytest.approx(agreement, abs=0.0051)
    by_layer = [
        tokens.compute_row(scene, {"row": attention.RAW.slug, "layer": layer})[0]["cells"] for layer in (0, 1, 3)
    ]
    weights = scene.trace.cross.weights[:, :, 3].mean(1)
    end = len(why.columns.source) - 1  # a column of one token
    for cells, expected in zip(by_layer, (weights.mean(0), weights[0], weights[2])):
        assert cells[end]["text"] == f"{expected[-1]:.0%}"


def test_testing_a_cell_shows_the_models_next_tokens_without_the_word(scene) -> None:
    whole = dict(zip(scene.trace.top_ids[3].tolist(), scene.trace.top_probabilities[3].tolist()))
    for name in (occlusion.MASK.slug, occlusion.MEAN.slug):
        lines = {line["key"]: line for line in block_of(tokens.tokens(scene), "matrix")["lines"]}
        text, table = tokens.remove_word(scene, {"row": name, "column": 2})
        values = text["text"].values
        assert number(values["before"]) - number(values["after"]) == pytest.approx(
            number(lines[name]["cells"][2]["text"]), abs=0.16
        )
        probable = scene.translator.tokenizer.tokens(list(whole))
        shares = {row[0]["text"]: row[1]["share"] for row in table["rows"]}
        assert all(
            share == pytest.approx(whole[i], abs=1e-4)
            for i, token in zip(whole, probable)
            for written, share in shares.items()
            if written == token
        )
        marked = [table["rows"][i] for i in table["marked"]]
        after = {row[0]["text"]: row[2]["share"] for row in marked}
        question = scene.question
        ratio = math.log(after[labels.display(question.token)] / after[labels.display(question.contrast)])
        assert ratio == pytest.approx(number(values["after"]), abs=0.06)
    for wrong in ({"row": occlusion.MASK.slug, "column": 99}, {"column": "2"}, {}):
        with pytest.raises(ValueError, match="column"):
            tokens.remove_word(scene, wrong)


def test_parts_sum_to_the_metric_and_a_heads_keys_to_the_head(scene) -> None:
    content = parts.parts(scene)
    grid, facts = block_of(content, "matrix"), block_of(content, "facts")["items"]
    total = sum(number(line["margins"][0][0]["text"]) for line in grid["lines"])
    total += sum(number(value) for _, value, _ in facts[:4])
    assert facts[4][1] == "n/a" and number(facts[5][1]) == pytest.approx(total, abs=0.06)
    whole = dict(zip(scene.trace.top_ids[3].tolist(), np.log(scene.trace.top_probabilities[3]).tolist()))
    expected = float(scene.trace.log_probability[3]) - whole[scene.question.contrast_id]
    assert number(facts[5][1]) == pytest.approx(expected, abs=0.0051)
    heads = scene.translator.config.num_heads
    for row, column in (("0", 0), ("2", heads + 1)):
        split = block_of(parts.keys(scene, {"row": row, "column": column}), "matrix")
        cell = grid["lines"][int(row)]["cells"][column]
        keys = [number(part["text"]) for part in split["lines"][0]["cells"]]
        assert sum(keys) == pytest.approx(number(cell["text"]), abs=0.0051 * (len(keys) + 1) + 0.05)
        assert len(keys) == (4 if column < heads else len(scene.trace.source_ids))
    for wrong in ({"row": "0", "column": 2 * heads}, {"row": "9", "column": 0}, {"row": 0, "column": 0}):
        with pytest.raises(ValueError, match="no head stands"):
            parts.keys(scene, wrong)


def ask_with_panels(translator, trace, question: PageQuestion) -> dict:
    """Compute the contents of all panels on a question, and return its answer."""
    scene = Scene(trace, Selection(), translator, page_question=question)
    assert tokens.tokens(scene) and parts.parts(scene) and list(holds.holds(scene, holds.MEAN))
    return ask_why(translator, trace, question)


@pytest.mark.parametrize("text", ["Hund", "Der Hund"])
def test_a_sentence_of_one_word_is_answered(tiny_translator, text) -> None:
    trace = tiny_translator.translate(text, "de-en")
    for step in (0, len(trace.target_ids) - 1):
        assert len(ask_with_panels(tiny_translator, trace, PageQuestion.of(trace, step))["headline"]) in (1, 2, 3)
    alone = Scene(trace, Selection(), tiny_translator, page_question=PageQuestion.of(trace, 0))
    assert (~alone.case.columns.special).sum() == len(text.split())
    assert "no order is informative" in list(holds.holds(alone, holds.MEAN))[-1][0]["text"]


def test_an_unfinished_translation_and_its_end_are_answered(tiny_translator, trace) -> None:
    end = tiny_translator.tokenizer.end_id
    unfinished = tiny_translator.trace(TEXT, "de-en", target=trace.target_ids[:5])
    assert not unfinished.finished
    assert len(ask_with_panels(tiny_translator, unfinished, PageQuestion.of(unfinished, 4))["headline"]) == 1
    ended = tiny_translator.trace(TEXT, "de-en", target=[*trace.target_ids[:5], end])
    answer = ask_with_panels(tiny_translator, ended, PageQuestion.of(ended, 5))
    assert answer["token"] == "</s>" and answer["tokens"][5]["symbol"]


def test_an_invalid_contrast_is_refused(tiny_translator, trace) -> None:
    """test_questions.py of the analyses tries all reasons."""
    with pytest.raises(Refusal, match="There is no text"):
        PageQuestion.of(trace, default_step(trace), "   ").question(tiny_translator, trace)


@pytest.mark.parametrize("typed", ["😀", "xq zw", "<img src=x>", "{token}"])
def test_a_contrast_of_strange_characters_is_compared_piece_by_piece(tiny_translator, trace, typed) -> None:
    answer = ask_why(tiny_translator, trace, PageQuestion.of(trace, default_step(trace), typed))
    assert answer["headline"] and typed.split()[0] in answer["note"]


def test_sixty_tokens_are_answered_and_more_are_refused(tiny_translator, monkeypatch) -> None:
    limit = tiny_translator.config.max_length
    text = " ".join(["Hund"] * 60)
    while len(tiny_translator.tokenizer.encode_source(text, "en", "de")) > limit:
        text = text.rsplit(" ", 1)[0]
    trace = tiny_translator.translate(text, "de-en")
    assert len(trace.source_ids) > 50
    last = PageQuestion.of(trace, len(trace.target_ids) - 1)
    answer = ask_why(tiny_translator, trace, last)
    assert answer["headline"] and answer["limit"] == MAX_TOKENS and answer["most"] >= len(trace.target_ids)
    assert len(trace.source_ids) + len(trace.target_ids) <= MAX_TOKENS
    limit = len(trace.source_ids) + 2
    monkeypatch.setattr("attention_atlas.viz.panels.scene.MAX_TOKENS", limit)
    answer = ask_why(tiny_translator, trace, last)
    assert f"the limit here is {limit} tokens" in answer["refused"] and len(answer["tokens"]) == len(trace.target_ids)
    assert answer["most"] == 2, "the page marks the tokens beyond the limit"
    with pytest.raises(Refusal, match=f"the limit here is {limit}"):
        tokens.tokens(Scene(trace, Selection(), tiny_translator, page_question=last))


@pytest.mark.parametrize(("token", "expected"), [("▁beer", "beer"), ("er", "…er"), ("▁", "␣"), ("▁\n", "⏎")])
def test_tokens_are_formatted_for_sentences(token, expected) -> None:
    assert token_text(token) == expected
    assert token_text(token, goes_on=True) == expected + "…"


def test_panels_of_the_tab_why_follow_the_question(tiny_translator) -> None:
    for tab in registry.TABS:
        description = registry.describe_tab(tab, [tiny_translator.config])
        assert description["asks"] == ("asked" in description["follows"]) == (tab.name == "why")


@pytest.mark.parametrize("contrast", [Against.RUNNER_UP, Against.NOTHING, 7, "Bier"])
def test_a_question_is_restored_from_json(trace, contrast) -> None:
    question = PageQuestion.of(trace, 2, contrast)
    assert PageQuestion.from_plain(json.loads(json.dumps(question.to_plain()))) == question


@pytest.mark.parametrize(
    "plain", [None, [], {}, {"step": -1, "about": []}, {"step": 1}, {"step": 1, "about": [3]}, {"step": 1, "about": []}]
)
def test_an_invalid_question_is_the_default_question(plain) -> None:
    assert PageQuestion.from_plain(plain) == PageQuestion()
