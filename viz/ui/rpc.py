"""Questions of the page and their answers, in one form for every component. viz/web/core/rpc.js is the other end.

A question is a component's event whose data has an "id"; what else it says is the question's own, such as what the page
holds already. Whatever the server sends to a component is its next value, {"id", "at", "json"}:

    id    of the question that is answered; None for what the server tells unasked
    at    when the question came, in microseconds. It makes values differ that say the same: Gradio passes none on to
          the page that equals the one before. And the page drops what was asked before what it shows
    json  the content as text: of a nested value Gradio's page would make thousands of observed objects first

A question may be answered several times, each answer whole and in place of the one before, which the page may never
have seen: of values that arrive together, Gradio passes on the last. An error is {"error": words}.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field

import gradio as gr

from model.trace import is_whole
from model.trace.language import words_of
from viz.words import for_page


@dataclass(frozen=True)
class Question:
    """What the page asks. id: None where nobody waits for the answer by its number, as after a control of Gradio's."""

    id: int | None = None
    data: dict = field(default_factory=dict)
    at: int = field(default_factory=lambda: time.time_ns() // 1000)  # a whole number that JavaScript holds exactly

    @classmethod
    def of(cls, event: gr.EventData | None) -> Question:
        data = getattr(event, "_data", None)
        data = data if isinstance(data, dict) else {}
        number = data.get("id")
        return cls(number if is_whole(number) else None, data)

    def answer(self, **content: object) -> dict:
        """A component's next value. content: JSON-ready, with Words as they are; no NaN."""
        # Compact, and letters as themselves: Gradio writes this text into JSON once more, which doubles each escape.
        # (Half a surrogate pair, which UTF-8 cannot write, is refused with the text it stands in.)
        text = json.dumps(for_page(content), allow_nan=False, ensure_ascii=False, separators=(",", ":"))
        return {"id": self.id, "at": self.at, "json": text}

    def failed(self, error: Exception) -> dict:
        """The same for what cannot be answered: why, in words."""
        return self.answer(error=words_of(error))


def stale(components: int = 1) -> str:
    """JavaScript for a listener without a handler: tells so many components, its outputs, that what they show is out of
    date. The page says this to itself, so it cannot be late, and a change of sentence costs the server no event a tab.
    Without "at": whatever it makes old was asked before."""
    value = """{id: null, told: performance.now(), json: '{"stale":true}'}"""
    return f"() => ({value})" if components == 1 else f"() => [{', '.join([value] * components)}]"


def told(**content: object) -> dict:
    """A component's next value that answers no question."""
    return Question().answer(**content)
