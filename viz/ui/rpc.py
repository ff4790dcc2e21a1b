"""Messages of the page and their answers, in one form for every component. viz/web/core/rpc.js is the other end.

A question is a component's event whose data has an "id": the page numbers whatever it asks, of any component. What else
the data says is the question's own, such as what the page holds already. Gradio passes every question on, also while an
earlier one is under way, so answers come in any order. The last question wins because its number goes wherever its
answer goes: a component drops what was asked before what it shows, and a visitor's state keeps the value of the later
question (`Message.state`, viz/ui/gradio6/visitors.py).

Whatever the server sends to a component is its next value, {"id", "after", "mark", "json"}:

    id     of the component's own question that is answered; None for all else
    after  of another component's question that this follows from; None for what the server tells unasked
    mark   makes values differ that say the same: Gradio passes none on to the page that equals the one before. All
           values that answer one event have the same
    json   the content as text: of a nested value Gradio's page would make thousands of observed objects first

A question may be answered several times, each answer whole and in place of the one before, which the page may never
have seen: of values that arrive together, Gradio passes on the last. An error is {"error": words}.
"""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass, field

import gradio as gr

from model.trace import is_whole
from model.trace.language import words_of
from viz.ui.gradio6.visitors import latest
from viz.words import for_page


@dataclass(frozen=True)
class Message:
    """What the page sends. id: None for an event without a number, of a control or a state of Gradio's."""

    id: int | None = None
    data: dict = field(default_factory=dict)
    mark: str = field(default_factory=lambda: secrets.token_hex(4))

    @classmethod
    def of(cls, event: gr.EventData | None) -> Message:
        data = getattr(event, "_data", None)
        data = data if isinstance(data, dict) else {}
        number = data.get("id")
        return cls(number if is_whole(number) else None, data)

    def answer(self, **content: object) -> dict:
        """The next value of the component that asked. content: JSON-ready, with Words as they are; no NaN."""
        return {"id": self.id, "after": None, "mark": self.mark, "json": _text(content)}

    def failed(self, error: Exception) -> dict:
        """The same for what cannot be answered: why, in words."""
        return self.answer(error=words_of(error))

    def tells(self, **content: object) -> dict:
        """The next value of another component than the one that asked."""
        return {**self.answer(**content), "id": None, "after": self.id}

    def state(self, value: object) -> object:
        """The next value of a state, unless that has the value of a later question already."""
        return value if self.id is None else latest(self.id, value)


def _text(content: dict) -> str:
    # Compact, and letters as themselves: Gradio writes this text into JSON once more, which doubles each escape.
    # (Half a surrogate pair, which UTF-8 cannot write, is refused with the text it stands in.)
    return json.dumps(for_page(content), allow_nan=False, ensure_ascii=False, separators=(",", ":"))


def told(**content: object) -> dict:
    """A component's next value that answers no question."""
    return Message().answer(**content)


# JavaScript for listeners without a handler, by which the page talks to itself and the server has no part in it.


def dispatches(name: str, *fields: str) -> str:
    """The page's scripts hear a DOM event of this name, as soon as one of them listens. fields: names in its detail for
    what the listener's inputs hold."""
    listed = ", ".join(fields)
    return (
        f"({listed}) => {{ const told = new CustomEvent('{name}', {{ detail: {{ {listed} }}, cancelable: true }}); "
        "const tell = () => void (document.dispatchEvent(told) && requestAnimationFrame(tell)); tell(); }"
    )


def fills(name: str, *fields: str) -> str:
    """The listener's outputs become what the page's scripts put into the detail of a DOM event of this name, field by
    field; what they leave out stays."""
    return (
        f"() => {{ const found = {{}}; document.dispatchEvent(new CustomEvent('{name}', {{ detail: found }})); "
        f"return [{', '.join(f'found.{one}' for one in fields)}]; }}"
    )
