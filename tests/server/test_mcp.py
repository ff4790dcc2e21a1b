"""Tests of the endpoints as tools of the Model Context Protocol, called by its own client."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from attention_atlas.viz.server.api import ENDPOINTS
from bench.load import APP, JSON, Caller, running_app, running_server
from tests import run

SECRET = "Geheimnisvollerweise"
EXTRA = Path(sys.prefix) / "mcp" / "bin" / "python"  # `make test` installs requirements-mcp.txt there

# Reads calls, [[tool, arguments], ..], and writes what the server lists and answers.
CLIENT = """
import asyncio, json, sys
from mcp import ClientSession
from mcp.client.streamable_http import streamablehttp_client

async def main(url, calls):
    async with streamablehttp_client(url) as (read, write, _), ClientSession(read, write) as session:
        await session.initialize()
        tools = (await session.list_tools()).tools
        answers = [await session.call_tool(tool, arguments) for tool, arguments in calls]
        print(json.dumps({"tools": [tool.model_dump() for tool in tools],
                          "answers": [answer.content[0].text for answer in answers]}))

asyncio.run(main(sys.argv[1], json.loads(sys.argv[2])))
"""


@pytest.fixture(scope="module")
def url(tiny_checkpoint: Path) -> Iterator[str]:
    """Serve the tiny model with the extra installed."""
    if not EXTRA.is_file():
        pytest.skip(f"requirements-mcp.txt is not installed in {EXTRA.parent.parent}: `make mcp` does it")
    with running_app(["--checkpoints", str(tiny_checkpoint.parent)], python=str(EXTRA)) as (port, _):
        yield f"http://127.0.0.1:{port}/gradio_api/mcp/"


def ask(url: str, calls: list) -> dict:
    return json.loads(run([EXTRA, "-c", CLIENT, url, json.dumps(calls)], timeout=60))


@pytest.mark.long
def test_tools_answer_as_the_endpoints_do(url, tiny_translator):
    result = ask(
        url,
        [
            ["translate", {"text": "Der Hund"}],
            ["step", {"text": "Der Hund", "candidates": 3}],
            ["score", {"text": "Der Hund", "target": "The dog"}],
            ["translate", {"text": " "}],
            ["attention", {"text": "Der Hund", "kind": "cross", "layer": 1, "head": 2}],
        ],
    )
    assert {tool["name"] for tool in result["tools"]} == set(ENDPOINTS)
    assert all("text" in tool["inputSchema"]["properties"] and tool["description"] for tool in result["tools"])
    translated, stepped, scored, empty, single_map = map(json.loads, result["answers"])
    trace = tiny_translator.translate("Der Hund")
    assert translated["status"] == "ok" and translated["target_ids"] == list(trace.target_ids)
    assert len(stepped["candidates"]) == 3 and scored["status"] == "ok"
    assert empty["status"] == "error" and empty["error"] == "invalid" and "empty" in empty["message"]
    assert single_map["map"]["weights"] == pytest.approx(trace.cross.weights[1, 2], abs=1e-5)


def test_without_the_extra_there_are_no_tools(app_url):
    assert Caller(urlsplit(app_url).port).get("/gradio_api/mcp/")[0] in (404, 405)


@pytest.mark.long
def test_a_malformed_call_is_logged_without_its_text(tiny_checkpoint, tmp_path):
    if not EXTRA.is_file():
        pytest.skip("requirements-mcp.txt is not installed: `make mcp` does it")
    log, command = tmp_path / "log", (*APP, "--checkpoints", str(tiny_checkpoint.parent))
    with (
        log.open("w") as output,
        running_server(*command, python=str(EXTRA), stdout=output, stderr=output) as (port, _),
    ):
        headers = {**JSON, "Accept": "application/json, text/event-stream"}
        for method in ("tools/call", "nonsense", "initialize"):
            call = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {"name": [SECRET], "arguments": SECRET}}
            Caller(port).send("POST", "/gradio_api/mcp/", json.dumps(call).encode(), headers)
    assert "message left out" in log.read_text() and SECRET not in log.read_text()
