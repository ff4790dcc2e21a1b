"""Where the page's questions are answered: what a handler is given, and what becomes of what it cannot answer."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace

import gradio as gr
from gradio.events import Dependency

from model.serve.limits import BatchLimits
from model.serve.turns import Turns
from model.trace.language import Words, words_of
from model.translators import Translators
from viz.ui.component import PRIVATE, Component
from viz.ui.rpc import Message
from viz.ui.server.discreet_log import describe
from viz.words import say

MAX_WAITING = 32  # handlers outside the queue: each that waits holds one of the server's threads
Find = Callable[..., dict | tuple]  # (message, *values) -> content, or (content, *values of other components)
log = logging.getLogger(__name__)


class Desk:
    """All questions of one component go through it: each is answered, in words if it cannot be."""

    def __init__(self, component: Component, turns: Turns) -> None:
        self.component, self.turns = component, turns

    def answers(
        self,
        event: str,
        find: Find,
        inputs: Sequence[gr.components.Component] = (),
        others: Sequence[gr.components.Component] = (),
        *,
        turn: bool = False,
        refused: Callable[[Message, Words | str], dict] = lambda message, words: {"error": words},
        **options: object,
    ) -> Dependency:
        """Answer an event of the component with what find(message, *values of the inputs) gives: content, or a tuple
        of it and the values of `others`, which otherwise stay as they are. turn: find() runs the model outside the
        queue, and waits for its turn. refused: the content where there is no answer. options: of Gradio's listener.
        Seven parameters, therefore."""

        def handle(event: gr.EventData, *values: object) -> object:
            message, rest = Message.of(event), [gr.skip()] * len(others)
            try:
                with self.turns.one() if turn else nullcontext():
                    content = find(message, *values)
                if isinstance(content, tuple):
                    content, *rest = content
                answer = message.answer(**content)
            except Exception as error:  # the outermost edge: nothing of ours is above it
                answer, rest = message.answer(**refused(message, refusal(error))), [gr.skip()] * len(others)
            return [answer, *rest] if others else answer

        return self._listen(event, handle, inputs, others, options)

    def _listen(self, event: str, handle: Callable, inputs: Sequence, others: Sequence, options: dict) -> Dependency:
        handle.__name__ = event
        options = {"trigger_mode": "multiple", **PRIVATE, **options}
        return getattr(self.component, event)(handle, list(inputs), [self.component, *others], **options)


def turns_for(translators: Translators) -> Turns:
    """As many passes at once as requests have, and no more in line than the server can bear."""
    limits: BatchLimits = next(iter(translators.values())).limits
    return Turns(replace(limits, waiting=min(limits.waiting, MAX_WAITING)))


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
