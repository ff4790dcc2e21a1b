"""What a Hugging Face Space needs of the repository, and ZeroGPU's process border. `make space-check` does the rest."""

from __future__ import annotations

import functools
import inspect
import multiprocessing
import pickle
from types import SimpleNamespace

import gradio as gr
import pytest
from gradio_client import Client

from model.translators import Translators
from tests.conftest import SENTENCES
from tests.server.space_check import ROOT, front_matter
from viz import shell
from viz.ui.gradio6 import lent_gpu


def test_the_front_matter_is_a_space_s():
    found = front_matter((ROOT / "README.md").read_text(encoding="utf-8"))
    assert found["sdk"] == "gradio" and (ROOT / found["app_file"]).is_file()


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("colorFrom: blue", "colorFrom: teal", "teal is no colour"),
        ("sdk: gradio", "sdkk: gradio", "sdk is missing"),
        ("license: mit", "licence: mit", "licence is no field"),
        ("emoji: ", "x: ", "emoji is missing"),
        ("sdk_version: ", "sdk_version: 1", "is not the gradio of constraints"),
        ("short_description: ", "short_description: " + "x" * 60, "longer than 60"),
        ("---\n", "", "does not begin"),
    ],
)
def test_a_wrong_front_matter_is_refused(old, new, words):
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert old in text
    with pytest.raises(ValueError, match=words):
        front_matter(text.replace(old, new, 1))


class LentProcess:
    """Stands for the package `spaces` on ZeroGPU: handlers run in a forked process; values cross pickled."""

    config = SimpleNamespace(Config=SimpleNamespace(zero_gpu=True))

    def __init__(self) -> None:
        self.ran: list[str] = []

    def GPU(self, *, duration: int):
        assert 0 < duration <= 60

        def decorate(handler):
            if inspect.isgeneratorfunction(handler):
                whole = self.GPU(duration=duration)(functools.wraps(handler)(_listed(handler)))
                return functools.wraps(handler)(lambda *args: (part for part in whole(*args)))

            @functools.wraps(handler)
            def lent(*args):
                self.ran.append(handler.__name__)
                near, far = multiprocessing.get_context("fork").Pipe()
                process = multiprocessing.get_context("fork").Process(
                    target=lambda: far.send_bytes(pickle.dumps(handler(*pickle.loads(crossing))))
                )
                crossing = pickle.dumps(args)
                process.start()
                assert near.poll(20)
                result = pickle.loads(near.recv_bytes())
                process.join(10)
                return result

            return lent

        return decorate


def _listed(handler):
    """All that a generator yields, at once: `spaces` sends it one by one."""
    listed = lambda *args: [*handler(*args)]  # noqa: E731
    return listed


def test_handlers_that_use_the_model_cross_to_the_lent_process(serve, tiny_checkpoint):
    spaces = LentProcess()
    translators = Translators.load(tiny_checkpoint.parent, "cpu")
    demo = shell.build(translators)
    translators.to("cpu")  # as main() does with "cuda"
    lent_gpu.wrap_for_zero_gpu(demo, spaces)
    translator, expected = translators["de-en"], Translators.load(tiny_checkpoint.parent, "cpu")["de-en"]
    client = Client(serve(demo), verbose=False, analytics_enabled=False)
    answer = client.predict(SENTENCES[2], api_name="/translate")
    assert answer["translation"] == expected.translate(SENTENCES[2]).translation
    assert client.predict(SENTENCES[2], [], api_name="/step")["status"] == "ok"
    assert client.predict("", api_name="/translate")["message"].startswith("The text is empty")
    assert spaces.ran == ["translate", "step", "translate"]
    assert translator.requests._workers == 0, "the model ran in the app's own process"


def test_an_event_is_reduced_to_its_data_before_it_crosses():
    event = gr.EventData(gr.Button(), {"text": "Hund"})
    lent = lent_gpu._on_lent_gpu(lambda direction, event: (direction, event._data), LentProcess())
    assert lent("de-en", event) == ("de-en", {"text": "Hund"})


def test_a_handler_that_streams_is_lent_as_one():
    spaces = SimpleNamespace(
        GPU=lambda duration: (
            lambda task: functools.partial(
                lambda *values: [*task(*values)] if inspect.isgeneratorfunction(task) else None
            )
        )
    )

    def stream(count: int, event: gr.EventData):
        yield from (f"{event._data} {i}" for i in range(count))

    lent = lent_gpu._on_lent_gpu(stream, spaces)
    assert inspect.isgeneratorfunction(lent), "or Gradio takes no part of it"
    assert [*lent(2, gr.EventData(gr.Button(), "step"))] == ["step 0", "step 1"]


def test_what_the_page_remembers_crosses_too(tiny_translator):
    demo = shell.build(Translators([tiny_translator]))
    states = [block.value for block in demo.blocks.values() if isinstance(block, gr.State)]
    assert len(states) >= 4
    for value in states:
        assert type(pickle.loads(pickle.dumps(value))) is type(value)


def test_every_handler_that_uses_the_model_says_so(tiny_translator):
    """Without its concurrency_id a handler would run the model outside the lent process, and unbounded."""
    demo = shell.build(Translators([tiny_translator]))
    named = {f.fn.__name__ for f in demo.fns.values() if f.fn and f.concurrency_id in lent_gpu.MODEL_EVENTS}
    assert {"translate", "cut_open", "attention", "step", "score"} <= named


def test_the_pages_questions_are_lent_a_gpu_as_calls_of_the_queue(serve, tiny_checkpoint):
    spaces = LentProcess()
    translators = Translators.load(tiny_checkpoint.parent, "cpu")
    demo = shell.build(translators, zero_gpu=True)
    lent_gpu.wrap_for_zero_gpu(demo, spaces)
    client = Client(serve(demo), verbose=False, analytics_enabled=False)
    question = {"address": {"text": SENTENCES[2]}, "fields": {"panel": "logits"}}
    found = client.predict(question, api_name="/page_panel")
    assert found["blocks"], repr(found)[:300]
    refused = client.predict({"fields": {"panel": "none"}}, api_name="/page_panel")
    assert refused["error"] == "invalid" and spaces.ran == ["page_panel"] * 2
    assert not [name for name in client.view_api(return_format="dict")["named_endpoints"] if "page_" in name]


def test_without_spaces_nothing_is_wrapped(tiny_translator):
    demo = shell.build(Translators([tiny_translator]))
    before = [f.fn for f in demo.fns.values()]
    lent_gpu.wrap_for_zero_gpu(demo, None)
    assert [f.fn for f in demo.fns.values()] == before
