"""The page's opening in browsers set to English."""

from __future__ import annotations

from attention_atlas.model.translators import Translators
from attention_atlas.viz.questions import opening
from attention_atlas.viz.questions.registry import Context
from attention_atlas.viz.questions.traces import Traces


def test_an_english_browser_opens_the_first_direction_backwards(shipped_translators) -> None:
    route = opening.own_route(shipped_translators)
    assert route.direction == "en-de"
    context = Context(shipped_translators, Traces(shipped_translators))
    answer = opening.describe(context, route)
    text = answer["text"]
    assert answer["examples"]["offer"]["sentences"][0] == text
    assert answer["entry"] == answer["examples"]["entry"] == route.label
    assert "".join(word["gap"] + word["text"] for word in answer["translation"]["read"]) == text
    assert answer["explorer"]["address"]["direction"] == "en-de"
    assert answer["translation"]["text"] == shipped_translators[route.label].translate(text, "en-de").translation


def test_there_is_no_second_opening_without_a_route_from_english(shipped_translators) -> None:
    recurrent = next(translator for translator in shipped_translators.all if translator.directions == ("de-en",))
    assert opening.own_route(Translators([recurrent])) is None
    english = next(translator for translator in shipped_translators.all if "en-de" in translator.directions)
    if english.directions[0].startswith("en"):
        assert opening.own_route(Translators([english])) is None  # the page opens with it anyway
