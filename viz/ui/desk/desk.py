"""Where the page's questions are answered: what a handler is given, and what becomes of what it cannot answer."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext

import gradio as gr
from gradio.events import Dependency

from model.trace.language import Words, words_of
from model.trace.translation import TranslationTrace
from model.translators import Translators
from viz.ui.asked import Asked
from viz.ui.component import Component
from viz.ui.desk.scene import Scene
from viz.ui.gradio6.discreet_log import describe
from viz.ui.rpc import Message
from viz.ui.session import Selection, Session
from viz.wire.summary import INVITATION
from viz.words import say

PRIVATE = {"show_progress": "hidden", "api_visibility": "private"}
MODEL = {
    "concurrency_id": "model"
}  # of work on the model that goes one by one, as many at once as `--concurrency` says
INVITED = {"invitation": INVITATION}

Find = Callable[..., dict | tuple]  # (message, *values) -> content, or (content, *values of other components)
log = logging.getLogger(__name__)


class Desk:
    """All questions of one component go through it: each is answered, in words if it cannot be. translators: of the
    models that can be asked; None: the traces are all there is."""

    def __init__(self, component: Component, session: Session, translators: Translators | None = None) -> None:
        self.component, self.session, self.translators = component, session, translators

    def scene(
        self, trace: TranslationTrace, selection: Selection = Selection(), asked: Asked = Asked(), drawn: object = None
    ) -> Scene:
        """What a question about a translation is about."""
        made_by = self.translators.made(trace.digest) if self.translators else None
        cache = self.session.means_cache
        return Scene(trace, selection.fitted(trace), made_by, asked, cache, self.translators, drawn)

    def about(self, find: Find, *, none: Mapping[str, object] = INVITED) -> tuple[Find, list[gr.State]]:
        """find(message, scene, *values) as answers() takes it, and the states that it then has to be given before the
        values. none: what is answered while nothing is translated."""

        def found(
            message: Message, trace: TranslationTrace | None, selection: Selection, asked: Asked, *values: object
        ) -> dict | tuple:
            if trace is None:
                return dict(none)
            return find(message, self.scene(trace, selection, asked, message.data.get("drawn")), *values)

        return found, [self.session.trace, self.session.selection, self.session.asked]

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
            if message.has_moved:
                return [message.answer(moved=True), *rest] if others else message.answer(moved=True)
            try:
                with self.session.turns.one() if turn else nullcontext():
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
