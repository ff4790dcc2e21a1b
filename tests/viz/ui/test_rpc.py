"""Answers as they travel to the page."""

from __future__ import annotations

import json

import gradio as gr
import pytest

from viz.ui.gradio6.visitors import Latest
from viz.ui.rpc import Message, told
from viz.words import say


def test_an_answer_names_its_question_and_says_the_content_as_text() -> None:
    message = Message.of(gr.EventData(None, {"id": 7, "holds": [1, 2]}))
    value = message.answer(text=say("{n} tokens", n=3), path=None)
    assert value["id"] == 7 and message.data["holds"] == [1, 2]
    assert json.loads(value["json"]) == {"text": {"say": "{n} tokens", "with": {"n": 3}}, "path": None}
    assert message.answer()["mark"] == value["mark"], "answers that replace one another have one mark"
    error = json.loads(message.failed(ValueError("The text is empty: type a sentence to translate."))["json"])["error"]
    assert "The text is empty" in json.dumps(error)


@pytest.mark.parametrize("data", [None, 12, {}, {"id": "7"}])
def test_a_control_of_gradios_own_asks_without_a_number(data) -> None:
    assert Message.of(gr.EventData(None, data)).answer(blocks=[])["id"] is None
    assert Message.of(None).answer()["id"] is None


def test_equal_contents_are_values_that_differ() -> None:
    assert len({told(stale=True)["mark"] for _ in range(500)}) == 500
    assert told()["id"] is None and told()["after"] is None


def test_a_question_s_number_goes_with_what_other_components_and_states_are_told() -> None:
    message = Message.of(gr.EventData(None, {"id": 7}))
    value = message.tells(text="x")
    assert (value["id"], value["after"]) == (None, 7)
    assert message.state("x") == Latest(7, "x")
    assert Message.of(gr.EventData(None, {})).state("x") == "x"


def test_what_is_no_number_is_not_sent() -> None:
    with pytest.raises(ValueError):
        told(value=float("nan"))
