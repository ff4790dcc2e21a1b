"""Requests that cannot be answered: invalid ones get a refusal, and bugs get an internal error and a log entry."""

from __future__ import annotations

import functools
import logging
import random

import pytest

from attention_atlas.model.serve.limits import BatchLimits
from attention_atlas.model.translators import Translators
from attention_atlas.viz.questions import steps
from attention_atlas.viz.server.ask import answer_or_refusal
from attention_atlas.viz.wire import fields
from attention_atlas.viz.words import files, for_page, read

JUNK = (None, True, -1, 3, 10**30, 1.5, float("nan"), "", "b", "1", [], [None], [1, "a"], {}, {"a": 1}, [[1]])
FIELDS = ("branch", "step", "token", "text", "joined", "width", "penalty", "ids", "first", "second")


@pytest.fixture(scope="module")
def translators(tiny_translator) -> Translators:
    return Translators([tiny_translator])


def test_an_invalid_request_gets_a_refusal(caplog) -> None:
    answer = answer_or_refusal(BatchLimits(), functools.partial(fields.read_integer, {"step": "b"}, "step"))
    assert answer["error"] == "invalid" and for_page(answer["message"]) == {
        "say": "The page asked for something unknown: {what}",
        "with": {"what": "step 'b'"},
    }
    assert not caplog.records


@pytest.mark.parametrize("error", [KeyError, TypeError, IndexError, AttributeError])
def test_a_bug_gets_an_internal_error_and_a_log_entry_without_the_request(caplog, error) -> None:
    typed = "Ich bin dein Vater."

    def broken() -> dict:
        raise error(typed)

    with caplog.at_level(logging.ERROR):
        answer = answer_or_refusal(BatchLimits(), broken)
    message = answer["message"]
    assert answer["error"] == "internal" and message.values == {"error": error.__name__}
    assert all(message.english in read(path) for path in files().values())
    assert "broken" in caplog.text and error.__name__ in caplog.text and typed not in caplog.text


def test_random_requests_of_the_stepper_are_answered_or_refused(translators, tiny_translator):
    trace, generator = tiny_translator.translate("Der Hund"), random.Random(3)
    tree = steps.Tree.of(trace)
    for name, action in steps.ACTIONS.items():
        for _ in range(60):
            data = {field: generator.choice(JUNK) for field in generator.sample(FIELDS, 5)}
            data = {**({"branch": 1, "step": 1} if generator.random() < 0.5 else {}), **data}
            try:
                action(tiny_translator, tree, data)
            except ValueError:
                pass
            except Exception as error:
                pytest.fail(f"{name} {data}: {error!r}")
