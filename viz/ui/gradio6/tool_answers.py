"""Tools of the Model Context Protocol, where they are offered, answer with the same JSON as the endpoints: Gradio would
write each answer the way Python prints it."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterator

import gradio as gr

from viz.ui.gradio6.part import Part, lacking, unlike

OFFERED = importlib.util.find_spec("mcp") is not None


def answer_tools_in_json(demo: gr.Blocks) -> None:
    """For a page that is launched."""
    if PART.usable and (server := demo.mcp_server_obj) is not None:
        server.postprocess_output_data = lambda answers, root_url: [
            server.types.TextContent(type="text", text=json.dumps(answer)) for answer in answers
        ]


def _missing() -> Iterator[str]:
    if not OFFERED:
        return
    from gradio.mcp import GradioMCPServer

    yield from lacking(GradioMCPServer, "postprocess_output_data")
    yield from unlike(GradioMCPServer.postprocess_output_data, "data", "root_url")


PART = Part("tools that answer in JSON", _missing, "tools answer as Python prints")
