"""Check that attention_atlas/app.py and viz/ use Gradio only through its documented interface.

There is one exception: viz/shell.py hands `demo.server`, uvicorn's server, to viz/server/guard.py, which closes
connections on which no request arrives."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests import ROOT

SOURCES = sorted([ROOT / "attention_atlas" / "app.py", *ROOT.glob("viz/**/*.py")])
NAMES = (
    "Blocks", "Button", "Column", "Dropdown", "HTML", "I18n", "Request", "Row", "Tab", "Tabs", "Textbox", "api", "on",
    "themes",
)  # fmt: skip
# `app` is the Starlette application that launch() returns.
DOCUMENTED = {*(f"gr.{name}" for name in NAMES), "demo.queue", "demo.launch", "demo.close", "app.state"}


def uses(source: str) -> Iterator[str]:
    """Yield what a module uses of Gradio: imports from its modules, and attributes of gr, demo and app."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names=names):
                yield from (f"import {alias.name}" for alias in names if alias.name.startswith(("gradio.", "gradio_")))
            case ast.ImportFrom(module=str(module)) if module.split(".")[0] in ("gradio", "gradio_client"):
                yield f"from {module} import"
            case ast.Attribute(value=ast.Name(owner) | ast.Attribute(attr=owner), attr=name) if owner in (
                "gr",
                "demo",
                "app",
            ):
                yield f"{owner}.{name}"


def test_only_documented_names_of_gradio_are_used() -> None:
    undocumented = {
        f"{path.relative_to(ROOT).as_posix()}: {use}"
        for path in SOURCES
        for use in uses(path.read_text(encoding="utf-8"))
        if use not in DOCUMENTED
    }
    assert len(SOURCES) > 60 and undocumented == {"viz/shell.py: demo.server"}
