"""A question that cannot be answered: in words what is asked wrongly, as a fault what is ours."""

from __future__ import annotations

import json
import logging
import random

import gradio as gr
import pytest

from model.translators import Translators
from viz.questions import steps
from viz.questions.traces import Traces
from viz.ui import rpc
from viz.ui.component import Component
from viz.ui.desk import desk, fields
from viz.ui.session import Selection, Session, turns_for

JUNK = (None, True, -1, 3, 10**30, 1.5, float("nan"), "", "b", "1", [], [None], [1, "a"], {}, {"a": 1}, [[1]])
FIELDS = ("branch", "step", "token", "text", "joined", "width", "penalty", "ids", "first", "second", "holds")


@pytest.fixture(scope="module")
def translators(tiny_translator) -> Translators:
    return Translators([tiny_translator])


@pytest.fixture()
def ask(translators):
    """ask(find, *values) -> what the component and the others are sent, as its handler gives it."""
    with gr.Blocks() as demo:
        component, state = Component("guide", None, events=("stop",)), gr.State(1)
        session = Session(gr.State(None), gr.State(Selection()), Traces(translators), turns_for(translators))

        def asked(find, others=(state,), **data):
            desk.Desk(component, session).answers("stop", find, [state], others, turn=True)
            (handler,) = [fn.fn for fn in demo.fns.values()][-1:]
            return handler(gr.EventData(None, {"id": 4, **data}), 5)

        yield asked


def content(value: dict) -> dict:
    assert value["id"] == 4
    return json.loads(value["json"])


def test_an_answer_goes_to_the_component_and_what_else_there_is_to_the_others(ask):
    value, state = ask(lambda question, given: ({"given": given}, given + 1))
    assert content(value) == {"given": 5} and state == 6
    value, state = ask(lambda question, given: {"given": given})
    assert content(value) == {"given": 5} and state == gr.skip()
    assert content(ask(lambda question, given: {"given": given}, others=())) == {"given": 5}


def test_a_page_of_another_process_is_told_so_and_nothing_else(ask):
    def found(question, given):
        return {"given": given}

    assert content(ask(found, others=(), process=rpc.PROCESS)) == {"given": 5}
    assert content(ask(found, others=(), process="another")) == {"moved": True}
    value, state = ask(found, process="another")
    assert content(value) == {"moved": True} and state == gr.skip()


def test_what_is_asked_wrongly_is_told_in_words_and_the_others_stay(ask, caplog):
    def wrong(question, given):
        fields.whole({"step": "b"}, "step")

    value, state = ask(wrong)
    assert content(value)["error"] == {
        "say": "The page asked for something unknown: {what}",
        "with": {"what": "step 'b'"},
    }
    assert state == gr.skip() and not caplog.records


@pytest.mark.parametrize("error", [KeyError, TypeError, IndexError, AttributeError])
def test_a_fault_of_ours_is_told_as_one_and_logged_without_what_was_asked(ask, caplog, error):
    typed = "Ich bin dein Vater."

    def broken(question, given):
        raise error(typed)

    with caplog.at_level(logging.ERROR):
        value, state = ask(broken)
    assert content(value)["error"]["with"] == {"error": error.__name__} and state == gr.skip()
    assert "broken" in caplog.text and error.__name__ in caplog.text and typed not in caplog.text


def test_whatever_the_page_sends_is_answered_or_refused_and_no_fault(translators, tiny_translator):
    trace, generator = tiny_translator.translate("Der Hund"), random.Random(3)
    tree = steps.Tree.of(trace)
    for name, action in steps.ACTIONS.items():
        for _ in range(60):
            data = {field: generator.choice(JUNK) for field in generator.sample(FIELDS, 5)}
            data = {**({"branch": 1, "step": 1} if generator.random() < 0.5 else {}), **data}
            if isinstance(data.get("holds"), dict):
                data["holds"] = {"tree": tree.key, "branches": generator.choice(JUNK), "path": generator.choice(JUNK)}
            try:
                action(tiny_translator, tree, data)
            except ValueError:
                pass
            except Exception as error:
                pytest.fail(f"{name} {data}: {error!r}")
