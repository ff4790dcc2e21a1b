"""Where the page's questions are answered: what a handler is given, and what becomes of what it cannot answer."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import nullcontext

import gradio as gr
from gradio.events import Dependency

from model.trace.language import Words, words_of
from viz.ui.component import Component
from viz.ui.rpc import Question
from viz.ui.server.discreet import describe
from viz.ui.session import Session
from viz.words import say

PRIVATE = {"show_progress": "hidden", "api_visibility": "private"}

log = logging.getLogger(__name__)


class Desk:
    """All questions of one component go through it: each is answered, in words if it cannot be."""

    def __init__(self, component: Component, session: Session) -> None:
        self.component, self.session = component, session

    def answers(
        self,
        event: str,
        find: Callable[..., dict | tuple],
        inputs: Sequence[gr.components.Component] = (),
        others: Sequence[gr.components.Component] = (),
        *,
        turn: bool = False,
        **options: object,
    ) -> Dependency:
        """Answer an event of the component with the content that find(question, *values of the inputs) gives, and, in a
        tuple after it, the values of `others`, which otherwise stay as they are. turn: find() runs the model outside
        Gradio's queue, and waits for its turn. options: of Gradio's listener.
        Six parameters, therefore."""
        nothing = [gr.skip()] * len(others)

        def handle(event: gr.EventData, *values: object) -> object:
            question, rest = Question.of(event), nothing
            try:
                with self.session.turns.one() if turn else nullcontext():
                    content = find(question, *values)
                if isinstance(content, tuple):
                    content, *rest = content
                answer = question.answer(**content)
            except Exception as error:  # the outermost edge: nothing of ours is above it
                answer, rest = question.answer(error=refusal(error)), nothing
            return [answer, *rest] if others else answer

        options = {"trigger_mode": "multiple", **PRIVATE, **options}
        return getattr(self.component, event)(handle, list(inputs), [self.component, *others], **options)


def refusal(error: Exception) -> Words | str:
    """Why there is no answer, in words: a ValueError's own. Any other error is a fault of ours: the log says where it
    happened, never what was asked."""
    if isinstance(error, ValueError):
        return words_of(error)
    log.error("a question of the page failed:\n%s", describe(error))
    return say(
        "This is a fault of the program ({error}), not of what you asked. Its log says where.",
        error=type(error).__name__,
    )
