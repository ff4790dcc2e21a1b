"""Run the examples of docs/how-to/api.md against a served page."""

from __future__ import annotations

import contextlib
import inspect
import io
import json
import re
import subprocess

import pytest

from attention_atlas.viz.server.api import ENDPOINTS
from tests.pages import block, read

ADDRESS = "http://127.0.0.1:7860/"


def example(language: str, marker: str) -> str:
    code = block("docs/how-to/api.md", language, marker)
    assert ADDRESS in code
    return code


@pytest.fixture(scope="module")
def expected(tiny_translator):
    return tiny_translator.translate("Wo ist der Bahnhof?")


def test_the_gradio_client_example(tiny_url, expected):
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(example("python", "gradio_client").replace(ADDRESS, tiny_url), {})
    assert expected.translation in printed.getvalue()
    assert str(list(expected.cross.key_tokens)) in printed.getvalue()


def test_the_curl_example(tiny_url, expected):
    script = example("sh", "curl").replace(ADDRESS, tiny_url)
    printed = subprocess.run(["sh", "-euc", script], check=True, capture_output=True, text=True, timeout=30).stdout
    (answer,) = json.loads(printed)["data"]
    assert answer["status"] == "ok" and answer["translation"] == expected.translation


def test_the_reference_names_every_endpoint_with_its_fields():
    def describe(name: str, field: inspect.Parameter) -> str:
        return f"{name} (ids)" if "list[int]" in str(field) else name

    rows = re.findall(r"(?m)^\| `(\w+)` \| (.*) \| .+ \|$", read("docs/reference/endpoints.md"))
    assert rows == [
        (name, ", ".join(describe(*field) for field in endpoint.fields.items())) for name, endpoint in ENDPOINTS.items()
    ]
