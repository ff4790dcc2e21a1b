"""Tests of what a Hugging Face Space needs: the front matter, and calls that cross to ZeroGPU's process. `make
space-check` tries the whole."""

from __future__ import annotations

import base64
import functools
import inspect
import json
import multiprocessing
import pickle
from types import SimpleNamespace
from urllib.parse import urlsplit

import pytest
from gradio_client import Client

from attention_atlas.model.trace import storage
from attention_atlas.model.translators import Translators
from attention_atlas.viz import shell
from attention_atlas.viz.questions.registry import QUESTIONS
from attention_atlas.viz.server.ask import lender
from bench.load import Caller
from tests.conftest import SENTENCES
from tests.server.space_check import ROOT, front_matter


def test_the_front_matter_is_valid():
    values = front_matter()
    assert values["sdk"] == "gradio" and (ROOT / values["app_file"]).is_file()


class LentProcess:
    """A stand-in for the package `spaces` on ZeroGPU: functions run in a forked process, and values are pickled."""

    config = SimpleNamespace(Config=SimpleNamespace(zero_gpu=True))

    def __init__(self) -> None:
        self.ran: list[str] = []

    def GPU(self, *, duration):
        def decorate(handler):
            if inspect.isgeneratorfunction(handler):
                # The real package sends the values one by one.
                whole = self.GPU(duration=duration)(functools.wraps(handler)(lambda *args: [*handler(*args)]))
                return functools.wraps(handler)(lambda *args: (part for part in whole(*args)))

            @functools.wraps(handler)
            def lent(*args):
                assert 0 < duration(*args) <= 60
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


@pytest.fixture
def spaces() -> LentProcess:
    return LentProcess()


@pytest.fixture
def client(serve, spaces, tiny_checkpoint) -> Client:
    translators = Translators.load(tiny_checkpoint.parent, "cpu")
    page = shell.build(translators, lender(spaces))
    translators.to("cpu")  # as main() does with "cuda"
    client = Client(serve(page), verbose=False, analytics_enabled=False)
    spaces.ran.clear()
    yield client
    assert translators["de-en"]._batcher._workers == 0, "the model ran in the app's own process"


def test_endpoints_run_in_the_lent_process(client, spaces, tiny_translator):
    answer = client.predict(SENTENCES[2], api_name="/translate")
    assert answer["translation"] == tiny_translator.translate(SENTENCES[2]).translation
    assert client.predict(SENTENCES[2], [], api_name="/step")["status"] == "ok"
    assert client.predict("", api_name="/translate")["message"].startswith("The text is empty")
    assert spaces.ran == ["translate", "step", "translate"]


def test_questions_run_in_the_lent_process(client, spaces):
    question = {"address": {"text": SENTENCES[2]}, "fields": {"panel": "logits"}}
    answer = client.predict(question, api_name="/page_panel")
    assert answer["blocks"], repr(answer)[:300]
    refused = client.predict({"fields": {"panel": "none"}}, api_name="/page_panel")
    assert refused["error"] == "invalid" and spaces.ran == ["page_panel"] * 2
    exported = {"address": question["address"], "fields": {"format": "json"}}
    file = client.predict(exported, api_name="/page_export")["file"]
    assert storage.from_json(base64.b64decode(file["data"]).decode()).source_text == SENTENCES[2]
    assert not [name for name in client.view_api(return_format="dict")["named_endpoints"] if "page_" in name]


def test_long_work_runs_in_the_lent_process(client):
    question = {"address": {"text": SENTENCES[2]}, "fields": {"panel": "heads-units"}}
    take = client.predict(question, api_name="/page_panel")["blocks"][0]
    question["fields"]["begun"] = [take["work"]]
    *work, answer = client.submit(question, api_name="/page_panel")
    assert work[0] == {"work": {"done": 1, "of": 8}} and len(answer["blocks"]) == 2


def test_the_answer_to_a_question_is_fetched_once(client):
    caller = Caller(urlsplit(client.src).port)
    body = {"data": [{"address": {"text": SENTENCES[2]}, "fields": {"panel": "logits"}}]}
    assert caller.post("/gradio_api/run/page_panel", body)[0] == 404
    event = json.loads(caller.post("/gradio_api/call/page_panel", body)[1])["event_id"]
    status, answer = caller.get(f"/gradio_api/call/page_panel/{event}")
    assert status == 200 and b"event: generating" in answer and b"event: complete" in answer
    assert caller.get(f"/gradio_api/call/page_panel/{event}")[0] == 404


def test_questions_on_the_cpu_are_not_lent_a_gpu(client, spaces):
    caller = Caller(urlsplit(client.src).port)
    on_cpu = [name for name, question in QUESTIONS.items() if question.on_cpu]
    assert on_cpu
    for name in on_cpu:
        assert caller.post(f"/gradio_api/call/{name}", {"data": [{}]})[0] == 404
        assert caller.post(f"/ask/{name}", {"fields": {}})[0] == 200
    assert spaces.ran == []


def test_a_lent_generator_function_is_a_generator_function():
    def stream(count: int):
        yield from range(count)

    lent = lender(LentProcess())(stream)
    assert inspect.isgeneratorfunction(lent), "Gradio streams generator functions only"
    assert [*lent(2)] == [0, 1]


def test_a_function_that_spaces_does_not_wrap_is_unchanged():
    lend = lender(SimpleNamespace(GPU=lambda *, duration: lambda function: function))
    assert lend(front_matter) is front_matter
